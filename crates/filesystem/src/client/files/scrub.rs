//! Scrubbing of files.

use crate::client::faults::unexpected;
use crate::client::state::Client;
use futures_util::future::join_all;
use units::DiskId;
use wire::{Fault, FileRecord, FileRequest, Reply, ScrubRequest, Scrubbed};
use world::World;

impl<W: World> Client<W> {
    /// Has all servers of a file, open or not, read what they have of it, compare it with copies,
    /// and repair what is damaged.
    ///
    /// # Errors
    /// The first fault of a server, or of one with a copy. Damage is none.
    pub async fn scrub(&self, record: &FileRecord) -> Result<Scrubbed, Fault> {
        let disks = (0..record.stripe.disks_per_server).map(DiskId);
        let parts = record.servers().flat_map(|server| disks.clone().map(move |it| (server, it)));
        let scrubs = parts.map(async |(server, disk)| {
            let mut all = Scrubbed::default();
            let mut next = Some(0);
            while let Some(offset) = next {
                let request = ScrubRequest { record: record.clone(), disk, offset };
                match self.call(server, FileRequest::Scrub(Box::new(request))).await? {
                    Reply::Scrubbed(found) => {
                        next = found.next;
                        all.add(found);
                    }
                    other => return Err(unexpected(&other)),
                }
            }
            Ok(all)
        });
        let mut all = Scrubbed::default();
        for found in join_all(scrubs).await {
            all.add(found?);
        }
        Ok(all)
    }
}
