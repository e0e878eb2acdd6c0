//! A server process.

use crate::labels::{identity_of, replacement_of};
use crate::lost_data::LostData;
use crate::memory::OwnMemory;
use client::Direct;
use filesystem::{Costs, OtherServer, ServerConfig, serve_among_others};
use interface::{ExitCode, UserError};
use policy::Extensions;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use units::{MIB, ServerId};
use wire::LINE_BYTES_MAX;
use world::{Address, Network, RecordTable};
use world_real::{
    DiskConfig, DiskOptions, NodeConfig, OpenError, RealWorld, ReceiveLimits, WireProtection, run,
};

/// Blocks that a collective holds for each disk: two are enough to overlap disk and memory (TOCS
/// 1997, section 4).
const BUFFERS_PER_DISK: u32 = 2;

/// Ratio of the size of the cache to that of the buffers that transfers may hold besides.
const BUFFERS_PER_CACHE: u64 = 4;

/// Limits on what clients may make a server hold in messages that arrive. The largest body is a
/// line of a client's cache; larger writes are fetched when there is room for them.
const LIMITS: ReceiveLimits = ReceiveLimits {
    body_bytes_max: LINE_BYTES_MAX,
    held_bytes_max: 64 * MIB as u32,
    stall_timeout: Duration::from_secs(20),
};

/// Subdirectory of the catalogue, in the first data directory of server 0.
pub(crate) const CATALOGUE: &str = "catalogue";

/// Subdirectory of the copy of the catalogue, in the first data directory of the other servers.
pub(crate) const CATALOGUE_COPY: &str = "catalogue-copy";

/// Subdirectory of the marks of files that may differ from their copies, in the server's first data
/// directory.
pub(crate) const MIRRORS: &str = "mirrors";

/// Subdirectory of the list of files that are to be filled again, in the server's first data
/// directory.
pub(crate) const LACKING: &str = "lacking";

/// Subdirectory of the protections of files that were changed, in the server's first data
/// directory.
const PROTECTIONS: &str = "protections";

/// File of recorded file sizes that no data shows, in the server's first data directory.
pub(crate) const SIZES: &str = "sizes";

/// Configuration of a server.
pub(crate) struct ServerPlan {
    /// Number of the server.
    pub(crate) id: u32,
    /// Number of servers.
    pub(crate) servers: u32,
    /// Address to listen on.
    pub(crate) listen: Address,
    /// Data directories, one for each disk.
    pub(crate) data: Vec<PathBuf>,
    /// Disks that bypass the page cache.
    pub(crate) direct: Direct,
    /// Size of the block cache, in bytes.
    pub(crate) cache_bytes: u64,
    /// Dirty high-water mark, percent of the cache.
    pub(crate) dirty_percent: u32,
    /// Time for which no request to a disk ends, after which its requests fail, in seconds; 0 to
    /// wait without end.
    pub(crate) disk_timeout_s: u32,
    /// Secret of the instance.
    pub(crate) key: [u8; 32],
    /// Treatment of data directories that are lost.
    pub(crate) lost_data: LostData,
    /// Memory in which its files are, in bytes. `None`: in the data directories.
    pub(crate) memory_bytes: Option<u64>,
    /// Protection of connections by TCP. `None`: the default for the address.
    pub(crate) wire: Option<WireProtection>,
    /// True if SIGTERM does not end the server: then its starter does. See
    /// [`crate::HostOptions::outlasts_sigterm`].
    pub(crate) outlasts_sigterm: bool,
    /// Number of the generation of the instance; 0 until it is known.
    pub(crate) generation: u32,
    /// Cause of the loss of each data directory that is lost, where they stay so; empty until it is
    /// known.
    pub(crate) lost: Vec<Option<String>>,
}

impl ServerPlan {
    /// Time after which the requests of a disk fail when none ends, if there is one.
    fn hang_limit(&self) -> Option<Duration> {
        let seconds = self.disk_timeout_s;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }
}

