//! Ranks of a program on simulated nodes, and their files.
//!
//! Every simulation carries out a [`Program`](program::Program): a recorded one, a pattern or a
//! workload. [`Stage`] is the machine with its servers, on which the ranks run.
//!
//! | where | what |
//! |---|---|
//! | `stage.rs` | the machine of a scenario, and the run of all ranks on it |
//! | `config.rs`, `servers.rs` | configurations of nodes; the servers |
//! | `node.rs`, `mailbox.rs` | computation of a rank, and messages between ranks |
//! | `job.rs` | a rank of a job: it opens files and joins calls as the interposer of MPI does |
//! | `preset.rs` | a client of the papers: client 0 joins each call for all |
//! | `file_calls.rs` | calls of files that are the same for both |

pub(crate) mod config;
mod file_calls;
mod job;
mod mailbox;
mod node;
mod preset;
mod servers;
mod stage;

pub(crate) use file_calls::new_file;
pub(crate) use job::JobRank;
pub(crate) use node::{Mailboxes, Node};
pub(crate) use preset::{CacheUse, Clients, Measured, Preparation};
pub(crate) use stage::{Ended, Stage, on_stage};
