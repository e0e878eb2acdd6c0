//! One trial of a scenario, and the row that all trials of it make.

use super::run::run_trial;
use crate::memory;
use crate::names::PayloadName;
use crate::ranks::config;
use crate::scenario::Scenario;
use interface::Availability;
use interface::{ExitCode, Row, UserError, mib_s};
use policy::Access;
use std::sync::Arc;
use std::time::Instant;
use units::ClientId;
use world::payload::{Phantom, Traced};
use world_simulated::{Engine, SharedRecorder};

/// Result of one trial. All but `host_seconds` follows from the scenario and the trial's number.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// Number of the trial in its scenario, from 0.
    pub number: u32,
    /// Seed of the trial: that of the scenario plus its number.
    pub seed: u64,
    /// Simulated seconds of the transfer.
    pub seconds: f64,
    /// File bytes over seconds, in 2^20 bytes a second: see [`Row::mib_s`].
    pub mib_s: f64,
    /// Bytes that reached or left clients over seconds: see [`Row::moved_mib_s`].
    pub moved_mib_s: f64,
    /// Number of events of the engine.
    pub events: u64,
    /// Digest that is equal for equal simulations.
    pub digest: u64,
    /// True when every byte was checked and is in its place.
    pub verified: bool,
    /// Processor time left on the servers, if the scenario asks for it.
    pub availability: Option<Availability>,
    /// Real seconds of computing for the trial.
    pub host_seconds: f64,
}

/// Runs trial `number` of a scenario by itself, on the calling thread. A program with many
/// scenarios can so spread the trials of all over the processors of this machine.
/// [`crate::combine_trials`] combines them into the row that [`crate::simulate`] reports.
///
/// # Errors
/// Fails when the scenario makes no sense, or the file system reports a fault.
pub fn simulate_trial(scenario: &Scenario, number: u32) -> Result<Trial, UserError> {
    run(scenario, number, Engine::new())
}

/// Runs a trial as [`simulate_trial`] does, and reports every event to `recorder`. The recorder
/// does not change the trial.
pub(crate) fn simulate_trial_recorded(
    scenario: &Scenario,
    number: u32,
    recorder: SharedRecorder,
) -> Result<Trial, UserError> {
    run(scenario, number, Engine::recorded(recorder))
}

fn run(scenario: &Scenario, number: u32, engine: Engine) -> Result<Trial, UserError> {
    let access = Arc::new(scenario.access()?);
    memory::check(scenario)?;
    let seed = scenario.seed.wrapping_add(u64::from(number));
    let started = Instant::now();
    let outcome = match scenario.payload {
        PayloadName::Phantom => run_trial::<Phantom>(scenario, &access, seed, engine)?,
        PayloadName::Traced => run_trial::<Traced>(scenario, &access, seed, engine)?,
    };
    if scenario.payload == PayloadName::Traced && !outcome.verified {
        return Err(misplaced(scenario, seed));
    }
    Ok(Trial {
        number,
        seed,
        seconds: outcome.seconds,
        mib_s: mib_s(scenario.file_bytes, outcome.seconds),
        moved_mib_s: mib_s(moved_bytes(scenario, &access), outcome.seconds),
        events: outcome.events,
        digest: outcome.digest,
        verified: outcome.verified,
        availability: outcome.availability,
        host_seconds: started.elapsed().as_secs_f64(),
    })
}