/// Serves until a client, the end of `also`, or SIGTERM, asks it to stop. Calls `ready` with the
/// address on which it listens, which returns the addresses of all servers.
///
/// # Errors
/// Fails when it cannot begin, or cannot write everything back at its end.
pub(crate) fn serve_plan(
    plan: ServerPlan,
    extensions: Extensions,
    ready: impl FnOnce(&Address) -> Vec<String>,
    also: impl Future<Output = ()>,
) -> Result<(), UserError> {
    let (id, outlasts_sigterm) = (plan.id, plan.outlasts_sigterm);
    interface::begin_log()?;
    raise_descriptors();
    let records = create_records(&plan)?;
    // What is read and what was just written over lie there at the same time.
    let lent_bytes_max = plan.cache_bytes.saturating_mul(2).saturating_add(256 * MIB);
    // Dropped after the server has ended.
    let _memory = own_memory(&plan, lent_bytes_max)?;
    let disks = disks_of(&plan)?;
    let replacements = plan.data.iter().map(|data| replacement_of(data));
    let replacements = replacements.collect::<Result<Vec<_>, _>>()?;
    let config = NodeConfig {
        hang_limit: plan.hang_limit(),
        listen: Some(plan.listen),
        disks,
        records,
        key: Some(plan.key),
        wire: plan.wire,
        lent_bytes_max,
        limits: Some(LIMITS),
    };
    let server = ServerConfig {
        id: ServerId(id),
        servers: plan.servers,
        cache_bytes: plan.cache_bytes,
        dirty_percent: plan.dirty_percent,
        buffers_per_disk: BUFFERS_PER_DISK,
        buffer_bytes: plan.cache_bytes / BUFFERS_PER_CACHE,
        client_caches: false,
        caches_ends: true,
        copies_catalogue: !plan.lost_data.is_degraded(),
        replacements,
        refill_rate: plan.lost_data.refill_rate(),
        read_only: plan.lost_data.is_degraded(),
        costs: Costs::FREE,
        extensions,
    };
    run(async move {
        let world = RealWorld::open(config).map_err(|error| cannot_open(id, &error))?;
        let mut terminate = signal(SignalKind::terminate())
            .map_err(|error| cannot_begin(id, &error.to_string()))?;
        let address = world.address();
        let told_to_stop = async move {
            tokio::select! {
                _ = terminate.recv(), if !outlasts_sigterm => {
                    // The reader may be gone.
                    let _ = writeln!(std::io::stderr(), "server {id} was asked to end by SIGTERM");
                }
                () = also => {}
            }
        };
        let ready = || {
            let all = (0..).map(ServerId).zip(ready(&address));
            let others = all.filter(|(server, _)| *server != ServerId(id));
            let other = |(server, address)| OtherServer { server, address: Address(address) };
            others.map(other).collect()
        };
        let served = serve_among_others(world, server, ready, told_to_stop).await;
        served.map_err(|fault| UserError::of_fault(&format!("server {id} failed"), &fault))
    })
}

/// Memory of a server whose files are in memory.
fn own_memory(plan: &ServerPlan, lent_bytes_max: u64) -> Result<Option<OwnMemory>, UserError> {
    let (Some(bytes), Some(directory)) = (plan.memory_bytes, plan.data.first()) else {
        return Ok(None);
    };
    let bytes = (bytes, lent_bytes_max);
    OwnMemory::open(directory, plan.id, bytes, plan.outlasts_sigterm).map(Some)
}

/// Creates the directories of a server's records, in its first data directory. Where nothing may be
/// changed, only those count that are there.
fn create_records(plan: &ServerPlan) -> Result<Vec<(RecordTable, PathBuf)>, UserError> {
    let mut records = vec![
        (RecordTable::Sizes, SIZES),
        (RecordTable::Mirrors, MIRRORS),
        (RecordTable::Lacking, LACKING),
        (RecordTable::Protections, PROTECTIONS),
    ];
    records.push(match plan.id {
        0 => (RecordTable::Catalogue, CATALOGUE),
        _ => (RecordTable::CatalogueCopy, CATALOGUE_COPY),
    });
    let first = plan.data.first().cloned().unwrap_or_default();
    let records = records.into_iter().map(|(table, name)| (table, first.join(name)));
    let records =
        records.filter(|(_, directory)| !plan.lost_data.is_degraded() || directory.is_dir());
    let records: Vec<(RecordTable, PathBuf)> = records.collect();
    for (_, directory) in &records {
        std::fs::create_dir_all(directory)
            .map_err(|error| cannot_begin(plan.id, &error.to_string()))?;
    }
    Ok(records)
}

/// Returns the disks of a server, one for each data directory.
fn disks_of(plan: &ServerPlan) -> Result<Vec<DiskConfig>, UserError> {
    let lost = plan.lost.iter().cloned().chain(std::iter::repeat(None));
    let disks = plan.data.iter().zip(lost).map(|(directory, lost)| {
        let options =
            DiskOptions { direct: plan.direct.is_for(directory), ..DiskOptions::default() };
        let identity = if lost.is_some() { 0 } else { identity_of(directory)? };
        let generation = plan.generation;
        let in_memory = plan.memory_bytes.map(|_| 0);
        let disk = DiskConfig::at(directory);
        Ok(DiskConfig { identity, generation, lost, in_memory, options, ..disk })
    });
    disks.collect()
}

/// Returns the error of a server whose world does not open.
fn cannot_open(id: u32, error: &OpenError) -> UserError {
    match error {
        OpenError::NotDirect { .. } => UserError::new(
            ExitCode::NoServer,
            format!("server {id} cannot start"),
            error.to_string(),
            "start without --direct, or name data directories on another file system",
        ),
        OpenError::DamagedRecords { .. } => UserError::new(
            ExitCode::DataCheck,
            format!("server {id} cannot start"),
            error.to_string(),
            "restore that directory from a copy, or remove records.last in it to continue with the \
             remaining records; file data is not affected",
        ),
        OpenError::NotProtected { .. } => UserError::new(
            ExitCode::NoServer,
            format!("server {id} cannot start"),
            error.to_string(),
            "in a network whose links are trusted, start with --wire plain",
        ),
        other => cannot_begin(id, &other.to_string()),
    }
}

fn cannot_begin(id: u32, cause: &str) -> UserError {
    UserError::new(
        ExitCode::NoServer,
        format!("server {id} cannot start"),
        cause,
        "check the data directories and the instance directory",
    )
}

/// Raises the limit of open files as far as this user may. Each client takes a descriptor or
/// two, each object in use two.
pub(crate) fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // The current limit is enough for most uses.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
