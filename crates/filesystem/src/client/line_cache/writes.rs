//! Writes of a client with a cache.

use super::cache::{LINES_AT_ONCE_MAX, LineCache, LinePart};
use crate::client::faults::unexpected;
use crate::client::state::Client;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use policy::{LineKey, WriteMiss, WritePolicy};
use std::rc::Rc;
use units::{ByteRange, Duration, Run, ServerId};
use wire::{CacheRequest, Fault, FileRecord, LineName, Reply, Request};
use world::{Memory, World};

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
    /// does not extend it. Faults of the servers.
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
        let writes = cache.parts(file, range)?.into_iter().map(|part| async move {
            let run = Run::contiguous(memory_offset + part.offset, part.range.length());
            let bytes = memory.gather(&[run]);
            cache.until_few_leave().await;
            let _turn = cache.locks.turn(part.key).await;
            self.world().compute(self.costs().client_write).await;
            cache.write(self, &part, bytes).await
        });
        stream::iter(writes).buffer_unordered(LINES_AT_ONCE_MAX).try_collect().await
    }

    /// Sends the servers what this client's cache has written of a file, and waits until the disks
    /// have it; if `sync`, until it is on stable storage.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] without a cache. Faults of the servers.
    pub async fn flush_cached(&self, file: &FileRecord, sync: bool) -> Result<(), Fault> {
        self.write_cache_back(file).await?;
        self.flush(file, sync).await
    }

    /// Sends the servers what this client's cache has written of a file.
    pub(crate) async fn write_cache_back(&self, file: &FileRecord) -> Result<(), Fault> {
        let cache = &self.line_cache()?;
        let none_leaves = || {
            let lines = cache.lines.borrow();
            let mut leaving = lines.leaving.iter();
            (!leaving.any(|(key, line)| key.0 == file.file && line.is_dirty)).then_some(())
        };
        cache.left.until(none_leaves).await;
        let dirty = cache.lines.borrow().policy.dirty_lines(file.file);
        let written = dirty.into_iter().map(|key| async move {
            let _turn = cache.locks.turn(key).await;
            let dirty = {
                let lines = cache.lines.borrow();
                let held = lines.held.get(&key).filter(|_| lines.policy.is_dirty(key));
                held.map(|held| (held.line.clone(), held.server))
            };
            let Some((line, server)) = dirty else { return Ok(()) };
            cache.send_back(self, (key, server), true, line).await?;
            // Unless another client wanted it meanwhile, it is this client's alone no more.
            cache.lines.borrow_mut().policy.set_dirty(key, false);
            Ok(())
        });
        stream::iter(written).buffer_unordered(LINES_AT_ONCE_MAX).try_collect().await
    }
}

impl<W: World> LineCache<W> {
    /// Writes the part of a line. The caller has the turn of the line.
    async fn write(
        self: &Rc<Self>,
        client: &Client<W>,
        part: &LinePart,
        bytes: W::Payload,
    ) -> Result<(), Fault> {
        let held = self.use_held(client, part.key).is_some();
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
        let LinePart { key, server, length, range, .. } = *part;
        let is_whole = range == ByteRange::at(0, length);
        if keeps {
            if !is_whole {
                // The rest of the line must be here too.
                self.line(client, part).await?;
            }
            client.world().compute(client.costs().copy(range.length())).await;
        }
        // The server will not update the part of this cache that it manages.
        self.drop_global(key);
        let pending = self.begin(part);
        let line = LineName { file: key.0, line: key.1 };
        let write = CacheRequest::Write { line, offset: range.start, keeps };
        self.send_bytes(client, server, &Request::Cache(Box::new(write)), &bytes).await?;
        let is_stale = pending.end();
        if is_stale || !keeps {
            self.lines.borrow_mut().invalidate(key);
            return Ok(());
        }
        // Without the rest of the line, which was evicted meanwhile, it is not kept.
        let old = if is_whole { Some(bytes.clone()) } else { self.use_held(client, key) };
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
        let LinePart { key, server, length, range, .. } = *part;
        let is_whole = range == ByteRange::at(0, length);
        client.world().compute(client.costs().copy(range.length())).await;
        for _ in 0..OWN_TRIES_MAX {
            let held = self.use_held(client, key);
            let is_owner = self.lines.borrow().policy.is_dirty(key);
            if is_owner && let Some(old) = held {
                self.put(client, part, old, &bytes);
                return Ok(());
            }
            let fetches = held.is_none() && !is_whole;
            let pending = self.begin(part);
            let line = LineName { file: key.0, line: key.1 };
            let own = Request::Cache(Box::new(CacheRequest::Own { line, fetches }));
            let (reply, fetched) = client.call_for_data(server, own).await?;
            if !matches!(reply, Reply::Line { .. }) {
                return Err(unexpected(&reply));
            }
            self.drop_global(key);
            let is_stale = pending.end();
            // Another client may have become the owner, or have written what was here before.
            let old = match is_whole {
                true => Some(bytes.clone()),
                false => fetched.or_else(|| self.use_held(client, key)),
            };
            if let Some(old) = old.filter(|_| !is_stale) {
                self.put(client, part, old, &bytes);
                return Ok(());
            }
        }
        let cause = format!("other clients never stopped writing a line of {}", key.0);
        Err(Fault::TransferFailed { cause })
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

    /// Drops a line from the part of the cache that servers manage.
    fn drop_global(&self, key: LineKey) {
        let lines = &mut *self.lines.borrow_mut();
        lines.policy.drop_global(key);
        if !lines.policy.holds_itself(key) {
            lines.held.remove(&key);
        }
    }

    /// Sends an owned line back to its server.
    pub(super) async fn send_back(
        &self,
        client: &Client<W>,
        (key, server): (LineKey, ServerId),
        keeps: bool,
        bytes: W::Payload,
    ) -> Result<(), Fault> {
        let line = LineName { file: key.0, line: key.1 };
        let request = Request::Cache(Box::new(CacheRequest::WriteBack { line, keeps }));
        self.send_bytes(client, server, &request, &bytes).await
    }

    /// Sends a request with data until the server has room for it.
    async fn send_bytes(
        &self,
        client: &Client<W>,
        server: ServerId,
        request: &Request,
        bytes: &W::Payload,
    ) -> Result<(), Fault> {
        loop {
            let sent = client.call_with_data(server, request.clone(), Some(bytes.clone()));
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
