//! The calls on an open file.

use super::{Library, LibraryBuffer, Operation};
use crate::error::LaunchError;
use filesystem::collective::Part;
use filesystem::{Buffer, Fault, Page};
use futures_util::future::try_join_all;
use policy::{Access, Direction, DiskOrder};
use std::io::{IoSlice, IoSliceMut};
use std::ops::{Deref, Range};
use units::{ByteRange, ClientId, MIB};
use wire::{BufferStatistics, FileRecord};
use world::Payloads;
use world_real::RealWorld;

/// The most that one buffer of a read or write of plain bytes holds.
const LANE_BYTES_MAX: u64 = MIB;

/// Buffers of such a read or write: while one is copied, servers are at the others.
const LANES_MAX: u64 = 4;

/// An open file. It is closed at the servers when [`LibraryFile::close`] is called, or the library
/// ends.
pub struct LibraryFile {
    pub(super) library: Library,
    pub(super) record: FileRecord,
}

/// A page of a file as it was when it was asked for; fastened until dropped.
#[derive(Clone)]
pub struct LibraryPage(Page<RealWorld>);

impl Deref for LibraryPage {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.payload().bytes()
    }
}

impl LibraryFile {
    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.record.bytes
    }

    /// Size of its pages (its blocks) in bytes; the last one may be shorter.
    pub fn page_bytes(&self) -> u64 {
        self.record.stripe.block_bytes
    }

    /// Number of its pages.
    pub fn pages(&self) -> u64 {
        self.record.bytes.div_ceil(self.record.stripe.block_bytes)
    }

    /// Reads to `into` what the file has from `offset` on; returns how many bytes, fewer only at
    /// its end (pread).
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize, LaunchError> {
        let rest = usize::try_from(self.record.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = into.len().min(rest);
        if length == 0 {
            return Ok(0);
        }
        let lanes = self.lanes(length as u64)?;
        let what = format!("cannot read {length} bytes at {offset} of {:?}", self.record.name);
        let mut parts: Vec<Vec<(u64, &mut [u8])>> = lanes.iter().map(|_| Vec::new()).collect();
        let mut unread = &mut into[..length];
        for (turn, part) in turns(&lanes, ByteRange::at(offset, length as u64)) {
            let (first, others) = std::mem::take(&mut unread).split_at_mut(part.length() as usize);
            parts[turn].push((part.start, first));
            unread = others;
        }
        self.library.run(&what, async |_| {
            let reads = lanes.iter().zip(parts).map(async |(lane, parts)| {
                for (offset, into) in parts {
                    let part = lane.part(into.len() as u64);
                    part.transfer(Direction::Read, &self.record, offset).await?;
                    let (memory, range) = part.place();
                    let from = range.start as usize..range.end as usize;
                    into.copy_from_slice(&memory.bytes()[from]);
                }
                Ok::<_, Fault>(())
            });
            try_join_all(reads).await
        })?;
        Ok(length)
    }

    /// Writes `from` to the bytes from `offset` on (pwrite). Every later read sees it;
    /// [`LibraryFile::flush`] says when it is stored.
    ///
    /// # Errors
    /// When the file ends before; what servers met. Which bytes were written is not known then.
    pub fn write_at(&self, from: &[u8], offset: u64) -> Result<(), LaunchError> {
        let length = from.len();
        let what = format!("cannot write {length} bytes at {offset} of {:?}", self.record.name);
        self.check_end(&what, offset, length as u64)?;
        let lanes = self.lanes(length as u64)?;
        let mut parts: Vec<Vec<(u64, &[u8])>> = lanes.iter().map(|_| Vec::new()).collect();
        let mut unwritten = from;
        for (turn, part) in turns(&lanes, ByteRange::at(offset, length as u64)) {
            let (first, others) = unwritten.split_at(part.length() as usize);
            parts[turn].push((part.start, first));
            unwritten = others;
        }
        self.library.run(&what, async |_| {
            let writes = lanes.iter().zip(parts).map(async |(lane, parts)| {
                for (offset, from) in parts {
                    let part = lane.part(from.len() as u64);
                    let (memory, range) = part.place();
                    let to = range.start as usize..range.end as usize;
                    memory.with_bytes_mut(|all| all[to].copy_from_slice(from));
                    part.transfer(Direction::Write, &self.record, offset).await?;
                }
                Ok::<_, Fault>(())
            });
            try_join_all(writes).await.map(|_| ())
        })
    }

    /// Reads to one slice after the other (preadv).
    pub fn read_vectored_at(
        &self,
        into: &mut [IoSliceMut<'_>],
        offset: u64,
    ) -> Result<usize, LaunchError> {
        let mut total = 0;
        for slice in into {
            let read = self.read_at(slice, offset + total as u64)?;
            total += read;
            if read < slice.len() {
                break;
            }
        }
        Ok(total)
    }

    /// Writes one slice after the other (pwritev).
    pub fn write_vectored_at(&self, from: &[IoSlice<'_>], offset: u64) -> Result<(), LaunchError> {
        let mut at = offset;
        for slice in from {
            self.write_at(slice, at)?;
            at += slice.len() as u64;
        }
        Ok(())
    }

    /// Reads strided or listed bytes with one request to each server: those that belong to client
    /// 0 of `access`, each to its offset in `into`. Bytes of `into` that the access does not name
    /// stay as they are.
    pub fn read_access(&self, access: &Access, into: &mut [u8]) -> Result<(), LaunchError> {
        let what = format!("cannot read parts of {:?}", self.record.name);
        self.library.run(&what, async |client| {
            let memory = client.world().thaw(into.to_vec().into());
            let moved = client.transfer_part(&self.part(Direction::Read, access), &memory).await;
            into.copy_from_slice(&memory.bytes());
            moved
        })
    }

    /// Writes strided or listed bytes with one request to each server: those of `from` that belong
    /// to client 0 of `access`. When it returns they are with the disks, on stable storage if
    /// `sync`.
    pub fn write_access(
        &self,
        access: &Access,
        from: &[u8],
        sync: bool,
    ) -> Result<(), LaunchError> {
        let what = format!("cannot write parts of {:?}", self.record.name);
        self.library.run(&what, async |client| {
            let memory = client.world().thaw(from.to_vec().into());
            let part = Part { sync, ..self.part(Direction::Write, access) };
            client.transfer_part(&part, &memory).await
        })
    }

    /// Fastens a page.
    pub fn page(&self, number: u64) -> Result<LibraryPage, LaunchError> {
        let what = format!("cannot read page {number} of {:?}", self.record.name);
        let page = self.library.run(&what, async |client| client.page(&self.record, number).await);
        page.map(LibraryPage)
    }

    /// Fastens the pages of a range.
    pub fn page_range(&self, numbers: Range<u64>) -> Result<Vec<LibraryPage>, LaunchError> {
        self.start_page_range(numbers).wait()
    }

    /// Begins to fasten the pages of a range.
    pub fn start_page_range(&self, numbers: Range<u64>) -> Operation<Vec<LibraryPage>> {
        let what = format!("cannot read pages {numbers:?} of {:?}", self.record.name);
        let (client, record) = (self.library.0.client.clone(), self.record.clone());
        Operation::begin(&self.library, what, async move {
            let pages = client.pages(&record, numbers).await?;
            Ok(pages.into_iter().map(LibraryPage).collect())
        })
    }

    /// Writes a whole page. Bytes of `page` behind the end of the file must not be.
    pub fn write_page(&self, number: u64, page: &[u8]) -> Result<(), LaunchError> {
        let range = self.record.stripe.block_range(number, self.record.bytes);
        if range.length() != page.len() as u64 || range.is_empty() {
            return Err(LaunchError::usage(
                format!("cannot write page {number} of {:?}", self.record.name),
                format!("it has {} bytes and {} were given", range.length(), page.len()),
                "give whole pages; the last one is as long as the file has bytes for it",
            ));
        }
        self.write_at(page, range.start)
    }

    /// Begins to read the bytes from `offset` on to a buffer, without a copy.
    pub fn start_read(&self, buffer: LibraryBuffer, offset: u64) -> Operation<LibraryBuffer> {
        self.start(Direction::Read, buffer, offset)
    }

    /// Begins to write a buffer to the bytes from `offset` on, without a copy.
    pub fn start_write(&self, buffer: LibraryBuffer, offset: u64) -> Operation<LibraryBuffer> {
        self.start(Direction::Write, buffer, offset)
    }

    /// Begins a [`LibraryFile::flush`].
    pub fn start_flush(&self, sync: bool) -> Operation<()> {
        let what = format!("cannot store {:?}", self.record.name);
        let (client, record) = (self.library.0.client.clone(), self.record.clone());
        Operation::begin(&self.library, what, async move { client.flush(&record, sync).await })
    }

    /// Waits until all that was written is with the disks and, with `sync`, on stable storage of
    /// every server of the file (fsync).
    ///
    /// # Errors
    /// What went wrong behind anyone's back since this library's last flush, or since it opened the
    /// file.
    pub fn flush(&self, sync: bool) -> Result<(), LaunchError> {
        let what = format!("cannot store {:?}", self.record.name);
        self.library.run(&what, async |client| client.flush(&self.record, sync).await)
    }

    /// How each of its servers has buffered it since it was opened.
    pub fn statistics(&self) -> Result<Vec<BufferStatistics>, LaunchError> {
        let what = format!("cannot ask about {:?}", self.record.name);
        self.library.run(&what, async |client| client.buffers(&self.record).await)
    }

    /// Closes it. What was written stays.
    pub fn close(self) -> Result<(), LaunchError> {
        let what = format!("cannot close {:?}", self.record.name);
        self.library.run(&what, async |client| client.close(&self.record).await)
    }

    fn start(
        &self,
        direction: Direction,
        buffer: LibraryBuffer,
        offset: u64,
    ) -> Operation<LibraryBuffer> {
        let length = buffer.length();
        let name = &self.record.name;
        let what = match direction {
            Direction::Read => format!("cannot read {length} bytes at {offset} of {name:?}"),
            Direction::Write => format!("cannot write {length} bytes at {offset} of {name:?}"),
        };
        let record = self.record.clone();
        Operation::begin(&self.library, what, async move {
            buffer.buffer.transfer(direction, &record, offset).await?;
            Ok(buffer)
        })
    }

    fn part(&self, direction: Direction, access: &Access) -> Part {
        let (file, access) = (self.record.clone(), access.clone());
        Part { direction, file, access, client: ClientId(0), order: DiskOrder::Sorted, sync: false }
    }

    fn check_end(&self, what: &str, offset: u64, length: u64) -> Result<(), LaunchError> {
        if offset.checked_add(length).is_some_and(|end| end <= self.record.bytes) {
            return Ok(());
        }
        Err(LaunchError::usage(
            what,
            format!("the file has {} bytes", self.record.bytes),
            "make the file as large as it will be",
        ))
    }

    /// Buffers for a read or write of so many bytes: one at least, more if there is room.
    fn lanes(&self, length: u64) -> Result<Vec<Buffer<RealWorld>>, LaunchError> {
        let most = (self.library.pool_bytes() / LANES_MAX).clamp(1, LANE_BYTES_MAX);
        let each = length.min(most);
        let mut lanes = vec![self.library.buffer(each)?.buffer];
        while (lanes.len() as u64) < length.div_ceil(each.max(1)).min(LANES_MAX) {
            match self.library.0.pool.take(each) {
                Some(lane) => lanes.push(lane),
                None => break,
            }
        }
        Ok(lanes)
    }
}

/// `range` in parts, and the lane whose turn each is: none longer than a lane, and cut where a file
/// of such parts is, so that blocks are not cut more often than need be.
fn turns(
    lanes: &[Buffer<RealWorld>],
    range: ByteRange,
) -> impl Iterator<Item = (usize, ByteRange)> + use<> {
    // A buffer of no bytes is for a range of none.
    let lane = lanes[0].length().max(1);
    let all = ByteRange::new(range.start / lane * lane, range.end);
    let parts = all.windows(lane).map(move |part| part.intersect(range));
    (0..lanes.len()).cycle().zip(parts.filter(|part| !part.is_empty()))
}
