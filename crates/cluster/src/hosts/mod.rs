//! Servers on several hosts, started through whatever starts programs there.
//!
//! ```text
//!  unisono start ──▶ supervisor ──▶ launcher (ssh, srun, mpiexec, …) ═══▶ server on its host
//!                        │            one for each server                     │
//!                        └── holds their input; reads what they say ◀─────────┘
//! ```
//!
//! [`LaunchPlan`] says where servers are to run and why. The supervisor is a process with a session
//! of its own that stays as long as the servers do; it tells each server through its launcher's
//! standard input what it is, the key included. Invariant: when a supervisor or a launcher ends,
//! however it ends, the servers behind it find their input at its end, write everything back and
//! end too.

mod address;
mod allocation;
mod control;
mod hostfile;
mod launched;
mod launcher;
mod names;
mod nodelist;
mod options;
mod placement;
mod plan;
mod probe;
mod remote_server;
mod start;
mod supervisor;

pub use options::HostOptions;

pub use plan::{HostPlan, LaunchPlan, LaunchRequest, Target};
pub use remote_server::serve_remote;
pub use start::start_on_hosts;
pub use supervisor::supervise;
