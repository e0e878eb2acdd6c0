//! Collective calls that each member makes alone
//! ([0081](../../../../docs/decisions/0081-small-collective-calls-are-made-alone.md)).
//!
//! Invariant: all members make the same calls alone. A server decides it for all of them at the end
//! of a call that each waits for, and from then on each counts its own calls, which are the same.

use super::file::File;
use super::operation::Operation;
use super::user_memory::RawMemory;
use super::without_message::Waiting;
use interface::UserError;
use policy::{Access, Chunk, Direction, OwnPart};
use std::sync::{Condvar, Mutex, PoisonError};
use units::{ClientId, FileId};
use wire::Fault;

/// Largest part of a call alone that counts as small, in bytes.
const SMALL_BYTES_MAX: u64 = 64 << 10;

/// Largest number of pieces of a small part.
const SMALL_PIECES_MAX: usize = 256;

/// Calls that a member makes alone.
#[derive(Default)]
pub(super) struct CallsAlone {
    state: Mutex<State>,
    /// Notified when a call has ended after which others may be made alone.
    ended: Condvar,
}

/// Manner in which a call is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Manner {
    /// By each member alone.
    Alone,
    /// By all members together.
    Together,
    /// By all members together. Until it [has ended](CallsAlone::has_ended) this member begins no
    /// other.
    InOrder,
}

#[derive(Default)]
struct State {
    file: Option<FileId>,
    left: u32,
    /// True if all parts of the calls alone were small.
    all_small: bool,
    /// True while a call is under way that decides about the next ones.
    is_deciding: bool,
}

impl CallsAlone {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call on a file, after one that decides about it. `may_be_alone` tells that it is of
    /// a kind that is made alone, `decides` that others may follow that are.
    pub(super) fn begin(&self, file: FileId, decides: bool, may_be_alone: bool) -> Manner {
        let mut state = self.lock();
        // Another thread may have begun it. All members make calls in the same order.
        while state.is_deciding {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if may_be_alone && state.file == Some(file) && state.left > 0 {
            state.left -= 1;
            return Manner::Alone;
        }
        state.is_deciding = decides && may_be_alone;
        if state.is_deciding { Manner::InOrder } else { Manner::Together }
    }

    /// Ends a call that decides about the next ones: so many on its file are made alone.
    pub(super) fn has_ended(&self, file: FileId, calls: u32) {
        let mut state = self.lock();
        state.is_deciding = false;
        if calls > 0 {
            (state.file, state.left, state.all_small) = (Some(file), calls, true);
        }
        self.ended.notify_all();
    }

    /// True if all parts of the last calls alone were small. Also before the first ones.
    pub(super) fn were_small(&self) -> bool {
        let state = self.lock();
        state.all_small || state.file.is_none()
    }

    /// Makes a call alone. `result` makes the result of the number of bytes.
    pub(super) fn make<T: Send + 'static>(
        &self,
        direction: Direction,
        file: &File,
        part: OwnPart,
        mut memory: RawMemory,
        result: impl FnOnce(u64) -> T + Send + 'static,
    ) -> Operation<T> {
        let bytes = part.bytes();
        if bytes == 0 {
            return Operation::ended(Ok(result(0)));
        }
        let is_valid = part.validate(ClientId(0), policy::BYTES_MAX).is_ok()
            && part.memory_bytes() <= memory.bytes() as u64;
        let chunks = if is_valid { small_chunks(&part) } else { None };
        let made = match (&chunks, direction) {
            (Some(chunks), Direction::Write) => write_chunks(file, chunks, &memory),
            (Some(chunks), Direction::Read) => read_chunks(file, chunks, &mut memory),
            (None, _) => {
                // Servers direct large parts better when all members join.
                self.lock().all_small = !is_valid;
                Ok(false)
            }
        };
        match made {
            Ok(true) => Operation::ended(Ok(result(bytes))),
            // What was written is written once more.
            Ok(false) => file.start_part_as(direction, part, memory, false, move || result(bytes)),
            Err(error) => Operation::ended(Err(error)),
        }
    }
}

/// Returns the pieces of a small part.
fn small_chunks(part: &OwnPart) -> Option<Vec<Chunk>> {
    if part.bytes() > SMALL_BYTES_MAX {
        return None;
    }
    let access = Access::Parts(vec![part.clone()]);
    let chunks: Vec<Chunk> = access.chunks(ClientId(0)).take(SMALL_PIECES_MAX + 1).collect();
    (chunks.len() <= SMALL_PIECES_MAX).then_some(chunks)
}

/// Writes the pieces of a part. False if the I/O thread must write the part.
fn write_chunks(file: &File, chunks: &[Chunk], memory: &RawMemory) -> Result<bool, UserError> {
    if let [chunk] = chunks {
        return file.write_at(&memory.look()[range_of(chunk)], chunk.file_offset).map(|()| true);
    }
    let gathers = |chunk: &Chunk| {
        let from = &memory.look()[range_of(chunk)];
        file.gather(from, chunk.file_offset, Waiting::ForServers)
    };
    Ok(chunks.iter().all(gathers))
}

/// Reads the pieces of a part. False if the I/O thread must read the part.
fn read_chunks(file: &File, chunks: &[Chunk], memory: &mut RawMemory) -> Result<bool, UserError> {
    if let [chunk] = chunks {
        let read = file.read_at(&mut memory.fill()[range_of(chunk)], chunk.file_offset)?;
        return match read as u64 == chunk.length {
            true => Ok(true),
            false => Err(past_end(file)),
        };
    }
    Ok(chunks.iter().all(|chunk| {
        let into = &mut memory.fill()[range_of(chunk)];
        !file.concerns(chunk.file_offset, into.len())
            && file.read_kept(into, chunk.file_offset, Waiting::ForServers)
    }))
}

fn range_of(chunk: &Chunk) -> std::ops::Range<usize> {
    let start = chunk.memory_offset as usize;
    start..start + chunk.length as usize
}

fn past_end(file: &File) -> UserError {
    let (name, bytes) = (file.name(), file.bytes());
    UserError::of_fault(&format!("cannot read {name:?}"), &Fault::PastEnd { file: name, bytes })
}
