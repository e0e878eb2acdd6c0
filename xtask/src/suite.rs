//! `cargo x test`: runs every test, optimised, and prints one line of totals.
//!
//! Invariant: a run that failed to build, or ran no test, fails.

use crate::steps::{cargo, succeeds};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Build profile of the workspace that is optimised and keeps its checks.
const PROFILE: &str = "checked";

/// Arguments that build a program which tests run and `cargo test` does not build: the command with
/// a replacement policy of its own.
const OWN_COMMAND: [&str; 7] =
    ["build", "--package", "cli", "--example", "own_policy", "--profile", PROFILE];

/// Runs all tests; `arguments` go to `cargo test`.
pub(crate) fn run(root: &Path, arguments: &[String]) -> bool {
    if !succeeds(cargo(root, &OWN_COMMAND)) {
        return false;
    }
    let fixed = ["test", "--workspace", "--tests", "--no-fail-fast", "--profile", PROFILE];
    let mut command = cargo(root, &fixed);
    command.args(arguments);
    let (tally, exited_well) = match stream(command) {
        Ok(outcome) => outcome,
        Err(cause) => {
            eprintln!("error: cargo test could not be run\ncause: {cause}\nhelp:  is cargo there?");
            (Tally::default(), false)
        }
    };
    let complaint = tally.complaint(exited_well);
    if let Some((cause, help)) = complaint {
        eprintln!("error: the tests did not pass\ncause: {cause}\nhelp:  {help}");
    }
    println!("unisono: {} passed, {} failed", tally.passed, tally.failed);
    complaint.is_none()
}

/// Runs a command, copies its output line by line, and sums the results in it.
fn stream(mut command: Command) -> io::Result<(Tally, bool)> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut tally = Tally::default();
    if let Some(output) = child.stdout.take() {
        let mut own = io::stdout().lock();
        for line in BufReader::new(output).split(b'\n') {
            let line = line?;
            own.write_all(&line)?;
            own.write_all(b"\n")?;
            tally.add_line(&String::from_utf8_lossy(&line));
        }
    }
    Ok((tally, child.wait()?.success()))
}

/// Numbers of passed and failed tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Tally {
    passed: u64,
    failed: u64,
}

impl Tally {
    /// Adds the numbers of a line such as `test result: ok. 3 passed; 0 failed; …`.
    fn add_line(&mut self, line: &str) {
        let Some(results) = line.strip_prefix("test result:") else { return };
        for part in results.split([';', '.']) {
            let mut words = part.split_whitespace();
            let Some(Ok(count)) = words.next().map(str::parse::<u64>) else { continue };
            match words.next() {
                Some("passed") => self.passed += count,
                Some("failed") => self.failed += count,
                _ => {}
            }
        }
    }

    /// Returns the reason for which the run counts as failed, and what to do; `None` when it
    /// passed.
    fn complaint(self, exited_well: bool) -> Option<(&'static str, &'static str)> {
        if self.failed > 0 {
            Some(("a test failed", "its output is above, under `failures:`"))
        } else if !exited_well {
            Some(("cargo test failed outside a test", "the last error above is the reason"))
        } else if self.passed == 0 {
            Some(("no test ran", "is there a filter that matches nothing?"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: results are summed over all suites, and each way to fail is a failure.
    use super::*;

    #[test]
    fn results_are_summed() {
        let mut tally = Tally::default();
        let output = "\
            running 3 tests\n\
            test result: ok. 3 passed; 0 failed; 0 ignored; 9 filtered out; finished in 0.10s\n\
            test result: FAILED. 10 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out\n\
            test test_result: 4 passed ... ok\n";
        output.lines().for_each(|line| tally.add_line(line));
        assert_eq!(tally, Tally { passed: 13, failed: 2 });
    }

    #[test]
    fn a_run_passes_only_when_tests_ran_and_none_failed() {
        let outcome = |passed, failed, exited_well| Tally { passed, failed }.complaint(exited_well);
        assert_eq!(outcome(3, 0, true), None);
        assert!(outcome(3, 1, false).is_some());
        assert!(outcome(3, 1, true).is_some(), "failures count whatever cargo says");
        assert!(outcome(3, 0, false).is_some(), "a suite that did not build is a failure");
        assert!(outcome(0, 0, true).is_some(), "a run of nothing is a failure");
    }
}
