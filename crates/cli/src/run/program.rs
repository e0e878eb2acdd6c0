//! The program: where it is, and the environment that it gets.

use crate::arguments::Run;
use client::Instance;
use interface::{ExitCode, UserError};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Name of the library that takes the MPI-IO calls of a program.
const PRELOADED: &str = "libunisono-mpi.so";

/// Directory in the instance for the report lines of the program's processes.
pub(super) const REPORT: &str = ".unisono/report";

/// Exit codes of a program that cannot be started, as a shell has them.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Variables by which an MPI launcher tells a process how many there are.
const SIZES: [&str; 4] =
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS"];

/// Refuses to run as one of many processes: each would start servers of its own.
pub(super) fn refuse_ranks() -> Result<(), UserError> {
    let size = |name: &&str| std::env::var(name).ok()?.parse::<u32>().ok();
    match SIZES.iter().filter_map(size).max() {
        Some(size) if size > 1 => Err(UserError::usage(
            "unisono run was started by an MPI launcher",
            format!("it is one of {size} processes, and each would start servers of its own"),
            "put the launcher behind it: unisono run -- mpiexec -n N PROGRAM",
        )),
        _ => Ok(()),
    }
}

/// An error of the program, and the exit code for it.
pub(super) struct CannotStart {
    pub(super) error: UserError,
    pub(super) code: u8,
}

/// Finds a program as a shell does, before servers are started for it.
pub(super) fn find(program: &OsStr) -> Result<(), CannotStart> {
    let path = Path::new(program);
    let candidates: Vec<PathBuf> = match program.as_encoded_bytes().contains(&b'/') {
        true => vec![path.to_owned()],
        false => {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).map(|folder| folder.join(path)).collect()
        }
    };
    let found: Vec<&PathBuf> = candidates.iter().filter(|path| path.is_file()).collect();
    let can_run = |path: &&PathBuf| {
        path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
    };
    if found.iter().copied().any(|path| can_run(&path)) {
        return Ok(());
    }
    Err(match found.first() {
        Some(path) => {
            cannot_start(program, NOT_EXECUTABLE, format!("{} is not executable", path.display()))
        }
        None => cannot_start(program, NOT_FOUND, "there is no such program".to_owned()),
    })
}

fn cannot_start(program: &OsStr, code: u8, cause: String) -> CannotStart {
    let what = format!("cannot start {}", program.display());
    let help = "check the words after --: unisono run [OPTIONS] -- PROGRAM ARGUMENTS";
    CannotStart { error: UserError::new(ExitCode::Failed, what, cause, help), code }
}

/// Error of a program that the system did not start.
pub(super) fn spawn_failed(program: &OsStr, error: &std::io::Error) -> CannotStart {
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    };
    cannot_start(program, code, error.to_string())
}

/// Path of the library to preload; `None` with `--no-preload`.
pub(super) fn preload(arguments: &Run) -> Result<Option<PathBuf>, UserError> {
    if arguments.no_preload {
        return Ok(None);
    }
    let executable = std::env::current_exe().unwrap_or_default();
    let folder = executable.parent().unwrap_or(Path::new("/"));
    let candidates = [folder.join(PRELOADED), folder.join("../lib").join(PRELOADED)];
    match candidates.iter().find(|path| path.is_file()) {
        Some(path) => Ok(Some(path.canonicalize().unwrap_or_else(|_| path.clone()))),
        None => Err(UserError::new(
            ExitCode::Failed,
            format!("cannot find {PRELOADED}"),
            format!(
                "it is neither at {} nor at {}",
                candidates[0].display(),
                candidates[1].display()
            ),
            "install it with: make install   (--no-preload runs programs that need no MPI-IO)",
        )),
    }
}

/// Command that starts the program on an instance.
pub(super) fn command(arguments: &Run, preload: Option<&Path>, instance: &Instance) -> Command {
    let mut command = Command::new(&arguments.program[0]);
    command.args(&arguments.program[1..]);
    command.env("UNISONO_INSTANCE", instance.directory()).env("UNISONO_REPORT", REPORT);
    let mut names = vec!["UNISONO_INSTANCE".to_owned(), "UNISONO_REPORT".to_owned()];
    if let Some(preload) = preload {
        command.env("LD_PRELOAD", preloaded(preload, std::env::var_os("LD_PRELOAD")));
        names.push("LD_PRELOAD".to_owned());
    }
    for (name, _) in std::env::vars_os() {
        let name = name.into_string().unwrap_or_default();
        if name.starts_with("UNISONO_") && !names.contains(&name) {
            names.push(name);
        }
    }
    // Open MPI refuses this list together with -x.
    if !arguments.program.iter().any(|word| word == "-x") {
        let list = std::env::var("OMPI_MCA_mca_base_env_list").ok();
        let list = list.filter(|list| !list.is_empty()).into_iter().chain(names);
        command.env("OMPI_MCA_mca_base_env_list", list.collect::<Vec<_>>().join(";"));
    }
    if arguments.json
        && let Ok(errors) = std::io::stderr().as_fd().try_clone_to_owned()
    {
        command.stdout(Stdio::from(errors));
    }
    command
}

/// The library, before what is preloaded already.
fn preloaded(library: &Path, others: Option<OsString>) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}
