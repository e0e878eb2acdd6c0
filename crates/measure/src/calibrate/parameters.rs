//! Parameters of the simulated machine that follow from what operations use.

use super::anchors::{
    Anchors, BLOCK_BYTES, GATHERED_BYTES, Operation, READ_BYTES, READ_PIECE_BYTES, READ_PIECES,
    SMALL_BYTES, Used, WRITTEN_PIECE_BYTES,
};
use super::load::Loads;
use super::medium::Medium;
use policy::Direction;
use serde::{Deserialize, Serialize};

/// One measured parameter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Key of a scenario or of a disk file.
    pub key: String,
    /// Value.
    pub value: u64,
    /// Measurement that the value follows from.
    pub source: String,
}

/// Parameters of the machine, and of its disk.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Parameters {
    /// Keys of `[parameters]`.
    pub machine: Vec<Measured>,
    /// Keys of the disk's file.
    pub disk: Vec<Measured>,
}

impl Parameters {
    /// Returns the parameters of processors whose work takes longer by these factors.
    pub(super) fn under(&self, loads: Loads) -> Self {
        let Loads { copies, wakes, alone, rest } = loads;
        let scaled = |measured: &Measured| {
            let factor = match measured.key.as_str() {
                "call_us" => copies,
                key if PER_SECOND.contains(&key) => 1.0 / copies,
                key if ALONE.contains(&key) => alone,
                "per-50-words-ns" => copies,
                key if key.contains("-ps") => copies,
                "wake-ns" | "call-ns" | "collective-ns" => wakes,
                "connect-ns" => 1.0,
                key if key.ends_with("-ns") => rest,
                _ => 1.0,
            };
            let value = (measured.value as f64 * factor).round() as u64;
            let is_rate = PER_SECOND.contains(&measured.key.as_str());
            let value = if is_rate { value.min(RATE_MAX) } else { value };
            Measured { value, ..measured.clone() }
        };
        Self {
            machine: self.machine.iter().map(scaled).collect(),
            disk: self.disk.iter().map(scaled).collect(),
        }
    }
}

/// Costs of small calls that need no message.
const ALONE: [&str; 6] = [
    "gather-ns",
    "gather-ps-per-byte",
    "kept-read-ns",
    "kept-read-ps-per-byte",
    "gathered-write-ns",
    "gathered-write-ps-per-byte",
];

/// Largest rate of a disk, in bytes a second.
const RATE_MAX: u64 = 1_000_000_000_000;

/// Rates of the disk threads' processors.
const PER_SECOND: [&str; 3] =
    ["read_bytes_per_second", "write_bytes_per_second", "new_bytes_per_second"];

fn measured(key: &str, value: f64, source: &str) -> Measured {
    let value = value.max(0.0).round() as u64;
    Measured { key: key.to_owned(), value, source: source.to_owned() }
}

/// Increase for each byte between two sizes.
fn slope(times: [f64; 2], bytes: [u64; 2]) -> f64 {
    (times[1] - times[0]) / (bytes[1] as f64 - bytes[0] as f64)
}

/// Returns the parameters of `cores` cores on which operations use these times. Nothing is fitted:
/// each follows from the processor time of the threads whose work it describes.
pub(super) fn parameters(cores: u32, anchors: &Anchors, medium: &Medium) -> Parameters {
    let nothing = anchors.of(Operation::Nothing);
    // Each of several requests, one after the other, wakes the server; of a burst, few do.
    let small = anchors.of(Operation::SmallRead(0));
    let wake = (small.server - anchors.of(Operation::Burst).server).clamp(0.0, nothing.server);
    // A request without work: a message each way.
    let message = (nothing.server - wake) / 2.0;
    let call = (nothing.caller + nothing.io - nothing.server).max(0.0);
    let hop = ((nothing.elapsed - nothing.processors()) / 2.0).max(0.0);
    let [read, write] =
        [Direction::Read, Direction::Write].map(|it| anchors.of(Operation::Tiny(it)));
    let tiny = (read.caller + read.io + write.caller + write.io) / 2.0;
    let collective = tiny - call - 3.0 * message - 2.0 * wake;
    let mut machine = vec![
        measured("shared-cores", f64::from(cores), "processors that the system gives"),
        measured("send-ns", message, "a server's time for a request without work: half the rest"),
        measured("receive-ns", message, "the other half"),
        measured("wake-ns", wake, "reads of 512 bytes, one by one and 32 at a time: server"),
        measured("network-hop-ns", hop, "half of what such a request takes beyond processor time"),
        measured("call-ns", call, "the client's time for it, beyond the server's"),
        measured("connect-ns", anchors.connect, "the client's first connection to a server"),
        measured("collective-ns", collective, "collective calls with 8 bytes: client"),
    ];
    machine.extend(calls_without_messages(anchors));
    machine.extend(small_requests(anchors));
    machine.extend(blocks(anchors, message));
    machine.extend(looks(anchors, message));
    Parameters { machine, disk: disk(anchors, medium) }
}

