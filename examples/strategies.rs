//! Three strategies compared on the simulated machine of 1994: 16 clients read and write a file
//! of 2 MiB by caching, two-phase and disk-directed I/O. Times are those of the simulated machine.
//!
//! ```sh
//! cargo run --release -p simulate --example strategies
//! ```

use simulate::{Scenario, simulate};

/// Patterns of the papers: read and write, records in blocks (b) or cyclically (c).
const PATTERNS: [&str; 4] = ["rb", "rc", "wb", "wc"];
const RECORDS: [u64; 2] = [64, 8192];
const STRATEGIES: [&str; 3] = ["caching", "two-phase", "disk-directed"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("pattern  record  {:>14}{:>14}{:>14}", STRATEGIES[0], STRATEGIES[1], STRATEGIES[2]);
    for pattern in PATTERNS {
        for record_bytes in RECORDS {
            print!("{pattern:7}  {record_bytes:4} B  ");
            for strategy in STRATEGIES {
                let scenario = Scenario {
                    pattern: pattern.parse()?,
                    record_bytes,
                    file_bytes: 2 << 20,
                    strategy: strategy.parse()?,
                    // Each byte carries its origin, so that the simulation can check its place.
                    payload: "traced".parse()?,
                    trials: 1,
                    seed: 1,
                    ..Scenario::default()
                };
                let row = simulate(&scenario)?.results.remove(0);
                assert!(row.verified, "{strategy} did not check every byte");
                print!("{:11.3} ms", row.seconds * 1e3);
            }
            println!();
        }
    }
    Ok(())
}
