//! Calls that wait: without the lock of the interpreter, and with an eye on signals.

use crate::errors::{exception, usage};
use crate::interrupted::{Interrupted, SetAtEnd};
use crate::memory::{Transfer, release_ended};
use client::UserError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Interval between looks for signals.
const SIGNAL_PAUSE: Duration = Duration::from_millis(100);

type Job = Box<dyn FnOnce() + Send>;

/// A thread that makes calls for the main thread, which looks for signals meanwhile.
struct Worker {
    /// Process that it belongs to: a forked child has no such thread.
    process: u32,
    jobs: Sender<Job>,
}

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Makes a call that may wait. When the main thread is interrupted, the exception of the signal is
/// returned at once, and the call goes on to its end without anybody.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    call: impl FnOnce() -> Result<T, UserError> + Send + 'static,
) -> PyResult<T> {
    let outcome = if is_main_thread() { watched(py, call)? } else { py.detach(call) };
    release_ended();
    outcome.map_err(|error| exception(py, &error))
}

/// Makes a call that transfers data of a file, as [`wait`] does. When it is interrupted, later
/// calls for the file wait for its end.
pub(crate) fn wait_for_transfer<T: Send + 'static>(
    py: Python<'_>,
    (interrupted, file): (&Interrupted, &str),
    call: impl FnOnce() -> Result<T, UserError> + Send + 'static,
) -> PyResult<T> {
    let has_ended = Arc::new(AtomicBool::new(false));
    let end = SetAtEnd(Arc::clone(&has_ended));
    let outcome = wait(py, move || {
        let outcome = call();
        drop(end);
        outcome
    });
    if !has_ended.load(Ordering::Acquire) {
        interrupted.add(file, has_ended);
    }
    outcome
}

/// True on the thread that Python's handlers of signals run on.
fn is_main_thread() -> bool {
    rustix::process::getpid() == rustix::thread::gettid()
}

fn watched<T: Send + 'static>(
    py: Python<'_>,
    call: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (done, answer) = channel();
    let job: Job = Box::new(move || {
        // After an interrupt nobody waits for it.
        let _ = done.send(call());
    });
    post(job)?;
    let mut answer = answer;
    loop {
        let (received, back) = py.detach(move || (receive(&answer), answer));
        answer = back;
        match received {
            Ok(outcome) => return Ok(outcome),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(usage(py, "the call was abandoned", "it panicked", "report it"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Err(interrupt) = py.check_signals() {
            // The next call must not wait for this one.
            WORKER.with_borrow_mut(|worker| *worker = None);
            return Err(interrupt);
        }
    }
}

fn receive<T>(answer: &Receiver<T>) -> Result<T, RecvTimeoutError> {
    answer.recv_timeout(SIGNAL_PAUSE)
}

/// Gives a job to the worker of this thread, which is started if there is none.
fn post(job: Job) -> PyResult<()> {
    WORKER.with_borrow_mut(|worker| {
        let process = std::process::id();
        if let Some(worker) = worker.take_if(|worker| worker.process != process) {
            // Its thread is the parent's.
            std::mem::forget(worker);
        }
        let jobs = match worker {
            Some(worker) => &worker.jobs,
            None => &worker.insert(Worker { process, jobs: start()? }).jobs,
        };
        jobs.send(job).map_err(|_| std::io::Error::other("the thread for calls has ended").into())
    })
}

fn start() -> std::io::Result<Sender<Job>> {
    let (jobs, next) = channel::<Job>();
    let thread = std::thread::Builder::new().name("unisono-calls".to_owned());
    thread.spawn(move || next.into_iter().for_each(|job| job()))?;
    Ok(jobs)
}

/// A call under way, which makes progress by itself. Its memory must not be touched before
/// :meth:`wait` has returned (that of a write: not be changed).
#[pyclass(frozen, module = "unisono")]
pub(crate) struct Started {
    state: Mutex<State>,
    /// Interrupted transfers of the connection, and the name of the file.
    interrupted: (Arc<Interrupted>, String),
}

enum State {
    UnderWay(Transfer<u64>),
    Ended(u64),
    Failed(UserError),
    /// The wait was interrupted.
    Abandoned,
}

impl Started {
    pub(crate) fn new(transfer: Transfer<u64>, interrupted: (Arc<Interrupted>, String)) -> Self {
        Self { state: Mutex::new(State::UnderWay(transfer)), interrupted }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Started {
    /// Lets a call that nobody waits for go on to its end: waiting for it here would keep the
    /// interpreter.
    fn drop(&mut self) {
        let state = std::mem::replace(&mut *self.state(), State::Abandoned);
        if let State::UnderWay(transfer) = state {
            std::thread::spawn(move || drop(transfer));
        }
    }
}

#[pymethods]
impl Started {
    /// True when the call has ended. Never waits.
    fn done(&self) -> bool {
        match &mut *self.state() {
            State::UnderWay(transfer) => transfer.test(),
            _ => true,
        }
    }

    /// Waits for the end of the call; returns the number of bytes moved.
    fn wait(&self, py: Python<'_>) -> PyResult<u64> {
        let state = std::mem::replace(&mut *self.state(), State::Abandoned);
        let State::UnderWay(transfer) = state else {
            *self.state() = state;
            return self.outcome(py);
        };
        let (interrupted, file) = &self.interrupted;
        let waited = wait_for_transfer(py, (interrupted, file), move || Ok(transfer.wait()))?;
        *self.state() = match waited {
            Ok(bytes) => State::Ended(bytes),
            Err(error) => State::Failed(error),
        };
        self.outcome(py)
    }
}

impl Started {
    fn outcome(&self, py: Python<'_>) -> PyResult<u64> {
        match &*self.state() {
            State::Ended(bytes) => Ok(*bytes),
            State::Failed(error) => Err(exception(py, error)),
            State::UnderWay(_) | State::Abandoned => Err(usage(
                py,
                "cannot wait for a call",
                "another thread waits for it, or the wait was interrupted",
                "wait for a call once",
            )),
        }
    }
}
