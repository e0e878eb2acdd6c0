//! What happens on a machine, told to whoever records it: busy parts of tracks, and what caused
//! what.
//!
//! Nobody listens unless a [`Recorder`] is given to the [`Engine`](crate::Engine). A recorder
//! changes nothing: it sets no timer and draws no number, so a simulation is the same with it and
//! without.

use crate::models::disk_model::{Activity, Phase};
use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;
use std::ops::Range;
use std::rc::Rc;
use units::Instant;

/// Whoever listens to what happens on a machine.
pub trait Recorder {
    /// Something took its time on a track. Slices come when their length is known, so not always
    /// in the order in which they begin; some end in the future. One without a mark is left out:
    /// nothing is remembered of it.
    fn slice(&mut self, slice: &Slice<'_>) -> Option<Mark>;

    /// What `from` stands for led to what `to` stands for; either may have been left out.
    fn arrow(&mut self, link: Link, from: Mark, to: Mark);
}

/// A recorder, shared between a machine and whoever wants to know.
pub type SharedRecorder = Rc<RefCell<dyn Recorder>>;

/// A part of a track.
#[derive(Clone, Debug)]
pub struct Slice<'a> {
    /// Where it happened.
    pub track: Track,
    /// When it began.
    pub from: Instant,
    /// When it ended, or will.
    pub until: Instant,
    /// What it was.
    pub what: What,
    /// Its parts, without gaps from `from` to `until`; empty if it has none.
    pub phases: &'a [Phase],
}

/// Something that does one thing after another. Only the commands of a disk that takes several at
/// once overlap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Track {
    /// The transfer that is measured.
    Transfer,
    /// The processor of a node.
    Processor(u32),
    /// The bus whose first disk has this number, counted over the machine.
    Bus(u32),
    /// The commands of a disk.
    Commands(u32),
    /// What the arm and the medium of a disk do.
    Mechanism(u32),
}

/// What took its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// The transfer, from its first client's start to its last client's end.
    Transfer,
    /// A processor sent a message.
    Send {
        /// To which node.
        to: u32,
        /// Bytes on the network.
        bytes: u64,
    },
    /// A processor took in a message.
    Receive {
        /// Bytes on the network.
        bytes: u64,
    },
    /// A processor sent data into the memory of a node.
    Put {
        /// Which node.
        to: u32,
        /// Pieces of data.
        pieces: u64,
        /// Bytes in all of them.
        bytes: u64,
    },
    /// A processor asked for data from the memory of a node.
    Get {
        /// Which node.
        from: u32,
        /// Pieces of data.
        pieces: u64,
        /// Bytes in all of them.
        bytes: u64,
    },
    /// A processor sent the data that a node asked for.
    GetAnswer {
        /// Which node.
        to: u32,
        /// Bytes of data.
        bytes: u64,
    },
    /// A processor did work of the program.
    Compute,
    /// A bus connected to a disk, and carried a command or data.
    Bus {
        /// Which disk.
        disk: u32,
        /// Bytes of data; none for a command.
        bytes: Option<u64>,
    },
    /// A disk carried out a command.
    Command {
        /// Whether it read.
        reads: bool,
        /// Which sectors.
        sectors: Range<u64>,
        /// Whether it was carried out to its end, or its host lost interest.
        is_complete: bool,
    },
    /// The arm and the medium of a disk.
    Motion {
        /// What they did.
        activity: Activity,
        /// The sectors that passed, or to which the arm moved.
        sectors: Range<u64>,
    },
}

/// Why an arrow leads from one slice to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// A message that was sent and received.
    Message,
    /// A memget, and the other node's part in it.
    Get,
    /// A request that was received, and a disk command that it caused.
    Request,
    /// A disk command, and the answer that was sent after it.
    Answer,
}

/// A slice as its recorder knows it, so that arrows may begin or end there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// The recorder's own number for the track.
    pub track: u32,
    /// When the slice began.
    pub from: Instant,
    /// When it ended.
    pub until: Instant,
}

/// A slice that the recorder was told of: its place among those that the [`Timeline`] remembers.
/// It is small, because everything that moves on a machine carries one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MarkId(NonZeroU32);

impl MarkId {
    /// Any slice that the recorder left out.
    const LEFT_OUT: Self = Self(NonZeroU32::MAX);
}

/// The most slices that are remembered: what a number can tell apart, without the last one.
const MARKS_MAX: usize = u32::MAX as usize - 1;

/// Why a task does what it does. Tasks inherit it from those who start them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cause {
    /// The message that was received and led to it.
    pub(crate) request: Option<MarkId>,
    /// The latest disk command on its way.
    pub(crate) command: Option<MarkId>,
}

/// The recorder of a simulation, if there is one, and the cause of the task that is running.
#[derive(Default)]
pub(crate) struct Timeline {
    is_recorded: Cell<bool>,
    recorder: RefCell<Option<SharedRecorder>>,
    /// What the recorder calls the slices that it was told of.
    marks: RefCell<Vec<Mark>>,
    cause: Cell<Cause>,
    /// Why each task that waits does what it does, by its place in the engine's table.
    waiting: RefCell<Vec<Cause>>,
}

impl Timeline {
    /// Tells `recorder` from now on.
    pub(crate) fn to(recorder: SharedRecorder) -> Self {
        let (is_recorded, recorder) = (Cell::new(true), RefCell::new(Some(recorder)));
        Self { is_recorded, recorder, ..Self::default() }
    }

    /// Whether anybody listens.
    #[inline]
    pub(crate) fn is_recorded(&self) -> bool {
        self.is_recorded.get()
    }

    /// Tells nobody any more.
    pub(crate) fn stop(&self) {
        self.is_recorded.set(false);
        self.recorder.borrow_mut().take();
        self.marks.take();
    }

    /// Tells of a slice, which is made only if anybody listens.
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

    /// Tells of an arrow between two slices, if both are known.
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

    /// Why the running task does what it does; nothing where nobody listens.
    #[inline]
    pub(crate) fn cause(&self) -> Cause {
        if self.is_recorded() { self.cause.get() } else { Cause::default() }
    }

    /// A task waits: whatever it does later has the cause of what runs now.
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

    /// A task that waited runs again.
    #[inline]
    pub(crate) fn task_runs(&self, task: u32) {
        if self.is_recorded() {
            self.cause.set(self.waiting.borrow()[task as usize]);
        }
    }

    /// From here on the running task does what it does because of this.
    #[inline]
    pub(crate) fn set_cause(&self, cause: Cause) {
        if self.is_recorded() {
            self.cause.set(cause);
        }
    }
}
