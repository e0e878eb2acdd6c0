//! Proves: it makes no difference that counts whether the machine of 1994 has a modelled or an exact
//! network; and prints how much it makes (docs/validation.md, "Exact and modelled network").
//!
//! The papers chose a modelled network because it was at most 5.4 %, and typically less than
//! 0.1 %, away from an exact one (TOCS 1997, section 4.1).

use super::machines;
use super::run::run_trial_on;
use crate::scenario::Scenario;
use filesystem::collective::Strategy;
use std::time::{Duration, Instant};
use units::MIB;
use world::payload::Phantom;
use world_simulated::{Engine, NetworkKind, TorusForm};

/// Seconds of one trial.
fn seconds(scenario: &Scenario, network: NetworkKind, trial: u32) -> f64 {
    let access = scenario.access().unwrap();
    let mechanism = scenario.disk().mechanism().unwrap();
    let seed = scenario.seed + u64::from(trial);
    let mut machine = machines::config(scenario, &mechanism, seed);
    machine.network.kind = network;
    run_trial_on::<Phantom>(scenario, &access, &machine, Engine::new()).unwrap().seconds
}

fn exact(buffer_flits: u32) -> NetworkKind {
    NetworkKind::Torus { size: None, form: TorusForm::Exact { buffer_flits } }
}

fn case(pattern: &str, record_bytes: u64, strategy: Strategy) -> Scenario {
    Scenario { pattern: pattern.parse().unwrap(), record_bytes, strategy, ..Scenario::default() }
}

/// Proves that the transfers that the papers are about take the same time within 1 %.
#[test]
fn an_exact_network_changes_directed_transfers_by_less_than_a_hundredth() {
    for (pattern, record_bytes) in [("rb", 8192), ("rcc", 8), ("wb", 8192), ("wcc", 8)] {
        let scenario = case(pattern, record_bytes, Strategy::DiskDirected);
        let scenario = Scenario { file_bytes: MIB, ..scenario };
        let modelled = seconds(&scenario, NetworkKind::MODELLED_TORUS, 0);
        let exact = seconds(&scenario, NetworkKind::EXACT_TORUS, 0);
        let difference = (exact / modelled - 1.0).abs();
        assert!(difference < 0.01, "{pattern} {record_bytes}: {modelled} s and {exact} s");
    }
}

/// Mean and standard deviation of five trials, and how long they took here.
struct Times {
    mean: f64,
    deviation: f64,
    host: Duration,
}

const TRIALS: u32 = 5;

fn times(scenario: &Scenario, network: NetworkKind) -> Times {
    let started = Instant::now();
    let seconds: Vec<f64> = (0..TRIALS).map(|trial| seconds(scenario, network, trial)).collect();
    let mean = seconds.iter().sum::<f64>() / f64::from(TRIALS);
    let squares = seconds.iter().map(|seconds| (seconds - mean).powi(2)).sum::<f64>();
    let deviation = (squares / f64::from(TRIALS - 1)).sqrt();
    Times { mean, deviation, host: started.elapsed() }
}

/// Prints the table of docs/validation.md. Takes minutes.
#[test]
#[ignore = "prints a table, for minutes"]
fn table_of_exact_and_modelled_networks() {
    println!("| pattern | record | strategy | modelled | trials | exact | 2 flits | any depth |");
    println!("|---|---|---|---|---|---|---|---|");
    let patterns = ["ra", "rb", "rc", "rbc", "rcc", "wb", "wc", "wbc", "wcc"];
    let cases = patterns.iter().flat_map(|&pattern| {
        let records: &[u64] = if pattern == "ra" { &[8192] } else { &[8, 8192] };
        records.iter().map(move |&record| (pattern, record))
    });
    let mut host = [Duration::ZERO; 2];
    for (pattern, record_bytes) in cases {
        for strategy in Strategy::ALL {
            let scenario = case(pattern, record_bytes, strategy);
            let modelled = times(&scenario, NetworkKind::MODELLED_TORUS);
            let forms = [NetworkKind::EXACT_TORUS, exact(2), exact(1 << 30)];
            let forms = forms.map(|network| times(&scenario, network));
            let away = |form: &Times| 100.0 * (form.mean / modelled.mean - 1.0);
            println!(
                "| `{pattern}` | {record_bytes} | {strategy} | {:.4} s | {:.2} % | {:+.2} % | \
                 {:+.2} % | {:+.2} % |",
                modelled.mean,
                100.0 * modelled.deviation / modelled.mean,
                away(&forms[0]),
                away(&forms[1]),
                away(&forms[2]),
            );
            host[0] += modelled.host;
            host[1] += forms[0].host;
        }
    }
    println!("All modelled trials took {:.0?}, all exact ones {:.0?}.", host[0], host[1]);
}
