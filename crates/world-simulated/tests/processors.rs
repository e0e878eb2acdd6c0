//! Proves: variation of work is uniform between its bounds, and differs from node to node.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use support::machine_that_varies;
use units::Duration;
use world::Processor;
use world_simulated::DiskKind;
use world_simulated::models::mechanical::Drive;

#[test]
fn work_varies_evenly_between_its_bounds() {
    const TIMES: u64 = 20_000;
    let (engine, machine) = machine_that_varies(DiskKind::of(Drive::hp97560()), 25);
    let measured = engine.clone().run(async move {
        let mut measured = [Vec::new(), Vec::new()];
        for (node, lengths) in (0..).zip(&mut measured) {
            for _ in 0..TIMES {
                let begun = engine.now();
                machine.world(node).compute(Duration::from_ns(1_000)).await;
                lengths.push(engine.now().since(begun).as_ns());
            }
        }
        measured
    });
    let [one, other] = measured.unwrap();
    assert_ne!(one, other, "each node has its own sequence");
    for lengths in [one, other] {
        assert!(lengths.iter().all(|length| (750..=1_250).contains(length)));
        // So many in each tenth, within six standard deviations.
        for tenth in 0..10 {
            let within = (751 + 50 * tenth)..=(800 + 50 * tenth);
            let count = lengths.iter().filter(|length| within.contains(*length)).count();
            assert!((1_740..=2_260).contains(&count), "{count} of {TIMES} within {within:?}");
        }
    }
}
