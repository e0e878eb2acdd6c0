//! The end of a generation: when an instance is stopped, all its directories get a new one.
//!
//! A copy of a directory that was made while the servers ran is then older than the directory.

use crate::agreement::Agreement;
use crate::generations::{Logs, Step};
use crate::labels::OwnDirectories;
use crate::lost_data::LostData;
use crate::started::found;
use client::{InstanceFile, ServerEntry};
use interface::UserError;

/// Gives the directories of an instance whose servers have ended a new generation, if all are on
/// this machine and hold what they held.
///
/// # Errors
/// Fails when a directory cannot be read or written, or is lost. The directories agree as before.
pub(crate) fn end_generation(file: &InstanceFile) -> Result<(), UserError> {
    let is_elsewhere = file.servers.iter().any(|server| server.host.is_some());
    if is_elsewhere || file.degraded.is_some() {
        return Ok(());
    }
    let own = file.servers.iter().map(|server| directories(file, server));
    let own = own.collect::<Result<Vec<_>, _>>()?;
    let all = file.servers.iter().zip(&own);
    let found = all.map(|(server, own)| found(server.id, &server.data, LostData::Refuse, own));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    match Agreement::of(&found, LostData::Refuse)?.step {
        Some(step) => change(file, step),
        None => Ok(()),
    }
}

/// Directories of a server, locked.
fn directories(file: &InstanceFile, server: &ServerEntry) -> Result<OwnDirectories, UserError> {
    OwnDirectories::lock(server.id, file.servers.len() as u32, &server.data, LostData::Refuse)
}

/// Changes the generation of all directories, as a start does.
fn change(file: &InstanceFile, step: Step) -> Result<(), UserError> {
    let logs = file.servers.iter().map(|server| Logs::of_server(server.id, &server.data));
    let logs: Vec<Logs> = logs.collect();
    logs.iter().try_for_each(|logs| logs.begin(step))?;
    logs.iter().try_for_each(|logs| logs.complete(step))
}
