//! How far exact networks are from the modelled one, in the cases of PCS-TR94-226, Table 4: prints
//! the table of docs/validation.md, "Exact and modelled network". Takes minutes.
//!
//! The papers chose a modelled network because it was at most 5.4 %, and typically less than
//! 0.1 %, away from an exact one (TOCS 1997, section 4.1).
//!
//! ```sh
//! cargo run --release -p launch --example networks
//! ```
//!
//! Any change of timing changes who meets whom at a disk, so single trials differ by several
//! percent; the means of many say what the network does.

use launch::{LaunchError, Network, NetworkName, Scenario, Strategy, simulate_trial};
use units::Duration;

/// Trials of a case, but for caching in 8-byte records, which takes a hundred times as long.
const TRIALS: u32 = 40;
const TRIALS_OF_LONG_CASES: u32 = 5;

/// The times of a case.
struct Times {
    mean: f64,
    /// The standard error of the mean.
    error: f64,
}

fn is_long(case: &Scenario) -> bool {
    case.record_bytes == 8 && case.strategy == Strategy::Caching
}

fn trials(case: &Scenario) -> u32 {
    if is_long(case) { TRIALS_OF_LONG_CASES } else { TRIALS }
}

impl Times {
    fn of(scenario: &Scenario, network: Network) -> Result<Self, LaunchError> {
        let mut scenario = scenario.clone();
        scenario.machine.network = network;
        let (scenario, count) = (&scenario, trials(&scenario));
        let seconds = std::thread::scope(|threads| {
            let seconds = move |trial| simulate_trial(scenario, trial).map(|trial| trial.seconds);
            let trials = (0..count).map(|trial| threads.spawn(move || seconds(trial)));
            let trials: Vec<_> = trials.collect();
            let end = |trial: std::thread::ScopedJoinHandle<'_, _>| {
                trial.join().expect("a trial must not panic")
            };
            trials.into_iter().map(end).collect::<Result<Vec<f64>, LaunchError>>()
        })?;
        let count = f64::from(count);
        let mean = seconds.iter().sum::<f64>() / count;
        let squares = seconds.iter().map(|seconds| (seconds - mean).powi(2)).sum::<f64>();
        Ok(Self { mean, error: (squares / (count - 1.0) / count).sqrt() })
    }

    fn away_percent(&self, other: &Self) -> f64 {
        100.0 * (self.mean / other.mean - 1.0)
    }
}

/// The cases of the table; those that take longest come last.
fn cases() -> Vec<Scenario> {
    let case = |pattern: &str, record_bytes, strategy| {
        let pattern = pattern.parse().expect("the papers' patterns must be known");
        Scenario { pattern, record_bytes, strategy, ..Scenario::default() }
    };
    let of_record = |record: u64| {
        let patterns = ["rb", "rc", "rbc", "rcc", "wb", "wc", "wbc", "wcc"];
        let of_pattern =
            move |pattern| Strategy::ALL.map(|strategy| case(pattern, record, strategy));
        patterns.into_iter().flat_map(of_pattern)
    };
    let whole_file = Strategy::ALL.map(|strategy| case("ra", 8192, strategy));
    let mut cases: Vec<Scenario> = of_record(8192).chain(of_record(8)).chain(whole_file).collect();
    cases.sort_by_key(is_long);
    cases
}

fn main() -> Result<(), LaunchError> {
    let titles = ["pattern", "record", "strategy", "modelled", "error"];
    let others = ["1 ns a hop", "exact", "2 flits", "any depth"];
    println!("| {} | {} |", titles.join(" | "), others.join(" | "));
    println!("|---|---|---|---|---|---|---|---|---|");
    let modelled_torus = Scenario::default().machine.network;
    assert_eq!(modelled_torus.name, NetworkName::Torus, "the papers used a modelled torus");
    let slower = Network { hop: Duration::from_ns(21), ..modelled_torus };
    let exact_torus = Network { name: NetworkName::ExactTorus, ..modelled_torus };
    let exact = |buffer_flits| Network { buffer_flits, ..exact_torus };
    let others = [slower, exact_torus, exact(2), exact(1 << 30)];
    for scenario in cases() {
        let modelled = Times::of(&scenario, modelled_torus)?;
        let Scenario { pattern, record_bytes, strategy, .. } = &scenario;
        print!(
            "| `{pattern}` | {record_bytes} | {strategy} | {:.4} s | {:.2} % |",
            modelled.mean,
            100.0 * modelled.error / modelled.mean,
        );
        for network in others {
            print!(" {:+.2} % |", Times::of(&scenario, network)?.away_percent(&modelled));
        }
        println!();
    }
    Ok(())
}
