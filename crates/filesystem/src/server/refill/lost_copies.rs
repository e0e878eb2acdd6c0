//! Copies that this server has lost are written anew by the servers of whose parts they are copies.

use super::RETRY_PAUSE;
use crate::server::state::Server;
use futures_util::future::{Either, join_all, select};
use std::pin::pin;
use std::rc::Rc;
use tracing::debug;
use units::{Duration, FileId, ServerId};
use wire::{Fault, ObjectRequest};
use world::World;

/// Number of files that one other server may be writing anew.
const FILES_AT_ONCE: usize = 64;

/// Time after which servers are told again of copies that they have not written anew.
const ROOM_TIMEOUT: Duration = Duration::from_ms(30_000);

impl<W: World> Server<W> {
    /// Tells other servers which copies of their parts are lost here, a few at a time, until they
    /// have written all anew.
    pub(super) async fn announce_lost_copies(self: &Rc<Self>) {
        loop {
            let some = || Some(self.lacking().lost_copies()).filter(|lost| !lost.is_empty());
            let lost = self.lacking().until_grown(some).await;
            let announced = lost.into_iter().map(|(owner, files)| self.announce(owner, files));
            join_all(announced).await;
            if some().is_some() {
                // What a server that was told has lost since is told again.
                self.world().sleep(RETRY_PAUSE).await;
            }
        }
    }

    async fn announce(self: &Rc<Self>, owner: ServerId, files: Vec<FileId>) {
        let mut renewed = Vec::<FileId>::new();
        for file in files {
            let has_room = || {
                renewed.retain(|file| self.lacking().is_copy_lost(*file));
                (renewed.len() < FILES_AT_ONCE).then_some(())
            };
            // One that has ended since is told again.
            let limit = self.world().sleep(ROOM_TIMEOUT);
            if let Either::Right(_) =
                select(pin!(self.lacking().until(has_room)), pin!(limit)).await
            {
                return;
            }
            match self.announce_file(owner, file).await {
                Ok(()) => renewed.push(file),
                Err(fault) => {
                    debug!(file = file.0, %fault, "a lost copy could not be announced");
                    if matches!(fault, Fault::ServerLeft { .. }) {
                        return;
                    }
                }
            }
        }
        let all = self.lacking().until(|| {
            renewed.retain(|file| self.lacking().is_copy_lost(*file));
            renewed.is_empty().then_some(())
        });
        let _ = select(pin!(all), pin!(self.world().sleep(ROOM_TIMEOUT))).await;
    }

    async fn announce_file(self: &Rc<Self>, owner: ServerId, file: FileId) -> Result<(), Fault> {
        let Some(lacking) = self.lacking().of(file).filter(|known| !known.copy.is_empty()) else {
            return Ok(());
        };
        let lost = ObjectRequest::LostCopy { record: Box::new(lacking.record) };
        match self.others().call(owner, lost, None).await {
            // It was removed there.
            Err(Fault::NoSuchFile { .. }) => {
                self.lacking().whole(file, |left| left.copy.clear()).await
            }
            answered => answered.map(|_| ()),
        }
    }
}
