//! A function of one's own for selections of records: the invariant mass of a particle, of its
//! momentum and energy. This program is the command `unisono` whose servers have that function;
//! with the word `try` it starts two, and has them select particles.
//!
//! ```sh
//! cargo run --release -p cli --example own_function -- try
//! ```

use interface::{Extensions, RecordFunction, RecordFunctions};
use std::io::{self, Write};
use std::process::{Command, ExitCode, Stdio};

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

/// Starts servers, by this program, and has them select particles of a mass above 80.
fn try_it() -> io::Result<()> {
    let this = std::env::current_exe()?;
    let command = |words: &[&str]| {
        let mut command = Command::new(&this);
        command.args(words).stderr(Stdio::null());
        command
    };
    command(&["start", "--servers", "2"]).stdout(Stdio::null()).status()?;
    // Of mass 91, 0 and 125.
    let particles: [[f64; 4]; 3] =
        [[0.0, 60.0, 0.0, 109.0], [3.0, 4.0, 12.0, 13.0], [10.0, 20.0, 30.0, 130.5]];
    let mut put = command(&["put", "-", "particles"]);
    let mut put = put.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let bytes: Vec<u8> = particles.iter().flatten().flat_map(|it| it.to_le_bytes()).collect();
    put.stdin.take().map_or(Ok(()), |mut input| input.write_all(&bytes))?;
    put.wait()?;
    let (kind, heavy) = ("p:3f8, energy:f8", "custom.mass(p[0], p[1], p[2], energy) > 80");
    command(&["select", "particles", "--type", kind, "--where", heavy]).status()?;
    command(&["stop"]).stdout(Stdio::null()).status().map(|_| ())
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("try") {
        return if try_it().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let functions = RecordFunctions::default().with("mass", Mass);
    let functions = functions.and_then(|functions| functions.with("failing", Failing));
    let functions = functions.expect("the names are words, and the operands few");
    cli::main_with(Extensions { functions, ..Extensions::default() })
}
