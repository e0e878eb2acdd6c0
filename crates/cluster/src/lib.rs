//! Starts, finds, watches and stops the servers of an instance, here and on hosts.
//!
//! [`start`] starts servers on this machine and [`start_on_hosts`] on others; [`stop`] ends them.
//! [`serve_process`] and [`serve_remote`] are the servers themselves. [`supervise`] is the process
//! that holds the launchers of those on hosts. [`JobInstance`] and [`JobProgram`] are servers and a
//! program for the length of one job.
//!
//! *Invariants:*
//! - One process of a machine starts or stops the servers of an instance at a time.
//! - A data directory is never taken for another: its label says which disk it is.
//! - A start that is interrupted leaves nothing that the next start or stop does not repair
//!   ([0067](../../../docs/decisions/0067-a-start-completes-in-one-step.md)).
//! - Servers that were started for a command end with it, however it ends.
//! - This crate puts the real world under servers; clients get theirs from `client`.

mod agreement;
mod closing;
mod control;
mod cores;
mod data;
mod doctor;
mod durable;
mod generations;
mod hosts;
mod instance;
mod job;
mod labels;
mod leftovers;
mod local_server;
mod lost_data;
mod memories;
mod memory;
mod memory_keeper;
mod private;
mod process;
mod process_name;
mod rebuild;
mod restarts;
mod server;
mod start;
mod started;
mod stop;
mod temporary;

pub use cores::{allowed_cores, pin_thread};
pub use data::{DATA, DataDirectories};
pub use doctor::{Finding, doctor};
pub use hosts::{
    HostOptions, HostPlan, LaunchPlan, LaunchRequest, Target, serve_remote, start_on_hosts,
    supervise,
};
pub use job::{JobInstance, JobProgram, Signals, SlurmJob};
pub use local_server::serve_process;
pub use lost_data::LostData;
pub use memories::{MemoryCount, count_memories, discard_memory};
pub use memory_keeper::keep_memory;
pub use private::refuse_root;
pub use process::{Child, Program, outlast_sigterm, run_to_end};
pub use rebuild::{Rebuilt, rebuild_catalogue, rebuild_lost_catalogue};
pub use restarts::restart_servers;
pub use start::{ServerOptions, start};
pub use stop::{Stopped, stop};
pub use temporary::TemporaryInstance;
