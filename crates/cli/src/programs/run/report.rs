//! Report lines that the processes of a program have left in the instance.

use client::{Connection, EntryKind, Instance, Session};
use interface::{ErrorKind, UserError};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Most report files that are read.
const FILES_MAX: usize = 65_536;

/// Most bytes that are read of one report file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// One report line.
#[derive(Deserialize)]
#[serde(tag = "line", rename_all = "lowercase")]
enum Line {
    Process(Process),
    File(OpenedFile),
    Calls(Calls),
    /// A line of a later release.
    #[serde(other)]
    Other,
}

/// One process of the program.
#[derive(Deserialize, Clone, Default)]
#[serde(default)]
pub(super) struct Process {
    pub(super) rank: u64,
    pub(super) size: u64,
    pub(super) mpi: String,
    pub(super) seconds: f64,
}

/// A file as one process opened it.
#[derive(Deserialize, Clone, Default)]
#[serde(default)]
struct OpenedFile {
    name: String,
    opens: u64,
    method: String,
    hints: BTreeMap<String, String>,
    rejected: String,
}

/// Calls of one kind that one process made.
#[derive(Deserialize, Clone, Default)]
#[serde(default)]
struct Calls {
    file: String,
    op: String,
    form: String,
    why: String,
    calls: u64,
    bytes: u64,
    copied: u64,
    seconds: f64,
    waited: f64,
}

/// A file, over all processes.
#[derive(Default)]
pub(super) struct FileReport {
    pub(super) opens: u64,
    pub(super) methods: BTreeSet<String>,
    pub(super) hints: BTreeMap<String, String>,
    pub(super) rejected: String,
}

/// Calls of one kind, over all processes.
#[derive(Clone, Default)]
pub(super) struct CallReport {
    pub(super) file: String,
    pub(super) op: String,
    pub(super) form: String,
    pub(super) why: String,
    /// Number of calls: a collective one is one, whatever the number of processes.
    pub(super) calls: u64,
    pub(super) bytes: u64,
    /// Bytes that clients copied besides the transfer.
    pub(super) copied: u64,
    /// Time in these calls of the process that spent most.
    pub(super) seconds: f64,
    /// Time that all processes waited for others.
    pub(super) waited: f64,
    /// Time in these calls of all processes.
    total_seconds: f64,
}

/// Everything that the processes have left.
#[derive(Default)]
pub(super) struct Report {
    pub(super) processes: Vec<Process>,
    pub(super) files: BTreeMap<String, FileReport>,
    pub(super) calls: Vec<CallReport>,
    /// Lines that could not be read.
    pub(super) unreadable: u64,
}

