//! A thread that owns something slow and works through a queue of jobs on it, in their order.
//!
//! Invariants: at most [`QUEUE_LENGTH_MAX`] jobs wait (further callers wait for their turn, first
//! come, first served); the thread sleeps while there is none, and ends after the last handle.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use tokio::sync::{Semaphore, oneshot};

/// The most jobs that wait for one worker.
const QUEUE_LENGTH_MAX: usize = 256;

type Job<C> = Box<dyn FnOnce(&mut C) + Send>;

/// A handle to the thread that owns a `C`.
pub(crate) struct Worker<C> {
    jobs: mpsc::Sender<Job<C>>,
    places: Arc<Semaphore>,
    one_thread: std::marker::PhantomData<Rc<()>>,
}

/// The worker's thread is no longer there, because a job panicked.
#[derive(Debug)]
pub(crate) struct Gone;

impl<C: Send + 'static> Worker<C> {
    /// Starts a thread called `name` that owns `context`.
    pub(crate) fn start(name: String, mut context: C) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job<C>>();
        std::thread::Builder::new().name(name).spawn(move || {
            while let Ok(job) = queue.recv() {
                job(&mut context);
            }
        })?;
        let places = Arc::new(Semaphore::new(QUEUE_LENGTH_MAX));
        Ok(Self { jobs, places, one_thread: std::marker::PhantomData })
    }

    /// Has `work` done and returns what it returns. When the caller stops waiting, the work may
    /// still be done, and its result is dropped.
    pub(crate) async fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut C) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        let places = Arc::clone(&self.places);
        let place = places.acquire_owned().await.map_err(|_| Gone)?;
        let (reply, result) = oneshot::channel();
        let job: Job<C> = Box::new(move |context| {
            let done = work(context);
            drop(place);
            // The caller may have stopped waiting; then nobody wants the result.
            let _ = reply.send(done);
        });
        self.jobs.send(job).map_err(|_| Gone)?;
        result.await.map_err(|_| Gone)
    }
}
