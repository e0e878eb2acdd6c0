//! Plain reads and writes: consecutive bytes of a file to and from memories of the program, one
//! memory after the other.

use super::cached_record::CachedRecord;
use super::connection::Shared;
use super::user_memory::UserMemory;
use filesystem::Fault;
use filesystem::collective::Part;
use futures_util::future::join_all;
use policy::{Access, Direction, DiskOrder, OwnPart};
use std::ops::Range;
use units::{ByteRange, ClientId, KIB, MIB};
use wire::FileRecord;
use world::Memory;
use world_real::RealMemory;

/// Longer reads and writes go between the servers and the memory of the program; shorter ones
/// through a buffer of the pool, which costs a copy and saves messages.
const POOLED_BYTES_MAX: u64 = 64 * KIB;

/// Largest number of bytes of several memories that are packed for one request. With more, a
/// request moves whole blocks anyway, and the copy costs more than a further request.
const PACKED_BYTES_MAX: u64 = MIB;

/// Reads what a file has from `offset` on, as far as the memories have room for it.
pub(super) async fn read_plain(
    shared: &Shared,
    file: &FileRecord,
    memories: &[UserMemory],
    offset: u64,
) -> Result<usize, Fault> {
    let length = bytes_of(memories).min(file.bytes.saturating_sub(offset));
    transfer(shared, Direction::Read, file, memories, ByteRange::at(offset, length)).await?;
    Ok(length as usize)
}

/// Writes the memories to the bytes of a file from `offset` on, which it has.
pub(super) async fn write_plain(
    shared: &Shared,
    file: &FileRecord,
    memories: &[UserMemory],
    offset: u64,
) -> Result<(), Fault> {
    let range = ByteRange::at(offset, bytes_of(memories));
    transfer(shared, Direction::Write, file, memories, range).await
}

/// A transfer of one client alone.
pub(super) fn alone(record: &FileRecord, direction: Direction, access: Access, sync: bool) -> Part {
    let (file, client, order) = (record.clone(), ClientId(0), DiskOrder::Sorted);
    Part { direction, file, access, client, order, sync }
}

/// Transfers a part of a file in a request to each server.
pub(super) async fn move_alone(
    shared: &Shared,
    known: &CachedRecord,
    (direction, part, sync): (Direction, OwnPart, bool),
    memory: &RealMemory,
) -> Result<(), Fault> {
    let end = part.file_extent().map_or(0, |extent| extent.end);
    let access = Access::Parts(vec![part]);
    match direction {
        Direction::Read => {
            let record = known.holding(&shared.client, end).await?;
            let part = alone(&record, direction, access, false);
            shared.client.transfer_part(&part, memory).await
        }
        Direction::Write => {
            let write = async |record: &FileRecord| {
                let part = alone(record, direction, access.clone(), sync);
                shared.client.transfer_part(&part, memory).await
            };
            known.write(&shared.client, end, sync || known.is_protected(), write).await
        }
    }
}

/// Transfers a range of a file, to or from the first bytes of the memories.
async fn transfer(
    shared: &Shared,
    direction: Direction,
    file: &FileRecord,
    memories: &[UserMemory],
    range: ByteRange,
) -> Result<(), Fault> {
    let length = range.length();
    if length == 0 {
        return Ok(());
    }
    if length <= POOLED_BYTES_MAX
        && let Some(buffer) = shared.pool.take(length)
    {
        let (pool, place) = buffer.place();
        let place = place.start as usize..place.end as usize;
        if direction == Direction::Write {
            pool.with_bytes_mut(|all| pack(memories, &mut all[place.clone()]));
        }
        buffer.transfer(direction, file, range.start).await?;
        if direction == Direction::Read {
            unpack(&pool.bytes()[place], memories);
        }
        return Ok(());
    }
    let groups = groups(memories.iter().map(|memory| memory.length()), range);
    // All are awaited, also when one fails: until its end servers use the memory of each.
    let moved = groups
        .into_iter()
        .map(|(group, range)| transfer_group(shared, direction, file, &memories[group], range));
    join_all(moved).await.into_iter().collect()
}

