//! Estimate of the memory that a simulation takes, by which one that is too large is refused before
//! it takes any.
//!
//! Each part is a count, which follows from keys of the scenario, times the bytes that one was
//! measured to take at most. A simulation that moves less than it may takes less.

use crate::names::PayloadName;
use crate::scenario::{CONNECTED_AT_ONCE_MAX, Scenario};
use filesystem::collective::Strategy;
use interface::UserError;
use policy::PatternKind;
use units::{GIB, KIB};

/// Largest estimate that is accepted, in bytes.
pub(crate) const MEMORY_BYTES_MAX: u64 = 4 * GIB;

/// Bytes of a node: its tasks, mailboxes and links. Measured: 9.9 KiB at 20,000 servers.
const NODE_BYTES: u64 = 10 * KIB;
/// Bytes of a disk: its queue, buffers and tasks. Measured: 1.2 KiB at 20,000 disks.
const DISK_BYTES: u64 = 2 * KIB;
/// Bytes of a pair of a client and a server that are connected. Measured: 0.95 KiB at 512 clients
/// and 64 servers.
const PAIR_BYTES: u64 = KIB;
/// Bytes of such a pair where servers connect to the clients that they need. Measured: 20 bytes at
/// 4,096 clients and 512 servers.
const DIRECTED_PAIR_BYTES: u64 = 64;
/// Bytes of a block in a cache or a buffer, without its data. Measured: 590 at 131,072 blocks.
const BLOCK_BYTES: u64 = 640;
/// Bytes of a block of a file for its place on the disk.
const PLACE_BYTES: u64 = 32;
/// Bytes of a request under way, at both ends.
const REQUEST_BYTES: u64 = KIB;
/// Bytes of a piece of data whose origin is traced.
const TRACED_PIECE_BYTES: u64 = 64;

/// Part of the memory of a simulation.
struct Part {
    /// Number of these things.
    count: u64,
    /// Name of the things, in the plural.
    what: &'static str,
    /// Bytes of each.
    bytes: u64,
    /// Keys that the number follows from.
    keys: &'static str,
}

impl Part {
    fn bytes(&self) -> u64 {
        self.count.saturating_mul(self.bytes)
    }
}

/// Refuses a scenario whose transfer may take more than [`MEMORY_BYTES_MAX`].
pub(crate) fn check(scenario: &Scenario) -> Result<(), UserError> {
    check_with(scenario, scenario.file_bytes, false)
}

/// Refuses a scenario on which a program with files of `file_bytes` together may take more than
/// [`MEMORY_BYTES_MAX`].
pub(crate) fn check_program(scenario: &Scenario, file_bytes: u64) -> Result<(), UserError> {
    check_with(scenario, file_bytes, true)
}

/// `meets_at_servers`: the clients are ranks of a program, which connect to all servers.
fn check_with(
    scenario: &Scenario,
    file_bytes: u64,
    meets_at_servers: bool,
) -> Result<(), UserError> {
    let parts = parts(scenario, file_bytes, meets_at_servers);
    let sum = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.bytes()));
    if sum <= MEMORY_BYTES_MAX {
        return Ok(());
    }
    let largest = parts.iter().max_by_key(|part| part.bytes()).expect("there are parts");
    let gib = |bytes: u64| bytes as f64 / GIB as f64;
    Err(UserError::usage(
        "this scenario cannot be simulated",
        format!(
            "it may take {:.1} GiB of memory, and the limit is {:.0} GiB; {:.1} GiB are for {} {}",
            gib(sum),
            gib(MEMORY_BYTES_MAX),
            gib(largest.bytes()),
            largest.count,
            largest.what,
        ),
        format!("change one of the keys {}", largest.keys),
    ))
}

fn parts(scenario: &Scenario, file_bytes: u64, meets_at_servers: bool) -> Vec<Part> {
    let (clients, servers) = (u64::from(scenario.clients), u64::from(scenario.servers));
    let disks = servers.saturating_mul(scenario.disks_per_server.into());
    let block_bytes = scenario.block_bytes.max(1);
    let blocks = file_bytes.div_ceil(block_bytes);
    let cached_by_one = scenario.server_cache_bytes().div_ceil(block_bytes);
    let part = |what, count, bytes, keys| Part { count, what, bytes, keys };
    let connects_when_needed = !meets_at_servers
        && scenario.strategy == Strategy::DiskDirected
        && scenario.servers > CONNECTED_AT_ONCE_MAX;
    let pair_bytes = if connects_when_needed { DIRECTED_PAIR_BYTES } else { PAIR_BYTES };
    let buffers = disks.saturating_mul(scenario.machine.buffers_per_disk.into());
    let line_bytes = match scenario.client_cache.line_bytes {
        0 => block_bytes,
        bytes => bytes,
    };
    let lines = match scenario.uses_client_caches() {
        true => u64::from(scenario.client_cache.lines).min(file_bytes.div_ceil(line_bytes)),
        false => 0,
    };
    let pieces = pieces_of(scenario, file_bytes, meets_at_servers);
    vec![
        part("nodes", clients + servers, NODE_BYTES, "clients and servers"),
        part("disks", disks, DISK_BYTES, "servers and disks-per-server"),
        part(
            "pairs of a client and a server",
            clients.saturating_mul(servers),
            pair_bytes,
            "clients and servers",
        ),
        part("blocks of files", blocks, PLACE_BYTES, "size and block"),
        part(
            "blocks in the caches of servers",
            blocks.min(servers.saturating_mul(cached_by_one)),
            BLOCK_BYTES,
            "size, block, cache-bytes and cache-blocks-per-client-and-disk",
        ),
        part(
            "blocks in the caches of clients",
            clients.saturating_mul(lines),
            BLOCK_BYTES,
            "clients, client-cache and client-cache-block",
        ),
        part(
            "buffers of transfers",
            buffers.min(blocks.saturating_add(disks)),
            BLOCK_BYTES,
            "servers, disks-per-server and buffers-per-disk",
        ),
        part(
            "requests under way",
            requests_of(scenario, blocks.max(pieces), disks, meets_at_servers),
            REQUEST_BYTES,
            "size, block, record and outstanding-per-disk",
        ),
        part(
            "traced pieces of data",
            if scenario.payload == PayloadName::Traced { blocks.max(pieces) } else { 0 },
            TRACED_PIECE_BYTES,
            "size, block, record and payload",
        ),
    ]
}

