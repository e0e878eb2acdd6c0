//! An instance in a private directory, for one job.

use crate::data::{DATA, DataDirectories};
use crate::hosts::{HostOptions, HostPlan, start_on_hosts};
use crate::instance::discard_mark;
use crate::memories::discard_memory;
use crate::process::{Child, Program, TemporaryDirectory};
use crate::start::{ServerOptions, start_attached};
use crate::stop::stop;
use client::{Instance, InstanceFile, Session};
use interface::UserError;
use std::path::{Path, PathBuf};

/// Servers of one job, with their directory. When it is dropped, servers on this machine are
/// killed and the directory is removed, unless it was stopped and kept.
pub struct JobInstance {
    instance: Instance,
    file: InstanceFile,
    // Fields are dropped in this order: the servers end before their files are removed.
    servers: Vec<Child>,
    directory: TemporaryDirectory,
    is_running: bool,
    is_kept: bool,
}

impl JobInstance {
    /// Starts servers on this machine, with a fresh private directory below `parent`. Their data is
    /// in the directories `data`, or in the private one if there are none.
    ///
    /// # Errors
    /// Fails when a server does not start. Nothing is left then.
    pub fn start_here(
        program: &Program,
        servers: u32,
        data: &[PathBuf],
        parent: &Path,
        options: &ServerOptions,
    ) -> Result<Self, UserError> {
        let directory = TemporaryDirectory::new(parent)?;
        let instance = Instance::at(directory.path());
        let own = directory.path().join(DATA);
        let in_memory = options.memory_bytes.is_some();
        let data = DataDirectories::share(data, servers, &own, in_memory)?;
        let servers = start_attached(&instance, program, &data, options)?;
        let file = instance.read()?;
        Ok(Self { instance, file, servers, directory, is_running: true, is_kept: false })
    }

    /// Starts servers on the hosts of a plan: `servers` in all, or as many as each host has. The
    /// private directory is below `parent`, which the hosts of the program must share.
    ///
    /// # Errors
    /// Fails when a server does not start. Nothing is left then.
    pub fn start_on_hosts(
        program: &Program,
        servers: Option<u32>,
        plan: &HostPlan,
        data: &[PathBuf],
        parent: &Path,
        options: HostOptions,
    ) -> Result<Self, UserError> {
        let placements = plan.placements(servers, None, data)?;
        let directory = TemporaryDirectory::new(parent)?;
        let instance = Instance::at(directory.path());
        let file = start_on_hosts(&instance, program, &plan.launcher, placements, options)?;
        Ok(Self {
            instance,
            file,
            servers: Vec::new(),
            directory,
            is_running: true,
            is_kept: false,
        })
    }

    /// The instance.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Servers and their places.
    pub fn file(&self) -> &InstanceFile {
        &self.file
    }

    /// True if the servers are processes of this machine.
    pub fn is_here(&self) -> bool {
        self.file.servers.iter().all(|server| server.host.is_none())
    }

    /// Keeps the private directory when this is dropped, and after a signal.
    pub fn keep_directory(&mut self, keep: bool) {
        self.directory.keep(keep);
        self.is_kept = keep;
    }

    /// Removes all files, and has the servers remove their data directories when they end, unless
    /// the user has named them. For servers on hosts, whose directories are out of reach here.
    pub fn discard(&self) {
        // What cannot be removed stays where it is.
        let _ = Session::new(self.instance.clone()).remove_tree("");
        let _ = std::fs::write(discard_mark(&self.instance), []);
    }

    /// Stops the servers, which write everything back first, and waits for their end.
    ///
    /// # Errors
    /// Fails when a server cannot write everything back, or does not end.
    pub fn stop(&mut self) -> Result<(), UserError> {
        if self.is_running {
            stop(&self.instance)?;
            self.is_running = false;
            self.servers.clear();
        }
        Ok(())
    }
}

impl Drop for JobInstance {
    fn drop(&mut self) {
        // Launchers on hosts have no other way to learn of the end.
        if self.is_running && !self.is_here() {
            if !self.is_kept {
                self.discard();
            }
            let _ = stop(&self.instance);
        }
        if !self.is_kept {
            self.servers.clear();
            // Where this fails, the memory ends with the directory.
            let _ = discard_memory(&self.instance);
        }
    }
}
