//! An instance that lives as long as one command.

use crate::data::{DATA, DataDirectories};
use crate::memories::discard_memory;
use crate::process::{Child, Program, TemporaryDirectory};
use crate::start::{ServerOptions, start_attached};
use client::Instance;
use interface::UserError;
use std::path::{Path, PathBuf};

/// Servers that end when this is dropped or the user interrupts. Their files are removed then.
pub struct TemporaryInstance {
    instance: Instance,
    // Fields are dropped in this order: the servers end before their files are removed.
    servers: Vec<Child>,
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
        let own = directory.path().join(DATA);
        let in_memory = options.memory_bytes.is_some();
        let data = DataDirectories::share(data, servers, &own, in_memory)?;
        let children = start_attached(&instance, program, &data, options)?;
        Ok(Self { instance, servers: children, directory })
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

impl Drop for TemporaryInstance {
    fn drop(&mut self) {
        self.servers.clear();
        // Where this fails, the memory ends with the directory.
        let _ = discard_memory(&self.instance);
    }
}
