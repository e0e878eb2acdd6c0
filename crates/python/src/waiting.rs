//! Calls that wait: without the lock of the interpreter, and with an eye on signals.

use crate::errors::{exception, usage};
use crate::interrupted::{Interrupted, SetAtEnd, pause};
use crate::memory::{Transfer, release_ended};
use crate::open_file::OpenFile;
use client::UserError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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

/// Makes a call that transfers data of files, as [`wait`] does. When it is interrupted, later calls
/// for these files wait for its end.
pub(crate) fn wait_for_transfer<T: Send + 'static>(
    py: Python<'_>,
    (interrupted, files): (&Interrupted, &[String]),
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
        files.iter().for_each(|file| interrupted.add(file, Arc::clone(&has_ended)));
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
    /// The call, until somebody waits for it.
    call: Mutex<Option<Call>>,
    outcome: Arc<OnceLock<Result<u64, UserError>>>,
    /// Process that began it: a forked child has not its threads.
    process: u32,
    /// Interrupted transfers of the connection, and the names of the files.
    interrupted: (Arc<Interrupted>, Vec<String>),
}

/// Outcome of a call that nobody else sets, at the latest when this is dropped: after a panic.
struct SetOutcome(Arc<OnceLock<Result<u64, UserError>>>);

impl Drop for SetOutcome {
    fn drop(&mut self) {
        let lost = UserError::usage("a call was lost", "its thread panicked", "report it");
        let _ = self.0.set(Err(lost));
    }
}

struct Call {
    transfer: Transfer<u64>,
    /// The files stay open until the end.
    files: Vec<Arc<OpenFile>>,
}

impl Started {
    pub(crate) fn new(
        transfer: Transfer<u64>,
        files: Vec<Arc<OpenFile>>,
        interrupted: (Arc<Interrupted>, Vec<String>),
    ) -> Self {
        let call = Mutex::new(Some(Call { transfer, files }));
        Self { call, outcome: Arc::default(), process: std::process::id(), interrupted }
    }

    fn call(&self) -> MutexGuard<'_, Option<Call>> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Started {
    /// Lets a call that nobody waits for go on to its end: waiting for it here would keep the
    /// interpreter.
    fn drop(&mut self) {
        if let Some(call) = self.call().take() {
            let waiting = std::thread::Builder::new().name("unisono-wait".to_owned());
            // Without a thread, the call waits for its end here.
            let _ = waiting.spawn(move || drop(call));
        }
    }
}

#[pymethods]
impl Started {
    /// True when the call has ended. Never waits.
    fn done(&self) -> bool {
        match &mut *self.call() {
            Some(call) => call.transfer.test(),
            None => self.outcome.get().is_some(),
        }
    }

    /// Waits for the end of the call; returns the number of bytes moved.
    fn wait(&self, py: Python<'_>) -> PyResult<u64> {
        let call = self.call().take();
        if let Some(Call { transfer, files }) = call {
            let (interrupted, names) = &self.interrupted;
            let outcome = SetOutcome(Arc::clone(&self.outcome));
            wait_for_transfer(py, (interrupted, names), move || {
                let waited = transfer.wait();
                drop(files);
                // Only this call sets it.
                let _ = outcome.0.set(waited);
                Ok(())
            })?;
        }
        if std::process::id() != self.process {
            let help = "wait for it in the process that began it";
            return Err(usage(py, "cannot wait for a call", "it is a call of the parent", help));
        }
        // Another thread waits for it, or a wait was interrupted.
        loop {
            match self.outcome.get() {
                Some(Ok(bytes)) => return Ok(*bytes),
                Some(Err(error)) => return Err(exception(py, error)),
                None => pause(py)?,
            }
        }
    }
}
