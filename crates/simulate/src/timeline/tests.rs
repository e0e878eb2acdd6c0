//! Proves: recording changes nothing. A timeline is JSON whose slices are nested or disjoint, whose
//! phases add up, and whose arrows connect slices. It can be cut anywhere. The media are busy for
//! as long as their geometry requires. A request that cannot be shown is refused.

use super::chrome::EVENTS_MAX;
use super::trace::trace_with;
use super::*;
use crate::machine::Machine;
use crate::names::{LayoutName, MachineName, PayloadName};
use crate::scenario::Scenario;
use crate::trials::{Trial, simulate_trial};
use filesystem::collective::Strategy;
use interface::ExitCode;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;
use units::MIB;

/// A file that the test can read after it was written.
#[derive(Clone, Default)]
struct Sink(Rc<RefCell<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn scenario(pattern: &str, strategy: Strategy) -> Scenario {
    Scenario {
        pattern: pattern.parse().unwrap(),
        strategy,
        layout: LayoutName::RANDOM_BLOCKS,
        file_bytes: MIB,
        clients: 4,
        servers: 2,
        disks_per_server: 2,
        trials: 1,
        ..Scenario::default()
    }
}

/// All kinds of transfers, small.
fn scenarios() -> Vec<Scenario> {
    let mut all = Vec::new();
    for pattern in ["rb", "rc", "wb", "wcc"] {
        for strategy in Strategy::ALL {
            for machine in [MachineName::Tr94, MachineName::Tocs97, MachineName::Ideal] {
                all.push(Scenario { machine: Machine::of(machine), ..scenario(pattern, strategy) });
            }
        }
    }
    all
}

fn timeline(scenario: &Scenario, events_max: u64) -> (Vec<Value>, TraceSummary) {
    let sink = Sink::default();
    let (_, summary) = trace_with(scenario, sink.clone(), events_max).unwrap();
    let mut whole: Value = serde_json::from_slice(&sink.0.borrow()).unwrap();
    let events = whole["traceEvents"].as_array_mut().unwrap();
    (std::mem::take(events), summary)
}

/// Nanoseconds of a field in microseconds.
fn ns(event: &Value, field: &str) -> u64 {
    (event[field].as_f64().unwrap() * 1e3).round() as u64
}

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["ph"] == kind).collect()
}

/// Slices of each track, as `(from, until, name)`: the outer one of two that begin together comes
/// first.
fn tracks(events: &[Value]) -> BTreeMap<String, Vec<(u64, u64, String)>> {
    let key = |event: &Value| (event["pid"].as_u64(), event["tid"].as_u64());
    let mut names = BTreeMap::new();
    for event in of_kind(events, "M") {
        if event["name"] == "thread_name" {
            names.insert(key(event), event["args"]["name"].as_str().unwrap().to_owned());
        }
    }
    let mut tracks: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for event in of_kind(events, "X") {
        let from = ns(event, "ts");
        let name = event["name"].as_str().unwrap().to_owned();
        let track = names[&key(event)].clone();
        tracks.entry(track).or_default().push((from, from + ns(event, "dur"), name));
    }
    for slices in tracks.values_mut() {
        slices.sort_by_key(|(from, until, _)| (*from, std::cmp::Reverse(*until)));
    }
    tracks
}

#[test]
fn recording_changes_nothing() {
    for mut scenario in scenarios() {
        scenario.payload = PayloadName::Traced;
        let plain = simulate_trial(&scenario, 0).unwrap();
        let (traced, _) = trace_with(&scenario, Sink::default(), EVENTS_MAX).unwrap();
        let facts = |trial: &Trial| (trial.events, trial.digest, trial.seconds.to_bits());
        assert_eq!(facts(&plain), facts(&traced), "{scenario:?}");
        assert!(traced.verified);
    }
}

#[test]
fn slices_lie_within_one_another_or_apart_and_phases_add_up() {
    for scenario in scenarios() {
        let (events, summary) = timeline(&scenario, EVENTS_MAX);
        assert_eq!(summary.events_left_out, 0);
        for (track, slices) in tracks(&events) {
            let is_of_commands = track.contains(": commands");
            let mut open: Option<(u64, u64)> = None; // Until when, and how far its phases reach.
            for (from, until, name) in slices {
                match &mut open {
                    Some((end, reached)) if from < *end => {
                        assert!(is_of_commands, "{track} does two things: {name} at {from}");
                        assert_eq!(from, *reached, "{track}: a gap before {name}");
                        *reached = until;
                    }
                    _ => {
                        if let (true, Some((end, reached))) = (is_of_commands, open) {
                            assert_eq!(end, reached, "{track}: phases end before the command");
                        }
                        open = Some((until, from));
                    }
                }
            }
        }
    }
}

