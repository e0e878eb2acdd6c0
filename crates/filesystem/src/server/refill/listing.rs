//! List of what a new directory lacks: its part, and its copy, of every file of the catalogue.
//!
//! A file that is made meanwhile may be on the list too. Its copy has all that it has.

use super::RETRY_PAUSE;
use super::lacking::LackingFile;
use crate::server::catalogue::Catalogue;
use crate::server::mirrors::{CATALOGUE, FIRST, unexpected};
use crate::server::state::Server;
use policy::Protection;
use std::rc::Rc;
use tracing::{info, warn};
use units::{DiskId, FileId};
use wire::{CatalogueRequest, Entry, Fault, FileRecord, Reply};
use world::World;

impl<W: World> Server<W> {
    /// Lists what new directories lack, once.
    pub(crate) async fn list_lacking(self: &Rc<Self>) {
        let disks = self.lacking().unlisted();
        if disks.is_empty() {
            return;
        }
        loop {
            match self.list_files(&disks).await {
                Ok(files) => {
                    info!(files, "new data directories are filled from copies");
                    return;
                }
                Err(fault) => warn!(%fault, "it is not known yet what new directories lack"),
            }
            self.world().sleep(RETRY_PAUSE).await;
        }
    }

    async fn list_files(self: &Rc<Self>, disks: &[DiskId]) -> Result<usize, Fault> {
        // What the copies of this server's parts lack is not known any more.
        let is_behind = self.mirrors().are_recorded_behind().await?;
        let (mut after, mut count) = (None, 0);
        loop {
            let (entries, more) = self.files_behind(after).await?;
            let files = entries.into_iter().map(Entry::into_file);
            let files = files.collect::<Result<Vec<FileRecord>, Fault>>()?;
            after = files.last().map(|file| file.file).or(after);
            if !self.config().read_only {
                // What was recorded of them may be lost, too.
                let protected = files.iter().filter(|file| file.protection != Protection::None);
                let protected: Vec<_> =
                    protected.map(|file| (file.file, file.protection)).collect();
                self.files().protect(&protected).await?;
            }
            let lacking = files.into_iter().filter_map(|file| self.lacks(file, disks, is_behind));
            let lacking: Vec<LackingFile> = lacking.collect();
            count += lacking.len();
            self.lacking().list(lacking).await?;
            if !more {
                break;
            }
        }
        self.lacking().all_listed().await?;
        self.mirrors().begin_filling();
        self.mirrors().clear_record();
        Ok(count)
    }

    /// Asks the catalogue for files behind `after`.
    async fn files_behind(
        self: &Rc<Self>,
        after: Option<FileId>,
    ) -> Result<(Vec<Entry>, bool), Fault> {
        let reply = match self.catalogue().map(|catalogue| Catalogue::all_files(catalogue, after)) {
            Some(reply) => reply,
            None => {
                self.others().reach_again(CATALOGUE).await?;
                let files = CatalogueRequest::Files { after };
                self.others().call(CATALOGUE, files, None).await?.0
            }
        };
        match reply {
            Reply::Entries { entries, more } => Ok((entries, more)),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns what new directories of these disks lack of a file, if anything. `is_behind` says
    /// that copies of what this server had may lack changes.
    fn lacks(&self, record: FileRecord, disks: &[DiskId], is_behind: bool) -> Option<LackingFile> {
        let place = record.place_of(self.config().id)?;
        let stripe = &record.stripe;
        let used = |disk: &&DiskId| disk.0 < stripe.disks_per_server;
        let own: Vec<DiskId> = disks.iter().filter(used).copied().collect();
        if own.is_empty() {
            return None;
        }
        let is_mirrored = record.protection != Protection::None;
        let has_copy = record.protection.copied_at(place, stripe.servers).is_some()
            || record.protection.rows(stripe).is_some();
        let copy = if has_copy { own.clone() } else { Vec::new() };
        // With the marks, it is known which copies may lack changes.
        let may_lack = is_behind && (disks.contains(&FIRST) || self.mirrors().is_marked(&record));
        let is_lost = !is_mirrored || may_lack;
        let is_unmarked = disks.contains(&FIRST) && own.len() < stripe.disks_per_server as usize;
        Some(LackingFile { record, own, copy, is_lost, is_unmarked })
    }
}
