//! Orders of a measurement to its child processes, and their answers: JSON, one value on a line.

use cluster::Child;
use interface::{ExitCode, UserError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write;

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
