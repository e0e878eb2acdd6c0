//! Traces: the functions of `unisono_trace.h`, which the recorder of MPI programs calls.
//!
//! *Invariant:* a call that loses an event makes every later call for the trace fail.

use crate::arguments::{Array, Out, Text};
use crate::border::{Failure, exported};
use crate::handles::{PartHandle, TraceHandle, make};
use crate::parts::current;
use client::Direction;
use std::ffi::c_int;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use trace::{
    Collective, Communicator, Event, FileNumber, Message, Operation, RANKS_MAX, RequestNumber,
    WAITED_MAX, Writer,
};

/// `unisono_trace_times_t`.
#[repr(C)]
pub(crate) struct TimesView {
    computed_ns: u64,
    blocked_ns: u64,
    took_ns: u64,
    depends_on_timing: c_int,
}

/// `UNISONO_TRACE_NO_REQUEST`.
const NO_REQUEST: u32 = u32::MAX;
/// `UNISONO_TRACE_WRITE`.
const WRITE: c_int = 1;
/// `UNISONO_TRACE_IS_COLLECTIVE`.
const IS_COLLECTIVE: c_int = 2;
/// `UNISONO_TRACE_CREATES`.
const CREATES: c_int = 1;
/// `UNISONO_TRACE_IS_FRESH`.
const IS_FRESH: c_int = 2;

/// Works with the writer of a trace. An argument that makes no sense is an error of the trace.
fn with<T>(
    trace: &TraceHandle,
    work: impl FnOnce(&mut Writer) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut writer = trace.get("trace")?.lock().unwrap_or_else(PoisonError::into_inner);
    match work(&mut writer) {
        Err(Failure::Argument { name, cause }) => {
            Err(writer.refuse(&format!("the argument {name} {cause}")).into())
        }
        ended => ended,
    }
}

/// Writes an event.
fn write(
    trace: &TraceHandle,
    times: &Array<TimesView>,
    operation: impl FnOnce(&mut Writer) -> Result<Operation, Failure>,
) -> Result<(), Failure> {
    with(trace, |writer| {
        let [times] = times.values(1, 1, "times")? else {
            return Err(Failure::argument("times", "is not one structure"));
        };
        let operation = operation(writer)?;
        Ok(writer.write(&Event {
            computed_ns: times.computed_ns,
            blocked_ns: times.blocked_ns,
            took_ns: times.took_ns,
            depends_on_timing: times.depends_on_timing != 0,
            operation,
        })?)
    })
}

fn request(number: u32) -> Option<RequestNumber> {
    (number != NO_REQUEST).then_some(RequestNumber(number))
}

/// Refuses flags beyond those known.
fn check_flags(flags: c_int, known: c_int) -> Result<(), Failure> {
    if flags & !known == 0 {
        return Ok(());
    }
    Err(Failure::argument("flags", format!("is {flags}, which has unknown bits")))
}

