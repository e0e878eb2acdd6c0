//! A server on this machine.

use crate::agreement::Agreement;
use crate::control::Commit;
use crate::cores::pin_thread;
use crate::data::has_catalogue;
use crate::generations::{Logs, of_catalogue};
use crate::instance::{lock, write};
use crate::labels::{OwnDirectories, set_of};
use crate::lost_data::LostData;
use crate::memory::refuse_lost;
use crate::private::make_data_directory;
use crate::rebuild::{Rebuilt, rebuild_beside};
use crate::server::{ServerPlan, serve_plan};
use crate::started::{Bond, found, receive_order, serve_started};
use client::{Direct, Instance, InstanceFile, ServerEntry};
use interface::UserError;
use policy::Extensions;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;
use world::Address;
use world_real::{Generation, Generations, WireProtection};

/// Order to a server on this machine.
#[derive(Serialize, Deserialize)]
pub(crate) struct LocalOrder {
    /// Number of servers.
    pub(crate) servers: u32,
    /// The server; its address may have port 0.
    pub(crate) entry: ServerEntry,
    pub(crate) cache_bytes: u64,
    pub(crate) dirty_percent: u32,
    pub(crate) disk_timeout_s: u32,
    pub(crate) direct: Direct,
    pub(crate) lost_data: LostData,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) wire: Option<WireProtection>,
}

impl LocalOrder {
    /// Order to server `id` of an instance.
    pub(crate) fn of(file: &InstanceFile, id: u32, lost_data: LostData) -> Result<Self, UserError> {
        let entry = file.servers.get(id as usize).cloned().ok_or_else(|| {
            UserError::usage(
                format!("there is no server {id}"),
                format!("the instance has {} servers", file.servers.len()),
                "start servers with: unisono start",
            )
        })?;
        Ok(Self {
            servers: file.servers.len() as u32,
            entry,
            cache_bytes: file.cache_bytes,
            dirty_percent: file.dirty_percent,
            disk_timeout_s: file.disk_timeout_s,
            direct: file.direct.clone(),
            lost_data,
            memory_bytes: file.memory_bytes,
            wire: file.wire,
        })
    }

    /// Pins this thread, which starts all others, and makes the directories of the server.
    /// A server that is attached to its starter `outlasts_sigterm`.
    fn plan(self, instance: &Instance, outlasts_sigterm: bool) -> Result<ServerPlan, UserError> {
        self.entry.cores.as_ref().map_or(Ok(()), pin_thread)?;
        // What is missing stays so where nothing may be changed.
        let mut data =
            self.entry.data.iter().filter(|data| !self.lost_data.is_degraded() || data.exists());
        data.try_for_each(|directory| make_data_directory(directory))?;
        Ok(ServerPlan {
            id: self.entry.id,
            servers: self.servers,
            listen: Address(self.entry.address),
            data: self.entry.data,
            direct: self.direct,
            cache_bytes: self.cache_bytes,
            dirty_percent: self.dirty_percent,
            disk_timeout_s: self.disk_timeout_s,
            key: instance.key()?,
            lost_data: self.lost_data,
            memory_bytes: self.memory_bytes,
            wire: self.wire,
            outlasts_sigterm,
            generation: 0,
            lost: Vec::new(),
        })
    }
}

/// Generations of the catalogue of an instance that runs, if it is on this machine.
fn catalogue_of(file: &InstanceFile) -> Result<Option<Generations>, UserError> {
    let first = file.servers.first().filter(|first| first.host.is_none());
    let directory = first.and_then(|first| first.data.first());
    directory.map(|directory| of_catalogue(directory)).transpose()
}

