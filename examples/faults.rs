//! A fault plan: while a client of the simulated machine writes a file again and again, a disk
//! becomes slow and a server loses power. After the restart what was stored is there.
//!
//! ```sh
//! cargo run --release -p simulate --example faults
//! ```

use filesystem::{Client, Costs, Fault, collective::Part, serve};
use policy::{Access, Direction, DiskOrder, OwnPart, Stripe};
use simulate::Scenario;
use std::{cell::RefCell, future::pending};
use units::{ClientId, Duration, Instant};
use world::{Address, Clock, Memory, Payloads, Tasks, payload::Bytes};
use world_simulated::Disruption::{Crash, DiskIsSlow, Restart};
use world_simulated::{Engine, FaultPlan, Machine, PlannedFault, SimulatedWorld};

const BLOCK: u64 = 8192;
const FILE: u64 = 8 * BLOCK;

fn say(now: Instant, what: impl std::fmt::Display) {
    println!("{:7.3} ms  {what}", now.as_ns() as f64 / 1e6);
}

/// Writes version 1, 2, ... of each byte until a write fails; then reads the file.
async fn client(world: SimulatedWorld<Bytes>) -> Result<(), Fault> {
    let servers = [0, 1].map(|node| Address(format!("node:{node}")));
    let client = Client::connect(world.clone(), &servers, Costs::FREE).await?;
    let file = client.create("f", FILE, Stripe::round_robin(BLOCK, 2, 1)).await?;
    let access = Access::Parts(vec![OwnPart::contiguous(0, FILE)]);
    let (of, order) = (ClientId(0), DiskOrder::Sorted);
    let mut part =
        Part { direction: Direction::Write, file, access, client: of, order, sync: true };
    let mut stored = 0;
    let fault = loop {
        let version = world.thaw(vec![stored + 1; FILE as usize].into());
        match client.transfer_part(&part, &version).await {
            Ok(()) => stored += 1,
            Err(fault) => break fault,
        }
        say(world.now(), format!("version {stored} is stored"));
    };
    say(world.now(), format!("version {} is interrupted: {fault}", stored + 1));
    world.sleep_until(Instant::START + Duration::from_ms(500)).await;
    // A node has one client at a time.
    drop(client);
    let client = Client::connect(world.clone(), &servers, Costs::FREE).await?;
    (part.direction, part.file) = (Direction::Read, client.open("f").await?);
    let memory = world.thaw(vec![0; FILE as usize].into());
    client.transfer_part(&part, &memory).await?;
    let bytes = memory.freeze();
    let count = |version| bytes.iter().filter(|byte| **byte == version).count();
    let (old, new) = (count(stored), count(stored + 1));
    assert_eq!(old + new, bytes.len(), "a byte is older than what was stored");
    say(world.now(), format!("{old} bytes have version {stored}, {new} the interrupted one"));
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario { servers: 2, clients: 1, ..Scenario::default() };
    let engine = Engine::new();
    let machine = Machine::<Bytes>::new(engine.clone(), &scenario.machine_config(1)?)?;
    let worlds = [0, 1].map(|node| machine.world(node));
    let start = move |id: u32| {
        let world = worlds[id as usize].clone();
        let serving = serve(world.clone(), scenario.server_config(id), || {}, pending());
        world.spawn(async { serving.await.expect("a simulated server serves to the end") })
    };
    let servers = RefCell::new(vec![start(0), start(1)]);
    let slow = |times| DiskIsSlow { node: 0, disk: 0, times };
    let faults =
        [(60, slow(5)), (200, slow(1)), (270, Crash { node: 1 }), (400, Restart { node: 1 })];
    let planned = |(ms, what)| PlannedFault { at: Instant::START + Duration::from_ms(ms), what };
    let plan = FaultPlan { seed: 1, faults: faults.map(planned).to_vec(), ..FaultPlan::default() };
    let clock = engine.clone();
    machine.plan(&plan, move |what| {
        say(clock.now(), format!("{what:?}"));
        if let Restart { node } = what {
            servers.borrow_mut().push(start(node));
        }
    });
    Ok(engine.run(client(machine.world(2)))??)
}