/// Combines the trials of a scenario into its row, in whatever order they were run.
///
/// # Errors
/// Fails when the scenario makes no sense.
///
/// # Panics
/// Panics when there is no trial.
pub fn combine_trials(scenario: &Scenario, trials: &[Trial]) -> Result<Row, UserError> {
    assert!(!trials.is_empty(), "a row is made of at least one trial");
    let access = scenario.access()?;
    let mut trials: Vec<&Trial> = trials.iter().collect();
    trials.sort_by_key(|trial| trial.number);
    let seconds: Vec<f64> = trials.iter().map(|trial| trial.seconds).collect();
    let mix = |sum: u64, trial: &&Trial| sum.rotate_left(7) ^ trial.digest;
    let mut row = Row {
        strategy: scenario.strategy.to_string(),
        pattern: scenario.pattern.to_string(),
        record_bytes: scenario.record_bytes,
        file_bytes: scenario.file_bytes,
        clients: scenario.clients,
        servers: scenario.servers,
        disks_per_server: scenario.disks_per_server,
        block_bytes: scenario.block_bytes,
        machine: scenario.machine.preset.to_string(),
        changed: scenario.machine.changes(),
        layout: scenario.layout.to_string(),
        sync: scenario.sync || config::waits_for_medium(scenario),
        verified: trials.iter().all(|trial| trial.verified),
        availability: Availability::mean(trials.iter().filter_map(|trial| trial.availability)),
        events: Some(trials.iter().map(|trial| trial.events).sum()),
        digest: Some(format!("{:016x}", trials.iter().fold(0, mix))),
        host_seconds: Some(trials.iter().map(|trial| trial.host_seconds).sum()),
        ..Row::default()
    };
    row.measure(&seconds, moved_bytes(scenario, &access));
    Ok(row)
}

/// Returns the number of bytes that reach or leave the clients in one transfer.
fn moved_bytes(scenario: &Scenario, access: &Access) -> u64 {
    (0..scenario.clients).map(|rank| access.memory_bytes(ClientId(rank))).sum()
}

fn misplaced(scenario: &Scenario, seed: u64) -> UserError {
    UserError::new(
        ExitCode::DataCheck,
        format!("{} put bytes in wrong places", scenario.strategy),
        format!("pattern {}, seed {seed}: the traces differ", scenario.pattern),
        format!("this is a defect of unisono; repeat it with: {}", again(scenario, seed)),
    )
}

/// Returns the command that runs one trial again, and checks it.
fn again(scenario: &Scenario, seed: u64) -> String {
    let Scenario { machine, layout, order, strategy, pattern, .. } = scenario;
    let sync = if scenario.sync { " --sync" } else { "" };
    let groups = match scenario.node_group_size {
        0 => String::new(),
        size => format!(" --node-group-size {size}"),
    };
    format!(
        "unisono sim {} --layout {layout} --order {order} --strategy {strategy}{groups} \
         --pattern {pattern} --record {} --size {} --block {} --clients {} --servers {} \
         --disks {}{sync} --seed {seed} --trials 1 --payload traced",
        machine.options(),
        scenario.record_bytes,
        scenario.file_bytes,
        scenario.block_bytes,
        scenario.clients,
        scenario.servers,
        scenario.disks_per_server,
    )
}

#[cfg(test)]
mod tests {
    //! Proves: trials run one by one, in any order, make the same row as all run in parallel;
    //! tracing the processors does not change the simulation; no client closes its connections in
    //! the timed part; copies cost writes their time, and reads nothing.
    use super::*;
    use crate::machine::Machine;
    use crate::names::{LayoutName, MachineName, PayloadName};
    use crate::trials::simulate;
    use filesystem::collective::Strategy;
    use policy::Protection;
    use std::cell::RefCell;
    use std::rc::Rc;
    use units::MIB;
    use world_simulated::{Link, Mark, Recorder, Slice, What};

    /// Bytes of each message that was received.
    #[derive(Default)]
    struct Received(Vec<u64>);

    impl Recorder for Received {
        fn slice(&mut self, slice: &Slice<'_>) -> Option<Mark> {
            if let What::Receive { bytes } = slice.what {
                self.0.push(bytes);
            }
            None
        }

        fn arrow(&mut self, _: Link, _: Mark, _: Mark) {}
    }

