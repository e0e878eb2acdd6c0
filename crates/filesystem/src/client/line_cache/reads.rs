//! Reads of a client with a cache.

use super::cache::{LINES_AT_ONCE_MAX, LineCache, LinePart};
use crate::client::faults::unexpected;
use crate::client::state::Client;
use futures_util::future::{Either, select};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use policy::LineKey;
use std::pin::pin;
use std::rc::Rc;
use units::{ByteRange, Run, ServerId};
use wire::{CacheRequest, Fault, FileRecord, LineName, Reply};
use world::{Memory, Payload, World};

/// Maximum number of requests for a line that was not where its server said.
const TRIES_MAX: u32 = 1000;

impl<W: World> Client<W> {
    /// Reads `range` of a file through this client's cache into `memory`, from `memory_offset` on.
    /// Other clients change the file through their caches only.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] without a cache, [`Fault::PastEnd`] beyond the end of the file. Faults
    /// of the servers.
    ///
    /// # Panics
    /// Panics when the range does not fit the memory.
    pub async fn read_cached(
        &self,
        file: &FileRecord,
        range: ByteRange,
        memory: &W::Memory,
        memory_offset: u64,
    ) -> Result<(), Fault> {
        let cache = &self.line_cache()?;
        let reads = cache.parts(file, range)?.map(|part| async move {
            cache.until_few_leave().await;
            let _turn = cache.locks.turn(part.key).await;
            let line = cache.line(self, &part).await?;
            // The lookup costs what it costs a server.
            let costs = self.costs();
            self.world().compute(costs.cache_read + costs.copy(part.range.length())).await;
            let run = Run::contiguous(memory_offset + part.offset, part.range.length());
            memory.scatter(&[run], &line.slice(part.range.start, part.range.length()));
            Ok(())
        });
        stream::iter(reads).buffer_unordered(LINES_AT_ONCE_MAX).try_collect().await
    }
}

impl<W: World> LineCache<W> {
    /// Returns a line, from the cache or from wherever its server says. The caller has the turn of
    /// the line.
    pub(super) async fn line(
        self: &Rc<Self>,
        client: &Client<W>,
        part: &LinePart,
    ) -> Result<W::Payload, Fault> {
        let key = part.key;
        for _ in 0..TRIES_MAX {
            if let Some(line) = self.use_held(client, part) {
                self.counts.borrow_mut().hits += 1;
                return Ok(line);
            }
            let pending = self.begin(part);
            client.world().compute(client.costs().client_read).await;
            match self.ask(client, part.server, name_of(key)).await? {
                (Reply::Line { is_last_copy, .. }, Some(line)) => {
                    if line.length() < part.range.end {
                        return Err(too_short(key));
                    }
                    if !pending.end() {
                        self.take_in(client, part, line.clone(), is_last_copy);
                    }
                    return Ok(line);
                }
                (Reply::HasLine, _) => {
                    // The line came before the reply. It may have been invalidated since.
                    let _ = pending.end();
                    let lines = self.lines.borrow();
                    if lines.held.get(&key).is_some_and(|it| it.line.length() < part.range.end) {
                        return Err(too_short(key));
                    }
                }
                (reply, _) => return Err(unexpected(&reply)),
            }
        }
        let cause = format!("a line of {} was not where its server said", key.0);
        Err(Fault::TransferFailed { cause })
    }

    /// Takes a line into the cache.
    pub(super) fn take_in(
        self: &Rc<Self>,
        client: &Client<W>,
        part: &LinePart,
        line: W::Payload,
        is_last_copy: bool,
    ) {
        let lines = &mut *self.lines.borrow_mut();
        if let Some((key, evicted)) = lines.insert(part.key, line, part.server, is_last_copy) {
            self.begin_eviction(client, lines, key, evicted);
        }
    }

    /// Asks a server for a line. Asks again if a client leaves that may have had to send it.
    async fn ask(
        &self,
        client: &Client<W>,
        server: ServerId,
        line: LineName,
    ) -> Result<(Reply, Option<W::Payload>), Fault> {
        loop {
            let dropped = self.take_dropped(server);
            let request = CacheRequest::Read { line, dropped };
            let departures = self.departures.get();
            let answer = pin!(client.call_for_data(server, request));
            let in_vain = pin!(async {
                let has_changed = || (self.departures.get() != departures).then_some(());
                self.departed.until(has_changed).await;
                // The server still works on the request, or has said that a client sends the line.
                let settle = CacheRequest::Settle { line };
                client.call(server, settle).await
            });
            match select(answer, in_vain).await {
                Either::Left((answer, _)) => return answer,
                Either::Right((settled, _)) => _ = settled?,
            }
        }
    }
}

/// Returns the name of a line.
pub(super) fn name_of((file, line): LineKey) -> LineName {
    LineName { file, line }
}

/// Fault of a line that is shorter than the caller's record of the file says.
pub(super) fn too_short(key: LineKey) -> Fault {
    let cause = format!("{} is shorter than the record with which it is used", key.0);
    Fault::BadRequest { cause }
}
