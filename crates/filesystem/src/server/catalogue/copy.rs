//! Copy of the catalogue at a server that does not keep the catalogue.
//!
//! Invariants:
//! - The records and the position of a copy change together.
//! - A copy whose position is 0 is not whole.

use super::copies::{POSITION_KEY, position_of};
use crate::server::faults::records_fault;
use crate::task_lock::TaskLock;
use std::cell::Cell;
use units::ServerId;
use wire::{CatalogueChange, Fault};
use world::{RecordChange, RecordTable, World};

/// Copy of the records of the catalogue.
pub(crate) struct CatalogueCopy<W> {
    world: W,
    server: ServerId,
    position: Cell<u64>,
    /// Held while the copy changes.
    change: TaskLock,
}

impl<W: World> CatalogueCopy<W> {
    /// Finds out the position of the copy in the records of this node.
    pub(crate) async fn load(world: W, server: ServerId) -> Result<Self, Fault> {
        let records = world.records(RecordTable::CatalogueCopy).await;
        let records = records.map_err(|error| records_fault(server, &error))?;
        let position = Cell::new(position_of(&records));
        Ok(Self { world, server, position, change: TaskLock::default() })
    }

    /// Changes the copy, if it has the position that the change needs. Returns its position.
    pub(crate) async fn change(&self, change: CatalogueChange) -> Result<u64, Fault> {
        let _one_at_a_time = self.change.lock().await;
        let CatalogueChange { from, to, records } = change;
        if from.is_some_and(|from| from != self.position.get()) {
            return Ok(self.position.get());
        }
        let mut changes = Vec::with_capacity(records.len() + 1);
        if from.is_none() {
            let all = self.world.records(RecordTable::CatalogueCopy).await;
            let all = all.map_err(|error| records_fault(self.server, &error))?;
            changes.extend(all.into_iter().map(|(key, _)| RecordChange::remove(key)));
        }
        changes.extend(records.into_iter().map(|(key, value)| RecordChange { key, value }));
        changes.push(RecordChange::put(POSITION_KEY, wire::encode_record(&to)));
        let changed = self.world.record_change(RecordTable::CatalogueCopy, changes).await;
        changed.map_err(|error| records_fault(self.server, &error))?;
        self.position.set(to);
        Ok(to)
    }
}
