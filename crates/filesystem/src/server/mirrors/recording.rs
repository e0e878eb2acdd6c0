//! Record in the catalogue that copies of this server's parts may be behind.
//!
//! Invariant: while it may be recorded, there is a mark of it here, which outlives those of files.

use super::copy_calls::unexpected;
use super::mirrors::{CATALOGUE, Mirrors};
use std::rc::Rc;
use wire::{CatalogueRequest, Fault, Reply};
use world::World;

impl<W: World> Mirrors<W> {
    /// Records with the catalogue whether copies may be behind, unless that is not so any more.
    pub(crate) async fn record(&self, is_behind: bool) -> Result<(), Fault> {
        let _one_at_a_time = self.recording.lock().await;
        // Of parts that are lost, the copies lack changes for good.
        let is_one = self.files_behind() > 0 || self.lacking.has_lost_mirrored();
        let is_over = is_behind != is_one;
        if is_over || self.is_recorded.get() == Some(is_behind) {
            return Ok(());
        }
        if is_behind {
            self.marks.mark_behind().await?;
        }
        self.is_recorded.set(None);
        self.must_clear.set(true);
        match &self.catalogue {
            Some(catalogue) => {
                let (catalogue, own) = (Rc::clone(catalogue), self.own);
                let set = async move { catalogue.set_behind(own, is_behind).await };
                self.to_its_end(set).await?;
            }
            None => {
                let server = self.own;
                let request = CatalogueRequest::SetBehind { server, is_behind };
                self.others.reach_again(CATALOGUE).await?;
                self.others.call(CATALOGUE, request, None).await?;
            }
        }
        self.is_recorded.set(Some(is_behind));
        self.must_clear.set(is_behind);
        if !is_behind {
            self.marks.unmark_behind();
        }
        // It is to be cleared again.
        self.fell_behind.notify();
        Ok(())
    }

    /// Has the catalogue told that no copy is behind, once none is: what copies may lack of lost
    /// disks is known otherwise.
    pub(crate) fn clear_record(&self) {
        self.must_clear.set(true);
        self.fell_behind.notify();
    }

    /// True if the catalogue has recorded that copies of this server's parts may be behind.
    pub(crate) async fn are_recorded_behind(&self) -> Result<bool, Fault> {
        if let Some(is_recorded) = self.is_recorded.get() {
            return Ok(is_recorded);
        }
        match &self.catalogue {
            Some(catalogue) => Ok(catalogue.behind().contains(&self.own)),
            None => match self.others.call(CATALOGUE, CatalogueRequest::Behind, None).await? {
                (Reply::Servers(servers), _) => Ok(servers.contains(&self.own)),
                (other, _) => Err(unexpected(&other)),
            },
        }
    }
}
