//! A fault plan: while a client of the simulated machine writes a file again and again, a disk
//! becomes slow and a server loses power. After its restart all that was stored is there, and of
//! the interrupted write what the seed decides. Times are those of the simulated machine.
//!
//! ```sh
//! cargo run --release -p simulate --example faults
//! ```

use filesystem::{BufferPool, Client, Costs, Fault, serve};
use policy::{Direction, Stripe};
use simulate::Scenario;
use std::future::pending;
use units::{Duration, Instant};
use world::{Address, Clock, Tasks, payload::Bytes};
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
    let buffer = BufferPool::new(&client, FILE).await?.take(FILE).expect("the pool has room");
    let mut stored = 0;
    let fault = loop {
        buffer.fill(&vec![stored + 1; FILE as usize].into());
        let written = buffer.transfer(Direction::Write, &file, 0).await;
        if let Err(fault) = written.and(client.flush(&file, true).await) {
            break fault;
        }
        stored += 1;
        say(world.now(), format!("version {stored} is stored"));
    };
    say(world.now(), format!("version {} is interrupted: {fault}", stored + 1));
    world.sleep_until(Instant::START + Duration::from_ms(500)).await;
    drop((client, buffer));
    let client = Client::connect(world.clone(), &servers, Costs::FREE).await?;
    let (file, pool) = (client.open("f").await?, BufferPool::new(&client, FILE).await?);
    let buffer = pool.take(FILE).expect("the pool has room");
    buffer.transfer(Direction::Read, &file, 0).await?;
    let count = |version| buffer.payload().iter().filter(|byte| **byte == version).count();
    let (old, new) = (count(stored), count(stored + 1));
    assert_eq!((old + new) as u64, FILE, "a byte is neither stored nor of the last write");
    say(world.now(), format!("{old} bytes have version {stored}, {new} the interrupted one"));
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario { servers: 2, clients: 1, ..Scenario::default() };
    let engine = Engine::new();
    let machine = Machine::<Bytes>::new(engine.clone(), &scenario.machine_config(1)?)?;
    let worlds = [0, 1, 2].map(|node| machine.world(node));
    let client = client(worlds[2].clone());
    let start = move |id: u32| {
        let world = worlds[id as usize].clone();
        let serving = serve(world.clone(), scenario.server_config(id), || {}, pending());
        // Dropping the handle of the task would end the server.
        std::mem::forget(world.spawn(async { serving.await.expect("it serves to the end") }));
    };
    start(0);
    start(1);
    let slow = |times| DiskIsSlow { node: 0, disk: 0, times };
    let faults =
        [(60, slow(5)), (200, slow(1)), (270, Crash { node: 1 }), (400, Restart { node: 1 })];
    let planned = |(ms, what)| PlannedFault { at: Instant::START + Duration::from_ms(ms), what };
    let plan = FaultPlan { seed: 1, faults: faults.map(planned).to_vec(), ..FaultPlan::default() };
    let clock = engine.clone();
    machine.plan(&plan, move |what| {
        say(clock.now(), format!("{what:?}"));
        if let Restart { node } = what {
            start(node);
        }
    });
    Ok(engine.run(client)??)
}
