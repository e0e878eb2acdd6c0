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
mod names;
mod nodelist;
mod options;
mod seat;
mod start;
mod talk;
mod told;
mod trial;

pub use choice::{Choice, HostPlan, Venue, Wish};
pub use keeper::keep;
pub use launcher::Launcher;
pub use options::HostOptions;
pub use seat::Seat;
pub use start::start_on_hosts;
pub use told::serve_told;
