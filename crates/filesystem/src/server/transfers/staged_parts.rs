//! Memories at the server for small parts of members, whose bytes go with the messages of a call.
//!
//! Invariant: a part is listed exactly as long as its [`StagedPart`] lives.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use units::ClientId;
use wire::{CallId, Fault};

/// A member of a call.
type Key = (CallId, ClientId);

/// Memories of members, each as long as the memory that its part lies in at the client.
pub(crate) struct StagedParts<M> {
    all: RefCell<BTreeMap<Key, M>>,
}

/// Entry of a member in [`StagedParts`]; removed when dropped.
pub(crate) struct StagedPart<'a, M> {
    parts: &'a StagedParts<M>,
    key: Key,
}

impl<M> Default for StagedParts<M> {
    fn default() -> Self {
        Self { all: RefCell::default() }
    }
}

impl<M: Clone> StagedParts<M> {
    /// Lists the memory of a member.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when it has one.
    pub(crate) fn stage(&self, key: Key, memory: M) -> Result<StagedPart<'_, M>, Fault> {
        match self.all.borrow_mut().entry(key) {
            Entry::Occupied(_) => {
                let cause = format!("rank {} joined one call twice", key.1.0);
                Err(Fault::BadRequest { cause })
            }
            Entry::Vacant(vacant) => {
                vacant.insert(memory);
                Ok(StagedPart { parts: self, key })
            }
        }
    }

    /// Returns the memory of a member, if it has one here.
    pub(crate) fn of(&self, key: Key) -> Option<M> {
        self.all.borrow().get(&key).cloned()
    }
}

impl<M> Drop for StagedPart<'_, M> {
    fn drop(&mut self) {
        self.parts.all.borrow_mut().remove(&self.key);
    }
}
