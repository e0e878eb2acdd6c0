//! The suite every world must pass.
//!
//! A world shows that it keeps the contracts of this crate by implementing [`Fixture`] in a test
//! and calling [`run_all`]. There is one file of cases for each capability; each case says in its
//! name what must hold. No case waits longer than a few milliseconds or asserts how long
//! something took, so the suite is the same for a simulated and a real world.

mod clock;
mod disk;
mod memory;
mod network;
mod one_sided;
mod one_sided_limits;
mod processor;
mod randomness;
mod records;
mod scope;
mod suite;
mod support;
mod tasks;
mod wakers;

pub use suite::{Case, Fixture, PayloadOf, cases, run_all};
