//! Instances, commands and clients for the tests of the `unisono` binary. Nothing outlives a test:
//! each guard here ends, by its id, what it started, and removes its directory.
#![allow(dead_code, unused_imports, reason = "each test file uses its part")]

mod clients;
pub(crate) mod pages;
mod running;

pub(crate) use clients::{
    BenchClient, Case, ENDLESS, FRAGMENTS, Home, group, group_of, group_started_by,
    impatient_group, others_learn_of_client_2,
};
pub(crate) use running::{Ended, Running, program, run, unisono};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time limit that turns a hang into a failure; no test needs a fraction of it.
pub(crate) const STALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Version of the protocol of connections, which `servers_of_another_release_are_reported_…` reads
/// from the program. A stranger with another one would be refused before it is tested.
pub(crate) const CONNECTION_VERSION: u8 = 5;

/// Exit codes, as the command's help lists them.
pub(crate) const DONE: i32 = 0;
pub(crate) const FAILED: i32 = 1;
pub(crate) const USAGE: i32 = 2;
pub(crate) const NO_SERVER: i32 = 3;
pub(crate) const DATA_CHECK: i32 = 4;
pub(crate) const COLLECTIVE: i32 = 5;
pub(crate) const NO_SPACE: i32 = 6;
pub(crate) const INTERRUPTED: i32 = 130;

/// A directory with an instance in it, started or not; its servers end with it.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// Makes an empty place.
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("unisono-test-").tempdir();
        Self { directory: directory.expect("a test must have room") }
    }

    /// Makes a place whose instance runs with `servers` servers.
    pub(crate) fn with_servers(servers: u32) -> Self {
        let place = Self::new();
        place.start(&["--servers", &servers.to_string()]);
        place
    }

    /// Path in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Directory of the instance.
    pub(crate) fn instance(&self) -> PathBuf {
        self.path("instance")
    }

    /// Makes a local file.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("a test must have room");
        path
    }

    /// Makes a script that can be run; % in it stands for the directory.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let directory = self.path("").display().to_string();
        let path = self.file(name, text.replace('%', directory.trim_end_matches('/')).as_bytes());
        let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&path, may_run).expect("it is there");
        path
    }

    /// A command on the instance, run in the directory.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, words: &[S]) -> Command {
        let mut command = unisono(words);
        command.current_dir(self.directory.path()).arg("--instance").arg(self.instance());
        command
    }

    /// Runs a command on the instance to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, words: &[S]) -> Ended {
        run(self.command(words))
    }

    /// Starts the instance; returns what `start --json` printed.
    pub(crate) fn start(&self, words: &[&str]) -> Value {
        self.run(&[&["start", "--json"], words].concat()).done().json()
    }

    /// Entries of the servers in the output of `status --json`.
    pub(crate) fn status(&self) -> Vec<Value> {
        let status = self.run(&["status", "--json"]).json();
        status["servers"].as_array().expect("status lists the servers").clone()
    }

    /// Waits until no client is connected, then proves that no server holds anything for one.
    pub(crate) fn assert_nothing_held(&self) {
        let quiet = |server: &Value| server["clients"] == 0 && server["collective_bytes"] == 0;
        until("no client and no buffer is left", || self.status().iter().all(quiet).then_some(()));
    }

    /// Process id of each server, as recorded in the instance.
    pub(crate) fn server_pids(&self) -> Vec<u32> {
        let file = std::fs::read(self.instance().join("instance.json")).unwrap_or_default();
        let file: Value = serde_json::from_slice(&file).unwrap_or_default();
        let servers = file["servers"].as_array().cloned().unwrap_or_default();
        servers.iter().filter_map(|server| server["pid"].as_u64()).map(|pid| pid as u32).collect()
    }

    /// The names of the files in the instance.
    pub(crate) fn files(&self) -> Vec<String> {
        let listed = self.run(&["find", "--type", "file", "--json"]).done().json();
        let files = listed["entries"].as_array().expect("find lists files").clone();
        files.iter().map(|file| file["name"].as_str().expect("a name").to_owned()).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for pid in processes_naming(self.directory.path()) {
            signal(pid, Signal::KILL);
        }
    }
}

