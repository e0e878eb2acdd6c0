//! Prints the simulated throughput of every pattern, for developers: `cargo run --release -p
//! simulate --example patterns [TRIALS]`. Users have `unisono sim`.

use simulate::{Scenario, simulate};
use std::str::FromStr;

const PATTERNS: [&str; 9] = ["n", "b", "c", "nb", "bb", "cb", "bc", "cc", "cn"];

fn main() {
    let trials = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1);
    println!("pattern record  {:>14} {:>14} {:>14}", "caching", "two-phase", "disk-directed");
    for direction in ["r", "w"] {
        for record_bytes in [8, 8192] {
            for pattern in PATTERNS {
                line(&format!("{direction}{pattern}"), record_bytes, trials);
            }
        }
    }
}

fn line(pattern: &str, record_bytes: u64, trials: u32) {
    print!("{pattern:7} {record_bytes:6}  ");
    for strategy in ["caching", "two-phase", "disk-directed"] {
        let scenario = Scenario {
            pattern: policy::Pattern::from_str(pattern).expect("a pattern of the papers"),
            strategy: strategy.parse().expect("a strategy"),
            record_bytes,
            trials,
            ..Scenario::default()
        };
        match simulate(&scenario) {
            Ok(report) => {
                let row = &report.results[0];
                let rate = row.events.unwrap_or(0) as f64 / row.host_seconds.unwrap_or(1.0) / 1e6;
                print!("{:>7.1} ({rate:4.1}M)", row.mib_s);
            }
            Err(error) => print!("\n{error}\n"),
        }
    }
    println!();
}
