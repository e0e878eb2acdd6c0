//! Traces of programs: what each rank asked of MPI and of MPI-IO, and its computation between.
//!
//! A trace is a directory with a [`Header`] and one stream of events for each rank, which a
//! [`Writer`] writes while the program runs. [`Trace::open`] reads it, [`check`] finds
//! contradictions between the ranks. `docs/traces.md` has the format, byte by byte.
//!
//! *Invariants:*
//! - No bytes make reading panic, and nothing is allocated for a length that was not checked.
//! - A stream is readable up to the last whole event, also when its process was killed.

mod btio;
mod check;
mod describe;
mod directory;
mod event;
mod format;
mod header;
mod import;
mod limits;
mod lu;
mod made;
mod paths;
mod pattern;

pub use btio::{BtioClass, BtioMode, BtioProgram};
pub use check::{Communicators, TimingShare, check, communicators, timing_share};
pub use directory::{StreamStart, Trace, stream_starts};
pub use event::{
    Collective, Communicator, Direction, Event, FileNumber, Message, Operation, PartNumber,
    RankTrace, RequestNumber,
};
pub use format::{Placed, Writer};
pub use header::{Header, Recorded, RecordedInstance};
pub use import::{Imported, import_dxt};
pub use limits::{
    COMMUNICATORS_MAX, EVENTS_MAX, FILES_MAX, HEADER_BYTES_MAX, MEMBERS_MAX, PARTS_MAX, RANKS_MAX,
    STREAM_BYTES_MAX, TEXT_BYTES_MAX, WAITED_MAX,
};
pub use lu::LuProgram;
pub use pattern::PatternProgram;
