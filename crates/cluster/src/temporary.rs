//! An instance for the time of one command.

use crate::data::DataDirectories;
use crate::process::{Child, Program, TemporaryDirectory};
use crate::start::{ServerOptions, start_attached};
use client::Instance;
use interface::UserError;
use std::path::{Path, PathBuf};

/// Servers that end, and whose files are removed, when this is dropped or the user interrupts.
pub struct TemporaryInstance {
    instance: Instance,
    // Dropped in this order: the servers end before their files go.
    _servers: Vec<Child>,
    directory: TemporaryDirectory,
}

impl TemporaryInstance {
    /// Starts servers with everything in a fresh directory below `parent` (default: the system's
    /// temporary directory), or with their data in `data` directories, which remain.
    pub fn start(
        program: &Program,
        servers: u32,
        data: &[PathBuf],
        parent: Option<&Path>,
        options: &ServerOptions,
    ) -> Result<Self, UserError> {
        let default = std::env::temp_dir();
        let directory = TemporaryDirectory::new(parent.unwrap_or(&default))?;
        let instance = Instance::at(directory.path());
        let data = DataDirectories::share(data, servers, &directory.path().join("data"))?;
        let children = start_attached(&instance, program, &data, options)?;
        Ok(Self { instance, _servers: children, directory })
    }

    /// The instance.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// A directory for anything else that is to go with the instance.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}
