//! Worker thread: owns a slow resource and executes a queue of jobs on it in order, with helper
//! threads for the parts of a job that need no exclusive access.
//!
//! Priority jobs do not wait for queued jobs; both kinds alternate. An idle worker runs
//! [`WorkerState::on_idle`].
//!
//! Invariants:
//!
//! - At most [`QUEUE_LENGTH_MAX`] jobs are queued, plus priority jobs; further callers wait, first
//!   come, first served. Helpers have at most one remainder queued for each of them.
//! - A job that is not shared begins only after all remainders of earlier jobs have ended. So a
//!   shared job must not change what remainders read.
//! - Threads sleep while there is no work, and end after the last handle.
//! - A job that arrives during `on_idle` waits for one step of it.
//! - With a limit for hangs, no caller waits for a thread that has ended no job for that time. The
//!   jobs stay in their order, and are done if the resource recovers.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};

/// Maximum number of queued jobs of one worker, without priority jobs.
const QUEUE_LENGTH_MAX: usize = 256;

/// State that a worker owns.
pub(crate) trait WorkerState: Send + 'static {
    /// Idle time before [`WorkerState::on_idle`] is called.
    const IDLE: Duration = Duration::from_secs(5);

    /// Performs one step of deferred work; returns true if there is more.
    fn on_idle(&mut self) -> bool {
        false
    }
}

enum Job<C> {
    Alone(Work<C, ()>),
    /// As `Alone`, but may run before queued jobs.
    Priority(Work<C, ()>),
    Shared(Work<C, Option<Remainder>>),
}

type Work<C, R> = Box<dyn FnOnce(&mut C) -> R + Send>;
type Remainder = Box<dyn FnOnce() + Send>;

/// Result of a shared job.
pub(crate) enum Step<R> {
    /// The job is done.
    Done(R),
    /// Remaining work, for a helper.
    Remainder(Box<dyn FnOnce() -> R + Send>),
}

/// Handle to the thread that owns a `C`.
pub(crate) struct Worker<C> {
    jobs: Sender<Job<C>>,
    permits: Arc<Semaphore>,
    progress: Arc<Progress>,
    /// Time without progress after which callers wait no longer.
    hang_limit: Option<Duration>,
    one_thread: std::marker::PhantomData<Rc<()>>,
}

/// Reason for which a job has no result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorkerFailure {
    /// The job has panicked, and perhaps ended the worker's thread.
    Gone,
    /// The worker has ended no job for this time. The job may still be done.
    Hangs(Duration),
}

/// Progress of a worker.
struct Progress {
    began: Instant,
    /// Number of jobs that have not ended.
    unfinished: AtomicUsize,
    /// Time of the last end of a job, or of the first job after a rest; in ns since `began`.
    last_ns: AtomicU64,
}

/// A job that has not ended, also if it is dropped.
struct Unfinished(Arc<Progress>);

impl Progress {
    fn begin(progress: &Arc<Self>) -> Unfinished {
        if progress.unfinished.fetch_add(1, Ordering::SeqCst) == 0 {
            progress.note();
        }
        Unfinished(Arc::clone(progress))
    }

    fn note(&self) {
        self.last_ns.store(self.began.elapsed().as_nanos() as u64, Ordering::SeqCst);
    }

