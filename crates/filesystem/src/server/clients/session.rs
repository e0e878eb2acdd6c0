//! The clients of a server, as it sees them.

use crate::server::clients::group_rosters::RosterCache;
use crate::server::files::open_files::ClientFiles;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use wire::{ClientKey, Fault, Introduction, PARTICIPANTS_MAX, PROTOCOL_VERSION};
use world::{Scope, World};

/// The most groups that one client may have rosters at a time.
const ROSTERS_MAX: usize = 1024;

/// Everything a server does for one client; dropping it ends all of that.
pub(crate) struct Session<W: World> {
    /// The client's name.
    pub(crate) key: ClientKey,
    /// The version it speaks.
    version: u16,
    /// The files it has opened.
    pub(crate) open: ClientFiles,
    /// The groups that it has rosters, by its numbers.
    rosters: RefCell<BTreeMap<u64, Rc<Introduction>>>,
    cache: RosterCache,
    /// The requests it waits for.
    pub(crate) scope: Scope<W, Infallible>,
}

impl<W: World> Session<W> {
    pub(crate) fn new(world: W, key: ClientKey, version: u16, cache: RosterCache) -> Self {
        Self {
            key,
            version,
            open: ClientFiles::default(),
            rosters: RefCell::default(),
            cache,
            scope: Scope::new(world),
        }
    }

    /// Whether it and this server understand one another.
    pub(crate) fn check_version(&self) -> Result<(), Fault> {
        match self.version {
            PROTOCOL_VERSION => Ok(()),
            client => Err(Fault::WrongVersion { client, server: PROTOCOL_VERSION }),
        }
    }

    /// The client introduces a group, or says that there is no more to come of one.
    pub(crate) fn set_roster(&self, roster: Introduction) -> Result<(), Fault> {
        let bad = |cause: String| Err(Fault::BadRequest { cause });
        let mut rosters = self.rosters.borrow_mut();
        if roster.members.is_empty() {
            rosters.remove(&roster.group);
            return Ok(());
        }
        let (members, addresses) = (roster.members.len(), roster.addresses.count());
        if members > PARTICIPANTS_MAX || addresses != members {
            let cause = format!(
                "a group has at most {PARTICIPANTS_MAX} members and an address for each, not \
                 {members} and {addresses}"
            );
            return bad(cause);
        }
        let is_known = rosters.contains_key(&roster.group);
        if !is_known && rosters.len() >= ROSTERS_MAX {
            return bad(format!("a client has at most {ROSTERS_MAX} groups; leave some"));
        }
        rosters.insert(roster.group, self.cache.shared(roster));
        Ok(())
    }

    /// A group that it has rosters.
    pub(crate) fn roster(&self, group: u64) -> Option<Rc<Introduction>> {
        self.rosters.borrow().get(&group).cloned()
    }
}
