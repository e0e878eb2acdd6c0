//! Small calls that need no message: writes that are gathered in the memory of the program, and
//! reads from pages that it keeps
//! ([0080](../../../../docs/decisions/0080-clients-gather-small-writes-under-leases.md)).
//!
//! A thread that writes a few bytes adds them to those of its process. The I/O thread sends them
//! when there are many, when they are old, and when a server wants them. A thread that reads a few
//! bytes takes them from a page of its process, which the I/O thread drops when a server wants it.
//!
//! Invariants:
//! - A call on the same bytes comes after gathered writes of them.
//! - A read from a page that begins after another client's write has ended gets its bytes.

use super::at_exit::settle_at_exit;
use super::connection::Connection;
use super::operation::Operation;
use super::small_calls::{SmallCalls, Store};
use filesystem::{Added, Kept};
use std::rc::Rc;
use std::sync::Arc;
use units::{ByteRange, FileId};
use wire::FileRecord;
use world_real::{BlockingConnection, host_time_ns};

/// Longest write that is gathered, in bytes.
const GATHERED_WRITE_MAX: usize = BlockingConnection::BODY_BYTES_MAX;

/// Largest read from kept pages, in bytes.
const KEPT_READ_MAX: usize = 256 << 10;

/// Maximum number of pages that are fetched for one read, and once more to read from them.
const FETCHES_MAX: u32 = 3;

/// Tells if a call may wait for messages that make later ones faster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Waiting {
    /// It may.
    ForServers,
    /// It must return at once.
    Never,
}

impl Connection {
    /// Gathers a write of a file. False if the caller must write the bytes by itself.
    pub(super) fn gather(
        &self,
        calls: &Arc<SmallCalls>,
        from: &[u8],
        offset: u64,
        waiting: Waiting,
    ) -> bool {
        let is_small = (1..=GATHERED_WRITE_MAX).contains(&from.len());
        let range = ByteRange::checked_at(offset, from.len() as u64);
        let Some(range) = range.filter(|range| is_small && range.end <= policy::BYTES_MAX) else {
            return false;
        };
        // A forked child must not touch what other threads of its parent may have locked.
        if !self.options().gathers_writes || !self.0.thread.is_of_this_process() {
            return false;
        }
        let file = calls.known.get();
        loop {
            let added = calls.pending().add(&file, range, host_time_ns(), |data, part| {
                data.extend_from_slice(&from[part.start as usize..part.end as usize]);
            });
            if matches!(added, Added::Gathered | Added::HalfFull) {
                calls.known.unsynced().add(|| self.losses(&file));
                calls.kept().wrote(range);
            }
            match added {
                Added::Gathered => return true,
                Added::HalfFull => {
                    // It goes on by itself, while the caller gathers more.
                    drop(self.begin_sending(file.file));
                    return true;
                }
                Added::Full => {
                    let sending = self.begin_sending(file.file);
                    if waiting == Waiting::Never || sending.wait().is_err() {
                        return false;
                    }
                }
                Added::Refused => return false,
                Added::WantsLease => {
                    let beginning = self.begin_gathering(calls);
                    // The call itself meets what is wrong with a server.
                    if waiting == Waiting::Never || !beginning.wait().unwrap_or(false) {
                        return false;
                    }
                }
            }
        }
    }

    fn begin_sending(&self, file: FileId) -> Operation<()> {
        let what = || "cannot send gathered writes".to_owned();
        self.begin(what, false, async move |shared| {
            shared.client.settle(file, false).await;
            Ok(())
        })
    }

    /// Begins to ask for a lease of a file. False if there is none.
    fn begin_gathering(&self, calls: &Arc<SmallCalls>) -> Operation<bool> {
        settle_at_exit(self);
        calls.pending().asked();
        let calls = Arc::clone(calls);
        let what = || "cannot gather writes".to_owned();
        self.begin(what, false, async move |shared| {
            let store = Rc::new(Store(Arc::clone(&calls)));
            let begun = shared.client.begin_gathering(store).await;
            if !matches!(begun, Ok(true)) {
                calls.pending().refused();
            }
            begun
        })
    }

    /// Reads bytes from pages that the program keeps, if they are there or it is time to fetch
    /// them. False if the caller must read them by itself.
    pub(super) fn read_kept(
        &self,
        calls: &Arc<SmallCalls>,
        into: &mut [u8],
        offset: u64,
        waiting: Waiting,
    ) -> bool {
        let range = ByteRange::checked_at(offset, into.len() as u64);
        let is_small = (1..=KEPT_READ_MAX).contains(&into.len());
        let is_ours = self.0.thread.is_of_this_process();
        let Some(range) = range.filter(|_| is_small && is_ours) else { return false };
        let record = calls.known.get();
        for _ in 0..FETCHES_MAX {
            let (kept, event) = {
                let mut kept = calls.kept();
                let read = kept.read(&record, range, host_time_ns(), |page, start, part| {
                    let (start, length) = (start as usize, (part.end - part.start) as usize);
                    let into = &mut into[part.start as usize..part.end as usize];
                    into.copy_from_slice(&page.bytes()[start..start + length]);
                });
                (read, kept.event())
            };
            let block = match kept {
                Kept::Read => return true,
                Kept::Missing => return false,
                Kept::Wants(block) => block,
            };
            let fetching = self.begin_fetch(calls, &record, (block, event));
            // The read itself meets what is wrong with a server.
            if waiting == Waiting::Never || !fetching.wait().unwrap_or(false) {
                return false;
            }
        }
        false
    }

    /// Begins to fetch a page that was wanted after some event. False if it may not be kept.
    fn begin_fetch(
        &self,
        calls: &Arc<SmallCalls>,
        record: &Arc<FileRecord>,
        (block, event): (u64, u64),
    ) -> Operation<bool> {
        let (calls, record) = (Arc::clone(calls), Arc::clone(record));
        let what = || "cannot fetch a page".to_owned();
        self.begin(what, false, async move |shared| {
            let store = Rc::new(Store(Arc::clone(&calls)));
            let (page, may_keep) = shared.client.page_to_keep(&record, block, store).await?;
            Ok(may_keep && calls.kept().keep(&record, block, page, event))
        })
    }
}
