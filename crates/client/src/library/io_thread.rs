//! The I/O thread of the process.
//!
//! *Invariants:*
//! - There is one in a process, from the first connection to the last.
//! - It handles no signal of the program: all are blocked on it.
//! - Jobs run in the order in which they were given.

use interface::{ErrorKind, UserError};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::ThreadId;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use world_real::EventLoop;

/// Work for the I/O thread; it must not block.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// The thread that talks to the servers for all calls but small ones that wait.
pub(super) struct IoThread {
    /// There until the thread may end.
    jobs: Option<UnboundedSender<Job>>,
    id: ThreadId,
    /// Process that it is a thread of; a forked child has only the memory of it.
    process: u32,
}

/// The I/O thread of one process. A lock that another thread held while the process was forked
/// stays locked in the child, so that the child makes its own.
struct Current {
    process: u32,
    thread: Mutex<Weak<IoThread>>,
}

static CURRENT: AtomicPtr<Current> = AtomicPtr::new(null_mut());

impl Current {
    /// That of this process.
    #[allow(unsafe_code, reason = "a lock that a forked child can replace")]
    fn get() -> &'static Self {
        let process = std::process::id();
        let mut known = CURRENT.load(Ordering::Acquire);
        loop {
            // SAFETY: it is null, or was leaked below and is never freed.
            match unsafe { known.as_ref() } {
                Some(current) if current.process == process => return current,
                _ => {}
            }
            let thread = Mutex::new(Weak::new());
            let own: *mut Self = Box::leak(Box::new(Self { process, thread }));
            let (set, unset) = (Ordering::AcqRel, Ordering::Acquire);
            known = match CURRENT.compare_exchange(known, own, set, unset) {
                Ok(_) => own,
                Err(other) => other,
            };
        }
    }
}

impl IoThread {
    /// The I/O thread of this process; starts it if there is none.
    ///
    /// # Errors
    /// Fails when the system gives no thread.
    pub(super) fn current() -> Result<Arc<Self>, UserError> {
        let mut current = Current::get().thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = current.upgrade().filter(|running| running.is_alive()) {
            return Ok(running);
        }
        let started = Arc::new(Self::start()?);
        *current = Arc::downgrade(&started);
        Ok(started)
    }

    fn start() -> Result<Self, UserError> {
        let (jobs, received) = unbounded_channel();
        let unblock = block_signals();
        let spawned = std::thread::Builder::new()
            .name("unisono-io".to_owned())
            .spawn(move || EventLoop::new().run(work(received)));
        unblock();
        let thread = spawned.map_err(|error| {
            UserError::of_kind(
                ErrorKind::Internal,
                "cannot connect to an instance",
                format!("the system cannot create the I/O thread: {error}"),
                "raise the limit on threads (ulimit -u), or end other programs",
            )
        })?;
        Ok(Self { jobs: Some(jobs), id: thread.thread().id(), process: std::process::id() })
    }

    /// True in the process in which it was started, as long as it has not failed.
    fn is_alive(&self) -> bool {
        let takes_jobs = self.jobs.as_ref().is_some_and(|jobs| !jobs.is_closed());
        self.process == std::process::id() && takes_jobs
    }

    /// True when the caller is the I/O thread.
    pub(super) fn is_here(&self) -> bool {
        std::thread::current().id() == self.id && self.is_of_this_process()
    }

    /// False in a forked child, which has only the memory of the thread.
    pub(super) fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// Gives it a job. When it cannot take any, returns the job with the reason.
    pub(super) fn post(&self, job: Job) -> Result<(), (Job, UserError)> {
        if self.process != std::process::id() {
            return Err((job, forked()));
        }
        match &self.jobs {
            Some(jobs) => jobs.send(job).map_err(|refused| (refused.0, failed())),
            None => Err((job, failed())),
        }
    }
}

impl Drop for IoThread {
    /// Lets the thread end. A forked child has only a copy of the queue, which may be locked.
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.jobs.take());
        }
    }
}

async fn work(mut jobs: UnboundedReceiver<Job>) {
    while let Some(job) = jobs.recv().await {
        job();
    }
}

/// Error of a call in a forked child.
pub(super) fn forked() -> UserError {
    UserError::of_kind(
        ErrorKind::Forked,
        "cannot use this connection",
        "it was made before this process was forked, and belongs to the parent",
        "connect again in the child, or fork before connecting",
    )
}

/// Error of a call that the I/O thread did not answer.
pub(super) fn failed() -> UserError {
    UserError::of_kind(
        ErrorKind::Internal,
        "the call was abandoned",
        "the I/O thread of the library has ended, or the connection was closed during the call",
        "connect again; if it recurs, report it with the program's standard error output",
    )
}

/// Blocks all signals for this thread and those that it starts; what is returned undoes it.
#[allow(unsafe_code, reason = "the system has no safe call for it")]
fn block_signals() -> impl FnOnce() {
    use std::mem::MaybeUninit;
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset writes the whole set, and pthread_sigmask the whole of the other.
    let before = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        before.assume_init()
    };
    move || {
        // SAFETY: `before` is a set that the system gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    }
}
