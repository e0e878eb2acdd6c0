//! The calls on an open file.

use crate::arguments::{Array, Bytes, Out, iovec};
use crate::border::{Failure, exported};
use crate::handles::FileHandle;
use std::ffi::c_int;

/// Most memories of one call (IOV_MAX).
const MEMORIES_MAX: usize = 1024;

exported! {
    /// Reads at an offset.
    fn unisono_pread(file: FileHandle, memory: Bytes, bytes: u64, offset: u64) -> i64 {
        let file = file.get("file")?;
        let memory = memory.memory(bytes, "memory")?;
        Ok(file.read_memory_at(memory, offset)? as u64)
    }

    /// Writes at an offset.
    fn unisono_pwrite(file: FileHandle, memory: Bytes, bytes: u64, offset: u64) -> i64 {
        let file = file.get("file")?;
        let memory = memory.memory(bytes, "memory")?;
        file.write_memory_at(memory, offset)?;
        Ok(bytes)
    }

    /// Reads to several memories.
    fn unisono_preadv(
        file: FileHandle,
        memories: Array<libc::iovec>,
        count: usize,
        offset: u64,
    ) -> i64 {
        let file = file.get("file")?;
        let memories = memories.values(count, MEMORIES_MAX, "memories")?;
        let memories = memories.iter().map(|entry| iovec(entry, "memories"));
        let memories = memories.collect::<Result<Vec<_>, _>>()?;
        Ok(file.start_read_memories(memories, offset).wait()? as u64)
    }

    /// Writes from several memories.
    fn unisono_pwritev(
        file: FileHandle,
        memories: Array<libc::iovec>,
        count: usize,
        offset: u64,
    ) -> i64 {
        let file = file.get("file")?;
        let memories = memories.values(count, MEMORIES_MAX, "memories")?;
        // Nothing is written when one of them is refused.
        let memories = memories.iter().map(|entry| iovec(entry, "memories"));
        let memories = memories.collect::<Result<Vec<_>, _>>()?;
        let mut bytes = memories.iter().map(|memory| memory.bytes() as u64);
        let total = bytes.try_fold(0, u64::checked_add).ok_or_else(too_many)?;
        file.start_write_memories(memories, offset).wait()?;
        Ok(total)
    }

    /// Size now.
    fn unisono_size(file: FileHandle, bytes: Out<u64>) -> c_int {
        let slot = bytes.slot("bytes")?;
        slot.set(file.get("file")?.size()?);
        Ok(())
    }

    /// Sets the size.
    fn unisono_truncate(file: FileHandle, bytes: u64) -> c_int {
        Ok(file.get("file")?.set_size(bytes)?)
    }

    /// Waits until everything is with the disks.
    fn unisono_flush(file: FileHandle) -> c_int {
        Ok(file.get("file")?.flush(false)?)
    }

    /// Waits until everything is on stable storage.
    fn unisono_fsync(file: FileHandle) -> c_int {
        Ok(file.get("file")?.flush(true)?)
    }

    /// Tells if a server may lose writes of this process.
    fn unisono_has_unsynced(file: FileHandle, flag: Out<c_int>) -> c_int {
        let slot = flag.slot("flag")?;
        slot.set(c_int::from(file.get("file")?.has_unsynced_writes()));
        Ok(())
    }

    /// Tells that another process has stored the writes of this one.
    fn unisono_confirm_fsync(file: FileHandle) -> c_int {
        Ok(file.get("file")?.confirm_sync()?)
    }

    /// Closes a file.
    fn unisono_close(file: FileHandle) -> c_int {
        match file.take("file")? {
            Some(file) => Ok(file.close()?),
            None => Ok(()),
        }
    }
}

fn too_many() -> Failure {
    Failure::argument("memories", "has more bytes than fit in a file")
}
