//! A server: one process that owns disks, answers requests, and directs collectives.
//!
//! | where | what |
//! |---|---|
//! | `config.rs` | parameters of a server |
//! | `service.rs` | its life: load, listen, start requests, write back, end |
//! | `state.rs` | its parts, and what all requests use |
//! | `counters.rs`, `stop.rs` | what its status counts, and its end |
//! | `requests.rs`, `answer.rs`, `faults.rs` | one request and its answer |
//! | `unprotected.rs` | which files are not protected in full now |
//! | `liveness.rs` | pings of clients that others wait for |
//! | `other_servers.rs` | calls of this server to others |
//! | `mirrors/` | copies of mirrored files: those of its own parts, and those that it has |
//! | `refill/` | what new data directories lack is filled from copies |
//! | `leases/` | leases of clients that gather small writes |
//! | `groups/` | groups of clients: their calls, counters and locks |
//! | `client_caches/` | caches at clients: copies of lines, cooperation |
//! | `clients/` | connected clients and their sessions |
//! | `files/` | open files, their sizes and disks, failures of write-behind |
//! | `transfers/` | active transfers and the memory that they use |
//! | `block_cache/` | the cache and the locks of blocks |
//! | `catalogue/` | names, sizes and places of all files; on server 0 |
//!
//! A request is served by its part of the server: `service.rs` starts `answer_file` of
//! `files/requests.rs` for a `wire::FileRequest`, and likewise `answer_block`,
//! `answer_collective`, `answer_catalogue`, `answer_node`, `answer_group`, `answer_cache` and
//! `answer_server`.

pub(crate) mod answer;
pub(crate) mod block_cache;
mod catalogue;
pub(crate) mod client_caches;
mod clients;
mod config;
mod counters;
pub(crate) mod faults;
pub(crate) mod files;
mod groups;
mod leases;
mod liveness;
mod mirrors;
mod other_servers;
mod refill;
mod requests;
mod service;
mod state;
mod stop;
pub(crate) mod transfers;
mod unprotected;

pub use catalogue::{
    COPIES_MAX, OtherServer, POSITION_KEY as COPY_POSITION_KEY, position_of as copy_position,
};
pub use config::ServerConfig;
pub(crate) use groups::Roster;
pub use service::{serve, serve_among_others};
pub(crate) use state::Server;
