//! SIGINT, SIGTERM and SIGHUP at each stage of a job.
//!
//! Slurm ends a job by SIGTERM to every process of it, the program too, and by SIGKILL after a
//! time. Such a SIGTERM is not sent to the program again, which Open MPI would take for a demand to
//! end at once. Nor does it end a copy, which goes on as long as there is time.

use super::slurm::{SlurmJob, kill_wait};
use client::{Instance, clean_up_and_exit};
use interface::{ExitCode, UserError};
use rustix::process::{Signal, pidfd_send_signal};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::signal::unix::{SignalKind, signal};

/// Receiver of the signals that would end this process.
#[derive(Clone)]
pub struct Signals(Arc<Mutex<State>>);

struct State {
    target: Target,
    /// Signals that came while they were held.
    held: Vec<Signal>,
    /// Number of signals that the program was sent.
    forwarded: usize,
    /// The Slurm job, until it ends.
    job: Option<SlurmJob>,
}

/// Share of the time from SIGTERM to SIGKILL after which the program is killed, so that its files
/// can be copied.
const PROGRAM_SHARE: f64 = 0.65;

/// Share of that time after which the servers stop, which takes them some seconds at most.
const COPY_SHARE: f64 = 0.85;

/// Last words of a run that was interrupted.
const STOPPED: &str = "unisono: the servers have stopped";

/// Effect of a signal.
enum Target {
    /// Ends this process, and all that it has started, and removes all that it has made.
    CleanUp,
    /// Waits: a program is being started.
    Hold,
    /// Goes to the program.
    Program(Arc<OwnedFd>),
    /// Stops the servers of the instance in good order and ends this process. Data stays.
    Stop(Instance, String),
}

impl Signals {
    /// Catches the signals from now on. They end this process, with what it has started.
    ///
    /// # Errors
    /// Fails when the system refuses.
    pub fn catch() -> Result<Self, UserError> {
        let (target, job) = (Target::CleanUp, SlurmJob::own());
        let state = State { target, held: Vec::new(), forwarded: 0, job };
        let signals = Self(Arc::new(Mutex::new(state)));
        let (own, (sender, ready)) = (signals.clone(), channel());
        std::thread::spawn(move || own.listen(&sender));
        let answer = ready.recv().unwrap_or_else(|error| Err(error.to_string()));
        answer.map_err(|cause| {
            UserError::new(
                ExitCode::Failed,
                "cannot prepare for Ctrl-C",
                cause,
                "start unisono from an ordinary shell",
            )
        })?;
        Ok(signals)
    }

    /// Receives signals for ever; says when it begins.
    fn listen(&self, ready: &Sender<Result<(), String>>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => return drop(ready.send(Err(error.to_string()))),
        };
        runtime.block_on(async {
            let streams = (
                signal(SignalKind::interrupt()),
                signal(SignalKind::terminate()),
                signal(SignalKind::hangup()),
            );
            let (mut interrupt, mut terminate, mut hangup) = match streams {
                (Ok(interrupt), Ok(terminate), Ok(hangup)) => (interrupt, terminate, hangup),
                (one, two, three) => {
                    let error = [one.err(), two.err(), three.err()].into_iter().flatten().next();
                    let cause = error.map_or_else(String::new, |error| error.to_string());
                    return drop(ready.send(Err(cause)));
                }
            };
            let _ = ready.send(Ok(()));
            loop {
                let signal = tokio::select! {
                    _ = interrupt.recv() => Signal::INT,
                    _ = terminate.recv() => Signal::TERM,
                    _ = hangup.recv() => Signal::HUP,
                };
                self.act(signal);
            }
        });
    }

    fn act(&self, signal: Signal) {
        let mut state = self.state();
        let is_busy = matches!(state.target, Target::Program(_) | Target::Stop(..));
        if signal == Signal::TERM
            && is_busy
            && let Some(job) = state.job.take()
        {
            // Slurm may take its time to answer.
            let own = self.clone();
            std::thread::spawn(move || own.act_in_job(job));
        } else {
            state.act(signal);
        }
    }

    /// Acts on a SIGTERM in a Slurm job.
    fn act_in_job(&self, job: SlurmJob) {
        let begun = Instant::now();
        if !job.is_ending() {
            let mut state = self.state();
            state.act(Signal::TERM);
            state.job = Some(job);
            return;
        }
        self.state().forwarded += 1;
        let time = kill_wait();
        let wait_for = |share: f64| {
            let then = begun + time.mul_f64(share);
            std::thread::sleep(then.saturating_duration_since(Instant::now()));
        };
        wait_for(PROGRAM_SHARE);
        if let Target::Program(program) = &self.state().target {
            let _ = pidfd_send_signal(program, Signal::KILL);
        }
        wait_for(COPY_SHARE);
        let mut state = self.state();
        if matches!(state.target, Target::Stop(..)) {
            state.act(Signal::TERM);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of signals that the program was sent.
    pub fn forwarded(&self) -> usize {
        self.state().forwarded
    }

    /// Holds signals back until they are sent somewhere.
    pub(super) fn hold(&self) {
        self.set(Target::Hold);
    }

    /// Sends signals to a program from now on, those that were held first.
    pub(super) fn forward_to(&self, program: &Arc<OwnedFd>) {
        let held = self.set(Target::Program(Arc::clone(program)));
        held.into_iter().for_each(|signal| self.act(signal));
    }

    /// Makes a signal stop the servers of an instance in good order and end this process with
    /// exit code 130. `message` is printed first.
    pub fn stop_on_signal(&self, instance: &Instance, message: String) {
        self.set(Target::Stop(instance.clone(), message));
    }

    fn set(&self, target: Target) -> Vec<Signal> {
        let mut state = self.state();
        state.target = target;
        std::mem::take(&mut state.held)
    }
}

impl State {
    /// Acts on a signal that is not held.
    fn act(&mut self, signal: Signal) {
        match &self.target {
            Target::CleanUp => clean_up_and_exit(
                130,
                "unisono: interrupted; started processes were ended and their files were removed",
            ),
            Target::Hold => self.held.push(signal),
            Target::Program(program) => {
                // The terminal sends Ctrl-C to the program, too. Twice would abort an mpiexec.
                if signal != Signal::INT || !is_in_foreground() {
                    let _ = pidfd_send_signal(program, signal);
                }
                self.forwarded += 1;
            }
            Target::Stop(instance, message) => {
                if instance.read().is_ok() {
                    // First: there may be no time to wait for a server that is lost.
                    let _ = writeln!(std::io::stderr(), "{message}");
                }
                // The run may have been stopping them, and has done so while this one waited.
                let stopped = crate::stop(instance).err().filter(|_| instance.read().is_ok());
                let end = stopped.map_or_else(|| STOPPED.to_owned(), |error| error.to_string());
                clean_up_and_exit(130, &end);
            }
        }
    }
}

/// True if this process is in the foreground group of its terminal, which then sends Ctrl-C to the
/// whole group.
fn is_in_foreground() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(')') else { return false };
    // Fields 5 and 8 of proc_pid_stat(5): the process group, and that of the terminal.
    let fields: Vec<&str> = rest.split_whitespace().collect();
    matches!((fields.get(2), fields.get(5)), (Some(own), Some(foreground)) if own == foreground)
}
