//! Servers on several hosts, started through whatever starts programs there.
//!
//! ```text
//!  unisono start ──▶ keeper ──▶ launcher (ssh, srun, mpiexec, …) ═══▶ server on its host
//!                      │            one for each server                     │
//!                      └── holds their input; reads what they say ◀─────────┘
//! ```
//!
//! [`Choice`] says where servers are to run and why. The keeper is a process with a session of its
//! own that stays as long as the servers do; it tells each server through its launcher's standard
//! input what it is, the key included. Invariant: when a keeper or a launcher
//! ends, however it ends, the servers behind it find their input at its end, write everything back
//! and end too.

mod address;
mod allocation;
mod choice;
mod hostfile;
mod keeper;
mod launched;
mod launcher;
mod nodelist;
mod seat;
mod start;
mod talk;
mod told;
mod trial;

pub use choice::{Choice, HostPlan, Venue, Wish};
pub use keeper::keep;
pub use launcher::Launcher;
pub use seat::Seat;
pub use start::HostOptions;
pub use told::serve_told;

/// The most hosts of one instance, and the most servers.
pub(crate) const HOSTS_MAX: usize = 4096;

/// Whether this can be the name or the number of a host, and nothing that a launcher or a shell
/// would take for something else.
fn is_host_name(word: &str) -> bool {
    let may_be = |letter: char| letter.is_ascii_alphanumeric() || "._:%@-".contains(letter);
    !word.is_empty() && !word.starts_with('-') && word.chars().all(may_be)
}

/// Each host once, in the order of their first mention.
fn each_once(hosts: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    hosts.into_iter().filter(|host| seen.insert(host.clone())).collect()
}
