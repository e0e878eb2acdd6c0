//! Sessions of clients.

use crate::server::files::open_files::ClientFiles;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use wire::{ClientKey, Fault, GroupRoster, PARTICIPANTS_MAX, PROTOCOL_VERSION};
use world::{Scope, World};

/// Maximum number of members of all group rosters of one client.
const MEMBERS_MAX: usize = 4 * PARTICIPANTS_MAX;

/// Maximum number of group rosters of one client.
const ROSTERS_MAX: usize = 1024;

/// State of one client at a server. Dropping it ends all work for the client.
pub(crate) struct Session<W: World> {
    /// Key of the client.
    pub(crate) key: ClientKey,
    /// Protocol version of the client.
    version: u16,
    /// Files that the client has open.
    pub(crate) open: ClientFiles,
    /// Rosters that the client has sent, by its group numbers.
    rosters: RefCell<BTreeMap<u64, Rc<GroupRoster>>>,
    /// Number of active requests whose waits have time-outs of their own.
    pub(crate) bounded_waits: Rc<Cell<usize>>,
    /// Active requests of the client.
    pub(crate) scope: Scope<W, Infallible>,
}

impl<W: World> Session<W> {
    pub(crate) fn new(world: W, key: ClientKey, version: u16) -> Self {
        Self {
            key,
            version,
            open: ClientFiles::default(),
            rosters: RefCell::default(),
            bounded_waits: Rc::default(),
            scope: Scope::new(world),
        }
    }

    /// Checks that the client speaks this server's protocol version.
    pub(crate) fn check_version(&self) -> Result<(), Fault> {
        match self.version {
            PROTOCOL_VERSION => Ok(()),
            client => Err(Fault::WrongVersion { client, server: PROTOCOL_VERSION }),
        }
    }

    /// Stores the roster of a group. A roster without members ends the group.
    pub(crate) fn set_roster(&self, roster: Rc<GroupRoster>) -> Result<(), Fault> {
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
            return bad(format!("a client has at most {ROSTERS_MAX} groups; leave a group first"));
        }
        let others = rosters.iter().filter(|(group, _)| **group != roster.group);
        if others.map(|(_, other)| other.members.len()).sum::<usize>() + members > MEMBERS_MAX {
            return bad(format!("the groups of a client have at most {MEMBERS_MAX} members"));
        }
        rosters.insert(roster.group, roster);
        Ok(())
    }

    /// Returns the roster of a group.
    pub(crate) fn roster(&self, group: u64) -> Option<Rc<GroupRoster>> {
        self.rosters.borrow().get(&group).cloned()
    }
}
