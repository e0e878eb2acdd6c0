//! Every key of scenario files at the top, in the order in which they are explained and applied.
//! The keys of `[parameters]` follow from [`super::parameters`] and
//! [`super::network_parameters`]. `sim --explain`, error messages
//! and the page docs/scenarios.md take their explanations from this table.

use super::client_cache_keys::CLIENT_CACHE;
use super::key::{Field, Key, Meaning, Owner, case, field};
use super::network_parameters::NETWORK_PARAMETERS;
use super::parameters::{COSTS, PARAMETERS};
use super::value::{AS_DECLARED, ConvertValue, Kind, PROTECTIONS, STRATEGIES, strategies};
use crate::disk::DiskName;
use crate::machine::Machine;
use crate::names::{LayoutName, MachineName, PayloadName, ReadAhead};
use crate::network_name::NetworkName;
use crate::scenario::NODES_MAX;
use policy::{Declared, DiskOrder, Replacement};

/// Every key.
pub(super) fn keys() -> impl DoubleEndedIterator<Item = &'static Key> + Clone {
    let parameters = PARAMETERS.iter().chain(NETWORK_PARAMETERS.iter()).chain(COSTS.iter());
    TOP.iter().chain(CLIENT_CACHE.iter()).chain(parameters)
}

/// Returns the key of this name; no two tables share a name.
pub(super) fn key(name: &str) -> Option<&'static Key> {
    keys().find(|key| key.name == name)
}

/// Words for the replacement policy: the one that suits the declared use, or a built-in one.
const REPLACEMENTS: &[&str] = &{
    let mut words = [AS_DECLARED; 1 + Replacement::WORDS.len()];
    let (_, built_in) = words.split_at_mut(1);
    built_in.copy_from_slice(Replacement::WORDS);
    words
};

/// Kind of a count of at least one.
const COUNT: Kind = Kind::Number { least: 1, most: NODES_MAX, unit: "" };

