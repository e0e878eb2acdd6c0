//! Events of a rank: one for each call that it made.

use policy::OwnPart;
use serde::{Deserialize, Serialize};

/// All events of one rank, with the tables that they refer to by number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RankTrace {
    /// Events in the order of the calls.
    pub events: Vec<Event>,
    /// Communicators, by [`Communicator`]: the ranks of MPI_COMM_WORLD that are members, in the
    /// order of their ranks in the communicator. Number 0 is MPI_COMM_WORLD.
    pub communicators: Vec<Vec<u32>>,
    /// Names of files, by [`FileNumber`]. Each open call has a number of its own.
    pub files: Vec<String>,
    /// Parts that transfers move, by [`PartNumber`]. Each begins at byte 0 of the file; of a
    /// distributed array, the array does.
    pub parts: Vec<OwnPart>,
    /// True when the rank was killed, or its stream is cut: events behind the last one are missing.
    pub is_cut: bool,
}

/// One call of a program, and its rank's time since the call before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Processor time since the end of the call before, in nanoseconds.
    pub computed_ns: u64,
    /// Time since the end of the call before in which the rank neither computed nor was ready to
    /// (sleep, local files, sockets), in nanoseconds.
    pub blocked_ns: u64,
    /// Duration of the call as it was recorded, in nanoseconds. A replay does not use it.
    pub took_ns: u64,
    /// True when what the program asked here depends on timing: a wildcard, a test that may fail, a
    /// shared file pointer.
    pub depends_on_timing: bool,
    /// Operation that the program asked for.
    pub operation: Operation,
}

/// Index in [`RankTrace::communicators`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Communicator(pub u32);

/// Index in [`RankTrace::files`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct FileNumber(pub u32);

/// Index in [`RankTrace::parts`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct PartNumber(pub u32);

/// Number of a request of a rank. A number is in use from the event that begins the operation to
/// the [`Operation::Wait`] that names it, and may be used again then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct RequestNumber(pub u32);

/// Message between two ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Communicator.
    pub communicator: Communicator,
    /// The other rank, by its number in MPI_COMM_WORLD; of a received message, the one that sent
    /// it, also when the program named MPI_ANY_SOURCE.
    pub peer: u32,
    /// Tag; of a received message, that of the message.
    pub tag: i32,
    /// Bytes of data that were sent.
    pub bytes: u64,
}

impl Message {
    /// Peer of a received message that is not known: the trace is cut before it came.
    pub const UNKNOWN_PEER: u32 = u32::MAX;
    /// Tag of a received message that is not known.
    pub const UNKNOWN_TAG: i32 = i32::MIN;
}

/// Collective operation of MPI, without those of files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Collective {
    /// MPI_Barrier, and other calls that synchronise without data, such as MPI_Comm_dup.
    Barrier,
    /// MPI_Bcast.
    Broadcast,
    /// MPI_Reduce.
    Reduce,
    /// MPI_Allreduce.
    AllReduce,
    /// MPI_Gather, MPI_Gatherv.
    Gather,
    /// MPI_Scatter, MPI_Scatterv.
    Scatter,
    /// MPI_Allgather, MPI_Allgatherv.
    AllGather,
    /// MPI_Alltoall, MPI_Alltoallv, MPI_Alltoallw.
    AllToAll,
    /// MPI_Scan, MPI_Exscan.
    Scan,
    /// MPI_Reduce_scatter, MPI_Reduce_scatter_block.
    ReduceScatter,
    /// Members of a file agree, in a call such as MPI_File_set_view. Unisono's do not use a
    /// processor while they wait.
    Agree,
}

impl Collective {
    /// Every kind, in the order of their numbers in streams and in the C interface. New ones go to
    /// the end.
    pub const ALL: [Self; 11] = [
        Self::Barrier,
        Self::Broadcast,
        Self::Reduce,
        Self::AllReduce,
        Self::Gather,
        Self::Scatter,
        Self::AllGather,
        Self::AllToAll,
        Self::Scan,
        Self::ReduceScatter,
        Self::Agree,
    ];

    /// True when the operation has a root.
    pub fn has_root(self) -> bool {
        matches!(self, Self::Broadcast | Self::Reduce | Self::Gather | Self::Scatter)
    }
}

/// Direction of a transfer.
pub type Direction = policy::Direction;

/// Operation that a call asks for.
///
/// An operation with `request: Some(..)` is begun only; a later [`Operation::Wait`] names its
/// request. One with `None` has ended when the call returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// MPI_Init, MPI_Init_thread: the first event.
    Begin,
    /// MPI_Finalize: the last event of a rank that ended normally.
    End,
    /// Sends a message.
    Send {
        /// The message.
        message: Message,
        /// True when the call ends only after the receiver has begun to receive (MPI_Ssend).
        is_synchronous: bool,
        /// Request of a call that only begins.
        request: Option<RequestNumber>,
    },
    /// Receives a message.
    Receive {
        /// The message that was received.
        message: Message,
        /// Request of a call that only begins.
        request: Option<RequestNumber>,
    },
    /// Waits until all of the requests have ended (MPI_Wait and relatives, and a successful
    /// MPI_Test; the requests that had ended).
    Wait {
        /// Requests.
        requests: Vec<RequestNumber>,
    },
    /// A collective operation between ranks.
    Collective {
        /// Kind of operation.
        kind: Collective,
        /// Communicator.
        communicator: Communicator,
        /// Root, by its number in MPI_COMM_WORLD; 0 for operations without one.
        root: u32,
        /// Bytes that this rank contributes; of a broadcast and a scatter, bytes for each member;
        /// of an all-to-all operation, bytes to all members together.
        bytes: u64,
        /// Request of a call that only begins.
        request: Option<RequestNumber>,
    },
    /// Opens a file. Collective over the communicator.
    Open {
        /// Number of the file from here on.
        file: FileNumber,
        /// Communicator.
        communicator: Communicator,
        /// True when the file may be made (MPI_MODE_CREATE).
        creates: bool,
        /// True when the file was made, or its former data were removed, before it was opened.
        is_fresh: bool,
        /// Size of the file as it was opened, in bytes.
        bytes: u64,
    },
    /// Closes a file. Collective over the file's communicator.
    Close {
        /// File.
        file: FileNumber,
    },
    /// Deletes a file by name.
    Delete {
        /// Name.
        name: String,
    },
    /// Reads or writes data of a file.
    Transfer {
        /// File.
        file: FileNumber,
        /// Direction.
        direction: Direction,
        /// True when all members of the file's communicator make the call together.
        is_collective: bool,
        /// Data that this rank moves; none when it joins a collective call with nothing to move.
        part: Option<PartNumber>,
        /// Bytes by which all file offsets of the part are increased.
        shift: u64,
        /// Request of a call that only begins; split collective calls have one too.
        request: Option<RequestNumber>,
    },
    /// MPI_File_sync. Collective over the file's communicator.
    Sync {
        /// File.
        file: FileNumber,
    },
    /// MPI_File_set_size, MPI_File_preallocate. Collective over the file's communicator.
    SetSize {
        /// File.
        file: FileNumber,
        /// Size in bytes.
        bytes: u64,
        /// True for MPI_File_preallocate, which never makes a file shorter.
        only_grows: bool,
    },
    /// MPI_File_get_size.
    GetSize {
        /// File.
        file: FileNumber,
    },
}