/// Small requests, whose data travels with messages.
fn small_requests(anchors: &Anchors) -> Vec<Measured> {
    let nothing = anchors.of(Operation::Nothing);
    let small_reads = anchors.pair(Operation::SmallRead);
    let small_writes = anchors.pair(Operation::SmallWrite);
    let written = written_byte_of(anchors);
    let (message_byte, copy_byte) = (written * 2.0 / 3.0, written / 3.0);
    let own = |used: &Used, of: fn(&Used) -> f64| (of(used) - of(&nothing)).max(0.0);
    let cache_read = own(&small_reads[0], |used| used.server) - message_byte * READ_BYTES[0] as f64;
    let small = SMALL_BYTES[0] as f64;
    // The message counts by itself: one copy at the client, and one at the server.
    let [sent, received] = [message_byte / 2.0 * small; 2];
    let client_write = own(&small_writes[0], |used| used.io) - sent;
    let cache_write = own(&small_writes[0], |used| used.server) - received - copy_byte * small;
    vec![
        measured(
            "message-ps-per-byte",
            message_byte * 1_000.0,
            "writes of 4 and 64 KiB to a cached block, client and server: two of three copies",
        ),
        measured("copy-ps-per-byte", copy_byte * 1_000.0, "the same: the third copy"),
        measured("client-read-ns", own(&small_reads[0], |used| used.io), "512 bytes: I/O thread"),
        measured("client-write-ns", client_write, "4 KiB: I/O thread"),
        measured("cache-read-ns", cache_read, "512 bytes: server"),
        measured("cache-write-ns", cache_write, "4 KiB: server"),
    ]
}

/// Small calls that need no message: writes that are gathered, and reads from pages that are kept.
fn calls_without_messages(anchors: &Anchors) -> Vec<Measured> {
    let pairs = [anchors.pair(Operation::Gathered), anchors.pair(Operation::Kept)];
    let [gathered, kept] = &pairs;
    let cost = |pair: &[Used; 2], of: fn(&Used) -> f64| {
        let byte = slope([of(&pair[0]), of(&pair[1])], GATHERED_BYTES).max(0.0);
        (of(&pair[0]) - byte * GATHERED_BYTES[0] as f64, byte)
    };
    let (gather, gather_byte) = cost(gathered, |used| used.caller);
    let (read, read_byte) = cost(kept, |used| used.caller);
    let (written, written_byte) = cost(gathered, |used| used.io + used.server);
    let beyond = (written_byte - written_byte_of(anchors)).max(0.0);
    vec![
        measured("gather-ns", gather, "40 bytes gathered: the calling thread"),
        measured("gather-ps-per-byte", gather_byte * 1_000.0, "40 bytes and 4 KiB gathered"),
        measured("kept-read-ns", read, "40 bytes of a page that is kept: the calling thread"),
        measured("kept-read-ps-per-byte", read_byte * 1_000.0, "40 bytes and 4 KiB of it"),
        measured("gathered-write-ns", written, "40 bytes gathered: I/O thread and server"),
        measured(
            "gathered-write-ps-per-byte",
            beyond * 1_000.0,
            "40 bytes and 4 KiB gathered: I/O thread and server, beyond three copies",
        ),
    ]
}

