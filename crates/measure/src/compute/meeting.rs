//! A barrier that can end: those that wait for a thread that has left go on, too.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Barrier of a number of threads. A thread that waits leaves its core to others.
pub(super) struct Meeting {
    members: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    arrived: usize,
    /// Number of times that all have met.
    met: u64,
    has_ended: bool,
}

impl Meeting {
    /// Returns a barrier of so many threads.
    pub(super) fn of(members: usize) -> Self {
        Self { members, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Waits until all members have come. Returns `false` once the meeting has ended.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.lock();
        if state.has_ended {
            return false;
        }
        state.arrived += 1;
        if state.arrived == self.members {
            state.arrived = 0;
            state.met += 1;
            self.changed.notify_all();
            return true;
        }
        let met = state.met;
        while state.met == met && !state.has_ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.met > met
    }

    /// Ends all waits, now and later.
    pub(super) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_all();
    }

    /// A thread that panics leaves the numbers whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    //! Proves: nobody passes a barrier before all have come, and its end lets those go who wait.
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn all_meet() {
        let meeting = Arc::new(Meeting::of(3));
        let arrivals: Arc<[AtomicU64; 100]> = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let thread = |_| {
            let (meeting, arrivals) = (Arc::clone(&meeting), Arc::clone(&arrivals));
            std::thread::spawn(move || {
                for arrived in arrivals.iter() {
                    arrived.fetch_add(1, Ordering::SeqCst);
                    assert!(meeting.wait());
                    assert_eq!(arrived.load(Ordering::SeqCst), 3);
                }
            })
        };
        let threads: Vec<_> = (0..3).map(thread).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let waiting = {
            let meeting = Arc::clone(&meeting);
            std::thread::spawn(move || meeting.wait())
        };
        meeting.end();
        assert!(!waiting.join().unwrap());
        assert!(!meeting.wait());
    }
}
