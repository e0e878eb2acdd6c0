//! Pages that servers let a client keep, until they recall them.

use super::kept_files::KeptFile;
use super::store::KeptStore;
use crate::client::faults::unexpected;
use crate::client::state::Client;
use futures_util::future::join_all;
use std::rc::Rc;
use units::{Duration, FileId, Instant, ServerId};
use wire::{BlockRequest, Fault, FileRecord, Reply};
use world::{Payload, World};

/// Time between two checks of the servers of kept pages.
const CHECK_INTERVAL: Duration = Duration::from_ms(500);

/// Time without a read after which pages are dropped: nobody has to recall them then.
const IDLE_MAX: Duration = Duration::from_ms(1_000);

impl<W: World> Client<W> {
    /// Returns page `number` of an open file, and true if the client may keep it in `store`. The
    /// store is told when it must drop its pages.
    ///
    /// # Errors
    /// As [`Client::page`].
    pub async fn page_to_keep(
        &self,
        file: &FileRecord,
        number: u64,
        store: Rc<dyn KeptStore>,
    ) -> Result<(W::Payload, bool), Fault> {
        let length = file.stripe.block_range(number, file.bytes).length();
        if length == 0 {
            let cause = format!("{:?} of {} bytes has no page {number}", file.name, file.bytes);
            return Err(Fault::BadRequest { cause });
        }
        self.settle(file.file, false).await;
        let kept = self.kept_file(file, store);
        if let Some(kept) = &kept {
            let is_told = || (kept.telling.get() == 0).then_some(());
            self.kept_files().changed.until(is_told).await;
        }
        let request = BlockRequest::PageToKeep { file: file.file, block: number };
        let answer = self.call_for_data(file.server_of(number), request).await?;
        match answer {
            (Reply::Lease { is_granted }, Some(page))
                if page.length() <= file.stripe.block_bytes =>
            {
                // A page that nobody could recall must not be kept.
                let is_known = kept.is_some_and(|kept| {
                    kept.has_pages.set(kept.has_pages.get() || is_granted);
                    !kept.has_left.get() && self.kept_files().is_current(file.file, &kept)
                });
                Ok((page, is_granted && is_known))
            }
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// Returns the entry of a file, if there may be one.
    fn kept_file(&self, file: &FileRecord, store: Rc<dyn KeptStore>) -> Option<Rc<KeptFile>> {
        if let Some(known) = self.kept_files().of(file.file) {
            let is_same = known.store.identity() == store.identity();
            return is_same.then_some(known);
        }
        let kept = self.kept_files().add(file.file, store, file.servers().collect())?;
        self.watch_kept(file.file, &kept);
        Some(kept)
    }

    /// Drops the pages of a file because a server wants to have them changed, and tells it.
    pub(in crate::client) fn pages_recalled(&self, file: FileId, server: ServerId) {
        let kept = self.kept_files().of(file);
        if let Some(kept) = &kept {
            // Those of other servers too: a program that writes a file writes at all of them.
            kept.store.drop_pages();
            kept.telling.update(|servers| servers + 1);
        }
        let client = self.clone();
        self.spawn(async move {
            let told = client.call(server, BlockRequest::DroppedPages { file });
            // A server that has left knows it.
            let _ = told.await;
            if let Some(kept) = kept {
                kept.telling.update(|servers| servers - 1);
                client.kept_files().changed.notify();
            }
            Ok(())
        });
    }

    /// Drops the pages of a file that this client closes. Its close tells the servers.
    pub(in crate::client) fn forget_kept(&self, file: FileId) {
        let Some(kept) = self.kept_files().of(file) else { return };
        kept.store.drop_pages();
        // A server that is being told must know it before another page is asked for.
        if kept.telling.get() == 0 {
            self.kept_files().remove(file);
        }
    }

    /// Pings the servers of kept pages, and notes that they know this client if all answer.
    async fn confirm(&self, kept: &Rc<KeptFile>) {
        let at = self.world().now().as_ns();
        let peers = kept.servers.iter().filter_map(|server| self.0.servers().peer(*server));
        let answered = join_all(peers.map(|peer| self.world().ping(peer))).await;
        if !kept.has_left.get() && answered.iter().all(Result::is_ok) {
            kept.store.confirm(at);
        }
    }

    /// Drops pages that nobody reads from any more.
    fn watch_kept(&self, file: FileId, kept: &Rc<KeptFile>) {
        let (world, kept) = (self.world().clone(), Rc::downgrade(kept));
        let weak = self.downgrade();
        self.spawn(async move {
            loop {
                world.sleep(CHECK_INTERVAL).await;
                let (Some(client), Some(kept)) = (weak.upgrade(), kept.upgrade()) else {
                    return Ok(());
                };
                let is_idle = || {
                    let (now, used) = (world.now(), Instant::from_ns(kept.store.used_at()));
                    now.since(used.min(now)) >= IDLE_MAX && kept.telling.get() == 0
                };
                if !is_idle() {
                    client.confirm(&kept).await;
                    continue;
                }
                kept.store.drop_pages();
                if kept.has_pages.replace(false) {
                    kept.telling.update(|servers| servers + 1);
                    let dropped = BlockRequest::DroppedPages { file };
                    let _ = client.call_each_server(kept.servers.iter().copied(), dropped).await;
                    kept.telling.update(|servers| servers - 1);
                    client.kept_files().changed.notify();
                }
                if is_idle() {
                    if client.kept_files().is_current(file, &kept) {
                        client.kept_files().remove(file);
                    }
                    return Ok(());
                }
            }
        });
    }
}