/// Client's and server's time for each byte of a small write: it is sent, received, and copied to
/// the cache.
fn written_byte_of(anchors: &Anchors) -> f64 {
    let moved = anchors.pair(Operation::SmallWrite).map(|used| used.io + used.server);
    slope(moved, SMALL_BYTES).max(0.0)
}

/// Copies of a segment in a two-phase read of one member.
const COPIES: f64 = 3.0;

/// Blocks: the owner copies what is put, the server what it gets; a client its segment.
fn blocks(anchors: &Anchors, message: f64) -> Vec<Measured> {
    let block_reads = anchors.pair(|size| Operation::Blocks(Direction::Read, size));
    let block_writes = anchors.pair(|size| Operation::Blocks(Direction::Write, size));
    let piece_reads = anchors.of(Operation::ReadPieces);
    let piece_writes = anchors.pair(Operation::WritePieces);
    let small_reads = anchors.pair(Operation::SmallRead);
    let block_mib = BLOCK_BYTES[0] as f64;
    let client_read = (small_reads[0].io - anchors.of(Operation::Nothing).io).max(0.0);
    let copied = [block_reads[1].io, block_reads[0].io];
    let copied_byte = slope(copied, [BLOCK_BYTES[1], BLOCK_BYTES[0]]);
    let block = (block_reads[0].server - 2.0 * message).max(0.0);
    let got = [block_writes[1].server, block_writes[0].server];
    let got_byte = slope(got, [BLOCK_BYTES[1], BLOCK_BYTES[0]]);
    let one_sided = (block_writes[0].server - block - got_byte * block_mib).max(0.0);
    let read_piece = (piece_reads.io - 2.0 * message - copied_byte * READ_PIECE_BYTES as f64)
        / (READ_PIECES - 1) as f64;
    let written = |index: usize| {
        let pieces = BLOCK_BYTES[0] / WRITTEN_PIECE_BYTES[index];
        (piece_writes[index].server - block_writes[0].server) / (pieces - 1) as f64
    };
    // Of a read through the library's memory, what is neither a message nor the server's.
    let segment = anchors.of(Operation::TwoPhaseRead).io - 2.0 * message - client_read;
    vec![
        measured("block-ns", block, "directed read: server, for each block of 1 MiB"),
        measured(
            "per-50-words-ns",
            copied_byte * 200.0,
            "directed read: I/O thread, blocks of 64 KiB and 1 MiB",
        ),
        measured(
            "direct-ps-per-byte",
            (got_byte * 1_000.0).max(1.0),
            "directed write: server, blocks of 64 KiB and 1 MiB",
        ),
        measured("one-sided-ns", one_sided, "directed write: server, beyond that and block-ns"),
        measured("direct-piece-ps", written(0) * 1_000.0, "in pieces of 8 bytes: server"),
        measured("direct-interval-ps", written(1) * 1_000.0, "in pieces of 1 KiB: server"),
        measured(
            "segment-ps-per-byte",
            segment / COPIES / block_mib * 1_000.0,
            "two-phase read of one member: I/O thread, for each of three copies",
        ),
        measured(
            "gather-piece-ps",
            read_piece * 1_000.0,
            "directed read of pieces of 8 bytes: I/O thread",
        ),
    ]
}

/// Records that are looked at, beyond the blocks that have them. What a build of servers without
/// modules refuses has no cost.
fn looks(anchors: &Anchors, message: f64) -> Vec<Measured> {
    let block_read = anchors.of(Operation::Blocks(Direction::Read, 0));
    let block = (block_read.server - 2.0 * message).max(0.0);
    let byte = |used: Used| (used.server - block).max(0.0) / BLOCK_BYTES[0] as f64 * 1_000.0;
    let keys = [
        (Operation::Look, "look-ps-per-byte", "records of 64 bytes counted: server, less block-ns"),
        (Operation::LookByModule, "module-ps-per-byte", "the same by a module: all its threads"),
    ];
    let found = keys.into_iter().filter_map(|(operation, key, source)| {
        Some(measured(key, byte(anchors.of_any(operation)?), source))
    });
    found.collect()
}

