//! An operator of one's own for selections of records: those whose samples have a peak above a
//! height, which no condition can say, with the position of the peak as their number. This program
//! is the command `unisono` whose servers have that operator; with the word `try` it starts two,
//! and has them select records.
//!
//! ```sh
//! cargo run --release -p cli --example own_operator -- try
//! ```

use interface::{
    Answers, Extensions, FailedOperator, RecordBatch, RecordOperator, RecordOperators,
};
use std::io::{self, Write};
use std::process::{Command, ExitCode, Stdio};

/// Selects records of samples of four bytes, of which one is above `height` and its neighbours.
#[derive(Clone)]
struct Peak {
    height: f32,
}

impl RecordOperator for Peak {
    fn look_at(&mut self, records: RecordBatch<'_>) -> Result<Answers, FailedOperator> {
        if !records.record_bytes().is_multiple_of(4) {
            let cause = "the operator peak needs records of samples of four bytes".to_owned();
            return Err(FailedOperator { cause });
        }
        Ok(Answers::of(records.records().map(|record| self.position(record))))
    }
}

impl Peak {
    /// Position of the first peak of a record.
    fn position(&self, record: &[u8]) -> Option<i64> {
        let sample = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let samples: Vec<f32> = record.chunks_exact(4).map(sample).collect();
        let is_peak = |near: &[f32]| near[1] > self.height.max(near[0]).max(near[2]);
        samples.windows(3).position(is_peak).map(|before| before as i64 + 1)
    }
}

/// Starts servers, by this program, and has them select records with a peak above 5.
fn try_it() -> io::Result<()> {
    let this = std::env::current_exe()?;
    let command = |words: &[&str]| {
        let mut command = Command::new(&this);
        command.args(words).stderr(Stdio::null());
        command
    };
    command(&["start", "--servers", "2"]).stdout(Stdio::null()).status()?;
    // The first rises and falls; the second only rises; the third has a low peak.
    let signals: [[f32; 5]; 3] =
        [[0.0, 1.0, 9.0, 3.0, 0.0], [0.0, 2.0, 4.0, 8.0, 9.0], [0.0, 1.0, 2.0, 1.0, 0.0]];
    let mut put = command(&["put", "-", "signals"]);
    let mut put = put.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let bytes: Vec<u8> = signals.iter().flatten().flat_map(|it| it.to_le_bytes()).collect();
    put.stdin.take().map_or(Ok(()), |mut input| input.write_all(&bytes))?;
    put.wait()?;
    let select = ["select", "signals", "--type", "signal:5f4", "--operator", "peak"];
    command(&select).status()?;
    command(&[&select[..], &["--max", "answer()"]].concat()).status()?;
    command(&["stop"]).stdout(Stdio::null()).status().map(|_| ())
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("try") {
        return if try_it().is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let operators = RecordOperators::default().with("peak", Peak { height: 5.0 });
    let operators = operators.expect("the name is a word");
    cli::main_with(Extensions { operators, ..Extensions::default() })
}
