//! Writes of a client with a cache.

use super::cache::{LINES_AT_ONCE_MAX, LineCache, LinePart};
use super::reads::{name_of, too_short};
use super::to_its_end::run_to_its_end;
use crate::client::faults::unexpected;
use crate::client::state::Client;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use policy::{LineKey, WriteMiss, WritePolicy};
use std::collections::BTreeSet;
use std::future::ready;
use std::rc::Rc;
use units::{ByteRange, Duration, FileId, Run, ServerId};
use wire::{CacheRequest, Fault, FileRecord, Reply};
use world::{Memory, Payload, World};

/// Maximum number of attempts to write a line that other clients write too.
const OWN_TRIES_MAX: u32 = 1000;

/// Pause before a write is sent again for which the server had no room.
const NO_ROOM_PAUSE: Duration = Duration::from_ms(1);

impl<W: World> Client<W> {
    /// Writes bytes of `memory`, from `memory_offset` on, to `range` of a file through this
    /// client's cache. When it returns, no other client reads the old bytes any more. The bytes are
    /// with the server, or still here if the cache writes back ([`Client::flush_cached`]).
    ///
    /// # Errors
    /// [`Fault::BadRequest`] without a cache, [`Fault::PastEnd`] beyond the end of the file: this
    /// does not extend it. Faults of the servers, also of earlier writes whose bytes were lost.
    ///
    /// # Panics
    /// Panics when the range does not fit the memory.
    pub async fn write_cached(
        &self,
        file: &FileRecord,
        range: ByteRange,
        memory: &W::Memory,
        memory_offset: u64,
    ) -> Result<(), Fault> {
        let cache = &self.line_cache()?;
        cache.report_fault(file.file)?;
        let writes = cache.parts(file, range)?.map(|part| async move {
            let run = Run::contiguous(memory_offset + part.offset, part.range.length());
            let bytes = memory.gather(&[run]);
            cache.until_few_leave().await;
            let _turn = cache.locks.turn(part.key).await;
            self.world().compute(self.costs().client_write).await;
            cache.write(self, &part, bytes).await
        });
        stream::iter(writes).buffer_unordered(LINES_AT_ONCE_MAX).try_collect().await
    }

    /// Sends the servers the bytes of a file that are in this client's cache only, and waits until
    /// the disks have them; if `sync`, until they are on stable storage.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] without a cache. Faults of the servers, also of earlier writes whose
    /// bytes were lost.
    pub async fn flush_cached(&self, file: &FileRecord, sync: bool) -> Result<(), Fault> {
        self.write_cache_back(file).await?;
        self.flush(file, sync).await
    }

    /// Sends the servers the bytes of a file that are in this client's cache only.
    ///
    /// # Errors
    /// As [`Client::flush_cached`].
    pub async fn write_cache_back(&self, file: &FileRecord) -> Result<(), Fault> {
        let cache = &self.line_cache()?;
        // A caller that gives up must not leave a line of which this client and the server
        // disagree whether it is owned.
        let written = cache.dirty_lines(file.file).into_iter().map(|key| {
            let (cache, client) = (Rc::clone(cache), self.clone());
            run_to_its_end(self, async move { cache.write_line_back(&client, key).await })
        });
        let all = stream::iter(written).buffer_unordered(LINES_AT_ONCE_MAX);
        all.fold(Ok(()), |before: Result<(), Fault>, one| ready(before.and(one))).await?;
        cache.report_fault(file.file)
    }
}

impl<W: World> LineCache<W> {
    /// Lines of a file whose bytes their server lacks, in the cache or on their way out.
    fn dirty_lines(&self, file: FileId) -> BTreeSet<LineKey> {
        let lines = self.lines.borrow();
        let leaving = lines.leaving.range((file, 0)..=(file, u64::MAX));
        let leaving = leaving.filter(|(_, line)| line.is_dirty).map(|(key, _)| *key);
        lines.policy.dirty_lines(file).into_iter().chain(leaving).collect()
    }

    /// Writes a line back, unless its server has its bytes by now.
    async fn write_line_back(&self, client: &Client<W>, key: LineKey) -> Result<(), Fault> {
        let _turn = self.locks.turn(key).await;
        let dirty = {
            let lines = self.lines.borrow();
            let held = lines.held.get(&key).filter(|_| lines.policy.is_dirty(key));
            let held = held.map(|held| (held.line.clone(), held.server, true));
            // An eviction waits for its turn.
            let leaving = lines.leaving.get(&key).filter(|leaving| leaving.is_dirty);
            held.or_else(|| leaving.map(|leaving| (leaving.line.clone(), leaving.server, false)))
        };
        let Some((line, server, keeps)) = dirty else { return Ok(()) };
        self.send_back(client, (key, server), keeps, line).await?;
        let lines = &mut *self.lines.borrow_mut();
        if keeps {
            // Unless another client wanted it meanwhile, it is this client's alone no more. It may
            // have been evicted meanwhile, and would come back as an owned line.
            lines.policy.set_dirty(key, false);
            if let Some(leaving) = lines.leaving.get_mut(&key) {
                leaving.is_dirty = false;
            }
        } else {
            lines.leaving.remove(&key);
            self.left.notify();
        }
        Ok(())
    }

