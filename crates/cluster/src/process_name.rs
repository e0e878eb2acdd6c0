//! Identification of processes, never reused.

use crate::process::ProcessEnd;
use client::ProcessName;

/// Identification of this process.
pub(crate) fn own_name() -> Option<ProcessName> {
    name_of(std::process::id())
}

/// Identification of a process of this machine, such as a child.
pub(crate) fn name_of(pid: u32) -> Option<ProcessName> {
    Some(ProcessName { boot: boot()?, pid, began: began(pid)? })
}

/// Handle to the end of a process, if it runs on this machine.
pub(crate) fn end_of(name: &ProcessName) -> Option<ProcessEnd> {
    let end = ProcessEnd::of(name.pid)?;
    // Read after the handle was taken: from then on no other process can have its id.
    let is_it = boot().as_ref() == Some(&name.boot) && began(name.pid) == Some(name.began);
    is_it.then_some(end)
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
        let own = own_name().expect("Linux has /proc");
        assert!(end_of(&own).is_some());
        let younger = ProcessName { began: own.began + 1, ..own.clone() };
        assert!(end_of(&younger).is_none());
        assert!(end_of(&ProcessName { boot: "another".to_owned(), ..own }).is_none());
    }
}
