//! One case to simulate, and the checks that it makes sense.

use crate::machine::Machine;
use crate::names::{LayoutName, MachineName, PayloadName, ReadAhead};
use crate::own_models::OwnModels;
use filesystem::collective::Strategy;
use interface::UserError;
use interface::access_of;
use policy::{
    Access, Buffering, ClientCacheSpec, Declared, DiskOrder, Pattern, Prefetch, Protection,
    Replacement, ReplacementPolicies, WINDOW_BLOCKS,
};
use std::str::FromStr;
use units::MIB;
use wire::{LINE_BYTES_MAX, PARTICIPANTS_MAX};

/// One case to simulate, as often as there are trials.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// The hardware, and the file system's own constants.
    pub machine: Machine,
    /// Layout of blocks on the disks.
    pub layout: LayoutName,
    /// Access pattern.
    pub pattern: Pattern,
    /// Bytes of a record.
    pub record_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Number of clients.
    pub clients: u32,
    /// Number of servers.
    pub servers: u32,
    /// Disks of each server, on one bus.
    pub disks_per_server: u32,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Strategy of the transfer.
    pub strategy: Strategy,
    /// Clients that make requests at the same time (node grouping); 0 for the default.
    pub node_group_size: u32,
    /// Order in which servers use their disks in a directed transfer.
    pub order: DiskOrder,
    /// Declared use of the file.
    pub declared: Declared,
    /// Replacement policy of the cache; `None` for the one that suits the declared use.
    pub replacement: Option<Replacement>,
    /// Memory prefetch of the servers.
    pub read_ahead: ReadAhead,
    /// Cache of each client, for caching; none if it has no blocks.
    pub client_cache: ClientCacheSpec,
    /// Replacement policies that can be named.
    pub policies: ReplacementPolicies,
    /// Own disk models and networks that can be named.
    pub models: OwnModels,
    /// Number of trials, each with a seed of its own.
    pub trials: u32,
    /// Seed of the first trial.
    pub seed: u64,
    /// Protection of the file against the loss of a server.
    pub protection: Protection,
    /// True when a write ends only once the data is on the medium.
    pub sync: bool,
    /// Kind of data that moves.
    pub payload: PayloadName,
    /// True to measure the servers' processor time that the transfer leaves to other work.
    pub availability: bool,
}

/// Largest number of pairs of a client and a server. The [estimate](crate::memory) of the memory
/// refuses fewer pairs where each is a connection.
const PAIRS_MAX: u64 = 1 << 24;

impl Default for Scenario {
    /// The main case of the papers: 16 clients, 16 servers with a disk each, a file of 10 MB in
    /// blocks of 8 KB (TOCS 1997, Table I and section 5).
    fn default() -> Self {
        Self {
            machine: Machine::of(MachineName::Tr94),
            layout: LayoutName::CONTIGUOUS,
            pattern: Pattern::from_str("rb").expect("the papers' pattern rb must be known"),
            record_bytes: 8192,
            file_bytes: 10 * MIB,
            clients: 16,
            servers: 16,
            disks_per_server: 1,
            block_bytes: 8192,
            strategy: Strategy::DiskDirected,
            node_group_size: 0,
            order: DiskOrder::Sorted,
            declared: Declared::Unknown,
            replacement: None,
            read_ahead: ReadAhead::Declared,
            client_cache: ClientCacheSpec { lines: 0, ..ClientCacheSpec::default() },
            policies: ReplacementPolicies::default(),
            models: OwnModels::default(),
            trials: 5,
            seed: 1,
            protection: Protection::None,
            sync: false,
            payload: PayloadName::Phantom,
            availability: false,
        }
    }
}

/// Servers up to which clients connect to all of them at their beginning, as those of a real
/// machine do. With more servers, each client connects to those that it needs, and one opens the
/// file for all. In both cases the timed part begins after that. (Servers that direct a transfer
/// connect to clients within the timed part; on a simulated machine this takes no time.)
pub(crate) const CONNECTED_AT_ONCE_MAX: u32 = 64;

/// Largest value of any count in a scenario: the nodes of the network.
pub(crate) const NODES_MAX: u64 = 1 << 20;

impl Scenario {
    /// Returns the servers' buffering of the file.
    pub(crate) fn buffering(&self) -> Buffering {
        let prefetch = match self.read_ahead {
            ReadAhead::Declared => None,
            ReadAhead::Nothing => Some(Prefetch::Nothing),
            ReadAhead::Next => Some(Prefetch::Next),
            ReadAhead::Window => Some(Prefetch::Window(WINDOW_BLOCKS)),
        };
        let (declared, replacement) = (self.declared, self.replacement);
        Buffering { declared, replacement, prefetch, ..Buffering::default() }
    }