    /// Writes the part of a line. The caller has the turn of the line.
    async fn write(
        self: &Rc<Self>,
        client: &Client<W>,
        part: &LinePart,
        bytes: W::Payload,
    ) -> Result<(), Fault> {
        let held = self.use_held(client, part).is_some();
        let allocates = held || self.spec.write_miss == WriteMiss::Allocate;
        match self.spec.write {
            WritePolicy::Back if allocates => self.write_here(client, part, bytes).await,
            WritePolicy::Back | WritePolicy::Through => {
                self.write_through(client, part, bytes, allocates).await
            }
        }
    }

    /// Writes to the server and, if the line is to be kept, to the cache.
    async fn write_through(
        self: &Rc<Self>,
        client: &Client<W>,
        part: &LinePart,
        bytes: W::Payload,
        keeps: bool,
    ) -> Result<(), Fault> {
        let LinePart { key, server, range, .. } = *part;
        let is_whole = self.is_whole(range);
        if keeps {
            if !is_whole {
                // The rest of the line must be here too.
                self.line(client, part).await?;
            }
            client.world().compute(client.costs().copy(range.length())).await;
        }
        let pending = self.begin(part);
        let (line, offset) = (name_of(key), range.start);
        let write = || {
            let dropped = self.take_dropped(server);
            CacheRequest::Write { line, offset, keeps, dropped }
        };
        self.send_bytes(client, server, write, &bytes).await?;
        let is_stale = pending.end();
        if is_stale || !keeps {
            self.lines.borrow_mut().drop_own(key);
            return Ok(());
        }
        // Without the rest of the line, which was evicted meanwhile, it is not kept.
        let old = if is_whole { Some(bytes.clone()) } else { self.use_held(client, part) };
        if let Some(old) = old {
            let new = patched(client.world(), old, range, &bytes);
            self.take_in(client, part, new, true);
        }
        Ok(())
    }

    /// Writes to the cache only, as the owner of the line.
    async fn write_here(
        self: &Rc<Self>,
        client: &Client<W>,
        part: &LinePart,
        bytes: W::Payload,
    ) -> Result<(), Fault> {
        let LinePart { key, server, range, .. } = *part;
        let is_whole = self.is_whole(range);
        client.world().compute(client.costs().copy(range.length())).await;
        for _ in 0..OWN_TRIES_MAX {
            let held = self.use_held(client, part);
            let is_owner = self.lines.borrow().policy.is_dirty(key);
            if is_owner && let Some(old) = held {
                self.put(client, part, old, &bytes);
                return Ok(());
            }
            let fetches = held.is_none() && !is_whole;
            let pending = self.begin(part);
            let (line, dropped) = (name_of(key), self.take_dropped(server));
            let own = CacheRequest::Own { line, fetches, dropped };
            let (reply, fetched) = client.call_for_data(server, own).await?;
            if !matches!(reply, Reply::Line { .. }) {
                return Err(unexpected(&reply));
            }
            if fetched.as_ref().is_some_and(|line| line.length() < range.end) {
                return Err(too_short(key));
            }
            let is_stale = pending.end();
            // Another client may have become the owner, or have written what was here before.
            let old = match is_whole {
                true => Some(bytes.clone()),
                false => fetched.or_else(|| self.use_held(client, part)),
            };
            if let Some(old) = old.filter(|_| !is_stale) {
                self.put(client, part, old, &bytes);
                return Ok(());
            }
        }
        let cause = format!("other clients never stopped writing a line of {}", key.0);
        Err(Fault::TransferFailed { cause })
    }

    /// Tells if a part is a whole line. The last line of a file may have become longer, so one that
    /// is shorter than others never counts as whole.
    fn is_whole(&self, part: ByteRange) -> bool {
        part == ByteRange::at(0, self.line_bytes)
    }

    /// Puts bytes into an owned line.
    fn put(
        self: &Rc<Self>,
        client: &Client<W>,
        part: &LinePart,
        old: W::Payload,
        bytes: &W::Payload,
    ) {
        let new = patched(client.world(), old, part.range, bytes);
        self.take_in(client, part, new, true);
        self.lines.borrow_mut().policy.set_dirty(part.key, true);
    }

    /// Sends an owned line back to its server.
    pub(super) async fn send_back(
        &self,
        client: &Client<W>,
        (key, server): (LineKey, ServerId),
        keeps: bool,
        bytes: W::Payload,
    ) -> Result<(), Fault> {
        let line = name_of(key);
        self.send_bytes(client, server, || CacheRequest::WriteBack { line, keeps }, &bytes).await
    }

    /// Sends a request with data until the server has room for it. Each attempt is made anew: the
    /// server has taken the notes of the one before.
    async fn send_bytes(
        &self,
        client: &Client<W>,
        server: ServerId,
        request: impl Fn() -> CacheRequest,
        bytes: &W::Payload,
    ) -> Result<(), Fault> {
        loop {
            let sent = client.call_with_data(server, request(), Some(bytes.clone()));
            match sent.await?.0 {
                Reply::Done => return Ok(()),
                Reply::NoRoom => client.world().sleep(NO_ROOM_PAUSE).await,
                other => return Err(unexpected(&other)),
            }
        }
    }
}

/// Returns a line with other bytes in `range`.
fn patched<W: World>(
    world: &W,
    line: W::Payload,
    range: ByteRange,
    bytes: &W::Payload,
) -> W::Payload {
    let memory = world.thaw(line);
    memory.scatter(&[Run::contiguous(range.start, range.length())], bytes);
    memory.freeze()
}
