//! Faults of one run of the hunt, drawn from its seed.

use crate::support::{Numbers, Shape};
use units::{Duration, Instant};
use world_simulated::{Disruption, FaultPlan, PlannedFault};

/// Time after which a stopped node is killed, and both ends of a cut connection learn of it. It is
/// longer than any operation may take, which must end without that.
pub(crate) const SILENT_MAX: Duration = Duration::from_ms(6_000);

/// Draws a plan for a machine that spares the last client, which inspects the result.
pub(crate) fn draw(shape: &Shape, numbers: &mut Numbers) -> FaultPlan {
    // Most faults happen while the clients work, which takes longer where more fails.
    let span_us = numbers.pick(&[10_000, 25_000, 60_000]);
    let mut faults = Vec::new();
    let mut add = |us: u64, what| {
        faults.push(PlannedFault { at: Instant::START + Duration::from_us(us), what });
    };
    let workers = u64::from(shape.clients) - 1;
    for node in 0..shape.servers {
        let mut at = 0;
        while numbers.below(5) < 2 {
            at += 500 + numbers.below(span_us / 2);
            add(at, Disruption::Crash { node });
            at += 50 + numbers.below(15_000);
            add(at, Disruption::Restart { node });
        }
        for disk in 0..shape.disks_per_server {
            if numbers.below(5) == 0 {
                let (at, times) = (numbers.below(span_us), 2 + numbers.below(50) as u32);
                add(at, Disruption::DiskIsSlow { node, disk, times });
                let end = at + numbers.below(20_000);
                add(end, Disruption::DiskIsSlow { node, disk, times: 1 });
            }
            if numbers.below(5) == 0 {
                let at = numbers.below(span_us);
                add(at, Disruption::DiskFails { node, disk, fails: true });
                let end = at + 100 + numbers.below(8_000);
                add(end, Disruption::DiskFails { node, disk, fails: false });
            }
        }
    }
    while numbers.below(2) == 0 {
        let one = shape.node_of(numbers.below(workers) as u32);
        let other = numbers.below(u64::from(shape.servers) + workers) as u32;
        if one != other {
            add(numbers.below(span_us), Disruption::Disconnect { nodes: (one, other) });
        }
    }
    if numbers.below(3) == 0 {
        let node = shape.node_of(numbers.below(workers) as u32);
        add(numbers.below(span_us), Disruption::Crash { node });
    }
    while numbers.below(4) == 0 {
        let (at, one) = (numbers.below(span_us), shape.node_of(numbers.below(workers) as u32));
        let other = numbers.below(u64::from(shape.servers) + workers) as u32;
        let ends = at + SILENT_MAX.as_ns() / 1000;
        match numbers.below(2) {
            // A stopped server is started again, and a stopped client killed.
            0 => {
                add(at, Disruption::Stop { node: other });
                add(ends, Disruption::Crash { node: other });
                if other < shape.servers {
                    add(ends + 50, Disruption::Restart { node: other });
                }
            }
            _ if one == other => {}
            _ => {
                let nodes = (one, other);
                add(at, Disruption::Cut { nodes });
                add(ends, Disruption::Disconnect { nodes });
            }
        }
    }
    let record_change = Duration::from_us(numbers.pick(&[0, 100, 1_000]));
    FaultPlan { seed: numbers.below(u64::MAX), record_change, faults }
}
