//! Proves: an idle node, with or without a disk, needs less than 4 KiB of memory. So a large
//! machine of which only a part is used costs little.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use support::MESSAGES;
use world::payload::Phantom;
use world_simulated::models::mechanical::Drive;
use world_simulated::models::network::crossbar::CrossbarShape;
use world_simulated::{
    DiskConfig, DiskKind, Engine, LayoutKind, Machine, MachineConfig, NetworkKind, NetworkSpec,
    NodeConfig, QueueKind, StartAngle,
};

/// Largest memory of an idle node, in bytes.
const NODE_BYTES_MAX: u64 = 4096;

/// Number of nodes; so many that the pages of the allocator make no difference.
const NODES: u32 = 40_000;

/// Resident memory of this process, in bytes.
#[allow(clippy::disallowed_methods, reason = "only the host knows what the test occupies")]
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse().unwrap();
    kib * 1024
}

fn machine(nodes: u32, disks: u32, kind: NetworkKind) -> MachineConfig {
    let (speed, reference_speed) = (1, 1);
    let node = NodeConfig { disks, speed, reference_speed, variation_percent: 0, traced: false };
    MachineConfig {
        nodes: vec![node; nodes as usize],
        hosts: Vec::new(),
        messages: MESSAGES,
        network: NetworkSpec { kind, ..NetworkSpec::default() },
        disk: DiskConfig {
            kind: DiskKind::of(Drive::hp97560()),
            layout: LayoutKind::CONTIGUOUS,
            slot_bytes: 8192,
            start: StartAngle::Zero,
            queue: QueueKind::Fcfs,
            prefetch_commands: 0,
        },
        seed: 1,
    }
}

// One test only, so that nothing else runs in this process meanwhile.
#[test]
fn an_idle_node_needs_little() {
    for kind in [NetworkKind::default(), NetworkKind::of(CrossbarShape)] {
        for disks in [0, 1] {
            let engine = Engine::new();
            let before = resident_bytes();
            let built =
                Machine::<Phantom>::new(engine, &machine(NODES, disks, kind.clone())).unwrap();
            let bytes = resident_bytes().saturating_sub(before) / u64::from(NODES);
            println!("{kind:?}, {disks} disks: {bytes} bytes for each idle node");
            assert!(bytes < NODE_BYTES_MAX, "{kind:?}, {disks} disks: {bytes} bytes for each");
            assert!(bytes > 0, "it must be seen in the memory of the process");
            // Leaked, so that the next machine does not reuse its memory.
            std::mem::forget(built);
        }
    }
}