/// Upper bound of the pieces of data that clients move at the same time, each within one block.
fn pieces_of(scenario: &Scenario, file_bytes: u64, meets_at_servers: bool) -> u64 {
    if meets_at_servers {
        return file_bytes.div_ceil(scenario.block_bytes.max(1));
    }
    let smallest = scenario.record_bytes.clamp(1, scenario.block_bytes.max(1));
    let whole = file_bytes.div_ceil(smallest);
    match scenario.pattern.kind {
        PatternKind::All => whole.saturating_mul(scenario.clients.into()),
        PatternKind::Distributed(_) => whole,
    }
}

/// Upper bound of the requests that are under way at the same time.
fn requests_of(scenario: &Scenario, pieces: u64, disks: u64, meets_at_servers: bool) -> u64 {
    let clients = u64::from(scenario.clients);
    let outstanding =
        clients.saturating_mul(disks).saturating_mul(scenario.machine.outstanding_per_disk.into());
    match scenario.strategy {
        // A client asks for all blocks of its part at once.
        Strategy::GlobalBarrier | Strategy::NodeGrouping => pieces,
        Strategy::DiskDirected if !meets_at_servers => clients,
        _ => pieces.min(outstanding),
    }
}

#[cfg(test)]
mod tests {
    //! Proves: each key whose product with another takes memory is refused by its name, and the
    //! largest machines of the pages are not.
    use super::*;

    fn estimate(scenario: &Scenario) -> u64 {
        parts(scenario, scenario.file_bytes, false).iter().map(Part::bytes).sum()
    }

    #[test]
    fn promised_machines_fit() {
        let promised = Scenario {
            clients: 4096,
            servers: 512,
            file_bytes: 5120 << 20,
            block_bytes: 8192,
            ..Scenario::default()
        };
        for strategy in Strategy::ALL {
            let scenario = Scenario { strategy, ..promised.clone() };
            check(&scenario).unwrap_or_else(|error| panic!("{strategy}: {error}"));
        }
        let small = Scenario::default();
        assert!(estimate(&small) < 8 << 20, "{}", estimate(&small));
    }

    #[test]
    fn each_product_is_refused_with_its_keys() {
        let base = || Scenario { strategy: Strategy::Caching, ..Scenario::default() };
        let mut cached = Scenario { file_bytes: 1 << 36, ..base() };
        cached.machine.cache_bytes = 1 << 40;
        let strategy = Strategy::DiskDirected;
        let (servers, disks_per_server) = (1, 1 << 20);
        let mut buffered =
            Scenario { strategy, servers, disks_per_server, file_bytes: 1 << 36, ..base() };
        buffered.machine.buffers_per_disk = 4096;
        let payload = PayloadName::Traced;
        let traced = Scenario { payload, record_bytes: 8, file_bytes: 1 << 34, ..base() };
        let directed = || Scenario { strategy: Strategy::DiskDirected, ..base() };
        let large = || Scenario { file_bytes: 1 << 36, ..base() };
        let refused = [
            (Scenario { servers: 1_000_000, ..directed() }, "nodes", "clients and servers"),
            (
                Scenario { disks_per_server: 1 << 16, clients: 4096, ..large() },
                "requests",
                "outstanding-per-disk",
            ),
            (
                Scenario { servers: 4096, clients: 4096, ..base() },
                "pairs of a client and a server",
                "clients and servers",
            ),
            (
                Scenario { file_bytes: 1 << 40, block_bytes: 512, ..base() },
                "blocks of files",
                "size and block",
            ),
            (cached, "blocks in the caches of servers", "cache-bytes"),
            (buffered, "buffers", "buffers-per-disk"),
            (Scenario { strategy: Strategy::GlobalBarrier, ..large() }, "requests", "block"),
            (traced, "traced pieces", "payload"),
        ];
        for (scenario, what, key) in refused {
            let refusal = check(&scenario).expect_err(what);
            assert!(refusal.cause.contains("and the limit is 4 GiB"), "{refusal}");
            assert!(refusal.cause.contains(what), "{what}: {refusal}");
            assert!(refusal.help.contains(key), "{what}: {refusal}");
        }
    }
}