    /// An envelope without a message is the end of a connection. Its receiver spends as much time
    /// on it as on any message.
    #[test]
    fn nobody_hangs_up_while_others_are_timed() {
        for strategy in Strategy::ALL {
            let scenario = Scenario {
                strategy,
                file_bytes: MIB,
                clients: 9,
                servers: 4,
                ..Scenario::default()
            };
            let received = Rc::new(RefCell::new(Received::default()));
            simulate_trial_recorded(&scenario, 0, received.clone()).unwrap();
            let received = &received.borrow().0;
            assert!(received.len() > 100, "{} messages", received.len());
            assert!(received.iter().all(|bytes| *bytes > 16), "{strategy}: somebody hung up");
        }
    }

    #[test]
    fn copies_take_time_of_writes_and_of_no_reads() {
        let time = |pattern: &str, strategy, protection| {
            let pattern = pattern.parse().unwrap();
            let (clients, servers, file_bytes) = (8, 4, 2 * MIB);
            let payload = PayloadName::Traced;
            let scenario = Scenario {
                pattern,
                strategy,
                protection,
                clients,
                servers,
                file_bytes,
                payload,
                ..Scenario::default()
            };
            simulate_trial(&scenario, 0).unwrap().seconds
        };
        for strategy in Strategy::ALL {
            for (pattern, least, most) in [("wb", 1.6, 8.0), ("wcc", 1.6, 8.0), ("rb", 1.0, 1.001)]
            {
                let [plain, mirrored] = [Protection::None, Protection::Mirror]
                    .map(|protection| time(pattern, strategy, protection));
                let ratio = mirrored / plain;
                assert!((least..most).contains(&ratio), "{pattern} by {strategy}: {ratio}");
                let parity = time(pattern, strategy, Protection::Parity { blocks: 0 });
                let is_write = pattern != "rb";
                assert_eq!(parity > 1.1 * plain, is_write, "{pattern} by {strategy}");
            }
        }
        let protection = Protection::Mirror;
        let alone = Scenario { servers: 1, protection, ..Scenario::default() };
        let refused = simulate_trial(&alone, 0).unwrap_err();
        assert!(refused.cause.contains("needs 2 servers"), "{refused}");
    }

    #[test]
    fn the_order_of_trials_makes_no_difference() {
        let scenario = Scenario {
            layout: LayoutName::RANDOM_BLOCKS,
            file_bytes: MIB,
            clients: 4,
            servers: 4,
            trials: 3,
            seed: 7,
            ..Scenario::default()
        };
        let parallel = simulate(&scenario).unwrap().results.remove(0);
        let run = |number| simulate_trial(&scenario, number).unwrap();
        let trials: Vec<Trial> = [2, 0, 1].map(run).to_vec();
        assert_eq!(trials.iter().map(|trial| trial.seed).collect::<Vec<_>>(), [9, 7, 8]);
        let digests: std::collections::BTreeSet<u64> = trials.iter().map(|t| t.digest).collect();
        assert_eq!(digests.len(), 3, "each trial has a layout of its own");
        let combined = combine_trials(&scenario, &trials).unwrap();
        assert!(combined.availability.is_none(), "it was not asked for");
        let without_host = |row: Row| Row { host_seconds: None, ..row };
        let text = |row| serde_json::to_string(&without_host(row)).unwrap();
        assert_eq!(text(combined), text(parallel));
    }

    /// Seconds and digest of a small transfer, every byte of which was traced to its place.
    fn grouped(machine: MachineName, name: &str, strategy: Strategy, size: u32) -> (f64, u64) {
        let record_bytes = if name.ends_with("bb") { 1024 } else { 8192 };
        let (machine, pattern) = (Machine::of(machine), name.parse().unwrap());
        let payload = PayloadName::Traced;
        let small = Scenario { record_bytes, file_bytes: MIB, payload, ..Scenario::default() };
        let scenario = Scenario { machine, pattern, strategy, node_group_size: size, ..small };
        let trial = simulate_trial(&scenario, 0).unwrap();
        assert!(trial.verified, "{name} by {strategy}");
        (trial.seconds, trial.digest)
    }