/// Serves as server number `id` of an instance until a client or SIGTERM asks it to stop. With
/// `attached`, it stops when the parent process ends, and not by SIGTERM. It offers these
/// extensions. Without an order on standard input, takes its place in an instance that is there;
/// `lost_data` says what happens then if its directories are lost.
///
/// # Errors
/// Fails when it cannot begin, or cannot write everything back at its end.
pub fn serve_process(
    instance: &Instance,
    id: u32,
    attached: bool,
    lost_data: LostData,
    extensions: Extensions,
) -> Result<(), UserError> {
    let Ok(order) = receive_order::<LocalOrder>() else {
        return serve_again(instance, id, lost_data, extensions);
    };
    let (place, pid) = (instance.clone(), std::process::id());
    let is_named = move || {
        let file = place.read().ok()?;
        let is_named = file.servers.get(id as usize).is_some_and(|one| one.pid == pid);
        is_named.then(|| Commit::of(&file))
    };
    let is_committed: Box<dyn FnOnce() -> Option<Commit> + Send> = match attached {
        true => Box::new(|| None),
        false => Box::new(is_named),
    };
    let bond = Bond { is_committed, ends_with_input: attached };
    serve_started(order.plan(instance, attached), bond, std::future::pending(), extensions)
}

/// Serves as server number `id` of an instance that is there.
fn serve_again(
    instance: &Instance,
    id: u32,
    lost_data: LostData,
    extensions: Extensions,
) -> Result<(), UserError> {
    let file = instance.read()?;
    let lost_data = if file.degraded.is_some() { LostData::Degraded } else { lost_data };
    let plan = LocalOrder::of(&file, id, lost_data)?.plan(instance, false)?;
    let own = OwnDirectories::lock(id, plan.servers, &plan.data, lost_data)?;
    plan.data.iter().try_for_each(|directory| refuse_lost(directory, id))?;
    if let Some(first) = plan.data.first().filter(|_| id == 0 && lost_data.refills())
        && !has_catalogue(first)
    {
        let Rebuilt { server, entries, .. } = rebuild_beside(instance, &file, first)?;
        // A log that cannot be written is no reason to end.
        let _ = writeln!(
            std::io::stderr(),
            "the catalogue was lost; it is made again of the copy at server {server}, with \
             {entries} entries"
        );
    }
    let catalogue = catalogue_of(&file)?;
    let found = found(id, &plan.data, lost_data, &own)?;
    let Agreement { number, mut lost, agreed, .. } =
        Agreement::of_one(found, catalogue, lost_data)?;
    let mut lost = lost.remove(0);
    if lost_data.refills() {
        replace_lost(&file, &plan.data, &own, (agreed, &lost))?;
        lost.clear();
    }
    let plan = ServerPlan { generation: number, lost, ..plan };
    let addresses = note_process(instance, id)?;
    serve_plan(plan, extensions, |_| addresses, std::future::pending())
}

/// Notes that this process is server `id` of an instance that is there, so that a stop of the
/// instance ends it. Returns the addresses of all servers.
fn note_process(instance: &Instance, id: u32) -> Result<Vec<String>, UserError> {
    let _nobody_else = lock(instance)?;
    let mut file = instance.read()?;
    if let Some(own) = file.servers.get_mut(id as usize) {
        own.pid = std::process::id();
    }
    write(instance, &file)?;
    Ok(Commit::of(&file).addresses)
}

/// Has empty directories take the places of lost ones, whose causes are in `lost`, in an instance
/// whose last generation is `agreed`.
fn replace_lost(
    file: &InstanceFile,
    data: &[PathBuf],
    own: &OwnDirectories,
    (agreed, lost): (Option<Generation>, &[Option<String>]),
) -> Result<(), UserError> {
    let here = file.servers.iter().filter(|server| server.host.is_none());
    let mut set = None;
    for directory in here.flat_map(|server| &server.data).filter(|data| data.is_dir()) {
        set = set.or(set_of(directory)?);
    }
    let (Some(set), Some(agreed)) = (set, agreed) else {
        return Err(UserError::usage(
            "cannot fill directories again while the instance runs",
            "what they must hold is known where server 0 keeps the catalogue, which is on another \
             host or lost",
            "stop the instance, and start it with: unisono start --refill",
        ));
    };
    own.label(&set, lost)?;
    for (directory, _) in data.iter().zip(lost).filter(|(_, lost)| lost.is_some()) {
        Logs::of_disk(directory).take_over(agreed)?;
    }
    own.complete()
}
