//! Sessions of clients.

use super::probes::BoundedWait;
use crate::server::files::open_files::ClientFiles;
use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use wire::{ClientKey, Fault, PROTOCOL_VERSION};
use world::{Scope, World};

/// Maximum number of active requests of one client.
const REQUESTS_MAX: usize = 4096;

/// State of one client at a server. Dropping it ends all work for the client.
pub(crate) struct Session<W: World> {
    key: ClientKey,
    /// Protocol version of the client.
    version: u16,
    /// Files that the client has open.
    open: ClientFiles,
    /// Number of active requests whose waits have time-outs of their own.
    bounded_waits: Rc<Cell<usize>>,
    /// Active requests of the client.
    scope: Scope<W, Infallible>,
}

impl<W: World> Session<W> {
    pub(crate) fn new(world: W, key: ClientKey, version: u16) -> Self {
        Self {
            key,
            version,
            open: ClientFiles::default(),
            bounded_waits: Rc::default(),
            scope: Scope::new(world),
        }
    }

    /// Key of the client.
    pub(crate) fn key(&self) -> ClientKey {
        self.key
    }

    /// Files that the client has open.
    pub(crate) fn files(&self) -> &ClientFiles {
        &self.open
    }

    /// Checks that the client speaks this server's protocol version.
    pub(crate) fn check_version(&self) -> Result<(), Fault> {
        match self.version {
            PROTOCOL_VERSION => Ok(()),
            client => Err(Fault::WrongVersion { client, server: PROTOCOL_VERSION }),
        }
    }

    /// True when the client has as many active requests as it may have.
    pub(crate) fn is_full(&self) -> bool {
        self.scope.running() >= REQUESTS_MAX
    }

    /// Scope of the active requests of the client.
    pub(crate) fn scope(&self) -> &Scope<W, Infallible> {
        &self.scope
    }

    /// Number of active requests that may wait without a time-out of their own.
    pub(super) fn unbounded_waits(&self) -> usize {
        self.scope.running().saturating_sub(self.bounded_waits.get())
    }

    /// Counts an active request as one whose wait has a time-out of its own.
    pub(super) fn bounded_wait(&self) -> BoundedWait {
        BoundedWait::begin(&self.bounded_waits)
    }
}
