//! Timers with nanosecond resolution, in the order of their deadlines.
//!
//! The timers of the runtime have a resolution of whole milliseconds, and no order within one.
//!
//! Invariants:
//!
//! - Sleeps end in the order of their deadlines; equal deadlines in the order in which they began.
//! - While no task sleeps, no timer is set.

use crate::network::watch;
use crate::tasks::{self, Task};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use tokio::io::unix::AsyncFd;
use units::{Instant, Timestamp};

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Returns the time since boot. All nodes of a machine share this clock.
pub(crate) fn now() -> Instant {
    let now = clock_gettime(ClockId::Monotonic);
    Instant::from_ns(now.tv_sec as u64 * NS_PER_SECOND + now.tv_nsec as u64)
}

/// Returns the time of day.
pub(crate) fn timestamp() -> Timestamp {
    let now = clock_gettime(ClockId::Realtime);
    Timestamp::from_ns(now.tv_sec as u64 * NS_PER_SECOND + now.tv_nsec as u64)
}

/// Sleeping tasks of one node.
pub(crate) struct Timers {
    queue: Rc<Queue>,
    /// Task that waits for the timer of the system.
    _ringing: Task,
}

struct Queue {
    timer: AsyncFd<OwnedFd>,
    /// Wakers, by deadline, then by start order.
    sleepers: RefCell<BTreeMap<(Instant, u64), Waker>>,
    begun: Cell<u64>,
}

impl Timers {
    /// Returns an empty set of timers.
    pub(crate) fn new() -> io::Result<Rc<Self>> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = watch(timerfd_create(TimerfdClockId::Monotonic, flags)?)?;
        let (sleepers, begun) = (RefCell::default(), Cell::new(0));
        let queue = Rc::new(Queue { timer, sleepers, begun });
        let ringing = Rc::clone(&queue);
        let ringing = tasks::spawn(async move {
            // An error means that the event loop is gone, and with it all sleeping tasks.
            while ringing.ring().await.is_ok() {}
        });
        Ok(Rc::new(Self { queue, _ringing: ringing }))
    }

    /// Returns when `deadline` is reached.
    pub(crate) fn sleep_until(self: &Rc<Self>, deadline: Instant) -> Sleep {
        Sleep { timers: Rc::clone(self), deadline, number: None }
    }
}

impl Queue {
    /// Waits for the timer of the system and wakes the tasks whose deadline has passed.
    async fn ring(&self) -> io::Result<()> {
        let mut ready = self.timer.readable().await?;
        let mut count = [0; 8];
        // If the timer was set again in between, nothing is lost: the clock decides below.
        let _ = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut count)?));
        let now = now();
        let mut sleepers = self.sleepers.borrow_mut();
        let later = sleepers.split_off(&(Instant::from_ns(now.as_ns() + 1), 0));
        let due = std::mem::replace(&mut *sleepers, later);
        drop(sleepers);
        self.set();
        due.into_values().for_each(Waker::wake);
        Ok(())
    }

    /// Sets the timer of the system to the earliest deadline; disarms it when there is none.
    fn set(&self) {
        let sleepers = self.sleepers.borrow();
        // The value 0 disarms the timer, so a deadline of 0, which is past, becomes 1.
        let first = sleepers.keys().next().map_or(0, |(deadline, _)| deadline.as_ns().max(1));
        let it_value = Timespec {
            tv_sec: (first / NS_PER_SECOND) as i64,
            tv_nsec: (first % NS_PER_SECOND) as i64,
        };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval, it_value };
        let set = timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::ABSTIME, &setting);
        assert!(set.is_ok(), "a timer must accept any time after the start of the machine");
    }
}

/// Future of [`Timers::sleep_until`].
pub(crate) struct Sleep {
    timers: Rc<Timers>,
    deadline: Instant,
    number: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let queue = Rc::clone(&self.timers.queue);
        let deadline = self.deadline;
        if let Some(number) = self.number {
            // Completion means removal from the queue and nothing else, so that the order is kept.
            return match queue.sleepers.borrow_mut().get_mut(&(deadline, number)) {
                Some(waker) => {
                    waker.clone_from(context.waker());
                    Poll::Pending
                }
                None => Poll::Ready(()),
            };
        }
        if now() >= deadline {
            return Poll::Ready(());
        }
        let number = queue.begun.get();
        queue.begun.set(number + 1);
        self.number = Some(number);
        queue.sleepers.borrow_mut().insert((deadline, number), context.waker().clone());
        if queue.sleepers.borrow().keys().next() == Some(&(deadline, number)) {
            queue.set();
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            // A timer that fires without a sleeping task is harmless.
            self.timers.queue.sleepers.borrow_mut().remove(&(self.deadline, number));
        }
    }
}
