//! The machine under one rank.

use policy::{Access, Direction, OwnPart};
use std::future::Future;
use std::sync::Arc;
use units::{Duration, Instant};

/// Messages from one rank to another that are received in the order in which they were sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Stream {
    /// Number of the communicator, equal at all members.
    pub communicator: u32,
    /// Tag of the program; negative for the messages of a collective operation.
    pub tag: i64,
    /// Purpose of the messages.
    pub manner: Manner,
}

/// Purpose of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Manner {
    /// It is the data.
    Data,
    /// It asks the receiver to be ready for data.
    Ask,
    /// It tells the sender that the receiver is ready.
    Ready,
}

/// File that a rank opens together with others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenedFile {
    /// Name that the program gave.
    pub name: String,
    /// Ranks that open it, in the order of their communicator.
    pub members: Arc<[u32]>,
    /// Place of this rank among them.
    pub place: u32,
    /// Number of the open call, equal at all members and no other's.
    pub number: u64,
    /// True when the file may be made.
    pub creates: bool,
    /// True when the file is to be empty.
    pub is_fresh: bool,
}

/// Transfer between a file and memory of a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Direction.
    pub direction: Direction,
    /// True when all that opened the file make the transfer together.
    pub is_collective: bool,
    /// True when the rank does nothing else until its end.
    pub is_blocking: bool,
    /// Data that this rank moves.
    pub part: OwnPart,
    /// Access that the parts of all members make up, if the program knows it as one rule.
    pub rule: Option<Arc<Access>>,
}

/// Operation in which all ranks meet and exchange nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meeting {
    /// The program begins.
    Begin,
    /// A barrier of all ranks.
    Barrier,
    /// The program ends.
    End,
}

/// The machine under one rank: computation, messages to other ranks, and files.
///
/// Futures of messages and transfers begin when they are first polled, and need not be polled while
/// the rank computes.
pub trait Rank {
    /// Open file.
    type File;
    /// Failure of a call.
    type Error;
    /// Message or transfer under way.
    type Call: Future<Output = Result<(), Self::Error>> + 'static;

    /// Returns the present instant.
    fn now(&self) -> Instant;

    /// Computes for a processor time.
    fn compute(&self, time: Duration) -> impl Future<Output = ()>;

    /// Lets time pass without computing.
    fn block(&self, time: Duration) -> impl Future<Output = ()>;

    /// Sends a message of `bytes` bytes to another rank. Ends when the message needs nothing more
    /// of the sender.
    fn send(&self, to: u32, stream: Stream, bytes: u64) -> Self::Call;

    /// Receives the next message of a stream.
    fn receive(&self, from: u32, stream: Stream) -> Self::Call;

    /// Waits for messages in the way of the program's MPI library, which may use a processor
    /// meanwhile.
    fn wait_for_messages<T>(&self, messages: impl Future<Output = T>) -> impl Future<Output = T> {
        messages
    }

    /// Lets all ranks meet by a means of the machine's own. `None` where they meet by messages.
    fn meet_all(&self, _meeting: Meeting) -> Option<Self::Call> {
        None
    }

    /// Opens a file together with its other members.
    fn open(&self, file: OpenedFile) -> impl Future<Output = Result<Self::File, Self::Error>>;

    /// Closes a file together with its other members.
    fn close(&self, file: Self::File) -> impl Future<Output = Result<(), Self::Error>>;

    /// Begins a transfer. The order of the calls is that of collective transfers.
    fn transfer(&self, file: &Self::File, transfer: Transfer) -> Self::Call;

    /// Brings written data of a file to stable storage, together with its other members.
    fn sync(&self, file: &Self::File) -> impl Future<Output = Result<(), Self::Error>>;

    /// Sets the size of a file, together with its other members. With `only_grows` the file never
    /// becomes shorter.
    fn set_size(
        &self,
        file: &Self::File,
        bytes: u64,
        only_grows: bool,
    ) -> impl Future<Output = Result<(), Self::Error>>;

    /// Asks for the size of a file.
    fn get_size(&self, file: &Self::File) -> impl Future<Output = Result<(), Self::Error>>;

    /// Deletes a file. It is no error if it does not exist.
    fn delete(&self, name: &str) -> impl Future<Output = Result<(), Self::Error>>;

    /// Notes that a call has ended, for a timeline.
    fn note(&self, _operation: &trace::Operation, _from: Instant, _until: Instant) {}
}