    /// Returns the time since the last progress, or nothing at rest.
    fn silence(&self) -> Duration {
        let last = Duration::from_nanos(self.last_ns.load(Ordering::SeqCst));
        match self.unfinished.load(Ordering::SeqCst) {
            0 => Duration::ZERO,
            _ => self.began.elapsed().saturating_sub(last),
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.0.note();
        self.0.unfinished.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<C: WorkerState> Worker<C> {
    /// Starts a thread called `name` that owns `context`, with `helpers` helper threads. With a
    /// limit for hangs, its callers need a runtime with a clock.
    pub(crate) fn start(
        name: &str,
        mut context: C,
        helpers: usize,
        hang_limit: Option<Duration>,
    ) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job<C>>();
        let helpers = Helpers::start(name, helpers)?;
        std::thread::Builder::new().name(name.into()).spawn(move || {
            let (mut idle_timeout, mut waiting) = (None, JobQueue::default());
            loop {
                waiting.take_in(queue.try_iter());
                let next = match (waiting.next(), idle_timeout) {
                    (Some(job), _) => Ok(job),
                    (None, Some(timeout)) => queue.recv_timeout(timeout),
                    (None, None) => queue.recv().map_err(RecvTimeoutError::from),
                };
                idle_timeout = Some(C::IDLE);
                match next {
                    Ok(Job::Alone(job) | Job::Priority(job)) => {
                        helpers.wait();
                        job(&mut context);
                    }
                    Ok(Job::Shared(job)) => {
                        job(&mut context).into_iter().for_each(|remainder| helpers.add(remainder))
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        helpers.wait();
                        idle_timeout = context.on_idle().then_some(Duration::ZERO);
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            // The context must outlive the helpers' use of it.
            helpers.wait();
        })?;
        let permits = Arc::new(Semaphore::new(QUEUE_LENGTH_MAX));
        let (unfinished, last_ns) = (AtomicUsize::new(0), AtomicU64::new(0));
        let progress = Arc::new(Progress { began: Instant::now(), unfinished, last_ns });
        Ok(Self { jobs, permits, progress, hang_limit, one_thread: std::marker::PhantomData })
    }

    /// Executes `work` and returns its result. When the caller stops waiting, the work may still be
    /// done; its result is dropped.
    pub(crate) async fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut C) -> R + Send + 'static,
    ) -> Result<R, WorkerFailure> {
        self.queue(|finish| Job::Alone(Box::new(|context| finish(work(context))))).await
    }

    /// Executes `work` as a priority job: it does not wait for queued jobs, and must not depend on
    /// them.
    pub(crate) async fn call_with_priority<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut C) -> R + Send + 'static,
    ) -> Result<R, WorkerFailure> {
        self.unless_it_hangs(async { self.start_with_priority(work).await }).await
    }

    /// Queues `work` as a priority job at once, and returns its end.
    pub(crate) fn start_with_priority<R: Send + 'static, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<R, WorkerFailure>> + use<C, R, F>
    where
        F: FnOnce(&mut C) -> R + Send + 'static,
    {
        let (reply, result) = oneshot::channel();
        let unfinished = Progress::begin(&self.progress);
        let job = move |context: &mut C| {
            let done = work(context);
            drop(unfinished);
            // The caller may have stopped waiting.
            let _ = reply.send(done);
        };
        let sent = self.jobs.send(Job::Priority(Box::new(job))).map_err(|_| WorkerFailure::Gone);
        async move {
            sent?;
            result.await.map_err(|_| WorkerFailure::Gone)
        }
    }

    /// Executes `work`, which may leave a remainder for a helper. Later shared jobs do not wait for
    /// the remainder.
    pub(crate) async fn call_shared<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut C) -> Step<R> + Send + 'static,
    ) -> Result<R, WorkerFailure> {
        self.queue(|finish| {
            Job::Shared(Box::new(|context| match work(context) {
                Step::Done(done) => {
                    finish(done);
                    None
                }
                Step::Remainder(remainder) => Some(Box::new(|| finish(remainder()))),
            }))
        })
        .await
    }

    async fn queue<R: Send + 'static>(
        &self,
        job: impl FnOnce(Box<dyn FnOnce(R) + Send>) -> Job<C>,
    ) -> Result<R, WorkerFailure> {
        self.unless_it_hangs(async {
            let permits = Arc::clone(&self.permits);
            let permit = permits.acquire_owned().await.map_err(|_| WorkerFailure::Gone)?;
            let (reply, result) = oneshot::channel();
            let unfinished = Progress::begin(&self.progress);
            let finish = Box::new(move |done| {
                drop((permit, unfinished));
                // The caller may have stopped waiting.
                let _ = reply.send(done);
            });
            self.jobs.send(job(finish)).map_err(|_| WorkerFailure::Gone)?;
            result.await.map_err(|_| WorkerFailure::Gone)
        })
        .await
    }

    /// Waits for a job, unless the worker makes no progress for the limit. A job that comes while
    /// the worker hangs is not queued.
    async fn unless_it_hangs<R>(
        &self,
        job: impl Future<Output = Result<R, WorkerFailure>>,
    ) -> Result<R, WorkerFailure> {
        let Some(limit) = self.hang_limit else { return job.await };
        let mut job = pin!(job);
        loop {
            let silence = self.progress.silence();
            if silence >= limit {
                return Err(WorkerFailure::Hangs(limit));
            }
            if let Ok(done) = tokio::time::timeout(limit - silence, job.as_mut()).await {
                return done;
            }
        }
    }
}

/// Queued jobs.
struct JobQueue<C> {
    priority: VecDeque<Job<C>>,
    others: VecDeque<Job<C>>,
    /// True if the last job was a priority job, so the next one is not, if there is another.
    was_priority: bool,
}

impl<C> Default for JobQueue<C> {
    fn default() -> Self {
        Self { priority: VecDeque::new(), others: VecDeque::new(), was_priority: false }
    }
}

