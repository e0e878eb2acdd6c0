//! A small machine for tests.

// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::rc::Rc;
use units::Duration;
use world::payload::Bytes;
use world_simulated::models::ideal::IdealSpec;
use world_simulated::{
    DiskConfig, DiskKind, Engine, HostConfig, LayoutKind, Machine, MachineConfig, MessageCosts,
    NetworkSpec, NodeConfig, Pieces, PutCopier, QueueKind, StartAngle,
};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 8192;

/// Costs: 5 us to send a message, and 5 us to receive one.
pub(crate) const MESSAGES: MessageCosts = MessageCosts {
    send: Duration::from_us(5),
    message_ps_per_byte: 0,
    receive: Duration::from_us(5),
    wake: Duration::ZERO,
    receive_ps_per_byte: 0,
    one_sided: Duration::from_us(5),
    get_answer: Duration::ZERO,
    per_50_words: Duration::from_us(1),
    pieces: Pieces::Batched { gather_ps: 0 },
    put_copier: PutCopier::Requester,
    direct: None,
};

/// Creates two nodes with a disk each, whose work does not vary.
pub(crate) fn machine(mechanism: DiskKind) -> (Engine, Rc<Machine<Bytes>>) {
    machine_that_varies(mechanism, 0)
}

/// Creates two nodes with a disk each, whose work varies by this percentage in both directions.
pub(crate) fn machine_that_varies(
    mechanism: DiskKind,
    variation_percent: u32,
) -> (Engine, Rc<Machine<Bytes>>) {
    assemble(MachineConfig {
        nodes: vec![NodeConfig { variation_percent, ..NODE }; 2],
        ..configuration(mechanism)
    })
}

/// Creates two nodes with a disk each, whose messages have these costs.
pub(crate) fn machine_with_costs(messages: MessageCosts) -> (Engine, Rc<Machine<Bytes>>) {
    let mechanism = DiskKind::of(IdealSpec { latency: Duration::ZERO, bytes_per_second: 1 });
    assemble(MachineConfig { nodes: vec![NODE; 2], messages, ..configuration(mechanism) })
}

/// Creates nodes with a disk each, whose work does not vary, on one host with so many cores.
pub(crate) fn machine_on_one_host(
    (nodes, cores): (u32, u32),
    mechanism: DiskKind,
) -> (Engine, Rc<Machine<Bytes>>) {
    assemble(MachineConfig {
        nodes: vec![NODE; nodes as usize],
        hosts: vec![HostConfig { cores, nodes: 0..nodes }],
        ..configuration(mechanism)
    })
}

const NODE: NodeConfig =
    NodeConfig { disks: 1, speed: 1, reference_speed: 1, variation_percent: 0, traced: false };

fn configuration(mechanism: DiskKind) -> MachineConfig {
    MachineConfig {
        nodes: Vec::new(),
        hosts: Vec::new(),
        messages: MESSAGES,
        network: NetworkSpec::default(),
        disk: DiskConfig {
            kind: mechanism,
            layout: LayoutKind::CONTIGUOUS,
            slot_bytes: BLOCK as u64,
            start: StartAngle::Zero,
            queue: QueueKind::Fcfs,
            prefetch_commands: 0,
        },
        seed: 1,
    }
}

fn assemble(config: MachineConfig) -> (Engine, Rc<Machine<Bytes>>) {
    let engine = Engine::new();
    (engine.clone(), Machine::new(engine, &config).unwrap())
}
