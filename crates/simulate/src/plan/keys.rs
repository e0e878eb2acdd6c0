//! Every key of scenario files at the top, in the order in which they are explained and applied.
//! The keys of `[parameters]` follow from [`super::parameters`] and
//! [`super::network_parameters`]. `sim --explain`, error messages
//! and the page docs/scenarios.md take their explanations from this table.

use super::key::{Field, Key, Owner, Table, field};
use super::network_parameters::NETWORK_PARAMETERS;
use super::parameters::{COSTS, PARAMETERS};
use super::value::{AS_DECLARED, Kind, STRATEGIES, Said, strategies};
use crate::disk::DiskName;
use crate::machine::Machine;
use crate::names::{LayoutName, MachineName, PayloadName, ReadAhead};
use crate::network_name::NetworkName;
use crate::scenario::NODES_MAX;
use policy::{Declared, DiskOrder, Replacement};
use std::borrow::Cow;
use std::sync::LazyLock;

/// Every key.
pub(super) fn keys() -> impl DoubleEndedIterator<Item = &'static Key> + Clone {
    let parameters = PARAMETERS.iter().chain(NETWORK_PARAMETERS.iter()).chain(COSTS.iter());
    TOP.iter().chain(parameters)
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

/// A key at the top with the same default for every machine.
fn case(
    name: &'static str,
    option: &'static str,
    kind: Kind,
    meaning: impl Into<Cow<'static, str>>,
    field: Field,
) -> Key {
    let (table, owner, source, meaning) = (Table::Top, Owner::Case, "", meaning.into());
    Key { name, option, table, owner, kind, meaning, source, field }
}

static TOP: LazyLock<[Key; 21]> = LazyLock::new(|| {
    [
        case(
            "machine",
            "--machine",
            Kind::Word(MachineName::WORDS),
            "The machine and the file system on it: the preset that gives every parameter its value. \
         tr94 is that of TR94-226: 50 MHz processors, HP 97560 disks, a torus; pieces travel one \
         by one, and a client has one request under way at each disk. tocs97 is that of TOCS 1997: \
         the same hardware; pieces travel together, a client has four requests under way at each \
         disk, and writes end when the data is on the medium. ideal-disks is tr94 with disks that \
         know only a rate.",
            Field::Plan {
                get: |plan| Some(plan.base.machine.preset.say()),
                set: |plan, value| {
                    plan.base.machine = Machine::of(Said::hear(value)?);
                    Ok(())
                },
            },
        ),
        Key {
            owner: Owner::Machine,
            source: "TR94-226 and TOCS 1997: HP 97560.",
            ..case(
                "disk",
                "--disk",
                Kind::Word(DiskName::WORDS),
                DiskName::help(),
                field!(base.machine.disk),
            )
        },
        Key {
            owner: Owner::Machine,
            source: "TR94-226 and TOCS 1997: a torus of 6 by 6 nodes.",
            ..case(
                "network",
                "--network",
                Kind::Word(NetworkName::WORDS),
                NetworkName::help(),
                field!(base.machine.network.name),
            )
        },
        case(
            "layout",
            "--layout",
            Kind::Word(LayoutName::WORDS),
            LayoutName::help(),
            field!(base.layout),
        ),
        case(
            "pattern",
            "--pattern",
            Kind::List { of: &Kind::Word(PATTERNS), may_be_empty: false },
            "Which bytes belong to whom, by the names of the papers: r or w for reading or writing, \
         then a letter for each dimension of the array: n (none), b (block), c (cyclic); ra has \
         every client read all. Or the same in words of High-Performance Fortran, such as \
         \"r:block,cyclic(4)\". Each pattern of a list is simulated.",
            field!(patterns),
        ),
        case(
            "record",
            "--record",
            Kind::List { of: &Kind::Size, may_be_empty: false },
            "Bytes of a record, the element of the array; the file is a whole number of them. Each \
         size of a list is simulated.",
            field!(records),
        ),
        case(
            "strategy",
            "--strategy",
            Kind::List { of: &Kind::Word(STRATEGIES), may_be_empty: false },
            "How the transfer is carried out. Each strategy of a list is simulated; all is each of \
         them.",
            Field::Plan {
                get: |plan| Some(plan.strategies.say()),
                set: |plan, value| {
                    plan.strategies = strategies(value)?;
                    Ok(())
                },
            },
        ),
        case("size", "--size", Kind::Size, "Bytes of the file.", field!(base.file_bytes)),
        case("clients", "--clients", COUNT, "Number of clients.", field!(base.clients)),
        case("servers", "--servers", COUNT, "Number of servers.", field!(base.servers)),
        case(
            "disks-per-server",
            "--disks",
            COUNT,
            "Disks of each server, on one bus.",
            field!(base.disks_per_server),
        ),
        case(
            "block",
            "--block",
            Kind::Size,
            "Bytes of a block: the unit of striping and of requests to disks.",
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
            "What servers read before anyone asks for it: what suits the declaration, nothing, the \
         next block on the same disk, or a window that slides over the file (Tower of Pizzas, \
         section 2.2).",
            field!(base.read_ahead),
        ),
        case(
            "trials",
            "--trials",
            COUNT,
            "Number of trials of each case, each with a seed of its own.",
            field!(base.trials),
        ),
        case(
            "seed",
            "--seed",
            Kind::Number { least: 0, most: u64::MAX, unit: "" },
            "Seed of the first trial; trial n has this plus n. Equal seeds make equal results.",
            field!(base.seed),
        ),
        case(
            "sync",
            "--sync",
            Kind::Flag,
            "Whether every write ends only when the data is on the medium, also by strategies whose \
         writes do not wait for it by themselves.",
            field!(base.sync),
        ),
        case(
            "payload",
            "--payload",
            Kind::Word(PayloadName::WORDS),
            "What moves: lengths only, or traces, which prove that every byte comes to its place and \
         change no time.",
            field!(base.payload),
        ),
        case(
            "availability",
            "--availability",
            Kind::Flag,
            "Whether to find out how much of the servers' processors the transfer leaves to a \
         computation on them, without synchronisation and with a barrier every 5 ms.",
            field!(base.availability),
        ),
    ]
});

/// Patterns with a short name.
const PATTERNS: &[&str] = &[
    "ra", "rn", "rb", "rc", "rnn", "rnb", "rnc", "rbn", "rbb", "rbc", "rcn", "rcb", "rcc", "wn",
    "wb", "wc", "wnn", "wnb", "wnc", "wbn", "wbb", "wbc", "wcn", "wcb", "wcc",
];
