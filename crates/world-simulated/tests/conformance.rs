//! Proves: a simulated node keeps the contracts of `world`, with every kind of data.

mod support;

use std::cell::RefCell;
use std::future::Future;
use std::marker::PhantomData;
use support::MESSAGES;
use units::Duration;
use world::conformance::{Fixture, cases, run_all};
use world::payload::{Bytes, Kind, Origin, Phantom, Traced, TracedMemory};
use world::{Memory, Payload};
use world_simulated::models::ideal::IdealSpec;
use world_simulated::models::network::FatTreeShape;
use world_simulated::models::network::crossbar::CrossbarShape;
use world_simulated::models::network::torus::exact::ExactTorusShape;
use world_simulated::models::ssd::SsdSpec;
use world_simulated::{
    DiskConfig, DiskKind, Engine, LayoutKind, Machine, MachineConfig, NetworkKind, NetworkSpec,
    NodeConfig, QueueKind, SimulatedWorld, StartAngle,
};

/// A kind of data that can, or cannot, be made of bytes and read again.
trait Readable: Kind {
    fn of_bytes(bytes: &[u8]) -> Self;
    fn bytes(&self) -> Option<Vec<u8>>;
}

impl Readable for Bytes {
    fn of_bytes(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        Some(self.to_vec())
    }
}

impl Readable for Phantom {
    fn of_bytes(bytes: &[u8]) -> Self {
        Self(bytes.len() as u64)
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        None
    }
}

thread_local! {
    /// Every byte that was made traced data on this thread, from offset 0 of the one origin.
    static MADE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A byte of a disk that was never written is zero.
impl Readable for Traced {
    fn of_bytes(bytes: &[u8]) -> Self {
        MADE.with_borrow_mut(|made| {
            let (offset, length) = (made.len() as u64, bytes.len() as u64);
            made.extend_from_slice(bytes);
            TracedMemory::of(Origin::Client(0), offset + length).freeze().slice(offset, length)
        })
    }

    fn bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for segment in self.segments() {
            let (offset, length) = (segment.offset as usize, segment.length as usize);
            match segment.origin {
                Origin::Client(0) => {
                    MADE.with_borrow(|made| bytes.extend_from_slice(&made[offset..offset + length]))
                }
                _ => bytes.resize(bytes.len() + length, 0),
            }
        }
        Some(bytes)
    }
}

/// Nodes of one machine that moves data of kind `P`, with given disks and network.
struct Nodes<P> {
    disk: DiskConfig,
    network: NetworkSpec,
    kind: PhantomData<P>,
}

impl<P> Nodes<P> {
    /// Creates nodes whose disks overlap all requests.
    fn plain() -> Self {
        let latency = Duration::from_us(100);
        // The suite reaches beyond 8 GiB, past the capacity of an HP 97560.
        let mechanism = DiskKind::of(IdealSpec { latency, bytes_per_second: 1 << 30 });
        let disk = disk(mechanism, QueueKind::Fcfs);
        Self { disk, network: NetworkSpec::default(), kind: PhantomData }
    }

    /// Creates nodes whose disks serve many requests at once and reorder them.
    fn with_ssds() -> Self {
        Self { disk: disk(DiskKind::of(SsdSpec::NVME), QueueKind::Cscan), ..Self::plain() }
    }

    fn on(kind: NetworkKind) -> Self {
        Self { network: NetworkSpec { kind, ..NetworkSpec::default() }, ..Self::plain() }
    }
}

fn disk(mechanism: DiskKind, queue: QueueKind) -> DiskConfig {
    DiskConfig {
        kind: mechanism,
        layout: LayoutKind::CONTIGUOUS,
        slot_bytes: 8192,
        start: StartAngle::Zero,
        queue,
        prefetch_commands: 0,
    }
}

impl<P: Readable> Fixture for Nodes<P> {
    type World = SimulatedWorld<P>;

    fn run<R: 'static, F: Future<Output = R> + 'static>(
        &mut self,
        nodes: usize,
        program: impl FnOnce(Vec<SimulatedWorld<P>>) -> F,
    ) -> R {
        let engine = Engine::new();
        let config = machine(nodes, &self.disk, self.network.clone());
        let machine = Machine::new(engine.clone(), &config).expect("it is a machine");
        let worlds = (0..nodes).map(|node| machine.world(node as u32)).collect();
        let output = engine.run(program(worlds));
        engine.shut_down();
        output.expect("a case must not wait forever")
    }

    fn payload(bytes: &[u8]) -> P {
        P::of_bytes(bytes)
    }

    fn read_back(payload: &P) -> Option<Vec<u8>> {
        payload.bytes()
    }
}

fn machine(nodes: usize, disk: &DiskConfig, network: NetworkSpec) -> MachineConfig {
    MachineConfig {
        nodes: vec![
            NodeConfig {
                disks: 1,
                speed: 1,
                reference_speed: 1,
                variation_percent: 0,
                traced: false
            };
            nodes
        ],
        hosts: Vec::new(),
        messages: MESSAGES,
        network,
        disk: disk.clone(),
        seed: 1,
    }
}

#[test]
fn with_bytes() {
    run_all(&mut Nodes::<Bytes>::plain());
}

/// Traced bytes without common origin cost a list entry each; this case moves millions of them, for
/// minutes, and shows nothing that the others do not.
const TOO_LONG_TO_TRACE: &str = "one_sided::transfers_of_every_size_arrive";

#[test]
fn with_traced_data() {
    let cases = cases::<Nodes<Traced>>();
    assert!(cases.iter().any(|(name, _)| *name == TOO_LONG_TO_TRACE), "its name has changed");
    for (name, case) in cases {
        if name != TOO_LONG_TO_TRACE {
            println!("case {name}");
            case(&mut Nodes::plain());
        }
    }
}

#[test]
fn with_disks_that_change_the_order() {
    run_all(&mut Nodes::<Bytes>::with_ssds());
}

#[test]
fn with_phantom_data() {
    run_all(&mut Nodes::<Phantom>::plain());
}

#[test]
fn on_an_exact_torus() {
    run_all(&mut Nodes::<Bytes>::on(NetworkKind::of(ExactTorusShape::default())));
}

#[test]
fn on_a_crossbar() {
    run_all(&mut Nodes::<Bytes>::on(NetworkKind::of(CrossbarShape)));
}

#[test]
fn on_a_fat_tree() {
    let shape = FatTreeShape { leaf_nodes: 2, spines: 1, ends: Duration::ZERO };
    run_all(&mut Nodes::<Bytes>::on(NetworkKind::of(shape)));
}
