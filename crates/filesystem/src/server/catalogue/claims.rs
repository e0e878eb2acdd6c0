//! Claims of names by active changes.
//!
//! Invariants:
//! - Two held claims share no name.
//! - A claim of everything is held alone.

use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::BTreeSet;
use units::FileId;
use wire::Fault;

/// Place of a name: a directory and the last part of the name.
pub(super) type NamePlace = (FileId, String);

/// Names that a change needs for itself.
pub(super) enum Claim {
    /// Names in directories that stay in place.
    Names(Vec<NamePlace>),
    /// The whole tree: a directory is removed or moves.
    Everything,
}

/// All held claims.
#[derive(Default)]
pub(super) struct Claims {
    held: RefCell<Held>,
    released: Signal,
}

#[derive(Default)]
struct Held {
    names: BTreeSet<NamePlace>,
    everything: bool,
}

/// A held claim. Released when dropped.
pub(super) struct Claimed<'a> {
    claims: &'a Claims,
    claim: Claim,
}

impl Claims {
    /// Waits until the claim of `wanted` is free, calling it again after each change, and takes it.
    pub(super) async fn claim<T>(
        &self,
        wanted: impl Fn() -> Result<(T, Claim), Fault>,
    ) -> Result<(T, Claimed<'_>), Fault> {
        let take = || match wanted() {
            Err(fault) => Some(Err(fault)),
            Ok((found, claim)) => self.take(claim).map(|claimed| Ok((found, claimed))),
        };
        self.released.until(take).await
    }

    fn take(&self, claim: Claim) -> Option<Claimed<'_>> {
        let held = &mut *self.held.borrow_mut();
        if held.everything {
            return None;
        }
        match &claim {
            Claim::Everything if !held.names.is_empty() => return None,
            Claim::Everything => held.everything = true,
            Claim::Names(names) if names.iter().any(|name| held.names.contains(name)) => {
                return None;
            }
            Claim::Names(names) => held.names.extend(names.iter().cloned()),
        }
        Some(Claimed { claims: self, claim })
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        let held = &mut *self.claims.held.borrow_mut();
        match &self.claim {
            Claim::Everything => held.everything = false,
            Claim::Names(names) => {
                for name in names {
                    held.names.remove(name);
                }
            }
        }
        self.claims.released.notify();
    }
}
