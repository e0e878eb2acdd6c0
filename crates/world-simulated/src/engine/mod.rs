//! The event engine: a queue of timers, an executor of tasks, and a clock that they move.
//!
//! - [`executor`] runs the simulation.
//! - [`event_queue`] orders timers.
//! - [`task_table`] holds tasks, and [`waker`] queues those that are ready.
//! - [`prefetch`] hides the memory latency of large simulations.
//!
//! Invariant: the engine knows no machine. The effects of timers are behind [`TimerHandler`] and
//! [`PrefetchHints`].

mod event_queue;
mod executor;
mod prefetch;
mod task_table;
mod waker;

pub use executor::{Deadlock, Engine, Sleep, TaskHandle, TimerHandler};
pub(crate) use executor::{HandlerId, Wakeup};
pub(crate) use prefetch::{PrefetchDistance, PrefetchHints, prefetch};
