//! A server: one process that owns disks, answers requests, and directs collectives.
//!
//! | where | what |
//! |---|---|
//! | `config.rs` | parameters of a server |
//! | `service.rs` | its life: load, listen, start requests, write back, end |
//! | `state.rs` | its state and what all requests use |
//! | `requests.rs`, `answer.rs`, `faults.rs` | one request and its answer |
//! | `liveness.rs` | pings of clients that others wait for |
//! | `rendezvous.rs`, `member_calls.rs` | groups whose members meet at the servers |
//! | `group_locks.rs`, `member_services.rs` | counters and range locks of groups, at server 0 |
//! | `client_caches/` | caches at clients: copies of lines, cooperation |
//! | `clients/` | sessions of clients and connections to clients |
//! | `files/` | open files, their sizes, failures of write-behind |
//! | `transfers/` | active transfers and the memory that they use |
//! | `block_cache/` | the cache and the locks of blocks |
//! | `catalogue/` | names, sizes and places of all files; on server 0 |

pub(crate) mod answer;
pub(crate) mod block_cache;
mod catalogue;
pub(crate) mod client_caches;
mod clients;
mod config;
pub(crate) mod faults;
pub(crate) mod files;
mod group_locks;
mod liveness;
mod member_calls;
mod member_services;
mod rendezvous;
mod requests;
mod service;
mod state;
pub(crate) mod transfers;

pub use config::ServerConfig;
pub use service::serve;
pub(crate) use state::Server;