/// `length` bytes that repeat only after a long time.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ length as u64;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 56) as u8
    };
    (0..length).map(step).collect()
}

/// The names in a directory, sorted.
pub(crate) fn entries(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory is there").flatten();
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// Number of waiting cases that run at the same time.
const AT_ONCE: usize = 3;

/// Runs `check` with every case, some at the same time: most of their time passes with waiting.
pub(crate) fn some_at_once<T: Send>(
    cases: impl Iterator<Item = T> + Send,
    check: impl Fn(T) + Sync,
) {
    let cases = Mutex::new(cases);
    let next = || cases.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = next() {
                    check(case);
                }
            });
        }
    });
}

/// Polls until `ask` returns a value; fails after a time limit.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + STALL_TIMEOUT;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "it never came to pass that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until more bytes have moved than a first transfer moves, so that transfers are under way.
pub(crate) fn until_moving(place: &Place, more_than: u64) {
    let moved = || place.status().iter().filter_map(|one| one["bytes_moved"].as_u64()).sum::<u64>();
    let before = moved();
    until("bytes move", || (moved() > before + more_than).then_some(()));
}

/// Sends a signal. A process that has ended already is no error.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid as i32).expect("a process has a number");
    let _ = rustix::process::kill_process(pid, signal);
}

/// The state of a process and what else `/proc/PID/stat` says after its name; `None` when there is
/// no such process or it is only waited for.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
    (fields[0] != "Z" && fields[0] != "X").then_some(fields)
}

/// True until a process has ended with all of its threads. Its first thread may end before others,
/// which still hold its files.
pub(crate) fn is_running(pid: u32) -> bool {
    let pid = Pid::from_raw(pid as i32).expect("a process has a number");
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    pidfd_open(pid, PidfdFlags::empty())
        .is_ok_and(|end| poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&at_once)) == Ok(0))
}

/// Waits until a process has ended.
pub(crate) fn gone(pid: u32) {
    until(&format!("process {pid} ends"), || (!is_running(pid)).then_some(()));
}

/// Memory that a process takes: its resident size.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.expect("the system tells it") << 10
}

/// Processor time that a process has used, in ticks of the system's clock.
pub(crate) fn processor_ticks(pid: u32) -> u64 {
    let fields = stat(pid).expect("the process runs");
    // Fields 14 and 15 of proc_pid_stat(5); the first here is number 3.
    let ticks = |field: usize| fields[field - 3].parse::<u64>().expect("ticks are a number");
    ticks(14) + ticks(15)
}

/// The children of a process that run with `word` on their command line, in the order of their
/// start.
pub(crate) fn children_of(parent: u32, word: &str) -> Vec<u32> {
    let has_word =
        |pid: u32| command_line(pid).split(|byte| *byte == 0).any(|one| one == word.as_bytes());
    let mut children: Vec<(u64, u32)> = all_processes()
        .filter_map(|pid| Some((pid, stat(pid)?)))
        .filter(|(pid, fields)| fields[4 - 3].parse() == Ok(parent) && has_word(*pid))
        .map(|(pid, fields)| (fields[22 - 3].parse().expect("ticks are a number"), pid))
        .collect();
    children.sort_unstable();
    children.into_iter().map(|(_, pid)| pid).collect()
}

/// The processes whose command line names something in `directory`.
pub(crate) fn processes_naming(directory: &Path) -> Vec<u32> {
    let wanted = directory.as_os_str().as_encoded_bytes();
    let names = |pid: &u32| command_line(*pid).windows(wanted.len()).any(|part| part == wanted);
    all_processes().filter(|pid| *pid != std::process::id()).filter(names).collect()
}

fn all_processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").expect("Linux has /proc");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn command_line(pid: u32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}