/// The page cache and the medium below it.
fn disk(anchors: &Anchors, medium: &Medium) -> Vec<Measured> {
    let block_mib = BLOCK_BYTES[0] as f64;
    let disk_of = |pair: [Used; 2]| {
        let byte = slope([pair[1].disk, pair[0].disk], [BLOCK_BYTES[1], BLOCK_BYTES[0]]);
        (byte, (pair[0].disk - byte * block_mib).max(0.0))
    };
    let (read_byte, read_call) =
        disk_of(anchors.pair(|size| Operation::Blocks(Direction::Read, size)));
    let (write_byte, write_call) =
        disk_of(anchors.pair(|size| Operation::Blocks(Direction::Write, size)));
    let call = (read_call + write_call) / 2_000.0;
    let direct = medium.direct_reads.unwrap_or([100_000.0, 100_000.0 + block_mib]);
    let direct_byte = match medium.direct_reads {
        Some(direct) => slope(direct, [SMALL_BYTES[0], BLOCK_BYTES[0]]).max(1e-3),
        None => 1e-3,
    };
    let rate = |byte_ns: f64| 1e9 / byte_ns.max(1e-3);
    vec![
        measured("call_us", call, "disk threads, blocks of 64 KiB and 1 MiB"),
        measured("read_bytes_per_second", rate(read_byte), "disk thread: copy and checksum"),
        measured("write_bytes_per_second", rate(write_byte), "disk thread: copy and checksum"),
        measured(
            "new_bytes_per_second",
            if medium.new_byte_ns > 0.0 { rate(medium.new_byte_ns) } else { 0.0 },
            "64 MiB written to a new file, beyond writing them again",
        ),
        measured(
            "medium_bytes_per_second",
            medium.bytes_per_second.min(rate(direct_byte)),
            "64 MiB written and synced",
        ),
        measured(
            "medium_latency_us",
            direct[0] / 1_000.0,
            match medium.direct_reads {
                Some(_) => "reads of 4 KiB past the cache",
                None => "not measured, as there is no O_DIRECT here: assumed",
            },
        ),
        measured(
            "shared_bytes_per_second",
            medium.shared_bytes_per_second,
            "four files of 32 MiB synced at the same time",
        ),
        measured("sync_us", medium.sync_ns / 1_000.0, "sync of 4 KiB"),
        measured("cache_bytes", medium.cache_bytes as f64, "half of the memory"),
        measured("dirty_bytes", medium.dirty_bytes as f64, "share that the system permits"),
        measured("direct", 0.0, "the cache is used"),
    ]
}

#[cfg(test)]
mod tests {
    //! Proves: each cost has the load of its kind, and rates stay within what a disk may have.
    use super::*;

    #[test]
    fn each_cost_has_the_load_of_its_kind() {
        let loads = Loads { copies: 2.0, wakes: 3.0, alone: 4.0, rest: 5.0 };
        let expected = [
            ("shared-cores", 100),
            ("connect-ns", 100),
            ("send-ns", 500),
            ("block-ns", 500),
            ("wake-ns", 300),
            ("call-ns", 300),
            ("collective-ns", 300),
            ("gather-ns", 400),
            ("gather-ps-per-byte", 400),
            ("kept-read-ns", 400),
            ("gathered-write-ps-per-byte", 400),
            ("gather-piece-ps", 200),
            ("message-ps-per-byte", 200),
            ("per-50-words-ns", 200),
            ("direct-interval-ps", 200),
            ("call_us", 200),
            ("read_bytes_per_second", 50),
        ];
        let machine = expected.iter().map(|(key, _)| measured(key, 100.0, "")).collect();
        let disk = vec![measured("new_bytes_per_second", RATE_MAX as f64, "")];
        let loaded = Parameters { machine, disk }.under(Loads { copies: 0.5, ..loads });
        assert_eq!(loaded.disk[0].value, RATE_MAX);
        let loaded = loaded.under(Loads { copies: 4.0, wakes: 1.0, alone: 1.0, rest: 1.0 });
        let found = loaded.machine.iter().map(|one| (one.key.as_str(), one.value));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
