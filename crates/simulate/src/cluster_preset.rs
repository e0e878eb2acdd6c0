//! The preset of a cluster of today. docs/clusters.md has each constant with its source, and a test
//! compares them.

use crate::disk::DiskName;
use crate::machine::{Machine, Network};
use crate::names::MachineName;
use crate::network_name::NetworkName;
use filesystem::{BytesCost, Costs};
use units::{Duration, MIB};
use world_simulated::models::network::fat_tree;
use world_simulated::models::nvme_p5510;
use world_simulated::{MessageCosts, ParameterValues, Pieces, PutCopier};

/// Switches of 32 ports of 100 Gbit/s and 300 ns (Mellanox Spectrum), in two levels without
/// oversubscription: 32 leaves at most, each with 16 nodes and a link to each of 16 spines, so 512
/// nodes.
fn network() -> Network {
    let ends_ns = 8_000;
    let mut parameters = ParameterValues::DEFAULTS;
    for (parameter, value) in
        [(fat_tree::LEAF_NODES, 16), (fat_tree::SPINES, 16), (fat_tree::ENDS, ends_ns)]
    {
        parameters.set(&parameter, value).expect("a preset must be within the ranges");
    }
    Network {
        name: NetworkName::BuiltIn(&fat_tree::NETWORK),
        bytes_per_second: 12_500_000_000,
        hop: Duration::from_ns(300),
        parameters,
    }
}

/// TCP as the servers use it between hosts: data is packed and sent by one end, 200 ps a byte, and
/// received and scattered by the other, 300 ps a byte. What a message costs besides is measured on
/// Unix sockets (`unisono sim calibrate`).
const MESSAGES: MessageCosts = MessageCosts {
    send: Duration::from_ns(6_800),
    message_ps_per_byte: 90,
    receive: Duration::from_ns(6_800),
    wake: Duration::ZERO,
    receive_ps_per_byte: 300,
    one_sided: Duration::from_ns(6_800),
    get_answer: Duration::ZERO,
    per_50_words: Duration::from_ns(40),
    pieces: Pieces::Batched { gather_ps: 310 },
    put_copier: PutCopier::Requester,
    direct: None,
};

/// Medians of three runs of `unisono sim calibrate`.
const COSTS: Costs = Costs {
    client_read: Duration::from_ns(1_400),
    client_write: Duration::from_ns(1_100),
    cache_read: Duration::from_ns(100),
    cache_write: Duration::from_ns(1_100),
    copy_ps_per_byte: 140,
    block: Duration::from_us(21),
    piece_per_dimension: Duration::ZERO,
    segment_ps_per_byte: 120,
    collective: Duration::from_us(43),
    look_ps_per_byte: 50,
    module_ps_per_byte: 510,
    gather: BytesCost { once: Duration::from_ns(280), ps_per_byte: 250 },
    kept_read: BytesCost { once: Duration::from_ns(250), ps_per_byte: 45 },
    gathered_write: BytesCost { once: Duration::from_ns(240), ps_per_byte: 350 },
};

/// A cluster of today of up to 512 nodes, each with a server or a client that has a core of its
/// own. `like` gives what is the same on any machine of today.
pub(crate) fn cluster(like: Machine) -> Machine {
    Machine {
        preset: MachineName::Cluster,
        disk: DiskName::BuiltIn(&nvme_p5510::DISK),
        network: network(),
        messages: MESSAGES,
        costs: COSTS,
        shared_cores: 0,
        call: Duration::from_us(13),
        connect: Duration::from_ms(1),
        outstanding_per_disk: 4,
        cache_bytes: 64 * MIB,
        cache_dirty_percent: 50,
        buffers_per_disk: 2,
        ..like
    }
}
