//! Processes by names that no other process ever has.

use crate::real::process::ProcessEnd;
use serde::{Deserialize, Serialize};

/// A process: its number may be another's later, and is another's on another machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProcessName {
    /// The machine, since it was switched on.
    boot: String,
    /// The process's number.
    pub pid: u32,
    /// When it began, in ticks since then.
    began: u64,
}

impl ProcessName {
    /// This process.
    pub(crate) fn own() -> Option<Self> {
        let pid = std::process::id();
        Some(Self { boot: boot()?, pid, began: began(pid)? })
    }

    /// Whether it is, or was, of this machine.
    pub(crate) fn is_of_here(&self) -> bool {
        boot().as_ref() == Some(&self.boot)
    }

    /// Its end, if it is on this machine and has not ended.
    pub(crate) fn end(&self) -> Option<ProcessEnd> {
        let end = ProcessEnd::of(self.pid)?;
        // Asked after the handle was taken, which no other process can be behind any more.
        let is_it = self.is_of_here() && began(self.pid) == Some(self.began);
        is_it.then_some(end)
    }
}

fn boot() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(name.trim().to_owned())
}

fn began(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may hold anything. Behind it is field 3 of
    // proc_pid_stat(5); the time is field 22.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    //! Proves: a process is known by its name while it is there, and nobody else by it.
    use super::*;

    #[test]
    fn names_are_of_one_process() {
        let own = ProcessName::own().expect("Linux has /proc");
        assert!(own.end().is_some());
        assert!(ProcessName { began: own.began + 1, ..own.clone() }.end().is_none());
        assert!(ProcessName { boot: "another".to_owned(), ..own }.end().is_none());
    }
}