    /// Checks that the scenario can be simulated, without simulating it.
    ///
    /// # Errors
    /// Fails when the scenario makes no sense: a count of zero, a pattern that does not fit, an
    /// invalid block size, a disk or a network that the program does not have.
    pub fn check(&self) -> Result<(), UserError> {
        self.access()?;
        if let Some(unknown) = self.replacement.filter(|wanted| !self.policies.has(*wanted)) {
            let cause = format!("this program has no replacement policy {unknown}");
            let help = format!(
                "choose one of {}; a program of your own adds others, see \
                 examples/own_policy.rs",
                Replacement::WORDS.join(", "),
            );
            refused(cause, &help)?;
        }
        self.check_client_cache()?;
        if let Err(error) = self.protection.validate(&self.stripe()) {
            refused(
                error.to_string(),
                "simulate more servers, or ask for less protection: --protect",
            )?;
        }
        let nodes = self.clients + self.servers;
        if let Err(error) = self.machine.network.spec(&self.models)?.check(nodes) {
            let help = "choose a network that can be built and that holds all nodes";
            refused(error.to_string(), help)?;
        }
        match self.machine.disk.kind(&self.models)?.buffer_bytes() {
            Some(bytes) if self.block_bytes > bytes => refused(
                format!(
                    "a block has {} bytes, and the track buffer of a disk has only {bytes}",
                    self.block_bytes,
                ),
                "choose a smaller block, or a disk without such a buffer",
            ),
            _ => Ok(()),
        }
    }

    /// Bytes of the cache of each server.
    pub(crate) fn server_cache_bytes(&self) -> u64 {
        match self.machine.cache_bytes {
            0 => u64::from(self.machine.cache_blocks_per_client_and_disk)
                .saturating_mul(self.clients.into())
                .saturating_mul(self.disks_per_server.into())
                .saturating_mul(self.block_bytes),
            bytes => bytes,
        }
    }

    /// True if clients have caches.
    pub(crate) fn has_client_caches(&self) -> bool {
        self.client_cache.lines > 0
    }

    /// True if clients have caches and a strategy that uses them.
    pub(crate) fn uses_client_caches(&self) -> bool {
        self.has_client_caches() && self.strategy == Strategy::Caching
    }

    fn check_client_cache(&self) -> Result<(), UserError> {
        if !self.has_client_caches() {
            return Ok(());
        }
        if let Err(error) = self.client_cache.validate() {
            let help = "choose another client-cache, client-cache-ways or global-share";
            refused(error.to_string(), help)?;
        }
        let line_bytes = match self.client_cache.line_bytes {
            0 => self.block_bytes,
            bytes => bytes,
        };
        if line_bytes > LINE_BYTES_MAX || !self.block_bytes.is_multiple_of(line_bytes) {
            let cause = format!(
                "a block of a client's cache has {line_bytes} bytes, and a block of the file has \
                 {}",
                self.block_bytes,
            );
            refused(cause, "choose a client-cache-block of at most 1MiB that divides the block")?;
        }
        Ok(())
    }

    /// Returns the access of all clients, after checking everything that can be checked.
    pub(crate) fn access(&self) -> Result<Access, UserError> {
        let counts = [
            ("clients", self.clients),
            ("servers", self.servers),
            ("disks per server", self.disks_per_server),
            ("trials", self.trials),
        ];
        for (what, count) in counts {
            if count == 0 || u64::from(count) > NODES_MAX {
                let cause = format!("the number of {what} is {count}");
                refused(cause, "give a number from 1 to 1048576")?;
            }
        }
        if u64::from(self.clients) + u64::from(self.servers) > NODES_MAX {
            let cause = format!("{} clients and {} servers", self.clients, self.servers);
            refused(cause, "use at most 1048576 clients and servers together")?;
        }
        if self.clients as usize > PARTICIPANTS_MAX {
            let cause = format!("{} clients take part", self.clients);
            refused(cause, "use at most 65536 clients in a collective transfer")?;
        }
        if u64::from(self.clients) * u64::from(self.servers) > PAIRS_MAX {
            let cause = format!("there are {} servers and {} clients", self.servers, self.clients);
            refused(cause, "use at most 16777216 pairs of a client and a server")?;
        }
        if self.stripe().disks() > NODES_MAX {
            let cause = format!(
                "there are {} servers with {} disks each",
                self.servers, self.disks_per_server
            );
            refused(cause, "use at most 1048576 disks on all servers together")?;
        }
        if let Err(error) = self.stripe().validate() {
            refused(error.to_string(), "choose a block size such as 8KiB or 1MiB")?;
        }
        access_of(&self.pattern, self.clients, self.record_bytes, self.file_bytes)
    }

    pub(crate) fn stripe(&self) -> policy::Stripe {
        policy::Stripe::round_robin(self.block_bytes, self.servers, self.disks_per_server)
    }
}

fn refused(cause: String, help: &str) -> Result<(), UserError> {
    Err(UserError::usage("this scenario cannot be simulated", cause, help))
}