exported! {
    /// Begins the stream of a rank.
    fn unisono_trace_create(
        directory: Text,
        rank: u32,
        ranks: u32,
        host: Text,
        mpi: Text,
        trace: Out<TraceHandle>,
    ) -> c_int {
        make(&trace, "trace", || {
            let directory = Path::new(directory.required("directory")?);
            let (host, mpi) = (host.required("host")?, mpi.required("mpi")?);
            Ok(Mutex::new(Writer::create(directory, (rank, ranks), host, mpi)?))
        })
    }

    /// Number of a communicator.
    fn unisono_trace_communicator(
        trace: TraceHandle,
        members: Array<u32>,
        count: usize,
    ) -> i64 {
        with(&trace, |writer| {
            let members = members.values(count, RANKS_MAX as usize, "members")?;
            Ok(writer.communicator(members)?.0.into())
        })
    }

    /// Number of a file.
    fn unisono_trace_file(trace: TraceHandle, name: Text) -> i64 {
        with(&trace, |writer| Ok(writer.file(name.required("name")?)?.0.into()))
    }

    /// MPI_Init.
    fn unisono_trace_begin(trace: TraceHandle, times: Array<TimesView>) -> c_int {
        write(&trace, &times, |_| Ok(Operation::Begin))
    }

    /// MPI_Finalize.
    fn unisono_trace_end(trace: TraceHandle, times: Array<TimesView>) -> c_int {
        write(&trace, &times, |_| Ok(Operation::End))
    }

    /// Send.
    fn unisono_trace_send(
        trace: TraceHandle,
        times: Array<TimesView>,
        communicator: u32,
        peer: u32,
        tag: i32,
        bytes: u64,
        is_synchronous: c_int,
        request_number: u32,
    ) -> c_int {
        let message = Message { communicator: Communicator(communicator), peer, tag, bytes };
        let (is_synchronous, request) = (is_synchronous != 0, request(request_number));
        write(&trace, &times, |_| Ok(Operation::Send { message, is_synchronous, request }))
    }

    /// Receive.
    fn unisono_trace_receive(
        trace: TraceHandle,
        times: Array<TimesView>,
        communicator: u32,
        peer: u32,
        tag: i32,
        bytes: u64,
        request_number: u32,
    ) -> c_int {
        let message = Message { communicator: Communicator(communicator), peer, tag, bytes };
        let request = request(request_number);
        write(&trace, &times, |_| Ok(Operation::Receive { message, request }))
    }

    /// Message of a receive that has begun.
    fn unisono_trace_received(
        trace: TraceHandle,
        request_number: u32,
        peer: u32,
        tag: i32,
        bytes: u64,
    ) -> c_int {
        with(&trace, |writer| Ok(writer.received(RequestNumber(request_number), peer, tag, bytes)?))
    }

    /// Wait.
    fn unisono_trace_wait(
        trace: TraceHandle,
        times: Array<TimesView>,
        requests: Array<u32>,
        count: usize,
    ) -> c_int {
        write(&trace, &times, |_| {
            let requests = requests.values(count, WAITED_MAX, "requests")?;
            Ok(Operation::Wait { requests: requests.iter().copied().map(RequestNumber).collect() })
        })
    }

    /// Collective operation between ranks.
    fn unisono_trace_collective(
        trace: TraceHandle,
        times: Array<TimesView>,
        kind: u32,
        communicator: u32,
        root: u32,
        bytes: u64,
        request_number: u32,
    ) -> c_int {
        write(&trace, &times, |_| {
            let known = Collective::ALL.get(kind as usize).copied();
            let kind = known.ok_or_else(|| {
                Failure::argument("kind", format!("is {kind}, which is no collective operation"))
            })?;
            let (communicator, request) = (Communicator(communicator), request(request_number));
            Ok(Operation::Collective { kind, communicator, root, bytes, request })
        })
    }

    /// MPI_File_open.
    fn unisono_trace_open(
        trace: TraceHandle,
        times: Array<TimesView>,
        file: u32,
        communicator: u32,
        flags: c_int,
        bytes: u64,
    ) -> c_int {
        write(&trace, &times, |_| {
            check_flags(flags, CREATES | IS_FRESH)?;
            let (creates, is_fresh) = (flags & CREATES != 0, flags & IS_FRESH != 0);
            let (file, communicator) = (FileNumber(file), Communicator(communicator));
            Ok(Operation::Open { file, communicator, creates, is_fresh, bytes })
        })
    }

    /// MPI_File_close.
    fn unisono_trace_close(trace: TraceHandle, times: Array<TimesView>, file: u32) -> c_int {
        write(&trace, &times, |_| Ok(Operation::Close { file: FileNumber(file) }))
    }

    /// MPI_File_delete.
    fn unisono_trace_delete(trace: TraceHandle, times: Array<TimesView>, name: Text) -> c_int {
        write(&trace, &times, |_| Ok(Operation::Delete { name: name.required("name")?.to_owned() }))
    }

    /// Read or write.
    fn unisono_trace_transfer(
        trace: TraceHandle,
        times: Array<TimesView>,
        file: u32,
        flags: c_int,
        part: PartHandle,
        request_number: u32,
    ) -> c_int {
        write(&trace, &times, |writer| {
            check_flags(flags, WRITE | IS_COLLECTIVE)?;
            let placed = match part.is_none() {
                true => None,
                false => writer.part(&current(&part)?.own)?,
            };
            Ok(Operation::Transfer {
                file: FileNumber(file),
                direction: if flags & WRITE != 0 { Direction::Write } else { Direction::Read },
                is_collective: flags & IS_COLLECTIVE != 0,
                part: placed.map(|placed| placed.part),
                shift: placed.map_or(0, |placed| placed.shift),
                request: request(request_number),
            })
        })
    }

    /// MPI_File_sync.
    fn unisono_trace_sync(trace: TraceHandle, times: Array<TimesView>, file: u32) -> c_int {
        write(&trace, &times, |_| Ok(Operation::Sync { file: FileNumber(file) }))
    }

    /// MPI_File_set_size, MPI_File_preallocate.
    fn unisono_trace_set_size(
        trace: TraceHandle,
        times: Array<TimesView>,
        file: u32,
        bytes: u64,
        only_grows: c_int,
    ) -> c_int {
        let (file, only_grows) = (FileNumber(file), only_grows != 0);
        write(&trace, &times, |_| Ok(Operation::SetSize { file, bytes, only_grows }))
    }

    /// MPI_File_get_size.
    fn unisono_trace_get_size(trace: TraceHandle, times: Array<TimesView>, file: u32) -> c_int {
        write(&trace, &times, |_| Ok(Operation::GetSize { file: FileNumber(file) }))
    }

    /// Closes a stream.
    fn unisono_trace_close_stream(trace: TraceHandle) -> c_int {
        match trace.take("trace")? {
            Some(writer) => {
                Ok(writer.into_inner().unwrap_or_else(PoisonError::into_inner).close()?)
            }
            None => Ok(()),
        }
    }
}
