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
        Ok(file.start_read_memory(memory, offset).wait()? as u64)
    }

    /// Writes at an offset.
    fn unisono_pwrite(file: FileHandle, memory: Bytes, bytes: u64, offset: u64) -> i64 {
        let file = file.get("file")?;
        let memory = memory.memory(bytes, "memory")?;
        file.start_write_memory(memory, offset).wait()?;
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
        let mut total = 0_u64;
        let mut started = Vec::with_capacity(count);
        for entry in memories {
            let memory = iovec(entry, "memories")?;
            started.push(file.start_read_memory(memory, offset.saturating_add(total)));
            total = total.saturating_add(entry.iov_len as u64);
        }
        // Bytes behind the first that the file does not have do not count.
        let (mut read, mut has_ended) = (0, false);
        for (operation, entry) in started.into_iter().zip(memories) {
            let bytes = operation.wait()?;
            if !has_ended {
                read += bytes as u64;
                has_ended = bytes < entry.iov_len;
            }
        }
        Ok(read)
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
        let mut total = 0_u64;
        let mut all = Vec::with_capacity(count);
        // Nothing is written when one of them is refused.
        for entry in memories {
            all.push((iovec(entry, "memories")?, offset.saturating_add(total)));
            total = total.checked_add(entry.iov_len as u64).ok_or_else(too_many)?;
        }
        let started: Vec<_> =
            all.into_iter().map(|(memory, at)| file.start_write_memory(memory, at)).collect();
        for operation in started {
            operation.wait()?;
        }
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
