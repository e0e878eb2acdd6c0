//! Sessions of clients.

use crate::server::files::open_files::ClientFiles;
use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use wire::{ClientKey, Fault, PROTOCOL_VERSION};
use world::{Scope, World};

/// State of one client at a server. Dropping it ends all work for the client.
pub(crate) struct Session<W: World> {
    /// Key of the client.
    pub(crate) key: ClientKey,
    /// Protocol version of the client.
    version: u16,
    /// Files that the client has open.
    pub(crate) open: ClientFiles,
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
}
