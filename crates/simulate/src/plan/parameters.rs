//! The keys of `[parameters]`: the values of a preset that a file or an option may change. Those of
//! the kinds of networks are in [`super::network_parameters`].
//!
//! [`presets.rs`](crate::presets) holds the values themselves, with the reasons for each.

use super::key::{Field, Key, Owner, Table, field};
use super::value::{Kind, QUEUES, STARTS, STRATEGIES, Said, Value, set_of_strategies};
use crate::presets::BATCHED;
use std::borrow::Cow;
use std::sync::LazyLock;
use units::Duration;
use world_simulated::Pieces;

/// The longest time that one step of work may cost: ten milliseconds.
const COST_NS_MAX: u64 = 10_000_000;

/// Processor time of one step of work.
const COST: Kind = Kind::Number { least: 0, most: COST_NS_MAX, unit: " of nanoseconds" };

/// A parameter that has no option of its own.
fn parameter(
    name: &'static str,
    kind: Kind,
    meaning: &'static str,
    source: &'static str,
    field: Field,
) -> Key {
    let (option, table, owner) = ("", Table::Parameters, Owner::Machine);
    let meaning = Cow::Borrowed(meaning);
    Key { name, option, table, owner, kind, meaning, source, field }
}

/// Keys of the disks, the servers and the links of the network.
pub(super) static PARAMETERS: LazyLock<[Key; 10]> = LazyLock::new(|| {
    [
        parameter(
            "start-angle",
            Kind::Word(STARTS),
            "How far disks have turned at the start: all at their first sector, all at one random \
         angle, or each at an angle of its own.",
            "TOCS 1997, section 5: random initial positions; for tr94 inferred from its contiguous \
         reads.",
            field!(base.machine.start),
        ),
        parameter(
            "queue",
            Kind::Word(QUEUES),
            "Which of the requests that wait for a disk is next: the first that came, or the next in \
         a cyclic scan by address, or by the place in the file.",
            "TOCS 1997, section 4: cyclic scan by address; by the place in the file inferred from \
         what section 6 says of random blocks.",
            field!(base.machine.queue),
        ),
        parameter(
            "directed-prefetch-commands",
            Kind::Number { least: 0, most: 16, unit: "" },
            "Commands by which a server that directs a read has the disk fetch a block into its buffer \
         before it asks for the data.",
            "TOCS 1997, footnote 3: three bus transactions for a read, where caching has two.",
            field!(base.machine.directed_prefetch_commands),
        ),
        Key {
            option: "--buffers",
            ..parameter(
                "buffers-per-disk",
                Kind::Number { least: 1, most: 4096, unit: "" },
                "Blocks that a server that directs a transfer holds for each disk. With two (double \
             buffering), one is at the disk while the other is on the network.",
                "TR94-226 and TOCS 1997, section 4: two one-block buffers.",
                field!(base.machine.buffers_per_disk),
            )
        },
        parameter(
            "outstanding-per-disk",
            Kind::Number { least: 1, most: 4096, unit: "" },
            "Requests that one client has under way at one disk (caching and two-phase).",
            "TR94-226, section 4: one; TOCS 1997, section 4: four.",
            field!(base.machine.outstanding_per_disk),
        ),
        parameter(
            "cache-blocks-per-client-and-disk",
            Kind::Number { least: 1, most: 1 << 20, unit: "" },
            "Blocks of a server's cache for each client and each of its disks.",
            "TR94-226, section 4: two; TOCS 1997, section 4: eight.",
            field!(base.machine.cache_blocks_per_client_and_disk),
        ),
        parameter(
            "cache-dirty-percent",
            Kind::Number { least: 0, most: 100, unit: "" },
            "So many hundredths of a server's cache may be dirty; with more, the blocks that have been \
         so longest are written back, until half of that is left.",
            "TOCS 1997, section 4, knows no such limit: 100.",
            field!(base.machine.cache_dirty_percent),
        ),
        parameter(
            "writes-wait-for-medium",
            Kind::List { of: &Kind::Word(STRATEGIES), may_be_empty: true },
            "The strategies whose writes end when the data is on the medium; those of the others end \
         when the disks have it. sync has all of them wait.",
            "TOCS 1997, section 5: all; for tr94 inferred from its contiguous writes.",
            Field::Plan {
                get: |plan| Some(plan.base.machine.waits_for_medium.say()),
                set: |plan, value| {
                    plan.base.machine.waits_for_medium = set_of_strategies(value)?;
                    Ok(())
                },
            },
        ),
        parameter(
            "network-bytes-per-second",
            Kind::Number { least: 1, most: 1_000_000_000_000, unit: " of bytes a second" },
            "What a link of the network carries in each direction.",
            "TOCS 1997, Table I: 200 x 10^6 bytes a second.",
            field!(base.machine.network.bytes_per_second),
        ),
        parameter(
            "network-hop-ns",
            COST,
            "Time that the head of a message needs from one router or switch to the next. An exact \
         torus moves what a link carries in this time as one flit.",
            "TOCS 1997, Table I: 20 ns.",
            field!(base.machine.network.hop),
        ),
    ]
});

