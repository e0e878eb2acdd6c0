//! Long computations of a node, on a thread of their own.
//!
//! Invariants:
//! - A node has at most one such thread, which starts with the first computation.
//! - A computation that panics ends itself only.

use crate::worker::{Worker, WorkerState};
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::JobFailed;

/// Long computations of a node.
#[derive(Default)]
pub(crate) struct Computations(OnceCell<Worker<Nothing>>);

/// State of the thread: none.
struct Nothing;

impl WorkerState for Nothing {}

impl Computations {
    /// Executes a job on the thread, after those that came before. At most as many wait as a
    /// worker queues.
    pub(crate) async fn execute<R: Send + 'static>(
        &self,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, JobFailed> {
        let worker = match self.0.get() {
            Some(worker) => worker,
            None => {
                let started = Worker::start("computations", Nothing, 0, None);
                let started = started.map_err(|error| JobFailed {
                    cause: format!("the system refuses a thread: {error}"),
                })?;
                self.0.get_or_init(|| started)
            }
        };
        let guarded = move |_: &mut Nothing| catch_unwind(AssertUnwindSafe(job));
        let failed = |cause: &str| JobFailed { cause: cause.to_owned() };
        let done = worker.call(guarded).await.map_err(|_| failed("its thread has ended"))?;
        done.map_err(|_| failed("it has panicked"))
    }
}