impl<C> JobQueue<C> {
    fn take_in(&mut self, jobs: impl Iterator<Item = Job<C>>) {
        for job in jobs {
            match job {
                Job::Priority(_) => self.priority.push_back(job),
                Job::Alone(_) | Job::Shared(_) => self.others.push_back(job),
            }
        }
    }

    fn next(&mut self) -> Option<Job<C>> {
        let is_others_turn =
            self.priority.is_empty() || self.was_priority && !self.others.is_empty();
        self.was_priority = !is_others_turn;
        if is_others_turn { self.others.pop_front() } else { self.priority.pop_front() }
    }
}

/// Helper threads of one worker.
struct Helpers {
    remainders: SyncSender<Remainder>,
    shared: Arc<InFlight>,
}

/// Number of remainders that have not ended.
#[derive(Default)]
struct InFlight {
    count: Mutex<usize>,
    none: Condvar,
}

impl Helpers {
    fn start(name: &str, count: usize) -> std::io::Result<Self> {
        let (remainders, queue) = mpsc::sync_channel(count);
        let queue = Arc::new(Mutex::new(queue));
        let shared = Arc::<InFlight>::default();
        for _ in 0..count {
            let (queue, shared) = (Arc::clone(&queue), Arc::clone(&shared));
            let helper = std::thread::Builder::new().name(format!("{name} helper"));
            helper.spawn(move || help(&queue, &shared))?;
        }
        Ok(Self { remainders, shared })
    }

    fn add(&self, remainder: Remainder) {
        self.shared.add(1);
        let sent = self.remainders.send(remainder);
        assert!(sent.is_ok(), "a worker whose jobs leave remainders has helpers");
    }

    fn wait(&self) {
        let count = self.shared.count.lock().unwrap_or_else(PoisonError::into_inner);
        let none = self.shared.none.wait_while(count, |count| *count > 0);
        drop(none);
    }
}

impl InFlight {
    fn add(&self, more: usize) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += more;
    }

    fn ended(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count == 0 {
            self.none.notify_all();
        }
    }
}

fn help(queue: &Mutex<Receiver<Remainder>>, shared: &InFlight) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(remainder) = next else { return };
        // A remainder that panics drops its channel, which notifies its caller.
        let _ = catch_unwind(AssertUnwindSafe(remainder));
        shared.ended();
    }
}

#[cfg(test)]
mod tests {
    //! Proves: helpers run in parallel, and later exclusive jobs wait for them; priority jobs
    //! alternate with queued ones.

    use super::*;
    use futures_util::FutureExt;
    use futures_util::future::join_all;
    use std::pin::pin;
    use std::sync::atomic::AtomicU32;
    use std::sync::mpsc::channel;

    /// Limit for hangs in tests.
    const HANG_LIMIT: Duration = Duration::from_millis(200);

    #[test]
    fn a_worker_that_hangs_keeps_nobody_waiting() {
        // Proves: the job that hangs, those behind it and later ones fail after the limit, and
        // another worker goes on. When it recovers, queued jobs were done and new ones are.
        let start = || Worker::start("test", 0_u32, 0, Some(HANG_LIMIT)).expect("it has threads");
        let (worker, other) = (start(), start());
        let (go, may_go) = channel::<()>();
        let (begin, has_begun) = channel();
        let hangs = WorkerFailure::Hangs(HANG_LIMIT);
        run(async {
            let mut first = pin!(worker.call(move |_| {
                begin.send(()).expect("the test waits for it");
                may_go.recv_timeout(TIMEOUT).is_ok()
            }));
            assert!(first.as_mut().now_or_never().is_none());
            has_begun.recv_timeout(TIMEOUT).expect("nothing is before it");
            let add = |count: &mut u32| {
                *count += 1;
                true
            };
            let (second, urgent) = (worker.call(add), worker.call_with_priority(add));
            let shared = worker.call_shared(move |count| Step::Done(add(count)));
            let ended = tokio::join!(first, second, urgent, shared);
            assert_eq!(ended, (Err(hangs), Err(hangs), Err(hangs), Err(hangs)));
            assert_eq!(worker.call(add).await, Err(hangs), "it is not queued");
            assert_eq!(other.call(|_| 7).await, Ok(7));
            go.send(()).expect("the first job waits for it");
            let count = loop {
                match worker.call(|count| *count).await {
                    Ok(count) => break count,
                    Err(_) => std::thread::yield_now(),
                }
            };
            assert_eq!(count, 3);
        });
    }

    impl WorkerState for () {}

    impl WorkerState for u32 {}

