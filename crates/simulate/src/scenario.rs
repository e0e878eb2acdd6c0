//! What to simulate.

use crate::machine::Machine;
use crate::names::{LayoutName, MachineName, PayloadName, ReadAhead};
use filesystem::collective::Strategy;
use interface::UserError;
use interface::access_of;
use policy::{
    Access, Buffering, Declared, DiskOrder, Pattern, Prefetch, Replacement, ReplacementPolicies,
    WINDOW_BLOCKS,
};
use std::str::FromStr;
use units::MIB;
use wire::PARTICIPANTS_MAX;

/// One case to simulate, as often as there are trials.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scenario {
    /// The hardware, and the file system's own constants.
    pub machine: Machine,
    /// How blocks lie on the disks.
    pub layout: LayoutName,
    /// Which access.
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
    /// How the transfer is carried out.
    pub strategy: Strategy,
    /// In which order servers that direct it use their disks.
    pub order: DiskOrder,
    /// How the file's users say they will go through it.
    pub declared: Declared,
    /// Which block of it leaves a full cache first, if not what suits the declaration.
    pub replacement: Option<Replacement>,
    /// What the servers read before anyone asks for it.
    pub read_ahead: ReadAhead,
    /// The replacement policies that there are.
    pub policies: ReplacementPolicies,
    /// Number of trials, each with a seed of its own.
    pub trials: u32,
    /// Seed of the first trial.
    pub seed: u64,
    /// Whether a write ends only when the data is on the medium.
    pub sync: bool,
    /// What kind of data moves.
    pub payload: PayloadName,
    /// Whether to find out how much of the servers' processors the transfer leaves to others.
    pub availability: bool,
}

/// The most pairs of a client and a server: what a collective transfer tells each server of each
/// participant is held for all of them at once, a gigabyte with so many.
const PAIRS_MAX: u64 = 1 << 24;

impl Default for Scenario {
    /// The main case of the papers: 16 clients, 16 servers with a disk each, a file of 10 MB in
    /// blocks of 8 KB (TOCS 1997, Table I and section 5).
    fn default() -> Self {
        Self {
            machine: Machine::of(MachineName::Tr94),
            layout: LayoutName::Contiguous,
            pattern: Pattern::from_str("rb").expect("the papers' pattern rb must be known"),
            record_bytes: 8192,
            file_bytes: 10 * MIB,
            clients: 16,
            servers: 16,
            disks_per_server: 1,
            block_bytes: 8192,
            strategy: Strategy::DiskDirected,
            order: DiskOrder::Sorted,
            declared: Declared::Unknown,
            replacement: None,
            read_ahead: ReadAhead::Declared,
            policies: ReplacementPolicies::default(),
            trials: 5,
            seed: 1,
            sync: false,
            payload: PayloadName::Phantom,
            availability: false,
        }
    }
}

/// The most of anything countable in a scenario: nodes of the network.
pub(crate) const NODES_MAX: u64 = 1 << 20;

impl Scenario {
    /// How servers buffer the file.
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

    /// Whether it can be simulated, without doing it.
    ///
    /// # Errors
    /// When it makes no sense: counts of nothing, a pattern that does not fit, no such block size.
    pub fn check(&self) -> Result<(), UserError> {
        self.access()?;
        if let Some(unknown) = self.replacement.filter(|wanted| !self.policies.has(*wanted)) {
            let cause = format!("this program has no replacement policy {unknown}");
            let help = format!(
                "choose one of {}; a program of your own adds others, see \
                 crates/cli/examples/own_policy.rs",
                Replacement::WORDS.join(", "),
            );
            refused(cause, &help)?;
        }
        let nodes = self.clients + self.servers;
        if let Err(error) = self.machine.network.check(nodes) {
            refused(error.to_string(), "choose a network that can be built, and holds all nodes")?;
        }
        match self.machine.disk.mechanism()?.buffer_bytes() {
            Some(bytes) if self.block_bytes > bytes => refused(
                format!(
                    "a block has {} bytes, and the track buffer of a disk {bytes}",
                    self.block_bytes,
                ),
                "choose a smaller block, or a disk without such a buffer",
            ),
            _ => Ok(()),
        }
    }

    /// The access of all clients, after checking everything that can be checked.
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
            refused(cause, "together there may be 1048576 nodes")?;
        }
        if self.clients as usize > PARTICIPANTS_MAX {
            let cause = format!("{} clients take part", self.clients);
            refused(cause, "a collective transfer has at most 65536 participants")?;
        }
        if u64::from(self.clients) * u64::from(self.servers) > PAIRS_MAX {
            let cause =
                format!("each of {} servers hears of {} clients", self.servers, self.clients);
            refused(cause, "there may be 16777216 pairs of a client and a server")?;
        }
        if self.stripe().disks() > NODES_MAX {
            let cause = format!("{} servers of {} disks", self.servers, self.disks_per_server);
            refused(cause, "together there may be 1048576 disks")?;
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
