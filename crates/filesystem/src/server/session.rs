//! The clients of a server, as it sees them.

use crate::server::files::OpenFiles;
use std::convert::Infallible;
use wire::{ClientKey, Fault, PROTOCOL_VERSION};
use world::{Scope, World};

/// Everything a server does for one client; dropping it ends all of that.
pub(crate) struct Session<W: World> {
    /// The client's name.
    pub(crate) key: ClientKey,
    /// The version it speaks.
    version: u16,
    /// The files it has opened.
    pub(crate) open: OpenFiles,
    /// The requests it waits for.
    pub(crate) scope: Scope<W, Infallible>,
}

impl<W: World> Session<W> {
    pub(crate) fn new(world: W, key: ClientKey, version: u16) -> Self {
        Self { key, version, open: OpenFiles::default(), scope: Scope::new(world) }
    }

    /// Whether it and this server understand one another.
    pub(crate) fn check_version(&self) -> Result<(), Fault> {
        match self.version {
            PROTOCOL_VERSION => Ok(()),
            client => Err(Fault::WrongVersion { client, server: PROTOCOL_VERSION }),
        }
    }
}
