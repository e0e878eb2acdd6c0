//! Servers and a program for the length of one job.
//!
//! [`JobInstance`] is an instance of its own for the job, here or on hosts. [`JobProgram`] is the
//! program that runs meanwhile. [`Signals`] decides what becomes of Ctrl-C and SIGTERM at each
//! stage of the job.
//!
//! *Invariants:*
//! - Before the program starts, a signal ends everything and removes everything.
//! - While it runs, signals go to the program. Afterwards, they end the command, and data stays.
//! - When Slurm ends the job, the servers stop in good order before it kills them.

mod instance;
mod program;
mod signals;
mod slurm;

pub use instance::JobInstance;
pub use program::JobProgram;
pub use signals::Signals;
pub use slurm::SlurmJob;