/// Transfers a range of a file with one request to each server.
async fn transfer_group(
    shared: &Shared,
    direction: Direction,
    file: &FileRecord,
    memories: &[UserMemory],
    range: ByteRange,
) -> Result<(), Fault> {
    let access = Access::Parts(vec![OwnPart::contiguous(range.start, range.length())]);
    let part = alone(file, direction, access, false);
    if let [memory] = memories {
        return shared.client.move_part(&part, memory).await;
    }
    let packed = RealMemory::new(range.length() as usize);
    if direction == Direction::Write {
        packed.with_bytes_mut(|packed| pack(memories, packed));
    }
    shared.client.move_part(&part, &packed).await?;
    if direction == Direction::Read {
        unpack(&packed.bytes(), memories);
    }
    Ok(())
}

/// Divides memories of these lengths, as far as a range of a file reaches, into those that one
/// request transfers: one memory of any length, or several that are packed.
fn groups(lengths: impl Iterator<Item = u64>, range: ByteRange) -> Vec<(Range<usize>, ByteRange)> {
    let mut groups: Vec<(Range<usize>, ByteRange)> = Vec::new();
    let mut at = range.start;
    for (index, length) in lengths.enumerate() {
        let end = range.end.min(at.saturating_add(length));
        if end == at {
            break;
        }
        match groups.last_mut() {
            Some((group, bytes)) if end - bytes.start <= PACKED_BYTES_MAX => {
                (group.end, bytes.end) = (index + 1, end);
            }
            Some(_) | None => groups.push((index..index + 1, ByteRange::new(at, end))),
        }
        at = end;
    }
    groups
}

/// Copies the memories, one after the other, to `packed`.
fn pack(memories: &[UserMemory], mut packed: &mut [u8]) {
    for memory in memories {
        let (here, rest) = packed.split_at_mut(memory.length() as usize);
        here.copy_from_slice(&memory.bytes());
        packed = rest;
    }
}

/// Copies `packed` to the memories, one after the other, as far as it reaches.
fn unpack(mut packed: &[u8], memories: &[UserMemory]) {
    for memory in memories {
        let (here, rest) = packed.split_at(packed.len().min(memory.length() as usize));
        memory.with_bytes_mut(|all| all[..here.len()].copy_from_slice(here));
        packed = rest;
    }
}

fn bytes_of(memories: &[UserMemory]) -> u64 {
    memories.iter().fold(0, |sum, memory| sum.saturating_add(memory.length()))
}

#[cfg(test)]
mod tests {
    //! Proves: memories are packed up to the limit and in their order, longer ones are not, and
    //! none is used behind the range.

    use super::*;

    #[test]
    fn short_memories_are_one_group() {
        let groups_of = |lengths: &[u64], bytes| {
            let groups = groups(lengths.iter().copied(), ByteRange::at(100, bytes));
            groups
                .into_iter()
                .map(|(group, range)| (group, range.start - 100, range.length()))
                .collect::<Vec<_>>()
        };
        assert_eq!(groups_of(&[4 * KIB; 256], MIB), [(0..256, 0, MIB)]);
        assert_eq!(groups_of(&[4 * KIB; 256], MIB - 5), [(0..256, 0, MIB - 5)]);
        assert_eq!(groups_of(&[4 * KIB; 256], 4 * KIB), [(0..1, 0, 4 * KIB)]);
        assert_eq!(groups_of(&[MIB, 1], MIB + 1), [(0..1, 0, MIB), (1..2, MIB, 1)]);
        assert_eq!(
            groups_of(&[1, 1, 5 * MIB, 1, 1, u64::MAX], 5 * MIB + 7),
            [(0..2, 0, 2), (2..3, 2, 5 * MIB), (3..6, 5 * MIB + 2, 5)]
        );
        assert_eq!(groups_of(&[], 0), []);
    }
}
