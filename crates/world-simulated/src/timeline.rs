//! The trace of a simulation: slices of tracks, and arrows between causes and effects.
//!
//! Without a [`Recorder`] given to the [`Engine`](crate::Engine) nothing is reported.
//!
//! Invariant: a recorder changes nothing. It sets no timer and draws no random number, so a
//! simulation is the same with it and without.

use crate::models::disk_model::{Activity, Phase};
use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;
use std::ops::Range;
use std::rc::Rc;
use units::Instant;

/// Receiver of a trace.
pub trait Recorder {
    /// Receives a slice of a track. Slices come when their length is known, so not always in the
    /// order of their beginnings, and some end in the future. Returning `None` leaves the slice
    /// out: nothing is stored for it.
    fn slice(&mut self, slice: &Slice<'_>) -> Option<Mark>;

    /// Receives an arrow from the cause `from` to the effect `to`; either slice may have been left
    /// out.
    fn arrow(&mut self, link: Link, from: Mark, to: Mark);
}

/// A recorder, shared between a machine and its observer.
pub type SharedRecorder = Rc<RefCell<dyn Recorder>>;

/// One busy interval of a track.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    /// Track on which it lies.
    pub track: Track,
    /// Its beginning.
    pub from: Instant,
    /// Its end, which may be in the future.
    pub until: Instant,
    /// The activity.
    pub what: What,
    /// Its parts, without gaps from `from` to `until`; empty if it has none.
    pub phases: &'a [Phase],
}

/// A resource that does one thing after another. Only commands overlap, on a disk that takes
/// several at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Track {
    /// The transfer that is measured.
    Transfer,
    /// The processor of a node.
    Processor(u32),
    /// The bus whose first disk has this number, counted over the machine.
    Bus(u32),
    /// The commands of a disk, by its number over the machine.
    Commands(u32),
    /// The arm and the medium of a disk.
    Mechanism(u32),
    /// The calls of a rank of a program.
    Rank(u32),
}

/// Activity of a slice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// The transfer, from its first client's start to its last client's end.
    Transfer,
    /// A processor sent a message.
    Send {
        /// Receiving node.
        to: u32,
        /// Bytes on the network.
        bytes: u64,
    },
    /// A processor received a message.
    Receive {
        /// Bytes on the network.
        bytes: u64,
    },
    /// A processor sent data into the memory of a node.
    Put {
        /// Receiving node.
        to: u32,
        /// Pieces of data.
        pieces: u64,
        /// Bytes in all of them.
        bytes: u64,
    },
    /// A processor requested data from the memory of a node.
    Get {
        /// Node that owns the memory.
        from: u32,
        /// Pieces of data.
        pieces: u64,
        /// Bytes in all of them.
        bytes: u64,
    },
    /// A processor sent the data that a node requested.
    GetAnswer {
        /// Requesting node.
        to: u32,
        /// Bytes of data.
        bytes: u64,
    },
    /// A processor did work of the program.
    Compute,
    /// A rank was in a call.
    Call {
        /// Name of the call.
        name: &'static str,
    },
    /// A bus connected to a disk, and carried a command or data.
    Bus {
        /// Number of the disk, counted over the machine.
        disk: u32,
        /// Bytes of data; none for a command.
        bytes: Option<u64>,
    },
    /// A disk carried out a command.
    Command {
        /// True for a read.
        reads: bool,
        /// Sectors read or written.
        sectors: Range<u64>,
        /// False if the host cancelled the command.
        is_complete: bool,
    },
    /// The arm or the medium of a disk moved.
    Motion {
        /// Kind of motion.
        activity: Activity,
        /// Sectors that passed the head; empty, at the target, for a move of the arm.
        sectors: Range<u64>,
    },
}

/// Kind of cause that an arrow shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// From the sending to the receipt of a message.
    Message,
    /// From a memget to the answer of the other node.
    Get,
    /// From the receipt of a request to a disk command that it caused.
    Request,
    /// From a disk command to the answer that was sent after it.
    Answer,
}

/// Name that a recorder gives to a slice, so that arrows can begin and end there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The recorder's own number of the track.
    pub track: u32,
    /// Beginning of the slice.
    pub from: Instant,
    /// End of the slice.
    pub until: Instant,
}

