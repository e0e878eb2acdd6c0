//! Start of an instance on hosts, as seen by the command.

use super::control::{SupervisorAnswer, SupervisorOrder};
use super::launcher::Launcher;
use super::options::HostOptions;
use super::placement::Placement;
use crate::control::{line, receive};
use crate::instance::{begin_start, make_ready};
use crate::leftovers::{KEEPER_LOG, open_log};
use crate::process::{Program, cannot_start};
use client::{Instance, InstanceFile};
use interface::{ExitCode, UserError};
use std::io::{BufReader, Write};
use std::process::Stdio;

/// Starts a server at each placement, through launchers that run as long as the servers.
///
/// # Errors
/// Fails when a server does not start. Then all servers that did have been ended.
pub fn start_on_hosts(
    instance: &Instance,
    program: &Program,
    launcher: &Launcher,
    placements: Vec<Placement>,
    options: HostOptions,
) -> Result<InstanceFile, UserError> {
    let _starting = begin_start(instance)?;
    make_ready(instance)?;
    let log_path = instance.directory().join(KEEPER_LOG);
    let log = open_log(&log_path)?;
    let directory = instance.directory().display().to_string();
    let mut command = program.command(&["keep".to_owned(), "--instance".to_owned(), directory]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).current_dir("/");
    let mut supervisor = command.spawn().map_err(|error| cannot_start(&command, &error))?;
    let order = SupervisorOrder {
        launcher: launcher.clone(),
        program: options.remote_program.clone().unwrap_or_else(|| program.path.clone()),
        placements,
        options,
    };
    if let Some(input) = &mut supervisor.stdin {
        // If the supervisor does not listen, it does not answer either.
        let _ = input.write_all(line(&order).as_bytes());
    }
    let answer = supervisor.stdout.take().map(|output| receive(&mut BufReader::new(output)));
    match answer {
        Some(Ok(SupervisorAnswer::Running(file))) => Ok(file),
        Some(Ok(SupervisorAnswer::Failed(failure))) => Err(failure.into()),
        Some(Err(_)) | None => Err(UserError::new(
            ExitCode::Failed,
            "the supervisor of the launchers has ended",
            "it gave no reason",
            format!("see {}", log_path.display()),
        )),
    }
}
