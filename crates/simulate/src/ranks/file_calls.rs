//! Calls of files that are the same for ranks of a job and clients of the papers.

use crate::scenario::Scenario;
use filesystem::{Client, Fault, NewFile};
use policy::Pool;
use program::{OpenedFile, Rank, meet};
use std::cell::RefCell;
use trace::Collective;
use wire::{FileRecord, Made};
use world::payload::Kind;
use world_simulated::SimulatedWorld;

/// A file as one rank knows it.
pub(super) struct KnownFile<'a, P: Kind> {
    pub(super) client: &'a Client<SimulatedWorld<P>>,
    pub(super) opened: &'a OpenedFile,
    pub(super) record: &'a RefCell<FileRecord>,
}

/// File of a scenario, with a name and a size.
pub(crate) fn new_file(scenario: &Scenario, name: &str, bytes: u64) -> NewFile {
    NewFile {
        name: name.to_owned(),
        bytes,
        stripe: scenario.stripe(),
        pool: Pool::all(scenario.servers),
        buffering: scenario.buffering(),
        protection: scenario.protection,
        made: Made::default(),
    }
}

impl<P: Kind> KnownFile<'_, P> {
    pub(super) async fn sync(&self, rank: &impl Rank<Error = Fault>) -> Result<(), Fault> {
        meet(rank, self.opened, Collective::AllReduce, 8).await?;
        if self.opened.place == 0 {
            let record = self.record.borrow().clone();
            self.client.flush(&record, true).await?;
        }
        meet(rank, self.opened, Collective::AllReduce, 8).await
    }

    pub(super) async fn set_size(
        &self,
        rank: &impl Rank<Error = Fault>,
        bytes: u64,
        only_grows: bool,
    ) -> Result<(), Fault> {
        meet(rank, self.opened, Collective::AllReduce, 8).await?;
        if self.opened.place == 0 {
            let mut record = self.record.borrow().clone();
            match only_grows {
                true => self.client.grow(&mut record, bytes).await?,
                false => self.client.set_size(&mut record, bytes).await?,
            }
            *self.record.borrow_mut() = record;
        }
        meet(rank, self.opened, Collective::AllReduce, 8).await?;
        if self.opened.place != 0 {
            let mut record = self.record.borrow().clone();
            self.client.catch_up(&mut record).await?;
            *self.record.borrow_mut() = record;
        }
        Ok(())
    }

    pub(super) async fn get_size(&self) -> Result<(), Fault> {
        let mut record = self.record.borrow().clone();
        self.client.refresh(&mut record).await?;
        *self.record.borrow_mut() = record;
        Ok(())
    }
}

/// Removes a file. It is no error if it does not exist.
pub(super) async fn delete<P: Kind>(
    client: &Client<SimulatedWorld<P>>,
    name: &str,
) -> Result<(), Fault> {
    match client.remove(name).await {
        Err(Fault::NoSuchFile { .. }) => Ok(()),
        other => other,
    }
}
