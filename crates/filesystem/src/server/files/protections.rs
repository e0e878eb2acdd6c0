//! Protection of files by their numbers, and changes that are not made at copies.
//!
//! Invariant: whoever knows an older protection of a file, such as a block in the cache or a client
//! that was away while the server was started again, changes the file as its latest protection
//! says.

use crate::server::faults::records_fault;
use crate::signal::Signal;
use policy::Protection;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use units::{FileId, ServerId};
use wire::Fault;
use world::{RecordChange, RecordTable, World};

/// Protections of files that were changed since the files were made.
pub(crate) struct Protections<W> {
    world: W,
    server: ServerId,
    changed: RefCell<BTreeMap<FileId, Protection>>,
    /// Files whose records are to be removed.
    forgotten: RefCell<BTreeSet<FileId>>,
    /// Number of changes on their way to disks that are not made at a copy.
    bare: RefCell<BTreeMap<FileId, u32>>,
    /// Notified when such a change has ended.
    ended: Signal,
}

/// Change that is not made at a copy. Ends when dropped.
pub(crate) struct BareChange<'a, W>(&'a Protections<W>, FileId);

impl<W: World> Protections<W> {
    /// Loads what was changed from the records of this node.
    pub(crate) async fn load(world: W, server: ServerId) -> Result<Self, Fault> {
        let records = world.records(RecordTable::Protections).await;
        let records = records.map_err(|error| records_fault(server, &error))?;
        let decoded = records.into_iter().map(|(key, value)| {
            let file = FileId(key);
            let protection = wire::decode_record(&value).map_err(|error| {
                let cause = format!("the record of the protection of {file} is damaged: {error}");
                Fault::DiskFailed { server, cause }
            })?;
            Ok((file, protection))
        });
        let changed = RefCell::new(decoded.collect::<Result<BTreeMap<_, _>, Fault>>()?);
        let (forgotten, bare, ended) = Default::default();
        Ok(Self { world, server, changed, forgotten, bare, ended })
    }

    /// Notes that files have these protections. They are on stable storage when this returns.
    pub(crate) async fn keep(&self, changed: &[(FileId, Protection)]) -> Result<(), Fault> {
        let put = |(file, protection): &(FileId, Protection)| {
            RecordChange::put(file.0, wire::encode_record(protection))
        };
        self.store(changed.iter().map(put).collect()).await?;
        self.changed.borrow_mut().extend(changed.iter().copied());
        Ok(())
    }

    /// Removes the records of files whose data is dropped.
    pub(crate) async fn settle(&self) -> Result<(), Fault> {
        self.store(Vec::new()).await
    }

    /// Makes changes on stable storage, with those that remove obsolete records.
    async fn store(&self, changes: Vec<RecordChange>) -> Result<(), Fault> {
        let forgotten = self.forgotten.take();
        let removed = forgotten.iter().map(|file| RecordChange::remove(file.0));
        let changes: Vec<RecordChange> = removed.chain(changes).collect();
        if changes.is_empty() {
            return Ok(());
        }
        let changed = self.world.record_change(RecordTable::Protections, changes).await;
        changed.map_err(|error| {
            self.forgotten.borrow_mut().extend(forgotten);
            records_fault(self.server, &error)
        })
    }

    /// Protection of a file, if it was changed.
    pub(crate) fn of(&self, file: FileId) -> Option<Protection> {
        self.changed.borrow().get(&file).copied()
    }

    /// Forgets a file whose data is dropped. Its record is removed [later](Self::settle).
    pub(super) fn forget(&self, file: FileId) {
        if self.changed.borrow_mut().remove(&file).is_some() {
            self.forgotten.borrow_mut().insert(file);
        }
    }

    /// Begins a change that is not made at a copy.
    pub(super) fn begin_bare_change(&self, file: FileId) -> BareChange<'_, W> {
        *self.bare.borrow_mut().entry(file).or_default() += 1;
        BareChange(self, file)
    }

    /// Waits until no change of a file is on its way that is not made at a copy.
    pub(super) async fn until_no_bare_change(&self, file: FileId) {
        self.ended.until(|| (!self.bare.borrow().contains_key(&file)).then_some(())).await;
    }
}

impl<W> Drop for BareChange<'_, W> {
    fn drop(&mut self) {
        let mut bare = self.0.bare.borrow_mut();
        if let Some(changes) = bare.get_mut(&self.1) {
            *changes -= 1;
            if *changes == 0 {
                bare.remove(&self.1);
            }
        }
        drop(bare);
        self.0.ended.notify();
    }
}