#[test]
fn arrows_connect_slices() {
    for strategy in Strategy::ALL {
        let (events, _) = timeline(&scenario("rb", strategy), EVENTS_MAX);
        let slices = of_kind(&events, "X");
        let is_on_a_slice = |end: &Value| {
            slices.iter().any(|it| {
                let (at, from) = (ns(end, "ts"), ns(it, "ts"));
                it["tid"] == end["tid"] && from <= at && at < from + ns(it, "dur").max(1)
            })
        };
        let ends = |kind| -> BTreeMap<u64, &Value> {
            let ends = of_kind(&events, kind);
            ends.into_iter().map(|end| (end["id"].as_u64().unwrap(), end)).collect()
        };
        let (begins, ends) = (ends("s"), ends("f"));
        assert!(begins.keys().eq(ends.keys()) && !begins.is_empty());
        for (id, begin) in begins {
            let end = ends[&id];
            assert!(is_on_a_slice(begin) && is_on_a_slice(end), "{begin} {end}");
            assert!(ns(begin, "ts") <= ns(end, "ts"));
        }
        // Every command of a disk has a request that led to it.
        let commands = tracks(&events).into_iter().filter(|(track, _)| track.contains("commands"));
        let is_command = |name: &str| matches!(name, "read" | "read: hit in the buffer");
        let commands: usize = commands
            .map(|(_, slices)| slices.iter().filter(|(.., name)| is_command(name)).count())
            .sum();
        let caused = ends.values().filter(|end| end["name"] == "request to disk command");
        assert_eq!(caused.count(), commands);
    }
}

#[test]
fn a_timeline_can_be_cut_anywhere() {
    let scenario = scenario("rb", Strategy::Caching);
    let (_, whole) = timeline(&scenario, EVENTS_MAX);
    for events_max in [0, 1, 2, 3, 100, 101, 102, 103, 999, whole.events - 1] {
        let (events, summary) = timeline(&scenario, events_max);
        assert!(summary.events <= events_max && summary.events_left_out > 0);
        assert_eq!(summary.events + summary.events_left_out, whole.events);
        let told = of_kind(&events, "i");
        assert!(told.len() == 1 && told[0]["name"].as_str().unwrap().starts_with("cut"));
        assert_eq!(of_kind(&events, "s").len(), of_kind(&events, "f").len());
    }
}

#[test]
fn media_are_busy_for_as_long_as_their_geometry_says() {
    // 10 MiB on 16 disks are 80 blocks of 16 sectors: 1280 sectors on each. Data begins on track 4
    // of 19 of the first cylinder, so they lie on 15 tracks there and 3 of the next: 16 skews of 8
    // sectors and one of 18. An HP 97560 turns by 48,024 sectors in 10 s.
    let ticks: u64 = 1280 + 16 * 8 + 18;
    let expected_ns = ticks * 10_000_000_000 / 48_024;
    let scenario = Scenario { pattern: "rb".parse().unwrap(), trials: 1, ..Scenario::default() };
    let (events, _) = timeline(&scenario, EVENTS_MAX);
    let tracks = tracks(&events);
    for disk in 0..16 {
        let of = |track: &str, wanted: &dyn Fn(&str) -> bool| -> u64 {
            let slices = tracks[&format!("disk {disk}: {track}")].iter();
            slices.filter(|(.., name)| wanted(name)).map(|(from, until, _)| until - from).sum()
        };
        let read_ns = of("arm and medium", &|name| name == "read from the medium");
        assert!(read_ns.abs_diff(expected_ns) <= 2, "disk {disk}: {read_ns}, not {expected_ns}");
        let transfer = &tracks["the transfer"][0];
        let commands_ns = of("commands", &|name| name.starts_with("read:") || name == "read");
        assert!(commands_ns > 0 && commands_ns <= transfer.1 - transfer.0);
    }
}

#[test]
fn a_head_is_followed_from_sector_to_sector() {
    let scenario = scenario("rb", Strategy::DiskDirected);
    let (trial, path) = follow_head(&scenario, 3).unwrap();
    let transfer_ns = (path.ended_ns - path.began_ns) as f64;
    assert!((trial.seconds * 1e9 - transfer_ns).abs() < 2.0);
    let read = |motion: &&HeadMotion| motion.activity == Activity::Read;
    let sectors = path.motions.iter().filter(read).map(|it| it.sectors.end - it.sectors.start);
    // 1 MiB on 4 disks is 512 sectors on each.
    assert_eq!(sectors.sum::<u64>(), 512);
    for pair in path.motions.windows(2) {
        assert!(pair[0].time_ns.end <= pair[1].time_ns.start, "{pair:?}");
    }
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let scenario = scenario("rb", Strategy::DiskDirected);
    assert_eq!(follow_head(&scenario, 4).unwrap_err().code, ExitCode::Usage);
    let ideal = Scenario { machine: Machine::of(MachineName::Ideal), ..scenario };
    assert_eq!(follow_head(&ideal, 0).unwrap_err().code, ExitCode::Usage);
}
