//! Records that clients want for their values: clients look at what they read, or servers select.
//!
//! The records of the file have random numbers as their first fields. A share of them matches a
//! condition, and a number names the client that wants a record. Data moves with its bytes, so the
//! servers look at real records.

mod case;
mod data;
mod network;
mod run;

pub use case::{RecordCase, RecordDelivery, RecordOutcome};
pub use run::simulate_records;