/// Keys of the processor's work. They follow the parameters of networks.
pub(super) static COSTS: LazyLock<[Key; 16]> = LazyLock::new(|| {
    [
        parameter(
            "variation-percent",
            Kind::Number { least: 0, most: 100, unit: " of percent" },
            "How far the cost of each piece of work may be from its mean, either way, every length \
         within being as likely as another.",
            "Our choice; TR94-232, section 3.3, calls these times highly variable.",
            field!(base.machine.variation_percent),
        ),
        parameter(
            "pieces",
            Kind::Word(&[INDIVIDUAL, TOGETHER]),
            "How the pieces of a block that one client has travel: each as a memput or memget of its \
         own, or gathered into one.",
            "TR94-226: individual; TOCS 1997, section 6: batched.",
            Field::Plan {
                get: |plan| {
                    let word = match plan.base.machine.messages.pieces {
                        Pieces::Individual => INDIVIDUAL,
                        Pieces::Batched { .. } => TOGETHER,
                    };
                    Some(Value::Word(word.to_owned()))
                },
                set: |plan, value| {
                    let pieces = &mut plan.base.machine.messages.pieces;
                    match (value, *pieces) {
                        (Value::Word(word), _) if word == INDIVIDUAL => {
                            *pieces = Pieces::Individual
                        }
                        (Value::Word(word), Pieces::Individual) if word == TOGETHER => {
                            *pieces = BATCHED;
                        }
                        (Value::Word(word), _) if word == TOGETHER => {}
                        _ => return Err(format!("there are {INDIVIDUAL}, {TOGETHER}")),
                    }
                    Ok(())
                },
            },
        ),
        parameter(
            "gather-piece-ns",
            COST,
            "Processor time for each piece beyond the first that is gathered, to the node that asks; \
         only where pieces are batched.",
            "From TOCS 1997, section 6: batching improves 8-byte cyclic patterns by 10 to 24 %.",
            Field::Plan {
                get: |plan| match plan.base.machine.messages.pieces {
                    Pieces::Batched { gather } => Some(gather.say()),
                    Pieces::Individual => None,
                },
                set: |plan, value| match &mut plan.base.machine.messages.pieces {
                    Pieces::Batched { gather } => {
                        *gather = Duration::hear(value)?;
                        Ok(())
                    }
                    Pieces::Individual => {
                        Err("pieces that travel one by one are not gathered".to_owned())
                    }
                },
            },
        ),
        parameter(
            "send-ns",
            COST,
            "Processor time to send a message; its data goes by DMA.",
            "Not published; taken to cost what a memput without data does.",
            field!(base.machine.messages.send),
        ),
        parameter(
            "receive-ns",
            COST,
            "Processor time to take a message from the network and wake the thread it is for.",
            "Not published; taken to cost what a memput without data does.",
            field!(base.machine.messages.receive),
        ),
        parameter(
            "one-sided-ns",
            COST,
            "Processor time of a memput or memget, to the node that asks for it.",
            "TOCS 1997, Table I: about 5 us.",
            field!(base.machine.messages.one_sided),
        ),
        parameter(
            "get-answer-ns",
            COST,
            "Processor time of a memget to take up what comes back.",
            "Fitted (docs/validation.md).",
            field!(base.machine.messages.get_answer),
        ),
        parameter(
            "per-50-words-ns",
            COST,
            "Processor time for each 200 bytes of a memput or memget, to the node that sends them; of \
         a memget the same again, to the node that takes them up.",
            "TOCS 1997, Table I: 1 us for a memput, 2 us for a memget.",
            field!(base.machine.messages.per_50_words),
        ),
        parameter(
            "client-read-ns",
            COST,
            "Processor time of a caching client for a request to read.",
            "Fitted on TR94-226, Table 4 (docs/validation.md).",
            field!(base.machine.costs.client_read),
        ),
        parameter(
            "client-write-ns",
            COST,
            "Processor time of a caching client for a request to write.",
            "Fitted on TR94-226, Table 4 (docs/validation.md).",
            field!(base.machine.costs.client_write),
        ),
        parameter(
            "cache-read-ns",
            COST,
            "Processor time of a server to look up a block that is read.",
            "Fitted on TR94-226, Table 4 (docs/validation.md).",
            field!(base.machine.costs.cache_read),
        ),
        parameter(
            "cache-write-ns",
            COST,
            "Processor time of a server to look up a block that is written.",
            "With a message sent and one received the 22.7 us of TR94-232, Table 2.",
            field!(base.machine.costs.cache_write),
        ),
        parameter(
            "copy-ps-per-byte",
            Kind::Number { least: 0, most: 1_000_000, unit: " of picoseconds" },
            "Processor time of a server to copy one byte from a message to its cache.",
            "From TR94-232, Table 2: 192 us for a block of 8 KB.",
            field!(base.machine.costs.copy_ps_per_byte),
        ),
        parameter(
            "block-ns",
            COST,
            "Processor time of a server that directs a transfer, for each block: threads woken, disk \
         started, interrupt taken.",
            "What TR94-232, Table 2, leaves of 187 us for a block.",
            field!(base.machine.costs.block),
        ),
        parameter(
            "piece-per-dimension-ns",
            COST,
            "Processor time to find whose a piece is and where it goes, for each dimension that is \
         dealt out.",
            "Fitted on TR94-226, Table 4 (docs/validation.md).",
            field!(base.machine.costs.piece_per_dimension),
        ),
        parameter(
            "collective-ns",
            COST,
            "Processor time of a client for a collective call as a whole.",
            "A round figure of no influence.",
            field!(base.machine.costs.collective),
        ),
    ]
});

const INDIVIDUAL: &str = "individual";
const TOGETHER: &str = "batched";
