//! Groups: the calling process as one of several that make collective calls together.

use crate::arguments::{Out, Text};
use crate::border::{Failure, exported};
use crate::handles::{ConnectionHandle, GroupHandle, make};
use client::Group;
use policy::CLIENTS_MAX;
use std::ffi::{c_int, c_void};

/// `unisono_all_gather_t *`.
pub(crate) type AllGather = extern "C" fn(*const c_void, *mut c_void, usize, *mut c_void) -> c_int;

/// Refuses a rank that no member can have.
fn check_place(rank: u32, size: u32) -> Result<(), Failure> {
    if size == 0 || size > CLIENTS_MAX {
        return Err(Failure::argument("size", format!("is {size}, not 1 to {CLIENTS_MAX}")));
    }
    if rank >= size {
        return Err(Failure::argument("rank", format!("is {rank}, but there are {size} members")));
    }
    Ok(())
}

/// Gathers the bytes of all members, by rank, with the function of the caller.
fn gather(
    all_gather: AllGather,
    context: *mut c_void,
    size: u32,
    mine: &[u8],
) -> Result<Vec<Vec<u8>>, String> {
    let mut all = vec![0_u8; size as usize * mine.len()];
    match all_gather(mine.as_ptr().cast(), all.as_mut_ptr().cast(), mine.len(), context) {
        0 => Ok(all.chunks(mine.len()).map(<[u8]>::to_vec).collect()),
        code => Err(format!("the all-gather of the program returned {code}")),
    }
}

exported! {
    /// Forms a group by name.
    fn unisono_group_form(
        connection: ConnectionHandle,
        name: Text,
        rank: u32,
        size: u32,
        group: Out<GroupHandle>,
    ) -> c_int {
        make(&group, "group", || {
            let connection = connection.get("connection")?;
            check_place(rank, size)?;
            Ok(Group::form(connection, name.required("name")?, rank, size)?)
        })
    }

    /// Forms a group by an all-gather of the caller's.
    fn unisono_group_form_with(
        connection: ConnectionHandle,
        rank: u32,
        size: u32,
        all_gather: Option<AllGather>,
        context: *mut c_void,
        group: Out<GroupHandle>,
    ) -> c_int {
        make(&group, "group", || {
            let connection = connection.get("connection")?;
            check_place(rank, size)?;
            let all_gather = all_gather.ok_or_else(|| Failure::argument("all_gather", "is NULL"))?;
            let gather = |mine: &[u8]| gather(all_gather, context, size, mine);
            Ok(Group::form_with(connection, rank, size, gather)?)
        })
    }

    /// Rank of the calling process.
    fn unisono_group_rank(group: GroupHandle, rank: Out<u32>) -> c_int {
        let slot = rank.slot("rank")?;
        slot.set(group.get("group")?.rank());
        Ok(())
    }

    /// Number of members.
    fn unisono_group_size(group: GroupHandle, size: Out<u32>) -> c_int {
        let slot = size.slot("size")?;
        slot.set(group.get("group")?.size());
        Ok(())
    }

    /// Waits for all members.
    fn unisono_barrier(group: GroupHandle) -> c_int {
        Ok(group.get("group")?.barrier()?)
    }

    /// Leaves a group.
    fn unisono_group_free(group: GroupHandle) -> c_int {
        group.take("group").map(drop)
    }
}
