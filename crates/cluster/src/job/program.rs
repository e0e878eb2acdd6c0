//! The program of a job.

use super::signals::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::Instant;

/// A program that runs, in the process group of this one, so that it may read from the terminal.
pub struct JobProgram {
    process: Child,
    end: Arc<OwnedFd>,
}

impl JobProgram {
    /// Starts a program. From now on signals go to it.
    ///
    /// # Errors
    /// Fails when the system does not start it.
    pub fn start(command: &mut Command, signals: &Signals) -> io::Result<Self> {
        signals.hold();
        let mut process = command.spawn()?;
        let pid = Pid::from_raw(process.id() as i32).ok_or(Errno::SRCH);
        match pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            Ok(end) => {
                let end = Arc::new(end);
                signals.forward_to(&end);
                Ok(Self { process, end })
            }
            Err(error) => {
                let _ = process.kill();
                let _ = process.wait();
                Err(error.into())
            }
        }
    }

    /// Waits for its end. Returns `false` if the deadline passes first.
    pub fn wait_until(&self, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            match poll(&mut [PollFd::new(&*self.end, PollFlags::IN)], Some(&left)) {
                Err(Errno::INTR) => {}
                ended => return ended == Ok(1),
            }
        }
    }

    /// Asks it to end (SIGTERM).
    pub fn terminate(&self) {
        // It may have ended already.
        let _ = pidfd_send_signal(&self.end, Signal::TERM);
    }

    /// Ends it (SIGKILL).
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.end, Signal::KILL);
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Fails when the system does not tell how it ended.
    pub fn wait(mut self) -> io::Result<ExitStatus> {
        self.process.wait()
    }
}
