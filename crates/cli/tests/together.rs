//! All tests of the command, as one program.
//!
//! So what they share is compiled once, and a test that waits holds up no other one. The test that
//! measures the memory of its process is a program of its own: killed.rs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bench;
mod bounds;
mod collectives;
mod compute;
mod cores;
mod cut_links;
mod damage;
mod direct;
mod disks;
mod examples;
mod faults;
mod files;
mod flow;
mod foreign;
mod group_locks;
mod hints;
mod hosts;
mod hung_disks;
mod in_place;
mod instances;
mod interrupted;
mod library;
mod limits;
mod log;
mod lost;
mod memory;
mod mirrored;
mod modules;
mod mounts;
mod own_function;
mod own_operator;
mod own_policy;
mod parity;
#[path = "../../world-real/tests/support/preloaded.rs"]
mod preloaded;
mod programs;
mod protected;
mod readme;
mod rebuilt;
mod refilled;
mod reproduce;
mod restarted;
mod run;
mod scenarios;
mod selected;
mod shell;
mod simulated_disks;
mod small_calls;
mod stopped;
mod strangers;
mod support;
mod tops;
mod trace_output;
mod traces;
mod trees;
mod two_hosts;
mod wiped;
mod wire;
