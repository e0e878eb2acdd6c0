//! A function of one's own for selections of records: the invariant mass of a particle, of its
//! momentum and energy. This program is the command `unisono` whose servers have that function.
//!
//! ```sh
//! cargo build --release -p cli --example own_function
//! target/release/examples/own_function start --servers 2
//! unisono select particles --type "p:3f8, energy:f8" \\
//!     --where "custom.mass(p[0], p[1], p[2], energy) > 80"
//! ```

use interface::{Extensions, RecordFunction, RecordFunctions};

/// Mass of a particle: the root of the square of its energy less that of its momentum.
struct Mass;

impl RecordFunction for Mass {
    fn operands(&self) -> usize {
        4
    }

    fn evaluate(&self, operands: &[Vec<f64>], results: &mut [f64]) {
        let [px, py, pz, energy] = operands else { return };
        for (at, result) in results.iter_mut().enumerate() {
            let momentum = px[at] * px[at] + py[at] * py[at] + pz[at] * pz[at];
            *result = (energy[at] * energy[at] - momentum).max(0.0).sqrt();
        }
    }
}

/// Function that fails, as an example of what that does: an error of the call, and nothing else.
struct Failing;

impl RecordFunction for Failing {
    fn operands(&self) -> usize {
        1
    }

    fn evaluate(&self, operands: &[Vec<f64>], _results: &mut [f64]) {
        assert!(operands[0].is_empty(), "this function fails for every record");
    }
}

fn main() -> std::process::ExitCode {
    let functions = RecordFunctions::default().with("mass", Mass);
    let functions = functions.and_then(|functions| functions.with("failing", Failing));
    let functions = functions.expect("the names are words, and the operands few");
    cli::main_with(Extensions { functions, ..Extensions::default() })
}