static TOP: [Key; 24] = [
    case(
        "machine",
        "--machine",
        Kind::Word(MachineName::WORDS),
        "Preset of the machine and its file system, which gives every parameter its default. tr94: \
         the machine of TR94-226, with 50 MHz processors, HP 97560 disks and a torus. Pieces are \
         sent one by one, and a client has one request outstanding at each disk. tocs97: the \
         machine of TOCS 1997, with the same hardware. Pieces are sent together, a client has four \
         requests outstanding at each disk, and writes end when the data is on the medium. \
         ideal-disks: tr94 with disks that have only a transfer rate. this-machine: a computer of \
         today whose servers and clients share two cores, in round figures; `unisono sim \
         calibrate` measures them. cluster: a cluster of today of up to 512 nodes, with NVMe disks \
         and 100 Gbit/s Ethernet in a fat tree (docs/clusters.md).",
        Field::Plan {
            get: |plan| Some(plan.base.machine.preset.to_value()),
            set: |plan, value| {
                plan.base.machine = Machine::of(ConvertValue::from_value(value)?);
                plan.base.block_bytes = plan.base.machine.default_block_bytes();
                Ok(())
            },
        },
    ),
    Key {
        owner: Owner::Machine,
        source: "TR94-226 and TOCS 1997: HP 97560.",
        meaning: Meaning::Computed(DiskName::help),
        ..case("disk", "--disk", Kind::Word(DiskName::WORDS), "", field!(base.machine.disk))
    },
    Key {
        owner: Owner::Machine,
        source: "TR94-226 and TOCS 1997: a torus of 6 by 6 nodes.",
        meaning: Meaning::Computed(NetworkName::help),
        ..case(
            "network",
            "--network",
            Kind::Word(NetworkName::WORDS),
            "",
            field!(base.machine.network.name),
        )
    },
    Key {
        meaning: Meaning::Computed(LayoutName::help),
        ..case("layout", "--layout", Kind::Word(LayoutName::WORDS), "", field!(base.layout))
    },
    case(
        "pattern",
        "--pattern",
        Kind::List { of: &Kind::Word(PATTERNS), may_be_empty: false },
        "Access pattern: the bytes of the file that each client reads or writes, named as in the \
         papers. The first letter is r for reading or w for writing. A letter for each dimension \
         of the array follows: n (none), b (block) or c (cyclic). With ra, every client reads the \
         whole file. The notation of High-Performance Fortran is also accepted, such as \
         \"r:block,cyclic(4)\". Each pattern of a list is simulated.",
        field!(patterns),
    ),
    case(
        "record",
        "--record",
        Kind::List { of: &Kind::Size, may_be_empty: false },
        "Size of a record, the element of the array, in bytes. The file must be a whole number of \
         records. Each size of a list is simulated.",
        field!(records),
    ),
    case(
        "strategy",
        "--strategy",
        Kind::List { of: &Kind::Word(STRATEGIES), may_be_empty: false },
        "Strategy of the transfer. Each strategy of a list is simulated; all means caching, \
         two-phase and disk-directed. With global-barrier, each client makes its own requests \
         after a barrier (PIOSIM). With node-grouping, groups of clients do so in turn.",
        Field::Plan {
            get: |plan| Some(plan.strategies.to_value()),
            set: |plan, value| {
                plan.strategies = strategies(value)?;
                Ok(())
            },
        },
    ),
    case(
        "node-group-size",
        "--node-group-size",
        Kind::Number { least: 0, most: NODES_MAX, unit: "" },
        "Number of clients of a group in node grouping. The clients of one group make requests at \
         the same time, one group after another. 0: one client for each disk, but at least two \
         groups.",
        field!(base.node_group_size),
    ),
    case("size", "--size", Kind::Size, "Size of the file in bytes.", field!(base.file_bytes)),
    case("clients", "--clients", COUNT, "Number of clients.", field!(base.clients)),
    case("servers", "--servers", COUNT, "Number of servers.", field!(base.servers)),
    case(
        "clients-per-server",
        "--clients-per-server",
        COUNT,
        "Number of clients for each server: Vesta's ratio of compute nodes to I/O nodes. The \
         number of clients follows from that of servers, or the number of servers from that of \
         clients if only that is given. If both are given, they must have this ratio.",
        Field::Plan {
            get: |plan| Some(plan.clients_per_server?.to_value()),
            set: |plan, value| {
                plan.clients_per_server = Some(ConvertValue::from_value(value)?);
                Ok(())
            },
        },
    ),
    case(
        "disks-per-server",
        "--disks",
        COUNT,
        "Number of disks of each server, on one bus.",
        field!(base.disks_per_server),
    ),
    case(
        "block",
        "--block",
        Kind::Size,
        "Size of a block, the unit of striping and of disk requests, in bytes. The machine cluster \
         has 1MiB by default.",
        field!(base.block_bytes),
    ),
    case("order", "--order", Kind::Word(DiskOrder::WORDS), DiskOrder::HELP, field!(base.order)),
    case(
        "declared",
        "--declare",
        Kind::Word(Declared::WORDS),
        Declared::HELP,
        field!(base.declared),
    ),
    case(
        "replacement",
        "--replacement",
        Kind::Word(REPLACEMENTS),
        Replacement::HELP,
        field!(base.replacement),
    ),
    case(
        "read-ahead",
        "--read-ahead",
        Kind::Word(ReadAhead::WORDS),
        "Prefetching by servers. declared: as the declared access suggests. nothing: no \
         prefetching. next: the next block on the same disk. window: a window that slides over the \
         file (Tower of Pizzas, section 2.2).",
        field!(base.read_ahead),
    ),
    case(
        "trials",
        "--trials",
        COUNT,
        "Number of trials of each case. Each trial has its own seed.",
        field!(base.trials),
    ),
    case(
        "seed",
        "--seed",
        Kind::Number { least: 0, most: u64::MAX, unit: "" },
        "Seed of the first trial. Trial n has this seed plus n, with n counted from 0. Equal seeds \
         give equal results.",
        field!(base.seed),
    ),
    case(
        "protect",
        "--protect",
        Kind::Word(PROTECTIONS),
        "Protection of the file against the loss of a server. mirror: the next server has a copy \
         of what a server holds, and a write ends when both have it. parity: each row of blocks \
         has a parity block on a further server (parity:4 has rows of 4 blocks), and a write ends \
         when the parity is changed.",
        field!(base.protection),
    ),
    case(
        "sync",
        "--sync",
        Kind::Flag,
        "True if every write ends only when the data is on the medium. This includes strategies \
         whose writes otherwise end earlier.",
        field!(base.sync),
    ),
    case(
        "payload",
        "--payload",
        Kind::Word(PayloadName::WORDS),
        "Kind of data in the simulation. phantom: lengths only. traced: the origin of each byte, \
         which proves that every byte arrives at its place. The kind does not change simulated \
         times.",
        field!(base.payload),
    ),
    case(
        "availability",
        "--availability",
        Kind::Flag,
        "True to measure the share of the servers' processors that the transfer leaves to a \
         computation on them. The share is measured without synchronisation and with a barrier \
         every 5 ms.",
        field!(base.availability),
    ),
];

/// Patterns with a short name.
const PATTERNS: &[&str] = &[
    "ra", "rn", "rb", "rc", "rnn", "rnb", "rnc", "rbn", "rbb", "rbc", "rcn", "rcb", "rcc", "wn",
    "wb", "wc", "wnn", "wnb", "wnc", "wbn", "wbb", "wbc", "wcn", "wcb", "wcc",
];
