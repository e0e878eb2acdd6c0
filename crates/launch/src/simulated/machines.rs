//! Machines that can be simulated. Every constant of a machine stands here, with its source.

use crate::scenario::{LayoutName, Scenario};
use filesystem::ServerConfig;
use units::{Duration, ServerId};
use world_simulated::{
    DeviceConfig, LayoutKind, MachineConfig, Mechanism, MessageCosts, NodeConfig, QueueKind,
};

/// Processor time of messages on the 50 MHz processor.
///
/// `one_sided` and the times for 50 words are measurements of STARFISH: memput about 5 us and
/// 1 us for 50 words, memget about 5 us and 2 us (TOCS 1997, Table I). Sending and receiving a
/// message are not published; each is taken to cost what a memput without data does.
const STARFISH_MESSAGES: MessageCosts = MessageCosts {
    send: Duration::from_us(5),
    receive: Duration::from_us(5),
    one_sided: Duration::from_us(5),
    put_per_50_words: Duration::from_us(1),
    get_per_50_words: Duration::from_us(2),
};

/// Blocks of cache for each client and disk: room for a request and for what is read ahead or
/// written behind (TR94-226, section 4; TOCS 1997, Table I).
const CACHE_BLOCKS_PER_CLIENT_AND_DISK: u64 = 2;

/// Requests that one client has under way at one disk (TR94-226, section 4: "up to one outstanding
/// request per disk per CP").
pub(crate) const OUTSTANDING_PER_DISK: u32 = 1;

/// Blocks that a collective holds for each disk (TR94-226, section 4).
const BUFFERS_PER_DISK: u32 = 2;

/// The machine of a scenario: its servers first, then its clients.
pub(crate) fn machine(scenario: &Scenario, mechanism: &Mechanism, seed: u64) -> MachineConfig {
    let server = NodeConfig { disks: scenario.disks_per_server, speed: 1, reference_speed: 1 };
    let client = NodeConfig { disks: 0, ..server };
    let servers = std::iter::repeat_n(server, scenario.servers as usize);
    let clients = std::iter::repeat_n(client, scenario.clients as usize);
    let layout = match scenario.layout {
        LayoutName::Contiguous => LayoutKind::Contiguous,
        LayoutName::RandomBlocks => LayoutKind::RandomBlocks,
        LayoutName::RandomTracks => LayoutKind::RandomTracks,
    };
    MachineConfig {
        nodes: servers.chain(clients).collect(),
        messages: STARFISH_MESSAGES,
        disk: DeviceConfig {
            mechanism: mechanism.clone(),
            layout,
            slot_bytes: scenario.block_bytes,
            // TR94-226 does not name the angle among its random factors, and its contiguous
            // figures need disks in phase.
            random_angle: false,
            queue: QueueKind::Fcfs,
            prefetch_commands: 0,
        },
        seed,
    }
}

/// What server number `id` of a scenario is told at its start.
pub(crate) fn server(scenario: &Scenario, id: u32) -> ServerConfig {
    let blocks = CACHE_BLOCKS_PER_CLIENT_AND_DISK
        * u64::from(scenario.clients)
        * u64::from(scenario.disks_per_server);
    ServerConfig {
        id: ServerId(id),
        servers: scenario.servers,
        cache_bytes: blocks * scenario.block_bytes,
        buffers_per_disk: BUFFERS_PER_DISK,
    }
}