impl Report {
    /// Reads the files of a directory of the instance.
    ///
    /// # Errors
    /// Errors of the servers. A missing directory is an empty report.
    pub(super) fn read(instance: &Instance, directory: &str) -> Result<Self, UserError> {
        let mut report = Self::default();
        let entries = match Session::new(instance.clone()).list(directory) {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(report),
            entries => entries?,
        };
        if entries.is_empty() {
            return Ok(report);
        }
        let connection = Connection::open(instance)?;
        let files = entries.into_iter().filter(|one| matches!(one.kind, EntryKind::File(_)));
        for entry in files.take(FILES_MAX) {
            let file = connection.open_file(&entry.name)?;
            let mut text = vec![0; file.size()?.min(FILE_BYTES_MAX) as usize];
            let read = file.read_at(&mut text, 0)?;
            text.truncate(read);
            file.close()?;
            for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                report.add(line);
            }
        }
        report.calls.sort_by_key(|calls| std::cmp::Reverse(calls.bytes));
        Ok(report)
    }

    /// Adds a line of one process.
    fn add(&mut self, line: &[u8]) {
        match serde_json::from_slice(line) {
            Ok(Line::Process(process)) => self.processes.push(process),
            Ok(Line::File(opened)) => {
                let file = self.files.entry(opened.name).or_default();
                file.opens = file.opens.max(opened.opens);
                file.methods.extend((!opened.method.is_empty()).then_some(opened.method));
                file.hints.extend(opened.hints);
                if file.rejected.is_empty() {
                    file.rejected = opened.rejected;
                }
            }
            Ok(Line::Calls(calls)) => self.add_calls(calls),
            Ok(Line::Other) => {}
            Err(_) => self.unreadable += 1,
        }
    }

    fn add_calls(&mut self, new: Calls) {
        let is_same = |old: &CallReport| {
            (&old.file, &old.op, &old.form, &old.why) == (&new.file, &new.op, &new.form, &new.why)
        };
        let at = self.calls.iter().position(is_same).unwrap_or_else(|| {
            self.calls.push(CallReport::of(&new));
            self.calls.len() - 1
        });
        let sum = &mut self.calls[at];
        let is_shared = matches!(new.form.as_str(), "collective" | "ordered");
        sum.calls = if is_shared { sum.calls.max(new.calls) } else { sum.calls + new.calls };
        sum.bytes += new.bytes;
        sum.copied += new.copied;
        sum.seconds = sum.seconds.max(new.seconds);
        sum.total_seconds += new.seconds;
        sum.waited += new.waited;
    }

    /// Number of processes that should have left lines.
    pub(super) fn expected(&self) -> u64 {
        let largest = self.processes.iter().map(|process| process.size).max().unwrap_or(0);
        largest.max(self.processes.len() as u64)
    }

    /// Names of the MPI libraries.
    pub(super) fn libraries(&self) -> Vec<&str> {
        let names = self.processes.iter().map(|process| process.mpi.as_str());
        let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
        names.into_iter().collect()
    }

    /// Shares of the time of all processes: in calls, and there waiting for other processes.
    pub(super) fn shares(&self) -> Option<(f64, f64)> {
        let seconds = self.processes.iter().map(|process| process.seconds).sum::<f64>();
        let in_calls = self.calls.iter().map(|calls| calls.total_seconds).sum::<f64>();
        let waited = self.calls.iter().map(|calls| calls.waited).sum::<f64>();
        (seconds > 0.0).then(|| (in_calls / seconds, waited / seconds))
    }

    /// Bytes of all calls of an operation.
    pub(super) fn bytes(&self, op: &str) -> u64 {
        self.calls.iter().filter(|calls| calls.op == op).map(|calls| calls.bytes).sum()
    }
}

impl CallReport {
    fn of(calls: &Calls) -> Self {
        Self {
            file: calls.file.clone(),
            op: calls.op.clone(),
            form: calls.form.clone(),
            why: calls.why.clone(),
            calls: 0,
            bytes: 0,
            copied: 0,
            seconds: 0.0,
            waited: 0.0,
            total_seconds: 0.0,
        }
    }

    /// Rate in 2^20 bytes a second; nothing for calls that moved nothing or took no time.
    pub(super) fn mib_s(&self) -> Option<f64> {
        let mib = self.bytes as f64 / f64::from(1 << 20);
        (self.bytes > 0 && self.seconds > 0.0).then(|| mib / self.seconds)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: lines of several processes are added up, collective calls are counted once, and
    //! lines of other forms do no harm.
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_are_added_up() {
        let mut report = Report::default();
        for rank in 0..2 {
            let seconds = 0.5 + f64::from(rank);
            let lines = [
                json!({ "line": "process", "rank": rank, "size": 4, "host": "h", "pid": 1,
                        "mpi": "M 1", "seconds": 2.0 }),
                json!({ "line": "file", "name": "a", "opens": 1, "method": "disk-directed",
                        "hints": { "k": "v" }, "rejected": "x(y)" }),
                json!({ "line": "calls", "file": "a", "op": "write", "form": "collective",
                        "why": "", "calls": 10, "bytes": 100, "copied": 3, "seconds": seconds,
                        "waited": 0.25 }),
                json!({ "line": "calls", "file": "a", "op": "read", "form": "independent",
                        "why": "w", "calls": 1, "bytes": 7, "seconds": 0 }),
                json!({ "line": "later", "x": 1 }),
                json!("no line"),
            ];
            lines.iter().for_each(|line| report.add(line.to_string().as_bytes()));
        }
        assert_eq!((report.processes.len(), report.expected(), report.unreadable), (2, 4, 2));
        assert_eq!(report.libraries(), ["M 1"]);
        let [write, read] = &report.calls[..] else { panic!("two kinds of calls") };
        assert_eq!((write.calls, write.bytes, write.copied, write.seconds), (10, 200, 6, 1.5));
        assert_eq!((read.calls, read.bytes, read.mib_s()), (2, 14, None));
        assert_eq!(report.shares(), Some((0.5, 0.125)));
        assert_eq!(report.files["a"].rejected, "x(y)");
    }
}
