//! Machines that can be simulated. Every constant of a machine stands here, with its source.

use super::fitted::FittedCosts;
use crate::scenario::{LayoutName, MachineName, Scenario};
use filesystem::collective::Strategy;
use filesystem::{Costs, ServerConfig};
use policy::Direction;
use units::{Duration, ServerId};
use world_simulated::{
    DeviceConfig, LayoutKind, MachineConfig, Mechanism, MessageCosts, NodeConfig, Pieces,
    QueueKind, StartAngle,
};

/// All that makes up a machine and the file system on it.
struct Preset {
    start: StartAngle,
    /// Which of the requests that wait for a disk is next.
    queue: QueueKind,
    /// Commands of a read over its bus besides the first, by strategy.
    prefetch_commands: fn(Strategy) -> u32,
    messages: MessageCosts,
    costs: Costs,
    /// How far the cost of each piece of work varies.
    variation_percent: u32,
    /// Requests that one client has under way at one disk.
    outstanding_per_disk: u32,
    /// Blocks of cache for each client and disk.
    cache_blocks_per_client_and_disk: u64,
    /// Blocks that a collective holds for each disk.
    buffers_per_disk: u32,
    /// The strategies whose writes end when the data is on the medium; those of the others end
    /// when the disks have it.
    waits_for_medium: fn(Strategy) -> bool,
}

/// Processor time of the messages of STARFISH on its 50 MHz processor, pieces one by one.
///
/// `one_sided` and the time for 50 words are measurements: memput about 5 us and 1 us for 50 words,
/// memget about 5 us and 2 us (TOCS 1997, Table I). That a memget's second microsecond is the other
/// node's is inferred from TR94-232: directing a write costs a server 7 us a block more than a
/// read, not 41. Sending and receiving a message are not published; each is taken to cost what a
/// memput without data does. `get_answer` is fitted (docs/validation.md).
const STARFISH_MESSAGES: MessageCosts = MessageCosts {
    send: Duration::from_us(5),
    receive: Duration::from_us(5),
    one_sided: Duration::from_us(5),
    get_answer: Duration::from_ns(1_000),
    per_50_words: Duration::from_us(1),
    pieces: Pieces::Individual,
};

/// Gathering a piece into a batch, when pieces travel together: batching improves 8-byte cyclic
/// patterns by 10 to 24 % (TOCS 1997, section 6), so a piece that costs 7.5 us by itself costs
/// about 6.4 us in a batch, of which 2.5 us find its place.
const GATHER_PIECE: Duration = Duration::from_ns(3_900);

/// Processor time of the file system's own work.
///
/// Published, or derived from published figures: `cache_write` with sending and receiving makes the
/// 22.7 us for each request of 8 bytes of TR94-232 (Table 2, hard write); `copy_ps_per_byte` is
/// what writing blocks of 8 KB occupies a server more than reading them, 192 us a block (easy write
/// and read); `block` leaves of its 187 us a block, two interruptions of 50 us and one memput of
/// 46 us included. Fitted on the contiguous 8-byte cells of TR94-226, Table 4 (docs/validation.md):
/// `client_read`, `client_write`, `cache_read` on caching, `piece_per_dimension` on disk-directed.
/// `collective` is a round figure of no influence, one per client and transfer.
const STARFISH_COSTS: Costs = Costs {
    client_read: Duration::from_us(2),
    client_write: Duration::from_us(50),
    cache_read: Duration::from_us(8),
    cache_write: Duration::from_us(12),
    copy_ps_per_byte: 23_400,
    block: Duration::from_us(40),
    piece_per_dimension: Duration::from_ns(1_250),
    collective: Duration::from_us(10),
};

/// The paths through the published code differ from request to request, and TR94-232 (section 3.3)
/// calls their times highly variable; the figures here are means. The width is our choice: without
/// any, requests that are made at the same time stay in step for ever.
const STARFISH_VARIATION_PERCENT: u32 = 25;

/// TR94-226, section 4: one outstanding request per disk and client, two cache buffers for each,
/// two one-block buffers for a collective.
///
/// Its disks start in phase: its contiguous reads are too fast for 16 independent angles, which
/// the paper does not name among its random factors. Which phase is not known, so each trial has
/// its own. That caching waits for the medium and directed writes do not is inferred: 34.8 MB/s is
/// more than the medium can take, and caching loses on every contiguous write the time that the
/// medium needs for what a disk's buffer holds.
const TR94: Preset = Preset {
    start: StartAngle::Common,
    queue: QueueKind::Fcfs,
    prefetch_commands: |_| 0,
    messages: STARFISH_MESSAGES,
    costs: STARFISH_COSTS,
    variation_percent: STARFISH_VARIATION_PERCENT,
    outstanding_per_disk: 1,
    cache_blocks_per_client_and_disk: 2,
    buffers_per_disk: 2,
    waits_for_medium: |strategy| strategy != Strategy::DiskDirected,
};

