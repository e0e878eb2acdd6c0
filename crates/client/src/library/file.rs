//! The calls on an open file.

use super::connection::{Library, LibraryBuffer};
use super::known::Known;
use super::operation::Operation;
use filesystem::collective::Part;
use filesystem::{Buffer, Fault, Page};
use futures_util::future::try_join_all;
use interface::UserError;
use policy::{Access, BYTES_MAX, Direction, DiskOrder};
use std::io::{IoSlice, IoSliceMut};
use std::ops::{Deref, Range};
use std::rc::Rc;
use units::{ByteRange, ClientId, MIB};
use wire::{BufferStatistics, FileRecord};
use world::Payloads;
use world_real::RealWorld;

/// The most that one buffer of a read or write of plain bytes holds.
const LANE_BYTES_MAX: u64 = MIB;

/// Buffers of such a read or write: while one is copied, servers are at the others.
const LANES_MAX: u64 = 4;

/// An open file. It is closed at the servers when [`LibraryFile::close`] was called as often as the
/// library has opened it, or when the library ends.
pub struct LibraryFile {
    pub(super) library: Library,
    pub(super) known: Known,
}

/// A page of a file as it was when it was asked for; pinned until dropped.
#[derive(Clone)]
pub struct LibraryPage(Page<RealWorld>);

impl Deref for LibraryPage {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.0.payload().bytes()
    }
}

impl LibraryFile {
    /// Its size in bytes as this library last heard of it; [`LibraryFile::size`] asks.
    pub fn bytes(&self) -> u64 {
        self.record().bytes
    }

    /// Its size in bytes now, whoever has changed it.
    pub fn size(&self) -> Result<u64, UserError> {
        let what = format!("cannot ask for the size of {:?}", self.record().name);
        let record = self.library.run(&what, async |client| self.known.refreshed(client).await)?;
        Ok(record.bytes)
    }

    /// Makes it `bytes` bytes long (ftruncate). What lies beyond is freed, what is new is zero.
    ///
    /// # Errors
    /// Beyond what a file may have; what servers meet.
    pub fn set_size(&self, bytes: u64) -> Result<(), UserError> {
        let what = format!("cannot make {:?} {bytes} bytes long", self.record().name);
        self.library.run(&what, async |client| self.known.set_size(client, bytes).await)
    }

    /// Size of its pages (its blocks) in bytes; the last one may be shorter.
    pub fn page_bytes(&self) -> u64 {
        self.record().stripe.block_bytes
    }

    /// Number of its pages, as far as this library knows.
    pub fn pages(&self) -> u64 {
        self.bytes().div_ceil(self.page_bytes())
    }

    /// Reads to `into` what the file has from `offset` on; returns how many bytes, fewer only at
    /// its end (pread).
    pub fn read_at(&self, into: &mut [u8], offset: u64) -> Result<usize, UserError> {
        let length = into.len() as u64;
        if length == 0 {
            return Ok(0);
        }
        let lanes = self.lanes(length)?;
        let what = format!("cannot read {length} bytes at {offset} of {:?}", self.record().name);
        self.library.run(&what, async |client| {
            let end = offset.saturating_add(length);
            let record = self.known.reaching(client, end).await?;
            match read_all(&record, &lanes, into, offset).await {
                // Another program has made it shorter.
                Err(Fault::PastEnd { .. }) => {
                    let record = self.known.caught_up(client).await?;
                    read_all(&record, &lanes, into, offset).await
                }
                other => other,
            }
        })
    }

    /// Writes `from` to the bytes from `offset` on (pwrite); a file that ends before becomes
    /// longer. Every later read sees it; [`LibraryFile::flush`] says when it is stored.
    ///
    /// # Errors
    /// What servers met. Which bytes were written is not known then.
    pub fn write_at(&self, from: &[u8], offset: u64) -> Result<(), UserError> {
        let length = from.len() as u64;
        let what = format!("cannot write {length} bytes at {offset} of {:?}", self.record().name);
        let end = self.end_of(&what, offset, length)?;
        if length == 0 {
            return Ok(());
        }
        let lanes = self.lanes(length)?;
        self.library.run(&what, async |client| {
            let write = async |record: &FileRecord| write_all(record, &lanes, from, offset).await;
            self.known.write(client, end, write).await
        })
    }

