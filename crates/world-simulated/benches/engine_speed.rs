//! Measures events per second of the engine: `make bench`, or `cargo bench --bench engine_speed`.
//!
//! Run by `cargo test --benches`, which does not pass `--bench`, it only proves that it works.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "it measures real time")]

use std::time::Instant;
use units::Duration;
use world_simulated::Engine;

/// Events of each measurement.
const EVENTS: u64 = 20_000_000;

/// Events of a run that measures nothing.
const EVENTS_OF_TEST: u64 = 1_000_000;

fn main() {
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let events = if is_bench { EVENTS } else { EVENTS_OF_TEST };
    println!("{:>12} {:>14} {:>12}", "tasks", "events/s", "ns/event");
    for tasks in [1, 32, 1_000, 32_000, 1_000_000] {
        let rate = measure(tasks, events);
        println!("{tasks:>12} {rate:>14.0} {:>12.1}", 1e9 / rate);
    }
}

/// Returns events per second with `tasks` tasks that sleep repeatedly, for differing times, until
/// there were about as many `events`.
fn measure(tasks: u64, events: u64) -> f64 {
    let engine = Engine::new();
    let rounds = events / tasks;
    let handles: Vec<_> = (0..tasks)
        .map(|task| {
            let own = engine.clone();
            engine.spawn(0, async move {
                for round in 0..rounds {
                    let length = 1_000 + (task * 7_919 + round * 104_729) % 1_000;
                    own.sleep(Duration::from_ns(length)).await;
                }
            })
        })
        .collect();
    let own = engine.clone();
    let start = Instant::now();
    let ended = engine.run(async move { own.sleep(Duration::from_ms(10_000_000)).await });
    assert!(ended.is_ok(), "the sleepers must not wait for one another");
    let rate = engine.events() as f64 / start.elapsed().as_secs_f64();
    drop(handles);
    rate
}
