//! The program of a run: its library, and the environment that it gets.

use crate::arguments::Run;
use crate::programs::launch;
use client::Instance;
use interface::UserError;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Directory in the instance for the report lines of the program's processes.
pub(super) const REPORT: &str = ".unisono/report";

/// Path of the library to preload; `None` with `--no-preload`.
pub(super) fn preload(arguments: &Run) -> Result<Option<PathBuf>, UserError> {
    if arguments.no_preload {
        return Ok(None);
    }
    let help = "install it with: make install   (--no-preload runs programs that need no MPI-IO)";
    launch::library(launch::MPI_IO, help).map(Some)
}

/// Command that starts the program on an instance.
pub(super) fn command(arguments: &Run, preload: Option<&PathBuf>, instance: &Instance) -> Command {
    let mut command = Command::new(&arguments.program[0]);
    command.args(&arguments.program[1..]);
    command.env("UNISONO_INSTANCE", instance.directory()).env("UNISONO_REPORT", REPORT);
    let mut names = vec!["UNISONO_INSTANCE".to_owned(), "UNISONO_REPORT".to_owned()];
    if let Some(patterns) = &arguments.in_place {
        command.env("UNISONO_IN_PLACE", patterns);
        names.push("UNISONO_IN_PLACE".to_owned());
    }
    if let Some(preload) = preload {
        launch::preload(&mut command, std::slice::from_ref(preload));
        names.push("LD_PRELOAD".to_owned());
    }
    launch::export(&mut command, &arguments.program, names);
    redirect_output(arguments, &mut command);
    command
}

/// Command that starts the program without an instance. The library to preload gives plain files
/// below `directory` to it instead of files of an instance.
pub(super) fn plain_command(
    arguments: &Run,
    preload: Option<&PathBuf>,
    directory: &Path,
) -> Command {
    let mut command = Command::new(&arguments.program[0]);
    command.args(&arguments.program[1..]).env("UNISONO_PLAIN", directory);
    if let Some(preload) = preload {
        launch::preload(&mut command, std::slice::from_ref(preload));
    }
    let names = ["UNISONO_PLAIN", "LD_PRELOAD"].map(str::to_owned).to_vec();
    launch::export(&mut command, &arguments.program, names);
    command
}

/// Leaves standard output to the report if that is a JSON object.
fn redirect_output(arguments: &Run, command: &mut Command) {
    if arguments.json
        && let Ok(errors) = std::io::stderr().as_fd().try_clone_to_owned()
    {
        command.stdout(Stdio::from(errors));
    }
}
