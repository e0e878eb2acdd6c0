//! An instance, identified by its private directory: finds its servers, its key and its logs.

use super::path::absolute;
use super::trust::{Foreign, refuse_foreign};
use super::{InstanceFile, ServerEntry};
use interface::{ExitCode, UserError};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use world::Address;
use world_real::NodeConfig;

/// Subdirectory of an instance's directory for the sockets of clients that work in groups.
pub const CLIENTS_DIRECTORY: &str = "clients";

/// An instance, identified by its directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    directory: PathBuf,
}

impl Instance {
    /// The instance of this directory, which need not exist yet. Servers run in any working
    /// directory, so the path is made absolute.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: absolute(&directory.into()) }
    }

    /// Directory of the instance.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The socket file on which client `rank` of group `group` listens.
    pub fn client_address(&self, group: u64, rank: u32) -> Address {
        let socket = self.directory.join(CLIENTS_DIRECTORY).join(format!("{group:x}-{rank}.sock"));
        Address(format!("unix:{}", socket.display()))
    }

    /// Configuration that a client needs to connect to the servers of `file`. Unix sockets need no
    /// key.
    ///
    /// # Errors
    /// Fails when a server listens by TCP and the key cannot be used.
    pub fn client_node(&self, file: &InstanceFile) -> Result<NodeConfig, UserError> {
        let needs_key = file.servers.iter().any(|server| server.tcp().is_some());
        let key = needs_key.then(|| self.key()).transpose()?;
        Ok(NodeConfig { key, wire: file.wire, ..NodeConfig::default() })
    }

    /// The secret of this instance.
    pub fn key(&self) -> Result<[u8; 32], UserError> {
        let path = self.directory.join("key");
        let unreadable = |cause: String| {
            UserError::new(
                ExitCode::NoServer,
                format!("cannot use the key {}", path.display()),
                cause,
                "the key must be a file of 32 bytes that only you may read (mode 0600)",
            )
        };
        let mode = fs::metadata(&path).map_err(|error| unreadable(error.to_string()))?.mode();
        if mode & 0o777 != 0o600 {
            return Err(unreadable(format!("its mode is {:o}", mode & 0o777)));
        }
        let bytes = fs::read(&path).map_err(|error| unreadable(error.to_string()))?;
        let length = bytes.len();
        bytes.try_into().map_err(|_| unreadable(format!("it has {length} bytes")))
    }

    /// Refuses an instance that another user could replace by one of his own.
    ///
    /// # Errors
    /// Fails when another user controls the directory.
    pub fn refuse_foreign(&self) -> Result<(), UserError> {
        refuse_foreign(&self.directory).map_err(|Foreign { cause, help }| {
            let what = format!("cannot use the instance directory {}", self.directory.display());
            UserError::usage(what, cause, help)
        })
    }

    /// Reads `instance.json`.
    ///
    /// # Errors
    /// Fails when nothing was started there, or another user controls the directory.
    pub fn read(&self) -> Result<InstanceFile, UserError> {
        self.refuse_foreign()?;
        let path = self.directory.join("instance.json");
        let none = |cause: String| {
            UserError::new(
                ExitCode::NoServer,
                format!("there is no instance at {}", self.directory.display()),
                cause,
                "start one with: unisono start --servers 4   (or name it with --instance)",
            )
        };
        let text = fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => none(format!("{} does not exist", path.display())),
            _ => none(format!("{}: {error}", path.display())),
        })?;
        serde_json::from_slice(&text).map_err(|error| none(format!("{}: {error}", path.display())))
    }

    /// True if the process of this server exists on this machine and serves this instance.
    pub fn is_running(&self, server: &ServerEntry) -> bool {
        let process = PathBuf::from(format!("/proc/{}", server.pid));
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        // A user who starts a server again may name the directory from where they are.
        let here = fs::read_link(process.join("cwd")).unwrap_or_default();
        let mut words = command.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        words.any(|word| here.join(OsStr::from_bytes(word)) == self.directory)
    }

    /// Log file of a server, and of its launcher.
    pub fn log_path(&self, id: u32) -> PathBuf {
        self.directory.join(format!("server-{id}.log"))
    }
}

/// The directory of the instance that commands use when none is named: `UNISONO_INSTANCE`, or one
/// of this user below `XDG_RUNTIME_DIR` or the system's temporary directory. Each Slurm job has one
/// of its own: jobs beside it may be of the same user, on the same hosts. If the job has several
/// hosts, which then must find the directory, it is below the one in which the job was submitted.
pub fn default_instance_directory() -> PathBuf {
    default_directory(|name| std::env::var_os(name))
}

fn default_directory(variable: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    if let Some(named) = variable("UNISONO_INSTANCE") {
        return named.into();
    }
    let job = variable("SLURM_JOB_ID").and_then(|job| job.into_string().ok());
    let nodes = variable("SLURM_JOB_NUM_NODES").and_then(|nodes| nodes.into_string().ok());
    let has_others = nodes.and_then(|nodes| nodes.parse::<u32>().ok()).is_some_and(|it| it > 1);
    if let (Some(job), true, Some(shared)) = (&job, has_others, variable("SLURM_SUBMIT_DIR")) {
        return PathBuf::from(shared).join(format!("unisono-job-{job}"));
    }
    let runtime = variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    let parent = runtime.filter(|path| path.is_dir()).unwrap_or_else(std::env::temp_dir);
    let of_job = job.map_or_else(String::new, |job| format!("-job-{job}"));
    parent.join(format!("unisono-{}{of_job}", rustix::process::getuid().as_raw()))
}

#[cfg(test)]
mod tests {
    //! Proves: a user has one default directory, and each Slurm job has its own.
    use super::*;

    #[test]
    fn each_job_has_its_own_directory() {
        let directory = |known: &[(&str, &str)]| {
            let value = |name: &str| known.iter().find(|(known, _)| *known == name);
            let found = default_directory(|name| value(name).map(|(_, value)| value.into()));
            found.display().to_string()
        };
        let user = rustix::process::getuid().as_raw();
        let usual = std::env::temp_dir().join(format!("unisono-{user}")).display().to_string();
        assert_eq!(directory(&[]), usual);
        assert_eq!(directory(&[("XDG_RUNTIME_DIR", "/")]), format!("/unisono-{user}"));
        let job = [("SLURM_JOB_ID", "7"), ("SLURM_SUBMIT_DIR", "/shared/a")];
        assert_eq!(directory(&job), format!("{usual}-job-7"));
        let several = |nodes| [&job[..], &[("SLURM_JOB_NUM_NODES", nodes)]].concat();
        assert_eq!(directory(&several("1")), format!("{usual}-job-7"));
        assert_eq!(directory(&several("2")), "/shared/a/unisono-job-7");
        let named = [&several("2")[..], &[("UNISONO_INSTANCE", "/there")]].concat();
        assert_eq!(directory(&named), "/there");
    }
}
