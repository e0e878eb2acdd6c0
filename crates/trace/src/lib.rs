//! Traces of programs: what each rank asked of MPI and of MPI-IO, and its computation between.

mod event;
mod header;

pub use event::{
    Collective, Communicator, Direction, Event, FileNumber, Message, Operation, PartNumber,
    RankTrace, RequestNumber,
};
pub use header::{Header, Recorded, RecordedInstance};
