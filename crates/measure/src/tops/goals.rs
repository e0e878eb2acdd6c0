//! Comparison of our rates with the limits of the machine, or with goals.
//!
//! Other programs share these machines. Each goal is therefore measured in turns with its limit,
//! and the median turn counts. Streams run as long as our measurement; the disk moves the same
//! bytes. Of a memory copy the best of several short ones is taken, which is more than their mean.
//! A comparison without a goal shows the distance from a greater limit.

use super::client::UNDER_WAY;
use super::device::Device;
use super::limits::{Carried, Streams, tcp_mib_s};
use super::spec::{TopsGoal, TopsPlan, Work};
use super::testbed::{BUFFERED_BYTES, Kind, Testbed};
use crate::bench::measure_copy;
use cluster::Program;
use filesystem::collective::Strategy;
use interface::UserError;
use policy::{Declared, Pattern};
use simulate::{ReadAhead, Scenario};
use std::str::FromStr;
use units::KIB;

/// Turns of each goal; odd, so that one is in the middle.
const TURNS: usize = 9;

/// Measures all goals.
pub(super) fn measure(
    program: &Program,
    plan: &TopsPlan,
    streams: &Streams,
) -> Result<Vec<TopsGoal>, UserError> {
    let start = |kind: Kind| Testbed::start(program, plan, 1, 1, &kind);
    let on_memory = start(Kind::Buffered)?;
    let copied = in_turns(
        "pages in shared memory, copied out, to a memory copy",
        Some(0.5),
        || on_memory.run(Work::CopyPages, 1),
        || Ok(measure_copy()),
    )?;
    let by_unix = in_turns(
        "library over Unix sockets, to one Unix stream",
        Some(0.6),
        || on_memory.run(Work::Read, 1),
        || streams.unix_mib_s(plan.seconds),
    )?;
    drop(on_memory);
    let over_tcp = start(Kind::OverTcp)?;
    // As in memory copies and on the disk, the bytes come out of as much memory, and go into as
    // much.
    let request_bytes = (plan.pages * plan.page_bytes) as usize;
    let carried = Carried {
        call_bytes: request_bytes,
        from_bytes: (BUFFERED_BYTES as usize).next_multiple_of(request_bytes),
        into_bytes: UNDER_WAY * request_bytes,
    };
    let by_tcp = in_turns(
        "library over TCP, to one TCP stream of such bytes",
        Some(0.8),
        || over_tcp.run(Work::Read, 1),
        || tcp_mib_s(&carried, plan.seconds),
    )?;
    let by_tcp_of_few = in_turns(
        "library over TCP, to one that stays in the processor's cache",
        None,
        || over_tcp.run(Work::Read, 1),
        || streams.tcp_mib_s(plan.seconds),
    )?;
    drop(over_tcp);
    let on_disk = start(Kind::LargePages)?;
    // Reads the servers' own file, because places of a disk may differ in speed.
    let device = Device::longest_below(on_disk.directory(), plan.long_bytes())?;
    let pass = || on_disk.run(Work::SharePass { read_ahead: true }, 1);
    let cold =
        in_turns("sequential read from disk, to dd past the page cache", Some(0.9), pass, || {
            device.pass_as_dd()
        })?;
    // Uses the same kind of memory as ours: the rest of the difference is the way to the client.
    let cold_in_huge_pages =
        in_turns("sequential read from disk, to a program with huge pages", None, pass, || {
            device.pass()
        })?;
    let [unordered, ordered] = [false, true].map(simulated_pass);
    let simulated = TopsGoal::of(
        "global sequential with prefetch, to none, on a simulated HP 97560",
        Some(3.0),
        &[(ordered?, unordered?)],
    );
    Ok(vec![copied, by_unix, by_tcp, by_tcp_of_few, cold, cold_in_huge_pages, simulated])
}

fn in_turns(
    name: &str,
    wanted: Option<f64>,
    ours: impl Fn() -> Result<f64, UserError>,
    limit: impl Fn() -> Result<f64, UserError>,
) -> Result<TopsGoal, UserError> {
    // The order alternates, so that neither always comes second.
    let turns = (0..TURNS).map(|turn| match turn % 2 {
        0 => limit().and_then(|limit| Ok((ours()?, limit))),
        _ => ours().and_then(|ours| Ok((ours, limit()?))),
    });
    let turns = turns.collect::<Result<Vec<(f64, f64)>, UserError>>()?;
    Ok(TopsGoal::of(name, wanted, &turns))
}

impl TopsGoal {
    /// Makes a goal from its turns, each our rate and the limit measured beside it.
    fn of(name: &str, wanted: Option<f64>, turns: &[(f64, f64)]) -> Self {
        let sorted = |value: fn(&(f64, f64)) -> f64| {
            let mut values: Vec<f64> = turns.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let ratios = sorted(|(ours, limit)| ours / limit);
        let middle = turns.len() / 2;
        Self {
            name: name.to_owned(),
            mib_s: sorted(|(ours, _)| *ours)[middle],
            limit_mib_s: sorted(|(_, limit)| *limit)[middle],
            ratio: ratios[middle],
            ratio_min: ratios[0],
            ratio_max: ratios[turns.len() - 1],
            wanted,
        }
    }
}

/// Simulates eight clients that share one pass of a disk of 1994, with one outstanding request
/// each.
fn simulated_pass(read_ahead: bool) -> Result<f64, UserError> {
    let mut scenario = Scenario {
        pattern: Pattern::from_str("rc").expect("the papers' pattern rc must be known"),
        record_bytes: 128 * KIB,
        strategy: Strategy::Caching,
        clients: 8,
        servers: 1,
        declared: if read_ahead { Declared::GlobalSequential } else { Declared::Unknown },
        read_ahead: if read_ahead { ReadAhead::Declared } else { ReadAhead::Nothing },
        trials: 3,
        ..Scenario::default()
    };
    // The paper's 1,000 pages for each server (section 3).
    scenario.machine.cache_blocks_per_client_and_disk = 125;
    let report = simulate::simulate(&scenario)?;
    Ok(report.results.first().map_or(0.0, |row| row.mib_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_turn_counts() {
        let goal = TopsGoal::of("any", Some(0.5), &[(10.0, 10.0), (1.0, 10.0), (6.0, 8.0)]);
        assert_eq!((goal.mib_s, goal.limit_mib_s), (6.0, 10.0));
        assert_eq!((goal.ratio_min, goal.ratio, goal.ratio_max), (0.1, 0.75, 1.0));
    }
}
