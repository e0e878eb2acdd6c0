//! Calls in words: the names of MPI, and the place of a call in a trace.

use crate::event::{Collective, Direction, Message, Operation, RankTrace};

impl Collective {
    /// Name of the call that begins and ends the operation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Barrier => "MPI_Barrier",
            Self::Broadcast => "MPI_Bcast",
            Self::Reduce => "MPI_Reduce",
            Self::AllReduce => "MPI_Allreduce",
            Self::Gather => "MPI_Gather",
            Self::Scatter => "MPI_Scatter",
            Self::AllGather => "MPI_Allgather",
            Self::AllToAll => "MPI_Alltoall",
            Self::Scan => "MPI_Scan",
            Self::ReduceScatter => "MPI_Reduce_scatter",
            Self::Agree => "agreement of a file",
        }
    }
}

impl Operation {
    /// Name of a call of MPI that asks for the operation. Relatives of a call have one name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Begin => "MPI_Init",
            Self::End => "MPI_Finalize",
            Self::Send { is_synchronous: false, request: None, .. } => "MPI_Send",
            Self::Send { is_synchronous: false, request: Some(_), .. } => "MPI_Isend",
            Self::Send { is_synchronous: true, request: None, .. } => "MPI_Ssend",
            Self::Send { is_synchronous: true, request: Some(_), .. } => "MPI_Issend",
            Self::Receive { request: None, .. } => "MPI_Recv",
            Self::Receive { request: Some(_), .. } => "MPI_Irecv",
            Self::Wait { .. } => "MPI_Wait",
            Self::Collective { kind, .. } => kind.name(),
            Self::Open { .. } => "MPI_File_open",
            Self::Close { .. } => "MPI_File_close",
            Self::Delete { .. } => "MPI_File_delete",
            Self::Sync { .. } => "MPI_File_sync",
            Self::SetSize { only_grows: false, .. } => "MPI_File_set_size",
            Self::SetSize { only_grows: true, .. } => "MPI_File_preallocate",
            Self::GetSize { .. } => "MPI_File_get_size",
            Self::Transfer { direction, is_collective, request, .. } => {
                match (direction, is_collective, request.is_some()) {
                    (Direction::Read, false, false) => "MPI_File_read",
                    (Direction::Read, false, true) => "MPI_File_iread",
                    (Direction::Read, true, false) => "MPI_File_read_all",
                    (Direction::Read, true, true) => "MPI_File_iread_all",
                    (Direction::Write, false, false) => "MPI_File_write",
                    (Direction::Write, false, true) => "MPI_File_iwrite",
                    (Direction::Write, true, false) => "MPI_File_write_all",
                    (Direction::Write, true, true) => "MPI_File_iwrite_all",
                }
            }
        }
    }
}

/// A call with its place: `rank 2, event 17: MPI_Send to rank 3 with tag 5, 100 bytes`.
pub(crate) fn call(ranks: &[RankTrace], rank: u32, event: usize) -> String {
    let trace = &ranks[rank as usize];
    let Some(found) = trace.events.get(event) else {
        return format!("rank {rank}, after its {event} events");
    };
    let place = format!("rank {rank}, event {event}: {}", found.operation.name());
    let messages = |preposition: &str, message: &Message| match message.peer {
        Message::UNKNOWN_PEER => String::new(),
        peer => {
            let (tag, bytes) = (message.tag, message.bytes);
            format!(" {preposition} rank {peer} with tag {tag}, {bytes} bytes")
        }
    };
    let of_file = |file: crate::event::FileNumber| {
        let name = trace.files.get(file.0 as usize).map_or("", String::as_str);
        format!(" of file {} ({name})", file.0)
    };
    let details = match &found.operation {
        Operation::Send { message, .. } => messages("to", message),
        Operation::Receive { message, .. } => messages("from", message),
        Operation::Collective { kind, root, .. } if kind.has_root() => {
            format!(" with root {root}")
        }
        Operation::Open { file, .. }
        | Operation::Close { file }
        | Operation::Sync { file }
        | Operation::GetSize { file }
        | Operation::Transfer { file, .. } => of_file(*file),
        Operation::SetSize { file, bytes, .. } => {
            format!("{}, {bytes} bytes", of_file(*file))
        }
        _ => String::new(),
    };
    format!("{place}{details}")
}
