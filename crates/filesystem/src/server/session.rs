//! One client, as a server sees it.

use crate::server::files::OpenFiles;
use std::convert::Infallible;
use wire::ClientKey;
use world::{Scope, World};

/// Everything a server does for one client; dropping it ends all of that.
pub(crate) struct Session<W: World> {
    /// The client's name.
    pub(crate) key: ClientKey,
    /// Whether it speaks this server's version.
    pub(crate) same_version: bool,
    /// The version it speaks.
    pub(crate) version: u16,
    /// The files it has opened.
    pub(crate) open: OpenFiles,
    /// The requests it waits for.
    pub(crate) scope: Scope<W, Infallible>,
}

impl<W: World> Session<W> {
    pub(crate) fn new(world: W, key: ClientKey, same_version: bool, version: u16) -> Self {
        Self { key, same_version, version, open: OpenFiles::default(), scope: Scope::new(world) }
    }
}
