//! An instance that lives as long as one command.

use crate::data::DataDirectories;
use crate::process::{Child, Program, TemporaryDirectory};
use crate::start::{ServerOptions, start_attached};
use client::Instance;
use interface::UserError;
use std::path::{Path, PathBuf};

/// Servers that end when this is dropped or the user interrupts. Their files are removed then.
pub struct TemporaryInstance {
    instance: Instance,
    // Fields are dropped in this order: the servers end before their files are removed.
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

    /// Directory for other files that live as long as the instance.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}
