//! Programs that `run` and `record` start: where they are, and the libraries and the environment
//! that they get.

use interface::{ExitCode, UserError};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Name of the library that takes the MPI-IO calls of a program.
pub(crate) const MPI_IO: &str = "libunisono-mpi.so";

/// Name of the library that records the calls of a program. It comes before all others, so that it
/// sees what the program calls.
pub(crate) const RECORDER: &str = "libunisono-record.so";

/// Exit codes of a program that cannot be started, as a shell has them.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Variables by which an MPI launcher tells a process how many there are.
const SIZES: [&str; 4] =
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS"];

/// Refuses to run `command` as one of many processes. `why`: what each of them would do.
pub(crate) fn refuse_ranks(command: &str, why: &str) -> Result<(), UserError> {
    let size = |name: &&str| std::env::var(name).ok()?.parse::<u32>().ok();
    match SIZES.iter().filter_map(size).max() {
        Some(size) if size > 1 => Err(UserError::usage(
            format!("unisono {command} was started by an MPI launcher"),
            format!("it is one of {size} processes, and each would {why}"),
            format!("put the launcher behind it: unisono {command} -- mpiexec -n N PROGRAM"),
        )),
        _ => Ok(()),
    }
}

/// An error of the program, and the exit code for it.
pub(crate) struct CannotStart {
    pub(crate) error: UserError,
    pub(crate) code: u8,
}

/// Finds a program as a shell does, before anything is started for it by `command`.
pub(crate) fn find(program: &OsStr, command: &str) -> Result<(), CannotStart> {
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
            let cause = format!("{} is not executable", path.display());
            cannot_start(program, command, NOT_EXECUTABLE, cause)
        }
        None => cannot_start(program, command, NOT_FOUND, "there is no such program".to_owned()),
    })
}

fn cannot_start(program: &OsStr, command: &str, code: u8, cause: String) -> CannotStart {
    let what = format!("cannot start {}", program.display());
    let help =
        format!("check the words after --: unisono {command} [OPTIONS] -- PROGRAM ARGUMENTS");
    CannotStart { error: UserError::new(ExitCode::Failed, what, cause, help), code }
}

/// Error of a program that the system did not start.
pub(crate) fn spawn_failed(program: &OsStr, command: &str, error: &std::io::Error) -> CannotStart {
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    };
    cannot_start(program, command, code, error.to_string())
}

/// Exit code of a program, as a shell has it.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1) as u8
}

/// Path of a library of this release.
///
/// # Errors
/// Fails when it is not there; `help` says how to get it or do without it.
pub(crate) fn library(name: &str, help: &str) -> Result<PathBuf, UserError> {
    let executable = std::env::current_exe().unwrap_or_default();
    let folder = executable.parent().unwrap_or(Path::new("/"));
    let candidates = [folder.join(name), folder.join("../lib").join(name)];
    match candidates.iter().find(|path| path.is_file()) {
        Some(path) => Ok(path.canonicalize().unwrap_or_else(|_| path.clone())),
        None => Err(UserError::new(
            ExitCode::Failed,
            format!("cannot find {name}"),
            format!(
                "it is neither at {} nor at {}",
                candidates[0].display(),
                candidates[1].display()
            ),
            help,
        )),
    }
}

/// Has the program load libraries, before what is preloaded already.
pub(crate) fn preload(command: &mut Command, libraries: &[PathBuf]) {
    let others = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    command.env("LD_PRELOAD", preloaded(libraries, &others));
}

/// Value of LD_PRELOAD. The recorder is always the first.
fn preloaded(libraries: &[PathBuf], others: &OsStr) -> OsString {
    let mut all: Vec<&OsStr> = libraries.iter().map(|path| path.as_os_str()).collect();
    // ld.so(8): colons or spaces are between the paths.
    for other in others.as_bytes().split(|byte| matches!(byte, b':' | b' ')) {
        let other = OsStr::from_bytes(other);
        if !other.is_empty() && !all.contains(&other) {
            all.push(other);
        }
    }
    all.sort_by_key(|path| Path::new(path).file_name() != Some(OsStr::new(RECORDER)));
    all.join(OsStr::new(":"))
}

/// Has Open MPI pass variables to processes on other hosts: `names`, and those of Unisono that are
/// set here.
pub(crate) fn export(command: &mut Command, program: &[OsString], mut names: Vec<String>) {
    // Open MPI refuses this list together with -x.
    if program.iter().any(|word| word == "-x") {
        return;
    }
    for (name, _) in std::env::vars_os() {
        let name = name.into_string().unwrap_or_default();
        if name.starts_with("UNISONO_") {
            names.push(name);
        }
    }
    let list = std::env::var("OMPI_MCA_mca_base_env_list").unwrap_or_default();
    let mut all: Vec<&str> = list.split(';').filter(|name| !name.is_empty()).collect();
    for name in &names {
        if !all.contains(&name.as_str()) {
            all.push(name);
        }
    }
    command.env("OMPI_MCA_mca_base_env_list", all.join(";"));
}

#[cfg(test)]
mod tests {
    //! Proves: the recorder is loaded before all other libraries, and each library once.
    use super::*;

    #[test]
    fn the_recorder_comes_first() {
        let libraries = [PathBuf::from("/l/libunisono-mpi.so")];
        let others = OsStr::new("/l/libunisono-record.so:/l/libunisono-mpi.so /other.so");
        let expected = "/l/libunisono-record.so:/l/libunisono-mpi.so:/other.so";
        assert_eq!(preloaded(&libraries, others), expected);
        assert_eq!(preloaded(&libraries, OsStr::new("")), "/l/libunisono-mpi.so");
    }
}
