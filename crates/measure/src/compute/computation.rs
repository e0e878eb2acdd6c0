//! Threads that compute beside servers.
//!
//! Invariant: when a computation is dropped, its threads have ended.

use super::kernel::Kernel;
use super::meeting::Meeting;
use super::progress::Progress;
use crate::accuracy::median;
use crate::span::now_ns;
use cluster::pin_thread;
use interface::{CoreList, ExitCode, UserError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Computing time of each thread between two barriers (TR94-232, section 3.1).
pub(super) const BETWEEN_BARRIERS_MS: u32 = 5;

/// Rounds by which the length of one is found.
const CALIBRATION_ROUNDS: usize = 1_000;

/// Places and priority of the threads.
#[derive(Clone, Debug)]
pub(super) struct Threads {
    /// Cores of each thread: those of its server.
    pub(super) cores: Vec<CoreList>,
    /// Nice value. Servers have 0, and so come first with any higher one.
    pub(super) nice: u32,
}

/// Rounds that each thread computes before it waits for all others; `None` to never wait.
pub(super) type BarrierRounds = Option<u64>;

/// Threads that compute.
pub(super) struct Computation {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Result<Progress, UserError>>>,
}

struct Shared {
    has_ended: AtomicBool,
    /// Start of the work, when every thread has its place.
    start: Meeting,
    barrier: Meeting,
}

impl Computation {
    /// Starts the threads.
    ///
    /// # Errors
    /// Fails when the system does not start one. One that gets no place of its own says so at the
    /// [end](Self::end).
    pub(super) fn start(threads: &Threads, rounds: BarrierRounds) -> Result<Self, UserError> {
        let members = threads.cores.len();
        let shared = Shared {
            has_ended: AtomicBool::new(false),
            // With the thread that starts them.
            start: Meeting::of(members + 1),
            barrier: Meeting::of(members),
        };
        let mut started = Self { shared: Arc::new(shared), threads: Vec::new() };
        for cores in &threads.cores {
            let (shared, cores, nice) = (Arc::clone(&started.shared), cores.clone(), threads.nice);
            let thread = std::thread::Builder::new().name("compute".to_owned());
            let thread = thread.spawn(move || {
                let computed = compute(&shared, &cores, nice, rounds);
                if computed.is_err() {
                    // The others do not wait for it.
                    shared.end();
                }
                computed
            });
            started.threads.push(thread.map_err(|error| cannot_compute(&error.to_string()))?);
        }
        started.shared.start.wait();
        Ok(started)
    }

    /// Ends the threads. Returns the progress of each.
    ///
    /// # Errors
    /// Fails when a thread could not compute as it should, or its result is wrong.
    pub(super) fn end(mut self) -> Result<Vec<Progress>, UserError> {
        self.shared.end();
        let join = |thread: JoinHandle<Result<Progress, UserError>>| {
            thread.join().map_err(|_| cannot_compute("a computing thread panicked"))?
        };
        std::mem::take(&mut self.threads).into_iter().map(join).collect()
    }
}

impl Drop for Computation {
    fn drop(&mut self) {
        self.shared.end();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Shared {
    fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.start.end();
        self.barrier.end();
    }
}

/// Computes on some cores until the end. This is one thread.
fn compute(
    shared: &Shared,
    cores: &CoreList,
    nice: u32,
    rounds: BarrierRounds,
) -> Result<Progress, UserError> {
    settle(cores, nice)?;
    let mut kernel = Kernel::new();
    shared.start.wait();
    let mut progress = Progress::begin();
    let mut since_barrier = 0;
    while !shared.has_ended.load(Ordering::Relaxed) {
        kernel.round();
        since_barrier += 1;
        if !progress.note() {
            break;
        }
        if rounds.is_some_and(|rounds| since_barrier >= rounds) {
            since_barrier = 0;
            if !shared.barrier.wait() {
                break;
            }
        }
    }
    match (kernel.is_right(), progress.is_full()) {
        (false, _) => Err(cannot_compute("the product of its matrices is wrong")),
        (true, false) => Ok(progress),
        (true, true) => Err(UserError::usage(
            "cannot measure a load that takes so long",
            "a transfer takes more than a quarter of an hour",
            "choose a smaller --size, or larger records",
        )),
    }
}

/// Gives the calling thread its cores and its priority.
fn settle(cores: &CoreList, nice: u32) -> Result<(), UserError> {
    pin_thread(cores)?;
    // In Linux a priority is that of the calling thread.
    rustix::process::setpriority_process(None, nice as i32).map_err(|error| {
        UserError::usage(
            format!("cannot compute with nice value {nice}"),
            error.to_string(),
            "choose a --nice value that is not below that of this command",
        )
    })
}

/// Returns the length of a round on some cores without any other load, in seconds, by its median.
pub(super) fn calibrate_round(threads: &Threads) -> Result<f64, UserError> {
    let (cores, nice) = (threads.cores.first().cloned(), threads.nice);
    let measured = std::thread::spawn(move || {
        cores.map_or(Ok(()), |cores| settle(&cores, nice))?;
        let mut kernel = Kernel::new();
        let times = (0..CALIBRATION_ROUNDS).map(|_| {
            let start = now_ns();
            kernel.round();
            (now_ns() - start) as f64 / 1e9
        });
        let times: Vec<f64> = times.collect();
        match kernel.is_right() {
            true => Ok(median(times)),
            false => Err(cannot_compute("the product of its matrices is wrong")),
        }
    });
    measured.join().map_err(|_| cannot_compute("a computing thread panicked"))?
}

/// Returns the number of rounds of the time between two barriers.
pub(super) fn rounds_between_barriers(round_seconds: f64) -> u64 {
    let rounds = f64::from(BETWEEN_BARRIERS_MS) / 1e3 / round_seconds.max(f64::MIN_POSITIVE);
    (rounds.round() as u64).max(1)
}

fn cannot_compute(cause: &str) -> UserError {
    UserError::new(
        ExitCode::Failed,
        "cannot compute beside the servers",
        cause,
        "check that you may start more threads; a wrong product is a defect of the processor",
    )
}

#[cfg(test)]
mod tests {
    //! Proves: threads compute, alike if they meet, and end at once, also while they wait.
    use super::*;
    use crate::span::Span;
    use cluster::allowed_cores;

    fn threads(count: u32) -> Threads {
        let allowed = allowed_cores().unwrap();
        Threads { cores: (0..count).map(|index| allowed.part(index, count)).collect(), nice: 0 }
    }

    /// Rounds of each of two threads, none of which is 0. On a busy machine one may have to wait
    /// for a core, so more time is given until both have had one.
    fn computed(barriers: BarrierRounds) -> Vec<f64> {
        let mut ns = 1_000_000;
        loop {
            let start_ns = now_ns();
            let computation = Computation::start(&threads(2), barriers).unwrap();
            while now_ns() < start_ns + ns {
                std::thread::yield_now();
            }
            let progress = computation.end().unwrap();
            let rounds = progress.iter().map(|one| one.rounds_in(Span::since(start_ns)));
            let rounds: Vec<f64> = rounds.collect();
            if rounds.iter().all(|rounds| *rounds >= 1.0) {
                return rounds;
            }
            ns *= 2;
        }
    }

    #[test]
    fn threads_compute() {
        assert_eq!(computed(None).len(), 2);
        assert!(calibrate_round(&threads(1)).unwrap() > 0.0);
        let met = computed(Some(3));
        assert!((met[0] - met[1]).abs() <= 3.0, "{met:?}");
    }

    #[test]
    fn places_that_are_not_there_are_errors() {
        let nowhere = Threads { cores: vec!["1023".parse().unwrap()], nice: 0 };
        let computation = Computation::start(&nowhere, Some(1)).unwrap();
        assert_eq!(computation.end().err().unwrap().code, ExitCode::Usage);
    }

    #[test]
    fn barriers_are_5_ms_apart() {
        assert_eq!(rounds_between_barriers(50e-6), 100);
        assert_eq!(rounds_between_barriers(1.0), 1);
    }
}
