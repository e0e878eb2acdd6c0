//! The start of a server, as the server sees it.
//!
//! Invariant: a server serves no client, and its labels are provisional, until the start is
//! complete. If its starter ends before, it ends too.

use crate::control::{Commit, Found, Permission, ServerMessage, receive, report};
use crate::data::has_catalogue;
use crate::generations::{FoundDisk, Logs, of_catalogue, of_disk};
use crate::labels::{OwnDirectories, has_objects};
use crate::lost_data::LostData;
use crate::memory::{give_back_empty, refuse_lost};
use crate::server::{ServerPlan, serve_plan};
use interface::{ExitCode, UserError};
use policy::Extensions;
use serde::de::DeserializeOwned;
use std::cell::RefCell;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use tokio::sync::oneshot;
use world::Address;
use world_real::Generations;

/// Meaning of the end of standard input.
pub(crate) struct Bond {
    /// Returns what the message would be if the start is complete although no message says so: the
    /// starter may have ended in between.
    pub(crate) is_committed: Box<dyn FnOnce() -> Option<Commit> + Send>,
    /// True if the server ends with its standard input also after the start.
    pub(crate) ends_with_input: bool,
}

/// Serves as its starter permits: reports the labels that `begun` leads to, labels the directories,
/// listens, and serves when the start is complete. It offers these extensions.
/// Ends when a client, SIGTERM or the end of `also` asks for it, or at the end of standard input.
///
/// # Errors
/// Fails when it cannot start, which it also reports to the starter, or cannot write everything
/// back.
pub(crate) fn serve_started(
    begun: Result<ServerPlan, UserError>,
    bond: Bond,
    also: impl Future<Output = ()>,
    extensions: Extensions,
) -> Result<(), UserError> {
    let mut is_serving = false;
    let served = begun.and_then(|plan| {
        let own = OwnDirectories::lock(plan.id, plan.servers, &plan.data, plan.lost_data)?;
        plan.data.iter().try_for_each(|directory| refuse_lost(directory, plan.id))?;
        report(&ServerMessage::Found(found(plan.id, &plan.data, plan.lost_data, &own)?));
        let Permission { set, step, generation, lost } = receive_order()?;
        let lost = match plan.lost_data {
            LostData::Degraded => lost,
            LostData::Refuse | LostData::Refill { .. } => {
                own.label(&set, &lost)?;
                // New ones have taken their places.
                Vec::new()
            }
        };
        let logs = Logs::of_server(plan.id, &plan.data);
        if let Some(step) = step {
            logs.begin(step)?;
        }
        let plan = ServerPlan { generation, lost, ..plan };
        let complete = || {
            own.complete()?;
            step.map_or(Ok(()), |step| logs.complete(step))
        };
        let memory = plan.memory_bytes.and_then(|_| plan.data.first().cloned());
        let (committed, input_ended) = watch_input(bond, memory);
        let refused = RefCell::new(None);
        let ready = |address: &Address| {
            let (address, pid) = (address.0.clone(), std::process::id());
            report(&ServerMessage::Listening { address, pid });
            // Without a start that is complete, there is nothing to do.
            let committed = committed.recv().map_err(|_| abandoned());
            match committed.and_then(|commit| complete().map(|()| commit)) {
                Ok(Commit { addresses }) => {
                    is_serving = true;
                    report(&ServerMessage::Serving);
                    addresses
                }
                Err(error) => {
                    refused.replace(Some(error));
                    Vec::new()
                }
            }
        };
        let also = async {
            if refused.borrow().is_none() {
                tokio::select! {
                    () = input_ended => {}
                    () = also => {}
                }
            }
        };
        serve_plan(plan, extensions, ready, also)?;
        refused.take().map_or(Ok(()), Err)
    });
    served.inspect_err(|error| {
        if !is_serving {
            report(&ServerMessage::Failed(error.clone().into()));
        }
    })
}

/// Looks into the directories `data` of server `id`, which are locked. Takes the room for a
/// new generation, unless nothing may be changed.
pub(crate) fn found(
    id: u32,
    data: &[PathBuf],
    lost_data: LostData,
    own: &OwnDirectories,
) -> Result<Found, UserError> {
    let first = data.first().filter(|_| id == 0);
    let logs = Logs::of_server(id, data);
    let disk = |(path, absent): (&Path, Option<&str>)| {
        let generations = if absent.is_some() { Generations::default() } else { of_disk(path)? };
        let (absent, has_objects) = (absent.map(str::to_owned), has_objects(path));
        Ok::<_, UserError>(FoundDisk { generations, absent, has_objects })
    };
    Ok(Found {
        data: data.to_vec(),
        labels: own.labels()?,
        disks: own.absent().map(disk).collect::<Result<_, _>>()?,
        catalogue: first.map_or(Ok(Generations::default()), |first| of_catalogue(first))?,
        has_room: !lost_data.is_degraded() && logs.reserve()?,
        has_catalogue: first.is_some_and(|first| has_catalogue(first)),
        has_objects: data.iter().any(|directory| has_objects(directory)),
    })
}

/// Reads the rest of standard input. Returns the arrival of the commit, and the end of the input if
/// it ends the server. Ends this process when the input ends before the start is complete, and
/// gives its memory back, whose directory is `memory`.
fn watch_input(
    bond: Bond,
    memory: Option<PathBuf>,
) -> (mpsc::Receiver<Commit>, impl Future<Output = ()>) {
    let (commit, committed) = mpsc::channel();
    let (end, ended) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let Some(committed) = receive(&mut input).ok().or_else(bond.is_committed) else {
            // The log may be gone.
            let _ = writeln!(std::io::stderr(), "{}", abandoned());
            if let Some(directory) = memory {
                give_back_empty(&directory);
            }
            std::process::exit(ExitCode::NoServer as i32);
        };
        // The server may be ending already.
        let _ = commit.send(committed);
        let mut rest = [0; 256];
        while matches!(input.read(&mut rest), Ok(read) if read > 0) {}
        if bond.ends_with_input {
            // The server may be ending already.
            let _ = end.send(());
        } else {
            std::mem::forget(end);
        }
    });
    (committed, async { _ = ended.await })
}

/// Receives a message of the starter.
pub(crate) fn receive_order<T: DeserializeOwned>() -> Result<T, UserError> {
    receive(&mut std::io::stdin().lock()).map_err(|error| {
        UserError::new(
            ExitCode::NoServer,
            "this server received no orders",
            error.to_string(),
            "start servers with: unisono start",
        )
    })
}

fn abandoned() -> UserError {
    UserError::new(
        ExitCode::NoServer,
        "the start of this server was interrupted",
        "the process that started it has ended before all servers were ready",
        "start the instance again",
    )
}