    /// Reads to one slice after the other (preadv).
    pub fn read_vectored_at(
        &self,
        into: &mut [IoSliceMut<'_>],
        offset: u64,
    ) -> Result<usize, UserError> {
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
    pub fn write_vectored_at(&self, from: &[IoSlice<'_>], offset: u64) -> Result<(), UserError> {
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
    pub fn read_access(&self, access: &Access, into: &mut [u8]) -> Result<(), UserError> {
        let what = format!("cannot read parts of {:?}", self.record().name);
        self.library.run(&what, async |client| {
            let memory = client.world().thaw(into.to_vec().into());
            let record = self.known.reaching(client, access.file_extent().end).await?;
            let moved =
                client.transfer_part(&part(&record, Direction::Read, access), &memory).await;
            into.copy_from_slice(&memory.bytes());
            moved
        })
    }

    /// Writes strided or listed bytes with one request to each server: those of `from` that belong
    /// to client 0 of `access`. A file that ends before becomes longer. When it returns they are
    /// with the disks, on stable storage if `sync`.
    pub fn write_access(&self, access: &Access, from: &[u8], sync: bool) -> Result<(), UserError> {
        let what = format!("cannot write parts of {:?}", self.record().name);
        self.library.run(&what, async |client| {
            let memory = client.world().thaw(from.to_vec().into());
            let write = async |record: &FileRecord| {
                let part = Part { sync, ..part(record, Direction::Write, access) };
                client.transfer_part(&part, &memory).await
            };
            self.known.write(client, access.file_extent().end, write).await
        })
    }

    /// Pins a page.
    pub fn page(&self, number: u64) -> Result<LibraryPage, UserError> {
        let what = format!("cannot read page {number} of {:?}", self.record().name);
        let page = self.library.run(&what, async |client| {
            let record = self.known.reaching(client, self.begin_of(number) + 1).await?;
            client.page(&record, number).await
        });
        page.map(LibraryPage)
    }

    /// Pins the pages of a range.
    pub fn page_range(&self, numbers: Range<u64>) -> Result<Vec<LibraryPage>, UserError> {
        self.start_page_range(numbers).wait()
    }

    /// Begins to pin the pages of a range.
    pub fn start_page_range(&self, numbers: Range<u64>) -> Operation<Vec<LibraryPage>> {
        let what = format!("cannot read pages {numbers:?} of {:?}", self.record().name);
        let (client, known) = (self.library.0.client.clone(), self.known.clone());
        let last = self.begin_of(numbers.end.saturating_sub(1));
        Operation::begin(&self.library, what, async move {
            let record = known.reaching(&client, last + 1).await?;
            let pages = client.pages(&record, numbers).await?;
            Ok(pages.into_iter().map(LibraryPage).collect())
        })
    }

    /// Writes a whole page, or what there is to be of the last one; a file that ends before becomes
    /// longer.
    ///
    /// # Errors
    /// When `page` is empty or longer than a page; as for [`LibraryFile::write_at`].
    pub fn write_page(&self, number: u64, page: &[u8]) -> Result<(), UserError> {
        let (most, length) = (self.page_bytes(), page.len() as u64);
        let ends_within = self.begin_of(number).saturating_add(length) < self.bytes();
        if length == 0 || length > most || (length < most && ends_within) {
            return Err(UserError::usage(
                format!("cannot write page {number} of {:?}", self.record().name),
                format!("a page has {most} bytes and {length} were given"),
                "give whole pages; only the last one may be shorter",
            ));
        }
        self.write_at(page, self.begin_of(number))
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
        let record = self.record();
        let what = format!("cannot store {:?}", record.name);
        let client = self.library.0.client.clone();
        Operation::begin(&self.library, what, async move { client.flush(&record, sync).await })
    }

    /// Waits until all that was written is with the disks and, with `sync`, on stable storage of
    /// every server of the file (fsync).
    ///
    /// # Errors
    /// What went wrong behind anyone's back since this library's last flush, or since it opened the
    /// file.
    pub fn flush(&self, sync: bool) -> Result<(), UserError> {
        let record = self.record();
        let what = format!("cannot store {:?}", record.name);
        self.library.run(&what, async |client| client.flush(&record, sync).await)
    }

    /// How each of its servers has buffered it since it was opened.
    pub fn statistics(&self) -> Result<Vec<BufferStatistics>, UserError> {
        let record = self.record();
        let what = format!("cannot ask about {:?}", record.name);
        self.library.run(&what, async |client| client.buffers(&record).await)
    }

    /// Closes it. What was written stays.
    pub fn close(self) -> Result<(), UserError> {
        let record = self.record();
        let what = format!("cannot close {:?}", record.name);
        self.library.run(&what, async |client| client.close(&record).await)
    }

    fn record(&self) -> Rc<FileRecord> {
        self.known.get()
    }

    /// Where a page begins, in bytes.
    fn begin_of(&self, page: u64) -> u64 {
        page.saturating_mul(self.page_bytes()).min(BYTES_MAX)
    }

    fn start(
        &self,
        direction: Direction,
        buffer: LibraryBuffer,
        offset: u64,
    ) -> Operation<LibraryBuffer> {
        let length = buffer.length();
        let name = &self.record().name;
        let what = match direction {
            Direction::Read => format!("cannot read {length} bytes at {offset} of {name:?}"),
            Direction::Write => format!("cannot write {length} bytes at {offset} of {name:?}"),
        };
        let (client, known) = (self.library.0.client.clone(), self.known.clone());
        let end = offset.saturating_add(length as u64);
        Operation::begin(&self.library, what, async move {
            match direction {
                Direction::Read => {
                    let record = known.reaching(&client, end).await?;
                    buffer.buffer.transfer(direction, &record, offset).await?;
                }
                Direction::Write => {
                    let write = async |record: &FileRecord| {
                        buffer.buffer.transfer(direction, record, offset).await
                    };
                    known.write(&client, end, write).await?;
                }
            }
            Ok(buffer)
        })
    }

    /// Where a write ends, if there can be such bytes.
    fn end_of(&self, what: &str, offset: u64, length: u64) -> Result<u64, UserError> {
        let end = offset.checked_add(length).filter(|end| *end <= BYTES_MAX);
        end.ok_or_else(|| {
            UserError::usage(
                what,
                format!("a file has at most {BYTES_MAX} bytes"),
                "write to an offset that a file can have",
            )
        })
    }

    /// Buffers for a read or write of so many bytes: one at least, more if there is room.
    fn lanes(&self, length: u64) -> Result<Vec<Buffer<RealWorld>>, UserError> {
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

/// Reads what a file has from `offset` on, as far as `into` has room for it.
async fn read_all(
    file: &FileRecord,
    lanes: &[Buffer<RealWorld>],
    into: &mut [u8],
    offset: u64,
) -> Result<usize, Fault> {
    let rest = usize::try_from(file.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
    let length = into.len().min(rest);
    let mut parts: Vec<Vec<(u64, &mut [u8])>> = lanes.iter().map(|_| Vec::new()).collect();
    let mut unread = &mut into[..length];
    for (turn, part) in turns(lanes, ByteRange::at(offset, length as u64)) {
        let (first, others) = std::mem::take(&mut unread).split_at_mut(part.length() as usize);
        parts[turn].push((part.start, first));
        unread = others;
    }
    let reads = lanes.iter().zip(parts).map(async |(lane, parts)| {
        for (offset, into) in parts {
            let part = lane.part(into.len() as u64);
            part.transfer(Direction::Read, file, offset).await?;
            let (memory, range) = part.place();
            into.copy_from_slice(&memory.bytes()[range.start as usize..range.end as usize]);
        }
        Ok::<_, Fault>(())
    });
    try_join_all(reads).await?;
    Ok(length)
}

/// Writes `from` to the bytes of a file from `offset` on, which it has.
async fn write_all(
    file: &FileRecord,
    lanes: &[Buffer<RealWorld>],
    from: &[u8],
    offset: u64,
) -> Result<(), Fault> {
    let mut parts: Vec<Vec<(u64, &[u8])>> = lanes.iter().map(|_| Vec::new()).collect();
    let mut unwritten = from;
    for (turn, part) in turns(lanes, ByteRange::at(offset, from.len() as u64)) {
        let (first, others) = unwritten.split_at(part.length() as usize);
        parts[turn].push((part.start, first));
        unwritten = others;
    }
    let writes = lanes.iter().zip(parts).map(async |(lane, parts)| {
        for (offset, from) in parts {
            let part = lane.part(from.len() as u64);
            let (memory, range) = part.place();
            let to = range.start as usize..range.end as usize;
            memory.with_bytes_mut(|all| all[to].copy_from_slice(from));
            part.transfer(Direction::Write, file, offset).await?;
        }
        Ok::<_, Fault>(())
    });
    try_join_all(writes).await.map(|_| ())
}

/// What this library transfers of an access: all that is client 0's.
fn part(record: &FileRecord, direction: Direction, access: &Access) -> Part {
    let (file, access) = (record.clone(), access.clone());
    Part { direction, file, access, client: ClientId(0), order: DiskOrder::Sorted, sync: false }
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
