//! The counter of a group, and locks of byte ranges among its members.

use crate::arguments::Out;
use crate::border::{Failure, exported};
use crate::handles::{GroupHandle, LockHandle, make};
use client::LockKind;
use std::ffi::c_int;

/// Returns the kind of its number in the header.
fn kind_of(exclusive: c_int) -> Result<LockKind, Failure> {
    match exclusive {
        0 => Ok(LockKind::Shared),
        1 => Ok(LockKind::Exclusive),
        other => Err(Failure::argument(
            "exclusive",
            format!("is {other}, not UNISONO_LOCK_SHARED or UNISONO_LOCK_EXCLUSIVE"),
        )),
    }
}

exported! {
    /// Adds to the counter of a group.
    fn unisono_counter_add(group: GroupHandle, add: u64, before: Out<u64>) -> c_int {
        let slot = before.slot("before")?;
        slot.set(group.get("group")?.counter_fetch_add(add)?);
        Ok(())
    }

    /// Sets the counter of a group.
    fn unisono_counter_set(group: GroupHandle, value: u64) -> c_int {
        Ok(group.get("group")?.counter_set(value)?)
    }

    /// Counter of a group.
    fn unisono_counter_get(group: GroupHandle, value: Out<u64>) -> c_int {
        let slot = value.slot("value")?;
        slot.set(group.get("group")?.counter_get()?);
        Ok(())
    }

    /// Locks a range of bytes.
    fn unisono_lock_range(
        group: GroupHandle,
        start: u64,
        end: u64,
        exclusive: c_int,
        lock: Out<LockHandle>,
    ) -> c_int {
        make(&lock, "lock", || {
            let (group, kind) = (group.get("group")?, kind_of(exclusive)?);
            if start >= end {
                return Err(Failure::argument("end", format!("is {end}, not above start, {start}")));
            }
            Ok(group.lock_range(start..end, kind)?)
        })
    }

    /// Releases a lock.
    fn unisono_unlock(lock: LockHandle) -> c_int {
        match lock.take("lock")? {
            Some(lock) => Ok(lock.unlock()?),
            None => Ok(()),
        }
    }
}
