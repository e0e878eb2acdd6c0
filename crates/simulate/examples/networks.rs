//! Compares the exact network with the modelled one and prints the tables of
//! docs/notebook/validation.md, "Exact and modelled network". Takes four minutes on two cores,
//! twenty on busy ones.
//!
//! The papers chose a modelled network because it was at most 5.4 %, and typically less than
//! 0.1 %, away from an exact one (TOCS 1997, section 4.1).
//!
//! ```sh
//! cargo run --release -p simulate --example networks
//! ```
//!
//! Any change of timing changes which requests contend at a disk, so single trials differ by
//! several percent. The means of many trials show the effect of the network. Each trial has the
//! same seed on both networks, so cases without contention agree to the last digit.

use filesystem::collective::Strategy;
use interface::UserError;
use simulate::{Machine, MachineName, Scenario, simulate_trial};

/// Trials of a case, except for caching in 8-byte records, which takes a hundred times as long.
const TRIALS: u32 = 40;
const TRIALS_OF_LONG_CASES: u32 = 5;

fn is_long(case: &Scenario) -> bool {
    case.record_bytes == 8 && case.strategy == Strategy::Caching
}

/// The seconds of all trials of a case, in order.
fn seconds(scenario: &Scenario, network: &str) -> Result<Vec<f64>, UserError> {
    let mut scenario = scenario.clone();
    let name = &mut scenario.machine.network.name;
    assert_eq!(name.to_string(), "torus", "the papers used a modelled torus");
    *name = network.parse().expect("it is a built-in network");
    let (scenario, count) =
        (&scenario, if is_long(&scenario) { TRIALS_OF_LONG_CASES } else { TRIALS });
    std::thread::scope(|threads| {
        let seconds = move |trial| simulate_trial(scenario, trial).map(|trial| trial.seconds);
        let trials: Vec<_> =
            (0..count).map(|trial| threads.spawn(move || seconds(trial))).collect();
        let end = |trial: std::thread::ScopedJoinHandle<'_, _>| {
            trial.join().expect("a trial must not panic")
        };
        trials.into_iter().map(end).collect()
    })
}

/// A mean and its standard error.
fn mean(samples: &[f64]) -> (f64, f64) {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
    (mean, (squares / (count - 1.0) / count).sqrt())
}

fn cases_of(machine: MachineName, patterns: &str, record_bytes: u64) -> Vec<Scenario> {
    let case = |pattern: &str, strategy| {
        let pattern = pattern.parse().expect("the papers' patterns must be known");
        let machine = Machine::of(machine);
        Scenario { machine, pattern, record_bytes, strategy, ..Scenario::default() }
    };
    let of_pattern = |pattern| Strategy::ALL.map(|strategy| case(pattern, strategy));
    patterns.split(' ').flat_map(of_pattern).collect()
}

/// The cases of a table; those that take longest come last.
fn cases(machine: MachineName) -> Vec<Scenario> {
    let mut cases = cases_of(machine, "rb rc rbc rcc rnb wb wc wbc wcc wnb ra", 8192);
    if machine == MachineName::Tr94 {
        cases.extend(cases_of(machine, "rb rc rbc rcc wb wc wbc wcc", 8));
    }
    cases.sort_by_key(is_long);
    cases
}

fn main() -> Result<(), UserError> {
    for machine in [MachineName::Tr94, MachineName::Tocs97] {
        println!("\nPreset {machine}:\n");
        println!("| pattern | record | strategy | modelled | error | exact | error |");
        println!("|---|---|---|---|---|---|---|");
        for case in cases(machine) {
            let modelled = seconds(&case, "torus")?;
            let exact = seconds(&case, "exact-torus")?;
            let later: Vec<f64> = exact.iter().zip(&modelled).map(|(e, m)| e - m).collect();
            let (time, time_error) = mean(&modelled);
            let (later, later_error) = mean(&later);
            let Scenario { pattern, record_bytes, strategy, .. } = &case;
            let percent = |seconds: f64| 100.0 * seconds / time;
            println!(
                "| `{pattern}` | {record_bytes} | {strategy} | {time:.4} s | {:.2} % | {:+.2} % \
                 | {:.2} % |",
                percent(time_error),
                percent(later),
                percent(later_error),
            );
        }
    }
    Ok(())
}
