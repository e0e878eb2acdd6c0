//! Every key of `[parameters]`: the values of a preset that a file or an option may change.
//!
//! [`presets.rs`](crate::presets) holds the values themselves, with the reasons for each.

use super::SimulationPlan;
use super::key::{Field, Key, Meaning, Owner, Table, field};
use super::value::{ConvertValue, Kind, QUEUES, STARTS, STRATEGIES, Value, set_of_strategies};
use crate::presets::BATCHED;
use world_simulated::{DirectCopies, Pieces, PutCopier};

/// The longest time that one step of work may cost: ten milliseconds.
const COST_NS_MAX: u64 = 10_000_000;

/// Processor time of one step of work.
const COST: Kind = Kind::Number { least: 0, most: COST_NS_MAX, unit: " of nanoseconds" };

/// Processor time of one byte.
const PICOSECONDS_PER_BYTE: Kind =
    Kind::Number { least: 0, most: 1_000_000, unit: " of picoseconds" };

/// Processor time of one piece of a copy.
const PICOSECONDS_OF_PIECE: Kind =
    Kind::Number { least: 0, most: 1_000_000_000, unit: " of picoseconds" };

/// A parameter that has no option of its own.
const fn parameter(
    name: &'static str,
    kind: Kind,
    meaning: &'static str,
    source: &'static str,
    field: Field,
) -> Key {
    let meaning = Meaning::Text(meaning);
    let (option, table, owner) = ("", Table::Parameters, Owner::Machine);
    Key { name, option, table, owner, kind, meaning, source, field }
}

/// Returns a cost of copies between two memories, if the machine has them.
fn of_direct(plan: &SimulationPlan, cost: fn(&DirectCopies) -> u64) -> Option<Value> {
    plan.base.machine.messages.direct.as_ref().map(|direct| Value::Number(cost(direct)))
}

/// Sets a cost of copies between two memories.
fn set_direct(
    plan: &mut SimulationPlan,
    value: &Value,
    cost: fn(&mut DirectCopies) -> &mut u64,
) -> Result<(), String> {
    match &mut plan.base.machine.messages.direct {
        Some(direct) => {
            *cost(direct) = u64::from_value(value)?;
            Ok(())
        }
        None => Err("data travels with messages and answers".to_owned()),
    }
}

/// Keys of the disks, the servers and the links of the network.
pub(super) static PARAMETERS: [Key; 11] = [
    parameter(
        "start-angle",
        Kind::Word(STARTS),
        "Rotation of the disks at the start. zero: all disks at their first sector. common: all \
         disks at one random angle. independent: each disk at its own random angle.",
        "TOCS 1997, section 5: random initial positions; for tr94 inferred from its contiguous \
         reads.",
        field!(base.machine.start),
    ),
    parameter(
        "queue",
        Kind::Word(QUEUES),
        "Order of the requests that wait for a disk. fcfs: first come, first served. cscan: cyclic \
         scan by disk address. cscan-of-file: cyclic scan by position in the file.",
        "TOCS 1997, section 4: cyclic scan by address. The scan by position in the file is \
         inferred from the results for random blocks in section 6.",
        field!(base.machine.queue),
    ),
    parameter(
        "directed-prefetch-commands",
        Kind::Number { least: 0, most: 16, unit: "" },
        "Number of commands per block by which a server that directs a read first makes the disk \
         load the block into its buffer. The command that transfers the data follows.",
        "TOCS 1997, footnote 3: three bus transactions for a read, and two with caching.",
        field!(base.machine.directed_prefetch_commands),
    ),
    Key {
        option: "--buffers",
        ..parameter(
            "buffers-per-disk",
            Kind::Number { least: 1, most: 4096, unit: "" },
            "Number of block buffers for each disk in a directed transfer. With two (double \
             buffering), one block is at the disk while the other is on the network.",
            "TR94-226 and TOCS 1997, section 4: two one-block buffers.",
            field!(base.machine.buffers_per_disk),
        )
    },
    parameter(
        "outstanding-per-disk",
        Kind::Number { least: 1, most: 4096, unit: "" },
        "Number of requests that a client has outstanding at each disk (caching and two-phase).",
        "TR94-226, section 4: one; TOCS 1997, section 4: four.",
        field!(base.machine.outstanding_per_disk),
    ),
    parameter(
        "cache-blocks-per-client-and-disk",
        Kind::Number { least: 1, most: 1 << 20, unit: "" },
        "Number of blocks in a server's cache for each pair of a client and a disk of the server.",
        "TR94-226, section 4: two; TOCS 1997, section 4: eight.",
        field!(base.machine.cache_blocks_per_client_and_disk),
    ),
    parameter(
        "cache-bytes",
        Kind::Size,
        "Bytes of the cache of each server, in place of blocks for each client and disk. 0: as \
         cache-blocks-per-client-and-disk says.",
        "TR94-226 and TOCS 1997, section 4: blocks for each client and disk.",
        field!(base.machine.cache_bytes),
    ),
    parameter(
        "cache-dirty-percent",
        Kind::Number { least: 0, most: 100, unit: "" },
        "Dirty high-water mark, percent of a server's cache. Above it, the oldest dirty blocks are \
         written back down to half the mark.",
        "TOCS 1997, section 4, has no such limit: 100.",
        field!(base.machine.cache_dirty_percent),
    ),
    parameter(
        "writes-wait-for-medium",
        Kind::List { of: &Kind::Word(STRATEGIES), may_be_empty: true },
        "Strategies whose writes end when the data is on the medium. Writes of the other \
         strategies end when the data is in the disks' buffers. The key sync makes all strategies \
         wait for the medium.",
        "TOCS 1997, section 5: all; for tr94 inferred from its contiguous writes.",
        Field::Plan {
            get: |plan| Some(plan.base.machine.waits_for_medium.to_value()),
            set: |plan, value| {
                plan.base.machine.waits_for_medium = set_of_strategies(value)?;
                Ok(())
            },
        },
    ),
    parameter(
        "network-bytes-per-second",
        Kind::Number { least: 1, most: 1_000_000_000_000, unit: " of bytes a second" },
        "Bandwidth of a network link in each direction.",
        "TOCS 1997, Table I: 200 x 10^6 bytes a second.",
        field!(base.machine.network.bytes_per_second),
    ),
    parameter(
        "network-hop-ns",
        COST,
        "Time of the head of a message from one router or switch to the next. In an exact torus, a \
         flit is the data that a link carries in this time.",
        "TOCS 1997, Table I: 20 ns.",
        field!(base.machine.network.hop),
    ),
];

