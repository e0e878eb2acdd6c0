//! Orders of a measurement to its child processes, and their answers: JSON, one value on a line.

use cluster::Child;
use interface::{ExitCode, UserError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write;
use std::time::{Duration, Instant};

/// Time that the other child processes have to answer when one has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(2);

/// Sends a value to a child process.
///
/// # Errors
/// Returns the cause.
pub(crate) fn send(child: &mut Child, value: &impl Serialize) -> Result<(), String> {
    let line = serde_json::to_string(value).unwrap_or_default();
    child.send_line(&line).map_err(|error| error.to_string())
}

/// Receives a value of a child process.
///
/// # Errors
/// Returns the cause; of a child that has ended, its exit status.
pub(crate) fn receive<T: DeserializeOwned>(child: &mut Child) -> Result<T, String> {
    match child.read_line() {
        Ok(Some(line)) => serde_json::from_str(&line).map_err(|error| error.to_string()),
        Ok(None) => {
            Err(child.wait().map_or_else(|error| error.to_string(), |status| status.to_string()))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Receives an answer of each child process, by `receive` with its rank, in whatever order they
/// come. After a failure, the others have a short time to answer. Returns the answers by rank.
///
/// # Errors
/// Returns the first failure. Those of processes that only met the failure of another one count
/// least.
pub(crate) fn receive_all<T>(
    children: &mut [Child],
    mut receive: impl FnMut(&mut Child, u32) -> Result<T, UserError>,
) -> Result<Vec<T>, UserError> {
    let mut answers: Vec<Option<T>> = children.iter().map(|_| None).collect();
    let mut waiting: Vec<usize> = (0..children.len()).collect();
    let mut failed: Option<(UserError, Instant)> = None;
    while !waiting.is_empty() {
        let deadline = failed.as_ref().map(|(_, deadline)| *deadline);
        let Some(rank) = Child::first_with_output(children, &waiting, deadline) else { break };
        waiting.retain(|other| *other != rank);
        match (receive(&mut children[rank], rank as u32), &mut failed) {
            (Ok(answer), _) => answers[rank] = Some(answer),
            (Err(error), None) => failed = Some((error, Instant::now() + AFTER_FAILURE)),
            (Err(error), Some((first, _))) => {
                if first.code == ExitCode::Collective && error.code != ExitCode::Collective {
                    *first = error;
                }
            }
        }
    }
    failed.map_or(Ok(answers.into_iter().flatten().collect()), |(failure, _)| Err(failure))
}

/// The side of a child process: the error when its parent cannot be understood or has gone.
#[derive(Clone, Copy)]
pub(crate) struct ChildSide {
    /// Description of the failure.
    pub(crate) error: &'static str,
    /// Command that starts such children.
    pub(crate) help: &'static str,
}

impl ChildSide {
    /// Parses a line of standard input.
    ///
    /// # Errors
    /// Fails when it is no such value.
    pub(crate) fn parse<T: DeserializeOwned>(self, line: &str) -> Result<T, UserError> {
        serde_json::from_str(line).map_err(|error| self.lost(&error.to_string()))
    }

    /// Writes an answer to standard output.
    ///
    /// # Errors
    /// Fails when nobody reads it.
    pub(crate) fn answer(self, answer: &impl Serialize) -> Result<(), UserError> {
        let line = serde_json::to_string(answer).unwrap_or_default();
        let mut output = std::io::stdout().lock();
        let told = writeln!(output, "{line}").and_then(|()| output.flush());
        told.map_err(|error| self.lost(&error.to_string()))
    }

    /// Makes the error with its cause.
    pub(crate) fn lost(self, cause: &str) -> UserError {
        UserError::new(ExitCode::Failed, self.error, cause, self.help)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: of several failures the one that has caused the others is reported, and a child
    //! process that never answers holds nothing up then, also the first.
    use super::*;
    use std::process::{Command, Stdio};

    fn child(script: &str) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Child::start(command, Stdio::inherit()).expect("sh starts")
    }

    /// Receives a number, which stands for a failure if it is the code of one.
    fn number(child: &mut Child, rank: u32) -> Result<u8, UserError> {
        let failure = |code| Err(UserError::new(code, format!("rank {rank} failed"), "", ""));
        match receive(child).expect("it answers") {
            3 => failure(ExitCode::NoServer),
            5 => failure(ExitCode::Collective),
            other => Ok(other),
        }
    }

    #[test]
    fn the_first_cause_is_reported() {
        let scripts = ["echo 5", "echo 7", "sleep 1; echo 3", "echo 3", "exec sleep 1000"];
        let mut children = scripts.map(child);
        let failure = receive_all(&mut children, number).expect_err("some failed");
        assert_eq!((failure.code, &failure.error[..]), (ExitCode::NoServer, "rank 3 failed"));
        let mut children = ["echo 1", "echo 2"].map(child);
        assert_eq!(receive_all(&mut children, number).expect("none failed"), [1, 2]);
        let mut children = ["exec sleep 1000", "echo 5"].map(child);
        let failure = receive_all(&mut children, number).expect_err("one failed");
        assert_eq!(failure.error, "rank 1 failed", "the first does not answer");
    }
}
