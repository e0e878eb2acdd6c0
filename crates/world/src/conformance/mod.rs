//! The suite that every world must pass.
//!
//! A world shows that it satisfies the contracts of this crate by implementing [`Fixture`] in a
//! test and calling [`run_all`]. There is one file of cases for each capability; the name of a case
//! states what must hold. No case waits longer than a few milliseconds or asserts a duration, so
//! the suite is the same for a simulated and a real world.

mod clock;
mod disk;
mod fixture;
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

pub use fixture::{Case, Fixture, PayloadOf};
pub use suite::{cases, run_all};
