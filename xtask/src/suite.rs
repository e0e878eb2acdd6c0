//! `cargo x test`: runs every test, optimised, and prints one line of totals.
//!
//! Invariants: a run that failed to build, or ran no test, fails; so does one that hangs.

use crate::steps::{cargo, succeeds};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Build profile of the workspace that is optimised and keeps its checks.
const PROFILE: &str = "checked";

/// Exit code of an interrupted run.
const INTERRUPTED: i32 = 130;

/// Time without a line of output after which a run counts as hung. Everything is built before, and
/// no suite is silent for longer than a minute.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// Variable that tells tests that the command and the C library are built.
const BUILT: &str = "UNISONO_TEST_BUILT";

/// Folder of the programs that a test runs and `cargo test` does not build.
const EXAMPLES: &str = "examples";

/// Runs all tests; `arguments` go to `cargo test`.
pub(crate) fn run(root: &Path, arguments: &[String]) -> bool {
    let examples = match examples(root) {
        Ok(names) => names,
        Err(cause) => {
            eprintln!(
                "error: cannot build the examples\ncause: {cause}\nhelp:  is {EXAMPLES}/ there?"
            );
            return false;
        }
    };
    // One build with the tests, because a build of other packages has other features of
    // dependencies, and compiles half of the workspace again.
    let parts = ["--lib", "--bins", "--tests", "--profile", PROFILE];
    let mut build = cargo(root, &["build", "--workspace"]);
    build.args(parts);
    build.args(examples.iter().flat_map(|name| ["--example", name]));
    if !succeeds(build) {
        return false;
    }
    let fixed = ["test", "--workspace", "--tests", "--no-fail-fast", "--profile", PROFILE];
    let mut command = cargo(root, &fixed);
    command.args(arguments).env(BUILT, "1");
    let mut failures = Failures::default();
    let (tally, exited_well) = match stream(command, SILENCE_MAX, &mut failures) {
        Ok(outcome) => outcome,
        Err(cause) => {
            eprintln!(
                "error: cargo test could not be run\ncause: {cause}\nhelp:  check that cargo \
                       is on your PATH"
            );
            (Tally::default(), false)
        }
    };
    let complaint = tally.complaint(exited_well);
    if let Some((cause, help)) = complaint {
        eprintln!("error: the tests did not pass\ncause: {cause}\nhelp:  {help}");
        failures.output.iter().for_each(|line| eprintln!("{line}"));
        failures.commands().iter().for_each(|command| eprintln!("repeat it with: {command}"));
    }
    println!("unisono: {} passed, {} failed", tally.passed, tally.failed);
    complaint.is_none()
}