    /// PIOSIM (SC 1997), with simple disks: "by not allowing all the LP's to make their I/O
    /// requests simultaneously as in Global Barrier Collective I/O, we are simply delaying the
    /// execution".
    #[test]
    fn groups_only_delay_what_does_not_flood_the_servers() {
        for name in ["rbb", "wbb", "rb", "wb"] {
            let run = |strategy, size| grouped(MachineName::Ideal, name, strategy, size);
            let barrier = run(Strategy::GlobalBarrier, 0);
            let [all, eight, four, one] =
                [16, 8, 4, 1].map(|size| run(Strategy::NodeGrouping, size));
            assert_eq!(all, barrier, "{name}: one group");
            assert_eq!(run(Strategy::NodeGrouping, 0), eight, "{name}: the default");
            let seconds = [eight.0, four.0, one.0];
            let is_delayed = |it: &f64| *it > 0.995 * all.0;
            assert!(seconds.iter().all(is_delayed), "{name}: {seconds:?}, {}", all.0);
            assert!(one.0 > 1.02 * all.0, "{name}: {seconds:?}, {}", all.0);
        }
    }

    /// With mechanical disks, requests of many clients for small pieces disturb one another, as
    /// Nitzberg measured.
    #[test]
    fn groups_help_where_requests_disturb_one_another() {
        let run = |strategy, size| grouped(MachineName::Tr94, "rbb", strategy, size).0;
        let barrier = run(Strategy::GlobalBarrier, 0);
        let groups = run(Strategy::NodeGrouping, 4);
        assert!(groups < 0.8 * barrier, "{groups} s in groups, {barrier} s without");
    }

    #[test]
    fn watching_processors_changes_nothing() {
        let plain =
            Scenario { file_bytes: MIB, clients: 4, servers: 4, trials: 1, ..Scenario::default() };
        let watched = Scenario { availability: true, ..plain.clone() };
        let (plain, watched) = (simulate_trial(&plain, 0).unwrap(), simulate_trial(&watched, 0));
        let watched = watched.unwrap();
        assert_eq!((plain.digest, plain.seconds), (watched.digest, watched.seconds));
        assert_eq!(plain.availability, None);
        let left = watched.availability.unwrap();
        // 32 blocks of each server in about 0.13 s, each of less than 200 us.
        assert!((1.0..10.0).contains(&left.cpu_busy_percent), "{left:?}");
        assert!(left.cpu_interruptions >= 32.0, "{left:?}");
        let (available, usable) =
            (left.cpu_available_percent, left.cpu_usable_with_barriers_percent);
        assert!(usable < available && available < 100.0 - left.cpu_busy_percent, "{left:?}");
        assert!(usable > 70.0, "{left:?}");
    }

    /// A modelled network is enough for the cases that the papers name: directed transfers take the
    /// same time on an exact one within 1 %.
    #[test]
    fn an_exact_network_makes_no_difference_that_counts() {
        for (name, record_bytes) in [("rb", 8192), ("rcc", 8), ("wb", 8192), ("wcc", 8)] {
            let pattern = name.parse().unwrap();
            let plain = Scenario { pattern, record_bytes, file_bytes: MIB, ..Scenario::default() };
            let mut exact = plain.clone();
            exact.machine.network.name = "exact-torus".parse().unwrap();
            let (plain, exact) = (simulate_trial(&plain, 0), simulate_trial(&exact, 0));
            let (plain, exact) = (plain.unwrap(), exact.unwrap());
            assert_ne!(exact.digest, plain.digest, "{name}: it is another network");
            let difference = (exact.seconds / plain.seconds - 1.0).abs();
            assert!(difference < 0.01, "{name} {record_bytes}: {difference}");
        }
    }
}