/// Number of a recorded slice in the [`Timeline`]. It is small, because every message and task
/// carries one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MarkId(NonZeroU32);

impl MarkId {
    /// Stands for all slices that the recorder left out.
    const LEFT_OUT: Self = Self(NonZeroU32::MAX);
}

/// Largest number of slices that are stored: all values of a number but the last.
const MARKS_MAX: usize = u32::MAX as usize - 1;

/// Cause of the actions of a task. A task inherits it from the task that starts it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cause {
    /// Receipt of the message that led to the actions.
    pub(crate) request: Option<MarkId>,
    /// Latest disk command in between.
    pub(crate) command: Option<MarkId>,
}

/// The recorder of a simulation, if there is one, and the cause of the running task.
#[derive(Default)]
pub(crate) struct Timeline {
    is_recorded: Cell<bool>,
    recorder: RefCell<Option<SharedRecorder>>,
    /// The recorder's marks of the slices, by [`MarkId`].
    marks: RefCell<Vec<Mark>>,
    cause: Cell<Cause>,
    /// Causes of the waiting tasks, by their index in the engine's table.
    waiting: RefCell<Vec<Cause>>,
}

impl Timeline {
    /// Creates a timeline that reports to `recorder`.
    pub(crate) fn to(recorder: SharedRecorder) -> Self {
        let (is_recorded, recorder) = (Cell::new(true), RefCell::new(Some(recorder)));
        Self { is_recorded, recorder, ..Self::default() }
    }

    /// True while a recorder listens.
    #[inline]
    pub(crate) fn is_recorded(&self) -> bool {
        self.is_recorded.get()
    }

    /// Ends the recording.
    pub(crate) fn stop(&self) {
        self.is_recorded.set(false);
        self.recorder.borrow_mut().take();
        self.marks.take();
    }

    /// Reports a slice, which is built only if a recorder listens.
    #[inline]
    pub(crate) fn slice<'a>(&self, make: impl FnOnce() -> Slice<'a>) -> Option<MarkId> {
        if self.is_recorded() { self.tell(&make()) } else { None }
    }

    #[cold]
    fn tell(&self, slice: &Slice<'_>) -> Option<MarkId> {
        let mark = self.recorder.borrow().as_ref()?.borrow_mut().slice(slice);
        let mut marks = self.marks.borrow_mut();
        let Some(mark) = mark.filter(|_| marks.len() < MARKS_MAX) else {
            return Some(MarkId::LEFT_OUT);
        };
        marks.push(mark);
        NonZeroU32::new(marks.len() as u32).map(MarkId)
    }

    /// Reports an arrow between two slices, if both are known.
    #[inline]
    pub(crate) fn arrow(&self, link: Link, from: Option<MarkId>, to: Option<MarkId>) {
        if self.is_recorded()
            && let Some((from, to)) = from.zip(to)
            && let Some(recorder) = self.recorder.borrow().as_ref()
        {
            let marks = self.marks.borrow();
            let left_out = Mark { track: 0, from: Instant::START, until: Instant::START };
            let mark = |id: MarkId| marks.get(id.0.get() as usize - 1).copied().unwrap_or(left_out);
            recorder.borrow_mut().arrow(link, mark(from), mark(to));
        }
    }

    /// Cause of the running task; empty without a recorder.
    #[inline]
    pub(crate) fn cause(&self) -> Cause {
        if self.is_recorded() { self.cause.get() } else { Cause::default() }
    }

    /// Stores the present cause for a task that begins to wait.
    #[inline]
    pub(crate) fn task_waits(&self, task: u32) {
        if self.is_recorded() {
            let (mut waiting, task) = (self.waiting.borrow_mut(), task as usize);
            if waiting.len() <= task {
                waiting.resize(task + 1, Cause::default());
            }
            waiting[task] = self.cause.get();
        }
    }

    /// Restores the cause of a task that runs again.
    #[inline]
    pub(crate) fn task_runs(&self, task: u32) {
        if self.is_recorded() {
            self.cause.set(self.waiting.borrow()[task as usize]);
        }
    }

    /// Sets the cause of all further actions of the running task.
    #[inline]
    pub(crate) fn set_cause(&self, cause: Cause) {
        if self.is_recorded() {
            self.cause.set(cause);
        }
    }
}
