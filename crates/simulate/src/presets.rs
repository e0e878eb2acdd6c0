//! Machines that can be simulated. Every constant of a machine stands here, with its source, but
//! those of the cluster, which [`crate::cluster_preset`] has.

use crate::cluster_preset::cluster;
use crate::disk::DiskName;
use crate::machine::{Machine, Network};
use crate::names::MachineName;
use crate::network_name::NetworkName;
use filesystem::collective::Strategy;
use filesystem::{BytesCost, Costs};
use units::{Duration, MIB};
use world_simulated::models::ideal;
use world_simulated::models::mechanical::hp97560;
use world_simulated::models::network::crossbar;
use world_simulated::models::network::torus::modelled;
use world_simulated::models::page_cache;
use world_simulated::{
    DirectCopies, MessageCosts, ParameterValues, Pieces, PutCopier, QueueKind, StartAngle,
};

/// Processor time of the messages of STARFISH on its 50 MHz processor, pieces one by one.
///
/// `one_sided` and the time for 50 words are measurements: memput about 5 us and 1 us for 50 words,
/// memget about 5 us and 2 us (TOCS 1997, Table I). That a memget's second microsecond is the other
/// node's is inferred from TR94-232: directing a write costs a server 7 us a block more than a
/// read, not 41. Sending and receiving a message are not published; each is taken to cost what a
/// memput without data does. `get_answer` is fitted (docs/validation.md).
const STARFISH_MESSAGES: MessageCosts = MessageCosts {
    send: Duration::from_us(5),
    message_ps_per_byte: 0,
    receive: Duration::from_us(5),
    wake: Duration::ZERO,
    receive_ps_per_byte: 0,
    one_sided: Duration::from_us(5),
    get_answer: Duration::from_ns(1_174),
    per_50_words: Duration::from_us(1),
    pieces: Pieces::Individual,
    put_copier: PutCopier::Requester,
    direct: None,
};

/// Gathering a piece into a batch, when pieces travel together: batching improves 8-byte cyclic
/// patterns by 10 to 24 % (TOCS 1997, section 6), so a piece that costs 7.3 us by itself costs
/// about 6.2 us in a batch, of which 2.3 us find its place.
const GATHER_PIECE_PS: u64 = 3_900_000;

/// Pieces that travel together.
pub(crate) const BATCHED: Pieces = Pieces::Batched { gather_ps: GATHER_PIECE_PS };

/// Processor time of the file system's own work.
///
/// Published, or derived from published figures: `cache_write` with sending and receiving makes the
/// 22.7 us for each request of 8 bytes of TR94-232 (Table 2, hard write); `copy_ps_per_byte` is
/// what writing blocks of 8 KB occupies a server more than reading them, 192 us a block (easy write
/// and read); `block` leaves of its 187 us a block, two interruptions of 50 us and one memput of
/// 46 us included. Fitted on the contiguous 8-byte cells of TR94-226, Table 4 (docs/validation.md):
/// `client_read`, `client_write`, `cache_read` on caching, `piece_per_dimension` on disk-directed.
/// `collective` is a round figure of no influence, one per client and transfer. Not in the papers,
/// and assumed: `look_ps_per_byte` is 20 instructions at 50 million a second for 64 bytes.
const STARFISH_COSTS: Costs = Costs {
    client_read: Duration::from_ns(3_030),
    client_write: Duration::from_ns(54_996),
    cache_read: Duration::from_ns(8_593),
    cache_write: Duration::from_us(12),
    copy_ps_per_byte: 23_400,
    block: Duration::from_us(40),
    piece_per_dimension: Duration::from_ns(1_135),
    segment_ps_per_byte: 0,
    collective: Duration::from_us(10),
    look_ps_per_byte: 6_250,
    ..Costs::FREE
};

/// The paths through the published code differ from request to request, and TR94-232 (section 3.3)
/// calls their times highly variable; the figures here are means. The width is our choice: without
/// any, requests that are made at the same time stay in step for ever.
const STARFISH_VARIATION_PERCENT: u32 = 25;

/// A torus with links of 200 * 10^6 bytes a second and 20 ns a router (TOCS 1997, Table I), in the
/// modelled form, as in the papers (section 4.1). The files of the networks declare what they need
/// besides.
const STARFISH_NETWORK: Network = Network {
    name: NetworkName::BuiltIn(&modelled::NETWORK),
    bytes_per_second: 200_000_000,
    hop: Duration::from_ns(20),
    parameters: ParameterValues::DEFAULTS,
};