/// TOCS 1997, section 4: four outstanding requests per disk and client, eight cache buffers for
/// each client and disk; cyclic scan by disk sector; a directed read has the disk fetch a block
/// into its buffer before it asks for it (footnote 3: three bus transactions); "randomness in the
/// disk layouts, disk initial rotational positions, and in the network"; the total time includes
/// "waiting for all I/O to complete" (section 5).
const TOCS97: Preset = Preset {
    start: StartAngle::Independent,
    queue: QueueKind::Cscan,
    prefetch_commands: |strategy| {
        u32::from(matches!(strategy, Strategy::DiskDirected | Strategy::Noncollective))
    },
    messages: MessageCosts {
        pieces: Pieces::Batched { gather: GATHER_PIECE },
        ..STARFISH_MESSAGES
    },
    outstanding_per_disk: 4,
    cache_blocks_per_client_and_disk: 8,
    waits_for_medium: |_| true,
    ..TR94
};

fn preset(scenario: &Scenario) -> &'static Preset {
    preset_of(scenario.machine)
}

fn preset_of(machine: MachineName) -> &'static Preset {
    match machine {
        MachineName::Tr94 | MachineName::Ideal => &TR94,
        MachineName::Tocs97 => &TOCS97,
    }
}

/// The machine of a scenario: its servers first, then its clients.
pub(crate) fn machine(scenario: &Scenario, mechanism: &Mechanism, seed: u64) -> MachineConfig {
    let preset = preset(scenario);
    let server = NodeConfig {
        disks: scenario.disks_per_server,
        speed: 1,
        reference_speed: 1,
        variation_percent: preset.variation_percent,
        traced: scenario.availability,
    };
    let client = NodeConfig { disks: 0, traced: false, ..server };
    let servers = std::iter::repeat_n(server, scenario.servers as usize);
    let clients = std::iter::repeat_n(client, scenario.clients as usize);
    let layout = match scenario.layout {
        LayoutName::Contiguous => LayoutKind::Contiguous,
        LayoutName::RandomBlocks => LayoutKind::RandomBlocks,
        LayoutName::RandomTracks => LayoutKind::RandomTracks,
    };
    MachineConfig {
        nodes: servers.chain(clients).collect(),
        messages: scenario
            .costs
            .map_or(preset.messages, |costs| costs.in_messages(preset.messages)),
        disk: DeviceConfig {
            mechanism: mechanism.clone(),
            layout,
            slot_bytes: scenario.block_bytes,
            start: preset.start,
            queue: preset.queue,
            prefetch_commands: (preset.prefetch_commands)(scenario.strategy),
        },
        seed,
    }
}

/// What server number `id` of a scenario is told at its start.
pub(crate) fn server(scenario: &Scenario, id: u32) -> ServerConfig {
    let preset = preset(scenario);
    let blocks = preset.cache_blocks_per_client_and_disk
        * u64::from(scenario.clients)
        * u64::from(scenario.disks_per_server);
    ServerConfig {
        id: ServerId(id),
        servers: scenario.servers,
        cache_bytes: blocks * scenario.block_bytes,
        buffers_per_disk: preset.buffers_per_disk,
        costs: costs(scenario),
    }
}

/// What the file system's own work costs in a scenario.
pub(crate) fn costs(scenario: &Scenario) -> Costs {
    let costs = preset(scenario).costs;
    scenario.costs.map_or(costs, |fitted| fitted.in_costs(costs))
}

/// The fitted costs of a machine.
pub(crate) fn fitted(machine: MachineName) -> FittedCosts {
    let preset = preset_of(machine);
    FittedCosts::from(&preset.costs, &preset.messages)
}

/// Requests that one client has under way at one disk.
pub(crate) fn outstanding_per_disk(scenario: &Scenario) -> u32 {
    preset(scenario).outstanding_per_disk
}

/// Whether the transfer ends only when what it writes is on the medium.
pub(crate) fn waits_for_medium(scenario: &Scenario) -> bool {
    let writes = scenario.pattern.direction == Direction::Write;
    writes && (scenario.sync || (preset(scenario).waits_for_medium)(scenario.strategy))
}
