//! Proves: a program outside the workspace can add a disk model and a network, by public items
//! only, and simulate with them. What breaks the contract of an interface is refused.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use simulate::models::{
    BuiltNetwork, Command, DiskModel, DiskShape, DiskSpec, Duration, Instant, LinkSpec,
    NetworkShape, SectorsOutOfRange, Step, SwitchedNetwork, UnfitNetwork,
};
use simulate::{Machine, MachineName, OwnModels, Scenario, simulate};

/// A tape: the head winds to the first sector, then data passes.
#[derive(Debug)]
struct TapeSpec {
    bytes_per_second: u64,
}

#[derive(Debug)]
struct Tape {
    bytes_per_second: u64,
    position: u64,
    free_at: Instant,
}

const SECTOR_BYTES: u64 = 512;
const CAPACITY_SECTORS: u64 = 1 << 21;

impl DiskSpec for TapeSpec {
    fn build(&self, _angle: u64) -> Box<dyn DiskModel> {
        let (bytes_per_second, free_at) = (self.bytes_per_second, Instant::START);
        Box::new(Tape { bytes_per_second, position: 0, free_at })
    }
}

impl DiskModel for Tape {
    fn shape(&self) -> DiskShape {
        DiskShape { track_sectors: 128, capacity_sectors: CAPACITY_SECTORS }
    }
    fn sector_bytes(&self) -> u64 {
        SECTOR_BYTES
    }
    fn commands_max(&self) -> Option<u32> {
        Some(1)
    }
    fn begin(&mut self, now: Instant, command: &Command) -> Result<Step, SectorsOutOfRange> {
        command.check("tape", CAPACITY_SECTORS)?;
        let wound = Duration::from_us(self.position.abs_diff(command.sectors.start));
        let bytes = (command.sectors.end - command.sectors.start) * SECTOR_BYTES;
        let passed = Duration::of_transfer(bytes, self.bytes_per_second);
        self.position = command.sectors.end;
        self.free_at = self.free_at.max(now) + wound + passed;
        Ok(Step::Complete(self.free_at))
    }
    fn moved(&mut self, _now: Instant) -> Step {
        unreachable!("a tape asks for no burst")
    }
    fn abandon(&mut self) {}
    fn idle_at(&self) -> Instant {
        self.free_at
    }
}

/// A ring in one direction, whose links never contend.
#[derive(Debug)]
struct RingShape;

#[derive(Debug)]
struct Ring {
    link: LinkSpec,
    nodes: u32,
}

impl NetworkShape for RingShape {
    fn build(&self, link: LinkSpec, nodes: u32) -> Result<BuiltNetwork, UnfitNetwork> {
        if nodes > 1_000 {
            return Err(UnfitNetwork::Shape(format!("a ring of {nodes} nodes is too long")));
        }
        Ok(BuiltNetwork::Switched(Box::new(Ring { link, nodes })))
    }
}

impl SwitchedNetwork for Ring {
    fn deliver(&mut self, now: Instant, from: u32, to: u32, bytes: u64) -> Instant {
        let hops = u64::from((to + self.nodes - from) % self.nodes);
        if hops == 0 {
            return now;
        }
        let routed = Duration::from_ns(hops * self.link.hop.as_ns());
        now + routed + Duration::of_transfer(bytes, self.link.bytes_per_second)
    }
}

fn scenario(disk: &str, network: &str, models: OwnModels) -> Scenario {
    let mut machine = Machine::of(MachineName::Tr94);
    machine.disk = disk.parse().unwrap();
    machine.network.name = network.parse().unwrap();
    let (file_bytes, clients, servers) = (1 << 20, 4, 4);
    Scenario { machine, models, file_bytes, clients, servers, trials: 1, ..Scenario::default() }
}

#[test]
fn own_models_are_simulated() {
    let models = OwnModels::default()
        .with_disk("tape", TapeSpec { bytes_per_second: 1 << 20 })
        .unwrap()
        .with_network("ring", RingShape)
        .unwrap();
    let run = |disk, network| {
        let report = simulate(&scenario(disk, network, models.clone())).unwrap();
        report.results[0].clone()
    };
    let (own, built_in) = (run("custom:tape", "custom:ring"), run("hp97560", "torus"));
    assert_eq!(own.changed, ["disk = \"custom:tape\"", "network = \"custom:ring\""]);
    assert!(own.mib_s > built_in.mib_s / 100.0);
    for (disk, network) in [("custom:tape", "torus"), ("hp97560", "custom:ring")] {
        let digest = run(disk, network).digest;
        assert!(digest != own.digest && digest != built_in.digest, "{disk} on {network}");
        assert_eq!(run(disk, network).digest, digest);
    }
    let long = Scenario { clients: 1_000, ..scenario("hp97560", "custom:ring", models) };
    let error = long.check().unwrap_err();
    assert!(error.cause.contains("a ring of 1004 nodes is too long"), "{error}");
}

#[test]
fn what_the_program_does_not_have_is_refused() {
    for (disk, network) in [("custom:tape", "torus"), ("hp97560", "custom:ring")] {
        let error = scenario(disk, network, OwnModels::default()).check().unwrap_err();
        assert!(error.cause.contains("this program has no"), "{error}");
    }
}

#[test]
fn broken_models_are_refused() {
    /// Wrong network: delivers before the sending.
    #[derive(Debug)]
    struct Backwards;
    impl NetworkShape for Backwards {
        fn build(&self, _: LinkSpec, _: u32) -> Result<BuiltNetwork, UnfitNetwork> {
            Ok(BuiltNetwork::Switched(Box::new(Self)))
        }
    }
    impl SwitchedNetwork for Backwards {
        fn deliver(&mut self, _: Instant, _: u32, _: u32, _: u64) -> Instant {
            Instant::START
        }
    }
    let broken = OwnModels::default().with_network("backwards", Backwards).unwrap_err();
    assert!(broken.to_string().contains("before it was sent"), "{broken}");
    let unnamed = OwnModels::default().with_network("Ring", RingShape).unwrap_err();
    assert!(unnamed.to_string().contains("small letters") || unnamed.cause.contains("a to z"));
}