/// TR94-226, section 4: one outstanding request per disk and client, two cache buffers for each,
/// two one-block buffers for a collective.
///
/// Its disks start in phase: its contiguous reads are too fast for 16 independent angles, which
/// the paper does not name among its random factors. Which phase is not known, so each trial has
/// its own. That caching waits for the medium and directed writes do not is inferred: 34.8 MB/s is
/// more than the medium can take, and caching loses on every contiguous write the time that the
/// medium needs for what a disk's buffer holds.
fn tr94() -> Machine {
    Machine {
        preset: MachineName::Tr94,
        disk: DiskName::BuiltIn(&hp97560::DISK),
        network: STARFISH_NETWORK,
        start: StartAngle::Common,
        queue: QueueKind::Fcfs,
        directed_prefetch_commands: 0,
        messages: STARFISH_MESSAGES,
        costs: STARFISH_COSTS,
        variation_percent: STARFISH_VARIATION_PERCENT,
        shared_cores: 0,
        calibrated_at: 0,
        call: Duration::ZERO,
        connect: Duration::ZERO,
        outstanding_per_disk: 1,
        cache_blocks_per_client_and_disk: 2,
        cache_bytes: 0,
        cache_dirty_percent: 100,
        buffers_per_disk: 2,
        waits_for_medium: vec![
            Strategy::Caching,
            Strategy::TwoPhase,
            Strategy::Noncollective,
            Strategy::GlobalBarrier,
            Strategy::NodeGrouping,
        ],
    }
}

/// TOCS 1997, section 4: four outstanding requests per disk and client, eight cache buffers for
/// each client and disk; cyclic scan, which the paper says is by disk sector, and here is by the
/// place in the file for the reasons in docs/validation.md; a directed read has the disk fetch a
/// block into its buffer before it asks for it (footnote 3: three bus transactions); "randomness in
/// the disk layouts, disk initial rotational positions, and in the network"; the total time
/// includes "waiting for all I/O to complete" (section 5).
fn tocs97() -> Machine {
    Machine {
        preset: MachineName::Tocs97,
        start: StartAngle::Independent,
        queue: QueueKind::CscanOfFile,
        directed_prefetch_commands: 1,
        messages: MessageCosts { pieces: BATCHED, ..STARFISH_MESSAGES },
        outstanding_per_disk: 4,
        cache_blocks_per_client_and_disk: 8,
        cache_dirty_percent: 100,
        waits_for_medium: Strategy::NAMED.to_vec(),
        ..tr94()
    }
}

/// The machine of TR94-226 with ideal disks: isolates the effect of the disk mechanics.
fn ideal_disks() -> Machine {
    Machine { preset: MachineName::Ideal, disk: DiskName::BuiltIn(&ideal::DISK), ..tr94() }
}

/// A computer of today with two cores, which servers and ranks share, in round figures that no
/// machine has: `unisono sim calibrate` measures them. Clients copy what servers put, out of shared
/// memory; a message is a packet of a socket, and wakes a thread. What is not measured is as the
/// servers have it: two buffers for each disk, a cache of 64 MiB, of which half may be dirty.
fn this_machine() -> Machine {
    Machine {
        preset: MachineName::ThisMachine,
        disk: DiskName::BuiltIn(&page_cache::DISK),
        network: Network {
            name: NetworkName::BuiltIn(&crossbar::NETWORK),
            bytes_per_second: 1_000_000_000_000,
            hop: Duration::from_us(3),
            parameters: ParameterValues::DEFAULTS,
        },
        messages: MessageCosts {
            send: Duration::from_us(3),
            message_ps_per_byte: 300,
            receive: Duration::from_us(3),
            wake: Duration::ZERO,
            receive_ps_per_byte: 0,
            one_sided: Duration::from_us(3),
            get_answer: Duration::ZERO,
            per_50_words: Duration::from_ns(40),
            pieces: Pieces::Batched { gather_ps: 2_500 },
            put_copier: PutCopier::Owner,
            direct: Some(DirectCopies {
                ps_per_byte: 200,
                ps_per_piece: 1_500,
                ps_per_interval: 400_000,
            }),
        },
        costs: Costs {
            client_read: Duration::from_us(3),
            client_write: Duration::from_us(3),
            cache_read: Duration::from_us(2),
            cache_write: Duration::from_us(2),
            copy_ps_per_byte: 200,
            block: Duration::from_us(10),
            piece_per_dimension: Duration::ZERO,
            segment_ps_per_byte: 400,
            collective: Duration::from_us(5),
            look_ps_per_byte: 67,
            module_ps_per_byte: 510,
            gather: BytesCost { once: Duration::from_ns(280), ps_per_byte: 250 },
            kept_read: BytesCost { once: Duration::from_ns(250), ps_per_byte: 45 },
            gathered_write: BytesCost { once: Duration::from_ns(240), ps_per_byte: 350 },
        },
        variation_percent: 0,
        shared_cores: 2,
        call: Duration::from_us(5),
        connect: Duration::from_ms(1),
        outstanding_per_disk: 4,
        cache_bytes: 64 * MIB,
        cache_dirty_percent: 50,
        waits_for_medium: Vec::new(),
        ..tr94()
    }
}

impl Machine {
    /// Returns an unchanged preset.
    pub fn of(preset: MachineName) -> Self {
        match preset {
            MachineName::Tr94 => tr94(),
            MachineName::Tocs97 => tocs97(),
            MachineName::Ideal => ideal_disks(),
            MachineName::ThisMachine => this_machine(),
            MachineName::Cluster => cluster(this_machine()),
        }
    }
}
