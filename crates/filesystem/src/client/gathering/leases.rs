//! The life of a lease at the client that gathers writes.

use super::gatherings::Gathering;
use super::store::GatheredStore;
use crate::client::faults::unexpected;
use crate::client::state::Client;
use crate::scale::rare;
use futures_util::future::join_all;
use policy::Direction;
use std::rc::Rc;
use units::{Duration, FileId, Instant, ServerId};
use wire::{Fault, FileRequest, Reply, WriteGathered};
use world::World;

/// Time after which gathered writes are sent, although there is room for more.
const AGE_MAX: Duration = Duration::from_ms(500);

/// Time without a write after which a lease is returned: nobody has to recall it then.
const IDLE_MAX: Duration = Duration::from_ms(1_000);

impl<W: World> Client<W> {
    /// Begins to gather writes of an open file in `store`, if no server objects. False if one does,
    /// or the client does so already. It ends when a server or [`Client::settle`] ends it.
    ///
    /// # Errors
    /// Faults of the servers.
    pub async fn begin_gathering(
        &self,
        store: Rc<dyn GatheredStore<W::Payload>>,
    ) -> Result<bool, Fault> {
        let record = store.record();
        let gathering = Gathering::new(Rc::clone(&store), self.losses(record.servers()));
        if !self.gatherings().add(record.file, &gathering) {
            return Ok(false);
        }
        let (clock, since) = (self.world().clock(), self.world().now().as_ns());
        let lease = FileRequest::Lease { file: record.file, clock, since };
        let asked = record.servers().map(|server| self.call(server, lease.clone()));
        let replies = join_all(asked).await;
        let granted =
            |reply: &Result<Reply, Fault>| matches!(reply, Ok(Reply::Lease { is_granted: true }));
        if replies.iter().all(granted) && !gathering.is_recalled.get() {
            gathering.is_leased.set(true);
            store.permit(true);
            self.watch_gathering(record.file, &gathering);
            self.gatherings().changed.notify();
            return Ok(true);
        }
        let servers = record.servers().zip(&replies).filter(|(_, reply)| granted(reply));
        self.return_leases(record.file, servers.map(|(server, _)| server)).await;
        self.gatherings().end(record.file, &gathering);
        self.gatherings().changed.notify();
        for reply in replies {
            match reply? {
                Reply::Lease { .. } => {}
                other => return Err(unexpected(&other)),
            }
        }
        Ok(false)
    }

    /// Returns leases of a file of which nothing is gathered.
    pub(super) async fn return_leases(
        &self,
        file: FileId,
        servers: impl Iterator<Item = ServerId>,
    ) {
        let request = FileRequest::WriteGathered(Box::new(WriteGathered {
            file,
            since: 0,
            writes: Vec::new(),
            until: self.world().now().as_ns(),
            returns: true,
        }));
        // A server that has left, or has forgotten the lease, needs none back.
        let _ = self.call_each_server(servers, request).await;
    }

    /// Has the servers carry out the gathered writes of a file, if there are any. With `ends`,
    /// returns its lease too. Other calls of this client on the file begin with it.
    pub async fn settle(&self, file: FileId, ends: bool) {
        if let Some(gathering) = self.gatherings().of(file) {
            rare(self.settle_gathering(file, &gathering, ends)).await;
        }
    }

    /// As [`Client::settle`], for a call that tells of lost writes.
    ///
    /// # Errors
    /// The fault for which gathered writes of the file are lost, once.
    pub async fn settle_writes(&self, file: FileId, ends: bool) -> Result<(), Fault> {
        self.settle(file, ends).await;
        let failed = self.gatherings().take_failed(file);
        failed.and_then(|store| store.take_failure()).map_or(Ok(()), Err)
    }

    /// Settles a file and returns its lease, before a collective call.
    pub(crate) async fn settle_for(&self, direction: Direction, file: FileId) -> Result<(), Fault> {
        self.settle(file, true).await;
        match direction {
            Direction::Read => Ok(()),
            Direction::Write => self.settle_writes(file, true).await,
        }
    }

    async fn settle_gathering(
        &self,
        file: FileId,
        gathering: &Rc<Gathering<W::Payload>>,
        ends: bool,
    ) {
        if !gathering.is_leased.get() {
            if ends {
                // A lease that is being asked for must not begin later.
                gathering.is_recalled.set(true);
                let has_begun = || {
                    let is_there = self.gatherings().is_current(file, gathering);
                    (!is_there || gathering.is_leased.get()).then_some(())
                };
                self.gatherings().changed.until(has_begun).await;
            } else {
                return;
            }
        }
        let is_quiet = !gathering.is_flushing.get() && gathering.store.activity().oldest.is_none();
        if gathering.is_leased.get() && (ends || !is_quiet) {
            self.begin_flush(file, gathering, ends).await;
        }
    }

    /// Settles all files, and returns all leases.
    pub async fn settle_all(&self) {
        let files = self.gatherings().all();
        // Whoever closes a file learns why its writes are lost.
        join_all(files.into_iter().filter_map(|file| {
            let gathering = self.gatherings().of(file)?;
            Some(async move { self.settle_gathering(file, &gathering, true).await })
        }))
        .await;
    }

    /// Does what a server wants: sends the gathered writes of a file and, if `ends`, returns its
    /// lease.
    pub(in crate::client) fn recalled(&self, server: ServerId, file: FileId, ends: bool) {
        match self.gatherings().of(file) {
            Some(gathering) if gathering.is_leased.get() => {
                let client = self.clone();
                self.spawn(async move {
                    client.begin_flush(file, &gathering, ends).await;
                    Ok(())
                });
            }
            Some(gathering) => gathering.is_recalled.set(true),
            // The lease is on its way back, or the server has given one that was not asked for.
            None => {
                let client = self.clone();
                self.spawn(async move {
                    client.return_leases(file, std::iter::once(server)).await;
                    Ok(())
                });
            }
        }
    }

    /// Gathers nothing more of the files of a server that has left, and reads from none of its
    /// pages: it cannot recall anything any more.
    pub(in crate::client) fn lose_leases_of(&self, server: ServerId) {
        self.kept_files().drop_pages_of(server);
        for file in self.gatherings().all() {
            let Some(gathering) = self.gatherings().of(file) else { continue };
            if gathering.store.record().servers().any(|one| one == server) {
                gathering.store.permit(false);
                self.recalled(server, file, true);
            }
        }
    }

    /// Sends gathered writes that are old, and returns the lease when there is no new one.
    fn watch_gathering(&self, file: FileId, gathering: &Rc<Gathering<W::Payload>>) {
        let (world, gathering) = (self.world().clone(), Rc::downgrade(gathering));
        let weak = self.downgrade();
        self.spawn(async move {
            loop {
                world.sleep(AGE_MAX).await;
                let (Some(client), Some(gathering)) = (weak.upgrade(), gathering.upgrade()) else {
                    return Ok(());
                };
                let now = world.now();
                let activity = gathering.store.activity();
                let is_older = |stamp, age| now.since(Instant::from_ns(stamp).min(now)) >= age;
                let ends = is_older(activity.latest, IDLE_MAX);
                if ends || activity.oldest.is_some_and(|oldest| is_older(oldest, AGE_MAX)) {
                    client.begin_flush(file, &gathering, ends).await;
                }
            }
        });
    }
}
