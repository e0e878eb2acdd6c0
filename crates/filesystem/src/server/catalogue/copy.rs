//! Copy of the catalogue at a server that does not keep the catalogue.
//!
//! Invariants:
//! - The records and the position of a copy change together.
//! - A copy whose position is 0 is not whole.
//! - All records of one reading are those of one position.

use super::copies::{MESSAGE_BYTES, POSITION_KEY, position_of};
use crate::server::faults::records_fault;
use crate::task_lock::TaskLock;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use units::ServerId;
use wire::{CatalogueChange, Fault, Reply};
use world::{RecordChange, RecordTable, World};

/// Records and their keys.
type Keyed = Vec<(u64, Vec<u8>)>;

/// Copy of the records of the catalogue.
pub(crate) struct CatalogueCopy<W> {
    world: W,
    server: ServerId,
    position: Cell<u64>,
    /// Records that somebody reads part by part, until the last part or the next change.
    read: RefCell<Option<Rc<Keyed>>>,
    /// Held while the copy changes.
    change: TaskLock,
}

impl<W: World> CatalogueCopy<W> {
    /// Finds out the position of the copy in the records of this node.
    pub(crate) async fn load(world: W, server: ServerId) -> Result<Self, Fault> {
        let records = world.records(RecordTable::CatalogueCopy).await;
        let records = records.map_err(|error| records_fault(server, &error))?;
        let position = Cell::new(position_of(&records));
        let (read, change) = (RefCell::default(), TaskLock::default());
        Ok(Self { world, server, position, read, change })
    }

    /// Reads some of the records, by their keys, that come after one.
    pub(crate) async fn read(&self, after: Option<u64>) -> Result<Reply, Fault> {
        let _one_at_a_time = self.change.lock().await;
        let known = self.read.borrow().clone().filter(|_| after.is_some());
        let all = match known {
            Some(all) => all,
            None => {
                let all = self.world.records(RecordTable::CatalogueCopy).await;
                let mut all = all.map_err(|error| records_fault(self.server, &error))?;
                all.sort_unstable_by_key(|(key, _)| *key);
                Rc::new(all)
            }
        };
        let begin = after.map_or(0, |after| all.partition_point(|(key, _)| *key <= after));
        let mut room = MESSAGE_BYTES;
        let fits = |(_, value): &&(u64, Vec<u8>)| {
            let fits = room > 0;
            room = room.saturating_sub(16 + value.len());
            fits
        };
        let records: Vec<_> = all[begin..].iter().take_while(fits).cloned().collect();
        let more = begin + records.len() < all.len();
        *self.read.borrow_mut() = more.then_some(all);
        Ok(Reply::CatalogueCopy { position: self.position.get(), records, more })
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
        self.read.take();
        let changed = self.world.record_change(RecordTable::CatalogueCopy, changes).await;
        changed.map_err(|error| records_fault(self.server, &error))?;
        self.position.set(to);
        Ok(to)
    }
}
