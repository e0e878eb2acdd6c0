//! Everything that a run has come to, as the screen and the JSON object show it.

use super::compare::Compared;
use super::processor::ServersUse;
use super::report::Report;
use super::staging::{Files, StagedOut};
use super::what_if::WhatIf;
use crate::arguments::Run;
use crate::output::protection::protection_json;
use client::{InstanceFile, ProtectedBytes, ServerState};
use interface::UserError;
use measure::PlainRates;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Outcome of a run.
pub(super) struct Outcome<'a> {
    pub(super) arguments: &'a Run,
    pub(super) instance: PathBuf,
    pub(super) file: InstanceFile,
    pub(super) ending: Ending,
    pub(super) report: Report,
    pub(super) servers: Vec<ServerState>,
    /// Share of the protected files that is protected after the program; `None` if unknown.
    pub(super) protection: Option<ProtectedBytes>,
    pub(super) limits: Option<PlainRates>,
    pub(super) files: Files,
    /// Working directory of the program, as names begin with it.
    pub(super) here: String,
    pub(super) checked: Result<(), UserError>,
    pub(super) place: PlaceOfFiles,
    pub(super) stopped: Result<(), UserError>,
    /// First error of the command itself, not of the program.
    pub(super) error: Option<UserError>,
    /// Remarks, one line each.
    pub(super) notes: Vec<String>,
    /// Prediction for other servers, if the program was recorded.
    pub(super) what_if: Option<WhatIf>,
    /// The program without Unisono, if that was asked for.
    pub(super) compared: Option<Compared>,
    /// Processor time of the servers, if all have told it.
    pub(super) processor: Option<ServersUse>,
}

/// End of the program.
pub(super) struct Ending {
    /// Exit code, as a shell shows it: 128 + N after signal N.
    pub(super) code: u8,
    /// Signal that ended it.
    pub(super) signal: Option<i32>,
    pub(super) seconds: f64,
    /// True if it was asked to end because time ran short.
    pub(super) was_short: bool,
}

/// Place of the files after the run.
pub(super) enum PlaceOfFiles {
    /// There are none.
    None,
    /// Copied out. With the number of files that were left out, as the user asked.
    Copied(StagedOut, usize),
    /// In the data directories, with the command that starts servers on them.
    Data(String),
    /// Removed, as the user asked.
    Discarded,
}

impl Outcome<'_> {
    /// Exit code of the command: that of the program, if that failed.
    pub(super) fn code(&self) -> u8 {
        match (self.ending.code, &self.error) {
            (0, Some(error)) => error.code as u8,
            (code, _) => code,
        }
    }

    /// Seconds of the program, and with its files in their place: after a copy out.
    pub(super) fn seconds(&self) -> (f64, Option<f64>) {
        let seconds = self.ending.seconds;
        match &self.place {
            PlaceOfFiles::Copied(copied, _) => (seconds, Some(seconds + copied.seconds)),
            _ => (seconds, None),
        }
    }

    /// Words of the program.
    pub(super) fn words(&self) -> Vec<String> {
        self.arguments.program.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Directories of the servers' data.
    pub(super) fn data(&self) -> Vec<String> {
        let all = self.file.servers.iter().flat_map(|server| &server.data);
        all.map(|path| path.display().to_string()).collect()
    }

    /// Bytes that all servers moved, and requests that they answered, as far as they say.
    pub(super) fn moved(&self) -> (u64, u64) {
        let known = self.servers.iter().filter_map(|state| state.status.as_ref().ok());
        known.fold((0, 0), |(bytes, requests), one| {
            (bytes + one.bytes_moved, requests + one.requests)
        })
    }

    /// Number of mirrored files whose copies may be behind, as far as servers say.
    pub(super) fn files_behind(&self) -> u64 {
        let known = self.servers.iter().filter_map(|state| state.status.as_ref().ok());
        known.map(|status| status.files_behind).sum()
    }

    /// The one JSON object.
    pub(super) fn json(&self) -> Value {
        let ending = &self.ending;
        json!({
            "schema": "unisono.run/1",
            "exit_code": self.code(),
            "program": {
                "words": self.words(), "exit_code": ending.code, "signal": ending.signal,
                "seconds": ending.seconds, "time_ran_short": ending.was_short,
            },
            "instance": self.instance,
            "wire": self.file.wire,
            "servers": self.servers_json(),
            "servers_processor": self.processor,
            "ranks": { "reported": self.report.processes.len(),
                       "expected": self.report.expected() },
            "mpi": self.report.libraries(),
            "shares": self.report.shares().map(|(in_calls, waited)| json!({
                "in_calls": in_calls, "waiting_for_members": waited
            })),
            "calls": self.calls_json(),
            "files": self.files_json(),
            "unreadable_report_lines": self.report.unreadable,
            "limit": self.limits.map(|limits| json!({
                "plain_write_mib_s": limits.write_mib_s, "plain_read_mib_s": limits.read_mib_s
            })),
            "stored": {
                "files": self.files.names.len(), "bytes": self.files.bytes,
                "mirrored": self.files.mirrored,
                "with_parity": self.files.with_parity, "files_behind": self.files_behind(),
                "protection": protection_json(self.protection),
            },
            "checked": self.checked.is_ok(),
            "place": self.place_json(),
            "servers_stopped": self.stopped.is_ok(),
            "error": self.error.as_ref().map(|error| json!({
                "error": error.error, "cause": error.cause, "help": error.help,
                "exit_code": error.code as u8,
            })),
            "notes": self.notes,
            "what_if": self.what_if,
            "without_unisono": self.compared,
        })
    }

    fn servers_json(&self) -> Vec<Value> {
        let of = |state: &ServerState| {
            let status = state.status.as_ref().ok();
            json!({
                "id": state.entry.id, "host": state.entry.host, "data": state.entry.data,
                "bytes_moved": status.map(|status| status.bytes_moved),
                "requests": status.map(|status| status.requests),
            })
        };
        self.servers.iter().map(of).collect()
    }

    fn calls_json(&self) -> Vec<Value> {
        let calls = self.report.calls.iter().map(|calls| {
            json!({
                "file": calls.file, "op": calls.op, "form": calls.form, "why": calls.why,
                "calls": calls.calls, "bytes": calls.bytes, "copied": calls.copied,
                "seconds": calls.seconds, "waited_seconds": calls.waited, "mib_s": calls.mib_s(),
            })
        });
        calls.collect()
    }

    fn files_json(&self) -> Vec<Value> {
        let files = self.report.files.iter().map(|(name, file)| {
            json!({
                "name": name, "opens": file.opens, "methods": file.methods, "hints": file.hints,
                "rejected": file.rejected,
            })
        });
        files.collect()
    }

    fn place_json(&self) -> Value {
        match &self.place {
            PlaceOfFiles::None => json!({ "is": "none" }),
            PlaceOfFiles::Copied(copied, left_out) => json!({
                "is": "staged-out", "directory": copied.directory, "files": copied.files,
                "bytes": copied.bytes, "seconds": copied.seconds, "left_out": left_out,
            }),
            PlaceOfFiles::Data(command) => json!({
                "is": "data", "data": self.data(), "start": command
            }),
            PlaceOfFiles::Discarded => json!({ "is": "discarded" }),
        }
    }
}
