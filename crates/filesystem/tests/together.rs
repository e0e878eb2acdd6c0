//! All file system tests on simulated machines, as one program.
//!
//! So their common generic code is compiled once, not once for each file. The test that measures
//! the memory of its process is a program of its own: scale.rs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod as_needed;
mod at_once;
mod bad_input;
mod buffering;
mod catalogue;
mod client_cache_faults;
mod client_caches;
mod coherence;
mod collective_caches;
mod copies;
mod cuts;
mod determinism;
mod failing_disk;
mod faults;
mod full_disk;
mod further_connections;
mod gathering;
mod group_calls;
mod group_locks;
mod hunt;
mod joins;
mod mirror_faults;
mod mirrors;
mod modules;
mod node_grouping;
mod nodes;
mod noncollective;
mod pages;
mod parity;
mod peer_meshes;
mod plans;
mod protected;
mod raw;
mod refill;
mod refill_faults;
mod replaced;
mod selections;
mod sizes;
mod stopped_disk;
mod strategies;
mod support;
mod times;