    /// State that reports its idle steps, of which there are two.
    struct IdleSteps(u32, Sender<u32>);

    impl WorkerState for IdleSteps {
        const IDLE: Duration = Duration::from_millis(100);

        fn on_idle(&mut self) -> bool {
            self.0 += 1;
            let told = self.1.send(self.0);
            told.is_ok() && self.0 < 2
        }
    }

    #[test]
    fn idle_worker_finishes_idle_steps_once() {
        let (tells, told) = channel();
        let worker =
            Worker::start("test", IdleSteps(0, tells), 0, None).expect("a test can have threads");
        assert!(
            told.recv_timeout(3 * IdleSteps::IDLE).is_err(),
            "no job has run that could leave idle steps"
        );
        run(worker.call(|_| ())).expect("it is done");
        assert_eq!(told.recv_timeout(TIMEOUT), Ok(1));
        assert_eq!(told.recv_timeout(TIMEOUT), Ok(2));
        assert!(told.recv_timeout(3 * IdleSteps::IDLE).is_err(), "no step is left");
    }

    /// Upper bound for a wait that must end.
    const TIMEOUT: Duration = Duration::from_secs(60);

    fn run<R>(future: impl Future<Output = R>) -> R {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a test can have one").block_on(future)
    }

    #[test]
    fn rests_run_beside_each_other_and_what_comes_later_waits_for_them() {
        let worker = Worker::start("test", 0_u32, 2, None).expect("a test can have threads");
        let ended = Arc::new(AtomicU32::new(0));
        // Each remainder ends only after the other has begun.
        let shared = |arrive: Sender<()>, meet: Receiver<()>| {
            let ended = Arc::clone(&ended);
            worker.call_shared(move |begun| {
                *begun += 1;
                let order = *begun;
                Step::Remainder(Box::new(move || {
                    let met = arrive.send(()).is_ok() && meet.recv_timeout(TIMEOUT).is_ok();
                    ended.fetch_add(1, Ordering::SeqCst);
                    (order, met)
                }))
            })
        };
        let ((to_first, at_first), (to_second, at_second)) = (channel(), channel());
        let (first, second) = (shared(to_second, at_first), shared(to_first, at_second));
        let seen = Arc::clone(&ended);
        let alone = worker.call(move |begun| (*begun, seen.load(Ordering::SeqCst)));
        let (first, second, alone) = run(async { tokio::join!(first, second, alone) });
        assert_eq!((first.ok(), second.ok()), (Some((1, true)), Some((2, true))));
        assert_eq!(alone.ok(), Some((2, 2)));
    }

    #[test]
    fn priority_jobs_alternate_with_queued_jobs() {
        let worker = Worker::start("test", 0_u32, 0, None).expect("a test can have threads");
        let ((go, may_go), (begins, has_begun)) = (channel::<()>(), channel::<()>());
        let mut first =
            pin!(worker.call(move |_| {
                begins.send(()).is_ok() && may_go.recv_timeout(TIMEOUT).is_ok()
            }));
        let count = |counted: &mut u32| {
            *counted += 1;
            *counted
        };
        let mut others = pin!(join_all((0..3).map(|_| worker.call(count))));
        let mut priority = pin!(join_all((0..3).map(|_| worker.call_with_priority(count))));
        assert!(first.as_mut().now_or_never().is_none());
        has_begun.recv_timeout(TIMEOUT).expect("nothing is before it");
        assert!(others.as_mut().now_or_never().is_none());
        assert!(priority.as_mut().now_or_never().is_none());
        go.send(()).expect("it waits for that");
        let (first, others, priority) = run(async { (first.await, others.await, priority.await) });
        assert_eq!(first.ok(), Some(true));
        let numbers =
            |all: Vec<Result<u32, WorkerFailure>>| all.into_iter().flatten().collect::<Vec<_>>();
        assert_eq!((numbers(priority), numbers(others)), (vec![1, 3, 5], vec![2, 4, 6]));
    }

    #[test]
    fn a_rest_that_panics_is_told_and_stops_nobody() {
        let worker = Worker::start("test", (), 1, None).expect("a test can have threads");
        run(async {
            let panics = |_: &mut ()| Step::<u32>::Remainder(Box::new(|| panic!("on purpose")));
            assert!(worker.call_shared(panics).await.is_err());
            assert_eq!(worker.call(|_| 7).await.ok(), Some(7));
            let goes_on = |_: &mut ()| Step::Remainder(Box::new(|| 8));
            assert_eq!(worker.call_shared(goes_on).await.ok(), Some(8));
        });
    }
}