/// Keys of the processor's work. They follow the parameters of networks.
pub(super) static COSTS: [Key; 36] = [
    parameter(
        "shared-cores",
        Kind::Number { least: 0, most: 4096, unit: "" },
        "Number of cores of one host that all nodes and the threads of their disks share. 0: each \
         has a processor of its own.",
        "TR94-226 and TOCS 1997: a processor for each node.",
        field!(base.machine.shared_cores),
    ),
    parameter(
        "calibrated-at",
        Kind::Number { least: 0, most: u64::MAX, unit: " of seconds" },
        "Unix time at which `unisono sim calibrate` measured these parameters on the machine that \
         they describe. 0: they were not measured there.",
        "Their papers.",
        field!(base.machine.calibrated_at),
    ),
    parameter(
        "variation-percent",
        Kind::Number { least: 0, most: 100, unit: " of percent" },
        "Maximum deviation of each processor cost from its mean, in both directions. The cost is \
         uniformly distributed in this range.",
        "Our choice; TR94-232, section 3.3, calls these times highly variable.",
        field!(base.machine.variation_percent),
    ),
    parameter(
        "pieces",
        Kind::Word(&[INDIVIDUAL, TOGETHER]),
        "Transfer of the pieces of a block that belong to one client. individual: one memput or \
         memget for each piece. batched: all pieces gathered into one.",
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
                    (Value::Word(word), _) if word == INDIVIDUAL => *pieces = Pieces::Individual,
                    (Value::Word(word), Pieces::Individual) if word == TOGETHER => {
                        *pieces = BATCHED;
                    }
                    (Value::Word(word), _) if word == TOGETHER => {}
                    _ => return Err(format!("use {INDIVIDUAL} or {TOGETHER}")),
                }
                Ok(())
            },
        },
    ),
    parameter(
        "gather-piece-ps",
        Kind::Number { least: 0, most: 1_000_000_000, unit: " of picoseconds" },
        "Processor time of the requesting node for each gathered piece after the first. Applies \
         only if pieces are batched.",
        "From TOCS 1997, section 6: batching improves 8-byte cyclic patterns by 10 to 24 %.",
        Field::Plan {
            get: |plan| match plan.base.machine.messages.pieces {
                Pieces::Batched { gather_ps } => Some(gather_ps.to_value()),
                Pieces::Individual => None,
            },
            set: |plan, value| match &mut plan.base.machine.messages.pieces {
                Pieces::Batched { gather_ps } => {
                    *gather_ps = u64::from_value(value)?;
                    Ok(())
                }
                Pieces::Individual => Err("individual pieces are not gathered".to_owned()),
            },
        },
    ),
    parameter(
        "put-copied-by",
        Kind::Word(&[REQUESTER, OWNER]),
        "Node whose processor copies the data of a memput. requester: the node that makes it, and \
         the data goes over the network. owner: the node that owns the memory, out of buffers that \
         it has in common with a server of its computer; what clients put into memory of clients \
         travels in messages, which both copy.",
        "TOCS 1997, Table I: the requester.",
        Field::Plan {
            get: |plan| {
                let word = match plan.base.machine.messages.put_copier {
                    PutCopier::Requester => REQUESTER,
                    PutCopier::Owner => OWNER,
                };
                Some(Value::Word(word.to_owned()))
            },
            set: |plan, value| {
                plan.base.machine.messages.put_copier = match value {
                    Value::Word(word) if word == REQUESTER => PutCopier::Requester,
                    Value::Word(word) if word == OWNER => PutCopier::Owner,
                    _ => return Err(format!("use {REQUESTER} or {OWNER}")),
                };
                Ok(())
            },
        },
    ),
    parameter(
        "direct-ps-per-byte",
        PICOSECONDS_PER_BYTE,
        "Processor time for each byte of a copy between the memories of two nodes of one host: for \
         a memget, a memput of a client and an answer from 8 KiB on. The node that makes the copy \
         takes it, the other takes no part. 0: data travels with messages and answers.",
        "TOCS 1997, Table I: the owner sends.",
        Field::Plan {
            get: |plan| {
                let direct = plan.base.machine.messages.direct;
                Some(Value::Number(direct.map_or(0, |direct| direct.ps_per_byte)))
            },
            set: |plan, value| {
                let direct = &mut plan.base.machine.messages.direct;
                let none = DirectCopies { ps_per_byte: 0, ps_per_piece: 0, ps_per_interval: 0 };
                *direct = match u64::from_value(value)? {
                    0 => None,
                    ps_per_byte => Some(DirectCopies { ps_per_byte, ..direct.unwrap_or(none) }),
                };
                Ok(())
            },
        },
    ),
    parameter(
        "direct-piece-ps",
        PICOSECONDS_OF_PIECE,
        "Processor time of such a copy for each piece below 1 KiB after the first: pieces are \
         packed. Applies only if direct-ps-per-byte is not 0.",
        "TOCS 1997, Table I: the owner sends.",
        Field::Plan {
            get: |plan| of_direct(plan, |direct| direct.ps_per_piece),
            set: |plan, value| set_direct(plan, value, |direct| &mut direct.ps_per_piece),
        },
    ),
    parameter(
        "direct-interval-ps",
        PICOSECONDS_OF_PIECE,
        "Processor time of such a copy for each longer piece after the first: an interval of the \
         system call. Applies only if direct-ps-per-byte is not 0.",
        "TOCS 1997, Table I: the owner sends.",
        Field::Plan {
            get: |plan| of_direct(plan, |direct| direct.ps_per_interval),
            set: |plan, value| set_direct(plan, value, |direct| &mut direct.ps_per_interval),
        },
    ),
    parameter(
        "send-ns",
        COST,
        "Processor time to send a message.",
        "Not published; assumed equal to the cost of a memput without data.",
        field!(base.machine.messages.send),
    ),
    parameter(
        "message-ps-per-byte",
        PICOSECONDS_PER_BYTE,
        "Processor time of the sender for each byte of a message. 0: its data goes by DMA.",
        "TOCS 1997, section 4: DMA.",
        field!(base.machine.messages.message_ps_per_byte),
    ),
    parameter(
        "receive-ns",
        COST,
        "Processor time to receive a message and wake the thread that waits for it.",
        "Not published; assumed equal to the cost of a memput without data.",
        field!(base.machine.messages.receive),
    ),
    parameter(
        "wake-ns",
        COST,
        "Processor time of a message beyond receive-ns for a node that it finds idle: its thread \
         has gone to sleep.",
        "Not published; part of receive-ns.",
        field!(base.machine.messages.wake),
    ),
    parameter(
        "receive-ps-per-byte",
        PICOSECONDS_PER_BYTE,
        "Processor time of the receiver for each byte that it takes from a socket: of a message, \
         a memput that its requester copies, or a memget that its owner answers. 0: data goes by \
         DMA to its place, and the owner of the memory handles no message for a memput.",
        "TOCS 1997, section 4: DMA.",
        field!(base.machine.messages.receive_ps_per_byte),
    ),
    parameter(
        "one-sided-ns",
        COST,
        "Processor time of the requesting node for a memput or memget.",
        "TOCS 1997, Table I: about 5 us.",
        field!(base.machine.messages.one_sided),
    ),
    parameter(
        "get-answer-ns",
        COST,
        "Processor time of the requesting node to receive the answer of a memget.",
        "Fitted (docs/validation.md).",
        field!(base.machine.messages.get_answer),
    ),
    parameter(
        "per-50-words-ns",
        COST,
        "Processor time of the sending node for each 200 bytes of a memput or memget. For a \
         memget, the receiving node takes the same time again.",
        "TOCS 1997, Table I: 1 us for a memput, 2 us for a memget.",
        field!(base.machine.messages.per_50_words),
    ),
    parameter(
        "call-ns",
        COST,
        "Processor time of a client for each call of a program (`unisono what-if`): the hand-over \
         between its thread and the one that moves data.",
        "Programs of the papers have one thread.",
        field!(base.machine.call),
    ),
    parameter(
        "connect-ns",
        Kind::Number { least: 0, most: 1_000_000_000, unit: " of nanoseconds" },
        "Processor time of a client to connect to the servers, however many, with its program's \
         first call of a file (`unisono what-if`).",
        "Programs of the papers are connected when they begin.",
        field!(base.machine.connect),
    ),
    parameter(
        "client-read-ns",
        COST,
        "Processor time of a client for a read request (caching).",
        "Fitted on TR94-226, Table 4 (docs/validation.md).",
        field!(base.machine.costs.client_read),
    ),
    parameter(
        "client-write-ns",
        COST,
        "Processor time of a client for a write request (caching).",
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
        "TR94-232, Table 2: 22.7 us, including one message sent and one received.",
        field!(base.machine.costs.cache_write),
    ),
    parameter(
        "copy-ps-per-byte",
        PICOSECONDS_PER_BYTE,
        "Processor time of a server to copy one byte from a message to its cache.",
        "From TR94-232, Table 2: 192 us for a block of 8 KB.",
        field!(base.machine.costs.copy_ps_per_byte),
    ),
    parameter(
        "block-ns",
        COST,
        "Processor time of a server for each block of a directed transfer: waking threads, \
         starting the disk, handling the interrupt.",
        "TR94-232, Table 2: the rest of the 187 us for a block.",
        field!(base.machine.costs.block),
    ),
    parameter(
        "piece-per-dimension-ns",
        COST,
        "Processor time to find the client of a piece and its place in that client's memory, for \
         each distributed dimension.",
        "Fitted on TR94-226, Table 4 (docs/validation.md).",
        field!(base.machine.costs.piece_per_dimension),
    ),
    parameter(
        "segment-ps-per-byte",
        PICOSECONDS_PER_BYTE,
        "Processor time of a client for each byte that it copies within its own memory in a \
         two-phase transfer: the pieces of its segment that are its own twice, and what it reads \
         once more.",
        "Not in the papers' model: 0.",
        field!(base.machine.costs.segment_ps_per_byte),
    ),
    parameter(
        "collective-ns",
        COST,
        "Processor time of a client for a collective call as a whole.",
        "A round number without influence on the results.",
        field!(base.machine.costs.collective),
    ),
    parameter(
        "look-ps-per-byte",
        PICOSECONDS_PER_BYTE,
        "Processor time to look at one byte of records that may match a condition.",
        "Not in the papers: 20 instructions at 50 million a second for a record of 64 bytes.",
        field!(base.machine.costs.look_ps_per_byte),
    ),
    parameter(
        "module-ps-per-byte",
        PICOSECONDS_PER_BYTE,
        "Processor time of a module to look at one byte of records, on a thread of its own.",
        "Not in the papers.",
        field!(base.machine.costs.module_ps_per_byte),
    ),
    parameter(
        "gather-ns",
        COST,
        "Processor time of a client for a small write that it gathers.",
        "Clients of the papers do not gather.",
        field!(base.machine.costs.gather.once),
    ),
    parameter(
        "gather-ps-per-byte",
        PICOSECONDS_PER_BYTE,
        "Processor time of a client for each byte that it gathers.",
        "As above.",
        field!(base.machine.costs.gather.ps_per_byte),
    ),
    parameter(
        "kept-read-ns",
        COST,
        "Processor time of a client for a small read from a page that it keeps.",
        "Clients of the papers keep no pages.",
        field!(base.machine.costs.kept_read.once),
    ),
    parameter(
        "kept-read-ps-per-byte",
        PICOSECONDS_PER_BYTE,
        "Processor time of a client for each byte of such a read.",
        "As above.",
        field!(base.machine.costs.kept_read.ps_per_byte),
    ),
    parameter(
        "gathered-write-ns",
        COST,
        "Processor time of a server for each gathered write, beyond its message.",
        "Clients of the papers do not gather.",
        field!(base.machine.costs.gathered_write.once),
    ),
    parameter(
        "gathered-write-ps-per-byte",
        PICOSECONDS_PER_BYTE,
        "Processor time of a server for each byte of gathered writes, beyond the message and the \
         copy to the cache.",
        "As above.",
        field!(base.machine.costs.gathered_write.ps_per_byte),
    ),
];

const INDIVIDUAL: &str = "individual";
const TOGETHER: &str = "batched";
const REQUESTER: &str = "requester";
const OWNER: &str = "owner";
