//! Pages that a client keeps to read from them.

use std::collections::VecDeque;
use std::ops::Range;
use units::ByteRange;
use wire::FileRecord;
use world::Payload;

/// Maximum number of pages of one file that a client keeps.
const PAGES_MAX: usize = 4;

/// Largest page that is kept, in bytes.
const PAGE_BYTES_MAX: u64 = 1 << 20;

/// Number of reads in one page after which it is fetched, at first.
const READS_BEFORE_PAGE: u32 = 2;

/// Largest such number. It doubles with each page that was not worth its messages.
const READS_BEFORE_PAGE_MAX: u32 = 256;

/// Number of reads from a page that make it worth its messages, as half of its bytes do. Then
/// programs read on: the next page is fetched with its first read.
const READS_OF_PAGE_MIN: u32 = 3;

/// Maximum number of blocks of a read from kept pages.
const BLOCKS_OF_READ_MAX: u64 = 2;

/// Number of blocks whose reads are counted.
const COUNTED_MAX: usize = 8;

/// Time in ns for which pages are read after the servers were known to know the client. A process
/// that was stopped for longer may have lost its connections, and not know it yet.
const CONFIRMED_MAX: u64 = 2_000_000_000;

/// Result of [`KeptPages::read`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// All bytes were in kept pages.
    Read,
    /// Not all bytes are in kept pages. The caller must read them by itself.
    Missing,
    /// It is time to fetch the page with this number, and to read again.
    Wants(u64),
}

/// Pages of one file that a client keeps. `P` holds the bytes of one.
pub struct KeptPages<P> {
    pages: Vec<Page<P>>,
    /// Reads of blocks that are not kept.
    counted: VecDeque<(u64, u32)>,
    reads_before: u32,
    /// Number of the last event after which no page that was asked for before may be kept.
    event: u64,
    used_at: u64,
    /// Time at which all servers of the pages knew this client, in ns.
    confirmed_at: u64,
}

struct Page<P> {
    block: u64,
    range: ByteRange,
    bytes: P,
    reads: u32,
    read_bytes: u64,
    /// Time of the last read, in ns.
    used: u64,
}

impl<P> Default for KeptPages<P> {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            counted: VecDeque::new(),
            reads_before: READS_BEFORE_PAGE,
            event: 0,
            used_at: 0,
            confirmed_at: 0,
        }
    }
}

impl<P: Payload> KeptPages<P> {
    /// Reads a range of a file from kept pages at the time `now` in ns. Calls `copy` with the bytes
    /// of each page, the first byte in it, and the bytes of the read that come from there.
    pub fn read(
        &mut self,
        record: &FileRecord,
        range: ByteRange,
        now: u64,
        mut copy: impl FnMut(&P, u64, Range<u64>),
    ) -> Kept {
        self.used_at = now;
        if !self.pages.is_empty() && now.saturating_sub(self.confirmed_at) > CONFIRMED_MAX {
            return Kept::Missing;
        }
        let mut missing = None;
        let blocks = record.stripe.blocks_in(range);
        if blocks.end - blocks.start > BLOCKS_OF_READ_MAX {
            return Kept::Missing;
        }
        for block in blocks {
            let part = record.stripe.block_range(block, u64::MAX).intersect(range);
            let page = self.pages.iter_mut().find(|page| page.block == block);
            match page.filter(|page| page.range.contains(part)) {
                Some(page) => {
                    page.reads = page.reads.saturating_add(1);
                    page.read_bytes = page.read_bytes.saturating_add(part.length());
                    page.used = now;
                    let read = part.start - range.start..part.end - range.start;
                    copy(&page.bytes, part.start - page.range.start, read);
                }
                None => missing = missing.or(Some(block)),
            }
        }
        let Some(block) = missing else { return Kept::Read };
        let is_small = record.stripe.block_bytes <= PAGE_BYTES_MAX;
        if range.end > record.bytes || !is_small || !self.count(block) {
            return Kept::Missing;
        }
        Kept::Wants(block)
    }

    /// Counts a read of a block that is not kept. True if its page is worth to be fetched.
    fn count(&mut self, block: u64) -> bool {
        let known = self.counted.iter().position(|(one, _)| *one == block);
        let (_, reads) = known.and_then(|at| self.counted.remove(at)).unwrap_or((block, 0));
        if reads + 1 > self.reads_before {
            return true;
        }
        self.counted.truncate(COUNTED_MAX - 1);
        self.counted.push_front((block, reads + 1));
        false
    }

    /// Number of the last event. A page that is asked for now is kept only if there is no other
    /// until it comes.
    pub fn event(&self) -> u64 {
        self.event
    }

    /// Keeps a page that was asked for after `event`, unless something has happened since: then it
    /// returns false.
    pub fn keep(&mut self, record: &FileRecord, block: u64, bytes: P, event: u64) -> bool {
        if event != self.event {
            return false;
        }
        if self.pages.is_empty() {
            self.confirmed_at = self.used_at;
        }
        self.remove(|page| page.block == block);
        if self.pages.len() >= PAGES_MAX {
            let oldest = self.pages.iter().map(|page| page.used).min();
            self.remove(|page| Some(page.used) == oldest);
        }
        let start = record.stripe.block_range(block, u64::MAX).start;
        let range = ByteRange::at(start, bytes.length());
        self.pages.push(Page { block, range, bytes, reads: 0, read_bytes: 0, used: self.used_at });
        true
    }

    /// Notes that this client has written a range: what is kept of it is old.
    pub fn wrote(&mut self, range: ByteRange) {
        self.event += 1;
        if !self.pages.is_empty() {
            self.remove(|page| !page.range.intersect(range).is_empty());
        }
    }

    /// Drops all pages.
    pub fn drop_all(&mut self) {
        self.event += 1;
        self.remove(|_| true);
        self.counted.clear();
    }

    /// Removes some pages, and learns what they were worth.
    fn remove(&mut self, which: impl Fn(&Page<P>) -> bool) {
        let reads_before = &mut self.reads_before;
        self.pages.retain(|page| {
            let stays = !which(page);
            if !stays {
                let is_read = page.read_bytes >= page.range.length() / 2;
                *reads_before = match is_read || page.reads >= READS_OF_PAGE_MIN {
                    true => 0,
                    false => (*reads_before * 2).clamp(READS_BEFORE_PAGE, READS_BEFORE_PAGE_MAX),
                };
            }
            stays
        });
    }

    /// Notes that at this time, in ns, all servers knew that this client may keep pages.
    pub fn confirm(&mut self, at: u64) {
        self.confirmed_at = self.confirmed_at.max(at);
    }

    /// Time of the last read, in ns.
    pub fn used_at(&self) -> u64 {
        self.used_at
    }
}
