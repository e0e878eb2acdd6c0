//! Places of lines in blocks, and what happens to lines that the server's cache evicts.

use super::registered::name_of;
use crate::line_locks::LineTurn;
use crate::server::Server;
use crate::server::files::open_file::OpenFile;
use std::rc::Rc;
use units::{ByteRange, PeerId};
use wire::{CacheCommand, Fault, LineName};
use world::{Payload, World};

/// Number of lines that a client is told to drop for others and has not confirmed, at which it is
/// asked to.
const UNCONFIRMED_MAX: usize = 1024;

/// Number of no connection.
const NOBODY: PeerId = PeerId(u32::MAX);

/// Place of a line.
pub(super) struct LinePlace {
    pub(super) file: Rc<OpenFile>,
    pub(super) block: u64,
    /// Bytes of the line in the block.
    pub(super) range: ByteRange,
}

impl<W: World> Server<W> {
    /// Returns the place of a line, if this server has it. From now on the file changes through
    /// caches only: waits for other changes that have begun.
    pub(super) async fn place_of_line(
        &self,
        client: PeerId,
        name: LineName,
    ) -> Result<LinePlace, Fault> {
        let caches = self.client_caches();
        let bad = |cause: String| Err(Fault::BadRequest { cause });
        let (line_bytes, file) = loop {
            let (line_bytes, file) = (caches.line_bytes(client)?, self.files().get(name.file)?);
            let block_bytes = file.stripe.block_bytes;
            if !block_bytes.is_multiple_of(line_bytes) {
                return bad(format!(
                    "a block of the file has {block_bytes} bytes, which is no multiple of the \
                     {line_bytes} bytes of a block of the client's cache"
                ));
            }
            if caches.files.is_cached(name.file) {
                break (line_bytes, file);
            }
            if caches.files.begin_use(name.file).await {
                // Other ways may have changed the file since these blocks were evicted.
                self.cache().evicted().forget_file(name.file);
            }
        };
        let block_bytes = file.stripe.block_bytes;
        let start = name.line.checked_mul(line_bytes).filter(|start| *start < file.bytes());
        let Some(start) = start else { return Err(file.past_end()) };
        let block = start / block_bytes;
        if file.server_of(block) != self.config().id {
            return bad(format!("block {block} of {:?} is not on this server", file.name()));
        }
        let length = line_bytes.min(file.bytes() - start);
        Ok(LinePlace { file, block, range: ByteRange::at(start % block_bytes, length) })
    }

    /// Gives the lines that the server's cache has evicted to the global parts of clients. Called
    /// after everything that may evict, before anything else is done with these lines.
    pub(super) fn store_evicted(self: &Rc<Self>) {
        let caches = self.client_caches();
        while let Some(evicted) = self.cache().evicted().take() {
            let Some(line_bytes) = caches.shared.borrow().as_ref().map(|it| it.line_bytes) else {
                continue;
            };
            let (file, block) = evicted.key;
            // Other ways change a file that is not in caches, and would not change its copies.
            let length = evicted.payload.length();
            // A block that was the last one may have become longer.
            let is_whole = self.files().get(file).is_ok_and(|it| it.block_length(block) == length);
            let fits = evicted.block_bytes.is_multiple_of(line_bytes) && is_whole;
            if !caches.files.is_cached(file) || !fits {
                continue;
            }
            let first = block * (evicted.block_bytes / line_bytes);
            for (line, offset) in (first..).zip((0..length).step_by(line_bytes as usize)) {
                while let Some(client) = caches.next_slow() {
                    self.world().disconnect(client);
                    self.forget(client);
                }
                let stored = caches.with(|directory| directory.evicted_by_server((file, line)));
                let Some(stored) = stored.flatten() else { continue };
                let body = evicted.payload.slice(offset, line_bytes.min(length - offset));
                let (line, replaces) = (name_of((file, line)), stored.replaces.map(name_of));
                let store = CacheCommand::Store { line, replaces };
                caches.command(stored.client, store, Some(body));
                self.bound_unconfirmed(stored.client);
            }
        }
    }

    /// Asks a client for an answer if the directory waits for one to forget many lines.
    fn bound_unconfirmed(self: &Rc<Self>, client: PeerId) {
        let caches = self.client_caches();
        let unconfirmed = caches.with(|directory| directory.unconfirmed(client)).unwrap_or(0);
        if unconfirmed < UNCONFIRMED_MAX || !caches.begin_confirmation(client) {
            return;
        }
        let server = Rc::clone(self);
        self.changes().spawn(async move {
            server.client_caches().confirm(client).await;
            Ok(())
        });
    }

    /// Has clients drop the last line of a file in their caches if it is not whole, before the file
    /// grows. No other request for the line is served while the returned turn lives. `None` if
    /// there is no such line on this server.
    pub(crate) async fn drop_last_line(
        self: &Rc<Self>,
        file: &Rc<OpenFile>,
    ) -> Result<Option<LineTurn<'_>>, Fault> {
        let caches = self.client_caches();
        let line_bytes = caches.shared.borrow().as_ref().map(|shared| shared.line_bytes);
        let (Some(line_bytes), end) = (line_bytes, file.bytes()) else { return Ok(None) };
        let (block, length) = (end / file.stripe.block_bytes, end % line_bytes);
        if length == 0 || file.server_of(block) != self.config().id {
            return Ok(None);
        }
        let key = (file.file, end / line_bytes);
        let turn = caches.locks.turn(key).await;
        let range = ByteRange::at((end - length) % file.stripe.block_bytes, length);
        let place = LinePlace { file: Rc::clone(file), block, range };
        self.recall(NOBODY, key, &place).await?;
        let stale = caches.with(|directory| directory.write(NOBODY, key, false));
        self.invalidate(stale.unwrap_or_default(), name_of(key)).await;
        Ok(Some(turn))
    }

    /// Ends the use of a cache by a client.
    pub(crate) fn end_client_cache(&self, client: PeerId) {
        self.client_caches().leave(client);
        if !self.client_caches().are_in_use() {
            self.cache().evicted().forget();
        }
    }
}