/// Returns the names of the examples in Rust.
fn examples(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in root.join(EXAMPLES).read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|kind| kind == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// Runs a command, copies its output line by line, and sums the results in it. Ends a command that
/// printed nothing for `silence_max`.
fn stream(
    mut command: Command,
    silence_max: Duration,
    failures: &mut Failures,
) -> io::Result<(Tally, bool)> {
    let group = end_group_on_signal();
    let mut child = {
        let mut group = group.lock().unwrap_or_else(PoisonError::into_inner);
        // A process group of its own, so that the tests end with the command.
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let child = command.spawn()?;
        *group = Some(Pid::from_child(&child));
        child
    };
    let (sender, lines) = mpsc::channel();
    copy(child.stdout.take(), io::stdout(), sender.clone());
    copy(child.stderr.take(), io::stderr(), sender);
    let mut tally = Tally::default();
    loop {
        match lines.recv_timeout(silence_max) {
            Ok(line) => {
                tally.add_line(&line);
                failures.add_line(&line);
            }
            Err(RecvTimeoutError::Disconnected) => return Ok((tally, child.wait()?.success())),
            Err(RecvTimeoutError::Timeout) => {
                tally.hung = true;
                end_group(&mut child)?;
                return Ok((tally, false));
            }
        }
    }
}

/// Copies `output` line by line to `own` and to `lines`, on a thread, until it ends.
fn copy(
    output: Option<impl Read + Send + 'static>,
    mut own: impl Write + Send + 'static,
    lines: Sender<String>,
) {
    let Some(output) = output else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            // A closed terminal ends the output, not the tests.
            let _ = own.write_all(&[&line[..], b"\n"].concat());
            if lines.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
}

/// Kills the process group of `child`.
fn end_group(child: &mut Child) -> io::Result<()> {
    kill_process_group(Pid::from_child(child), Signal::KILL)?;
    child.wait().map(drop)
}

/// Kills the process group that the result gets when this process is interrupted or terminated:
/// signals of a terminal do not reach another group.
///
/// A command that is started later has the default action of these signals, also where this process
/// was started with signals ignored, as scripts start what they run in the background. Otherwise
/// tests could not interrupt their own processes.
fn end_group_on_signal() -> Arc<Mutex<Option<Pid>>> {
    let group = Arc::new(Mutex::new(None));
    let own = Arc::clone(&group);
    let handled = ctrlc::set_handler(move || {
        if let Some(group) = *own.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        std::process::exit(INTERRUPTED);
    });
    if let Err(cause) = handled {
        eprintln!("note: tests may outlive an interrupt: {cause}");
    }
    group
}

/// Tests that failed.
#[derive(Default)]
struct Failures {
    /// Names of the tests.
    tests: Vec<String>,
    /// Options by which cargo selects the programs that they are in.
    targets: Vec<String>,
    /// What they printed, the first lines of each.
    output: Vec<String>,
    /// Lines of the present test that are kept.
    lines_left: usize,
}

/// Number of lines of a failed test that are printed again at the end of a run, where a reader of
/// its last lines sees them.
const LINES_REPEATED: usize = 40;

impl Failures {
    /// Adds what a line says: `test name ... FAILED`, after the tests of a program
    /// `---- name stdout ----` and what a failed test printed, up to `failures:`, and at the end of
    /// cargo's output ``    `-p cli --test together` ``.
    fn add_line(&mut self, line: &str) {
        if line.starts_with("---- ") && line.ends_with(" stdout ----") {
            self.lines_left = LINES_REPEATED;
        } else if line == "failures:" {
            self.lines_left = 0;
        }
        if self.lines_left > 0 {
            self.lines_left -= 1;
            self.output.push(line.to_owned());
        }
        let test = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"));
        self.tests.extend(test.map(str::to_owned));
        let target = line.strip_prefix("    `-p ").and_then(|rest| rest.strip_suffix('`'));
        self.targets.extend(target.map(str::to_owned));
    }

    /// Commands that run the failed tests alone. Each names all tests, as the lines do not say
    /// which program a test is in.
    fn commands(&self) -> Vec<String> {
        let tests = self.tests.join(" ");
        let command =
            |target: &String| format!("cargo test --profile {PROFILE} -p {target} -- {tests}");
        self.targets.iter().map(command).collect()
    }
}

/// Numbers of passed and failed tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Tally {
    passed: u64,
    failed: u64,
    /// True if the run was ended because it printed nothing.
    hung: bool,
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
            Some(("a test failed", "see what it printed, here or in full under `failures:` above"))
        } else if self.hung {
            Some((
                "a test hung: nothing was printed for five minutes",
                "find it above, in the suite that has no `test result` line, and run that alone",
            ))
        } else if !exited_well {
            Some(("cargo test failed outside a test", "see the last error above"))
        } else if self.passed == 0 {
            Some(("no test ran", "check that the test filter matches a test"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: failed tests are named with a command, results are summed over all suites, and each
    //! way to fail is a failure.
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
        assert_eq!(tally, Tally { passed: 13, failed: 2, hung: false });
    }

    #[test]
    fn a_failed_test_has_a_command_that_repeats_it() {
        let mut failures = Failures::default();
        let output = "\
            test run::files_are_kept ... ok\n\
            test run::it_ends ... FAILED\n\
            failures:\n\
            ---- run::it_ends stdout ----\n\
            it does not end\n\
            failures:\n    run::it_ends\n\
            error: 1 target failed:\n    `-p cli --test together`\n";
        output.lines().for_each(|line| failures.add_line(line));
        let expected = "cargo test --profile checked -p cli --test together -- run::it_ends";
        assert_eq!(failures.commands(), [expected]);
        assert_eq!(failures.output, ["---- run::it_ends stdout ----", "it does not end"]);
        let long = "more\n".repeat(2 * LINES_REPEATED);
        let again = format!("---- run::it_is_long stdout ----\n{long}failures:\n");
        again.lines().for_each(|line| failures.add_line(line));
        assert_eq!(failures.output.len(), 2 + LINES_REPEATED);
    }

    #[test]
    fn a_run_passes_only_when_tests_ran_and_none_failed() {
        let outcome = |passed, failed, exited_well| {
            Tally { passed, failed, hung: false }.complaint(exited_well)
        };
        assert_eq!(outcome(3, 0, true), None);
        assert!(outcome(3, 1, false).is_some());
        assert!(outcome(3, 1, true).is_some(), "failures count whatever cargo says");
        assert!(outcome(3, 0, false).is_some(), "a suite that did not build is a failure");
        assert!(outcome(0, 0, true).is_some(), "a run of nothing is a failure");
    }

    #[test]
    fn a_run_that_hangs_is_ended_with_what_it_started() {
        // No line of results: the run that counts this test would count it too.
        let started = std::env::temp_dir().join(format!("unisono-hang-{}", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo $! > \"$1\"; wait", "sh"]).arg(&started);
        let (tally, exited_well) =
            stream(command, Duration::from_secs(1), &mut Failures::default()).expect("sh runs");
        assert_eq!(tally, Tally { passed: 0, failed: 0, hung: true });
        assert!(tally.complaint(exited_well).expect("it failed").0.contains("hung"));
        let id = std::fs::read_to_string(&started).expect("sh wrote it");
        std::fs::remove_file(&started).expect("it is there");
        // An ended process may stay in the table, as a zombie, until its new parent looks at it.
        let state = format!("/proc/{}/stat", id.trim());
        while std::fs::read_to_string(&state).is_ok_and(|line| !line.contains(") Z ")) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn tests_can_interrupt_processes_where_interrupts_are_ignored() {
        const IGNORES: &str = "UNISONO_TEST_IGNORES_INTERRUPTS";
        if std::env::var_os(IGNORES).is_some() {
            let mut command = Command::new("sh");
            command.args(["-c", "kill -INT $$"]);
            let ended = stream(command, Duration::from_secs(10), &mut Failures::default());
            assert!(!ended.expect("sh runs").1, "sh was not interrupted");
            return;
        }
        let this = "suite::tests::tests_can_interrupt_processes_where_interrupts_are_ignored";
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' INT; exec \"$@\"", "sh"]);
        command.arg(std::env::current_exe().expect("a path")).args(["--exact", this]);
        let output = command.env(IGNORES, "1").output().expect("sh runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }
}
