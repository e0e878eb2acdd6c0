//! Shared parts of the tests: the library and the command as cargo builds them, C programs,
//! servers.
//!
//! `cargo test` builds neither a static library nor a command of another package, so the tests ask
//! cargo for both, in the profile that they are themselves of. `cargo x test` has built them, and
//! says so by a variable; asked again, cargo would compile half of the workspace with other
//! features.

#![allow(clippy::unwrap_used, dead_code, reason = "a test may panic, and uses what it needs")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Seconds after which a program is killed; no test needs a fraction of it.
const LIMIT_SECONDS: &str = "300";

/// Flags that every program is compiled with.
const STRICT: [&str; 5] = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"];

/// Flags that find what the strict ones cannot, with those of a [`Sanitizer`].
const CHECKED: [&str; 3] = ["-g", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"];

/// Checks of gcc that a program is compiled with.
#[derive(Clone, Copy)]
pub(crate) enum Sanitizer {
    /// Addresses and undefined behaviour.
    AddressAndUndefined,
    /// Undefined behaviour only, for programs that fork. The allocator of the address sanitizer of
    /// gcc 12 does not expect a fork: if another thread allocates at the time, a lock of it stays
    /// locked in the child. That of the C library does.
    Undefined,
}

impl Sanitizer {
    fn flag(self) -> &'static str {
        match self {
            Self::AddressAndUndefined => "-fsanitize=address,undefined",
            Self::Undefined => "-fsanitize=undefined",
        }
    }
}

/// Libraries that Rust's static libraries need.
const NEEDED: [&str; 6] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"];

/// The folder of this package.
pub(crate) fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a file of this package.
pub(crate) fn text(path: &str) -> String {
    std::fs::read_to_string(package().join(path)).unwrap()
}

/// The folder that cargo builds to: that of the profile of this test.
pub(crate) fn built_directory() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().to_owned()
}

/// Name of the profile of this test.
pub(crate) fn profile() -> String {
    match built_directory().file_name().unwrap().to_str().unwrap() {
        "debug" => "dev".to_owned(),
        profile => profile.to_owned(),
    }
}

/// True if the command and the library are built, as `cargo x test` says.
pub(crate) fn is_built() -> bool {
    std::env::var_os("UNISONO_TEST_BUILT").is_some()
}

/// The folder with `unisono` and `libunisono.a`, which are built.
pub(crate) fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        if is_built() {
            return built_directory();
        }
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--locked", "--package", "cli", "--package", "c-api"]);
        cargo.args(["--profile", &profile()]).current_dir(package());
        done(cargo);
        built_directory()
    })
}

/// Runs a command to its end, which must be success; returns its standard output.
#[track_caller]
pub(crate) fn done(mut command: Command) -> String {
    let shown = format!("{command:?}");
    let output = command.output().unwrap_or_else(|error| panic!("{shown}: {error}"));
    let Output { status, stdout, stderr } = output;
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{shown}: {status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// Servers of an instance in a directory of their own; they end with it.
pub(crate) struct Servers {
    pub(crate) directory: tempfile::TempDir,
}

impl Servers {
    /// Two servers.
    pub(crate) fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("unisono-c-").tempdir().unwrap();
        let servers = Self { directory };
        done(servers.command(&["start", "--servers", "2"]));
        servers
    }

    /// A path in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A command about the instance.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(built().join("unisono"));
        command.args(words).env("UNISONO_ALLOW_ROOT", "true");
        command.env("UNISONO_INSTANCE", self.path("instance"));
        command
    }

    /// A program of the test, which uses the instance.
    pub(crate) fn program(&self, program: &Path) -> Command {
        // Killed by another program, so that a hang is a failure.
        let mut command = Command::new("timeout");
        command.args(["-k", "5", LIMIT_SECONDS]).arg(program);
        command.env("UNISONO_INSTANCE", self.path("instance")).env_remove("UNISONO_TIMEOUT");
        command
    }

    /// Compiles a program of `tests/c` with all checks, and runs it to its end.
    #[track_caller]
    pub(crate) fn run(&self, name: &str, environment: &[(&str, &str)]) -> String {
        self.run_with(Sanitizer::AddressAndUndefined, name, environment)
    }

    /// [`Servers::run`] with other checks.
    #[track_caller]
    pub(crate) fn run_with(
        &self,
        sanitizer: Sanitizer,
        name: &str,
        environment: &[(&str, &str)],
    ) -> String {
        let program = self.path(name);
        compile_with(sanitizer, name, &program);
        let mut command = self.program(&program);
        command.envs(environment.iter().copied());
        done(command)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // What does not stop now ends with the test's machine.
        let _ = self.command(&["stop"]).output();
    }
}

/// Compiles a program of `tests/c` against the static library, with all checks.
#[track_caller]
pub(crate) fn compile(name: &str, program: &Path) {
    compile_with(Sanitizer::AddressAndUndefined, name, program);
}

#[track_caller]
fn compile_with(sanitizer: Sanitizer, name: &str, program: &Path) {
    let mut gcc = Command::new("gcc");
    gcc.args(STRICT).args(CHECKED).arg(sanitizer.flag());
    gcc.arg("-I").arg(package().join("include"));
    gcc.arg("-o").arg(program).arg(package().join(format!("tests/c/{name}.c")));
    gcc.arg(built().join("libunisono.a")).args(NEEDED);
    done(gcc);
}

/// Functions that the header declares, each with its declaration, in the order of the header.
pub(crate) fn declared() -> Vec<(String, String)> {
    declared_in("include/unisono.h")
}

/// Functions that the library exports: those of the header, and those for the recorder.
pub(crate) fn all_declared() -> Vec<(String, String)> {
    let mut all = declared();
    all.extend(declared_in("include/unisono_trace.h"));
    all
}

fn declared_in(header: &str) -> Vec<(String, String)> {
    let header = without_comments(&text(header));
    let lines = header.lines().filter(|line| !line.trim_start().starts_with('#'));
    let code = lines.collect::<Vec<_>>().join(" ");
    let is_function = |statement: &&str| {
        !statement.contains(['{', '}']) && !statement.contains("typedef") && statement.contains('(')
    };
    let code = code.replace("extern \"C\" {", "");
    code.split(';').filter(is_function).map(plain).map(|one| (name_of(&one), one)).collect()
}

/// Name of the function that a declaration declares.
pub(crate) fn name_of(declaration: &str) -> String {
    let before = declaration.split('(').next().unwrap();
    before.rsplit([' ', '*']).next().unwrap().to_owned()
}

/// A declaration with single spaces.
pub(crate) fn plain(declaration: &str) -> String {
    declaration.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |code, part| code + part.split_once("*/").map_or("", |(_, code)| code))
}
