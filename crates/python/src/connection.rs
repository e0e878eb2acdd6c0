//! Connections, and names in an instance.

use crate::file::File;
use crate::group::Group;
use crate::interrupted::Interrupted;
use crate::waiting::{wait, wait_for_transfer};
use client::{
    ConnectionOptions, Entry, EntryKind, InPlaceOptions, Instance, MountedName, NewFileOptions,
    Protection, Special,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Directory of the instance that is used when none is named.
#[pyfunction]
pub(crate) fn default_instance() -> PathBuf {
    client::default_instance_directory()
}

/// Name in an instance that a word means; that of the root is empty.
#[pyfunction]
pub(crate) fn instance_name(word: &str) -> String {
    client::instance_name(word)
}

/// Directory of the instance that a path names: itself, or below a mount that of the mounted one.
#[pyfunction]
pub(crate) fn instance_directory(py: Python<'_>, path: PathBuf) -> PyResult<PathBuf> {
    wait(py, move || Ok(Instance::named(path)?.directory().to_owned()))
}

/// Directory of the instance and name in it, of a path below a mount.
#[pyfunction]
pub(crate) fn mounted(py: Python<'_>, path: PathBuf) -> PyResult<Option<(PathBuf, String)>> {
    let found = wait(py, move || MountedName::of_path(&path))?;
    Ok(found.map(|found| (found.instance, found.name)))
}

/// A connection to all servers of an instance. May be used by any thread, not by a forked child.
#[pyclass(frozen, module = "unisono")]
pub(crate) struct Connection {
    connection: client::Connection,
    interrupted: Arc<Interrupted>,
}

#[pymethods]
impl Connection {
    /// Connects to the instance in a directory (default: `UNISONO_INSTANCE`, or the usual one).
    /// Calls give servers and members up after `timeout` seconds (default: `UNISONO_TIMEOUT`,
    /// or 60).
    #[new]
    #[pyo3(signature = (instance=None, *, timeout=None))]
    fn new(py: Python<'_>, instance: Option<PathBuf>, timeout: Option<f64>) -> PyResult<Self> {
        let connected = wait(py, move || {
            let directory = instance.unwrap_or_else(client::default_instance_directory);
            let mut options = ConnectionOptions::from_environment()?;
            if let Some(seconds) = timeout {
                let given =
                    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
                options.timeout = given.ok_or_else(|| {
                    client::UserError::usage(
                        "cannot connect to an instance",
                        format!("{seconds} is no time-out"),
                        "give a number of seconds above 0",
                    )
                })?;
            }
            client::Connection::open_with(&Instance::named(directory)?, options)
        })?;
        Ok(Self { connection: connected, interrupted: Arc::default() })
    }

    /// Directory of the instance.
    #[getter]
    fn instance(&self) -> PathBuf {
        self.connection.instance().directory().to_owned()
    }

    /// Number of servers.
    #[getter]
    fn servers(&self) -> u32 {
        self.connection.servers()
    }

    /// Opens a file. `mode`: "r" one that is there, "a" makes it if there is none, "x" a new one,
    /// "w" as "a", cut to 0 bytes. `block_bytes` and `protection` are for a file that is made. With
    /// `in_place`, the name is the path of an ordinary file.
    #[pyo3(signature = (name, mode="r", *, block_bytes=None, protection=None, in_place=false))]
    fn open(
        &self,
        py: Python<'_>,
        name: String,
        mode: &str,
        block_bytes: Option<u64>,
        protection: Option<&str>,
        in_place: bool,
    ) -> PyResult<File> {
        let name = if in_place { name } else { instance_name(&name) };
        let protection = protection.map(protection_of).transpose()?;
        let options = NewFileOptions { block_bytes, protection };
        self.interrupted.settle(py, &name)?;
        let connection = self.connection.clone();
        let mode = mode.to_owned();
        let kept = name.clone();
        let file =
            wait_for_transfer(py, (&self.interrupted, std::slice::from_ref(&kept)), move || {
                let is_usual = options == NewFileOptions::default();
                let file = match mode.as_str() {
                    "r" | "a" | "x" | "w" if in_place => {
                        let (create, exclusive) = (mode != "r", mode == "x");
                        let how = InPlaceOptions { create, exclusive, block_bytes };
                        connection.open_in_place(Path::new(&name), how)
                    }
                    "r" => connection.open_file(&name),
                    "x" => connection.create_by_default(&name, options),
                    "a" | "w" if is_usual => connection.open_or_create(&name),
                    "a" | "w" => match connection.find(&name)? {
                        Some(_) => connection.open_file(&name),
                        None => connection.create_by_default(&name, options),
                    },
                    _ => Err(client::UserError::usage(
                        format!("cannot open {name:?}"),
                        format!("{mode:?} is no mode"),
                        "give \"r\", \"a\", \"x\" or \"w\"",
                    )),
                }?;
                if mode == "w" {
                    file.set_size(0)?;
                }
                Ok(file)
            })?;
        Ok(File::new(file, Arc::clone(&self.interrupted)))
    }

    /// Metadata of a name: a dict with name, type, size (of a file: now), created, block_bytes and
    /// servers; of a protected file protected_bytes, or None while that is unknown.
    fn stat<'py>(&self, py: Python<'py>, name: String) -> PyResult<Bound<'py, PyDict>> {
        let connection = self.connection.clone();
        let (entry, protected) = wait(py, move || connection.stat_protected(&name))?;
        let described = describe(py, &entry)?;
        if entry.file().is_some_and(|record| record.protection != Protection::None) {
            let bytes = protected.map(|protected| protected.protected_bytes);
            described.set_item("protected_bytes", bytes)?;
        }
        Ok(described)
    }

    /// Metadata of what is in a directory, by name.
    fn list<'py>(&self, py: Python<'py>, name: String) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let connection = self.connection.clone();
        let entries = wait(py, move || connection.list(&name))?;
        entries.iter().map(|entry| describe(py, entry)).collect()
    }

    /// Removes a file or an empty directory.
    fn remove(&self, py: Python<'_>, name: String) -> PyResult<()> {
        let name = instance_name(&name);
        self.interrupted.settle(py, &name)?;
        let connection = self.connection.clone();
        let kept = name.clone();
        let removed = move || connection.remove(&name);
        wait_for_transfer(py, (&self.interrupted, std::slice::from_ref(&kept)), removed)
    }

    /// Gives a file or a directory another name. With `replace`, a file may have that name before.
    #[pyo3(signature = (old, new, *, replace=false))]
    fn rename(&self, py: Python<'_>, old: String, new: String, replace: bool) -> PyResult<()> {
        let (old, new) = (instance_name(&old), instance_name(&new));
        self.interrupted.settle(py, &old)?;
        self.interrupted.settle(py, &new)?;
        let connection = self.connection.clone();
        let kept = new.clone();
        let renamed = move || connection.rename(&old, &new, replace);
        wait_for_transfer(py, (&self.interrupted, std::slice::from_ref(&kept)), renamed)
    }

    /// Makes a directory; with `parents` also those above, and nothing if it is there.
    #[pyo3(signature = (name, *, parents=false))]
    fn make_directory(&self, py: Python<'_>, name: String, parents: bool) -> PyResult<()> {
        let connection = self.connection.clone();
        wait(py, move || connection.make_directory(&name, parents))
    }

    /// Forms a group whose members meet at the servers under a name that they share. Collective.
    fn group(&self, py: Python<'_>, name: String, rank: u32, size: u32) -> PyResult<Group> {
        let connection = self.connection.clone();
        wait(py, move || client::Group::form(&connection, &name, rank, size)).map(Group::new)
    }
}

/// Protection of a word.
fn protection_of(word: &str) -> PyResult<Protection> {
    word.parse()
        .map_err(|unknown: client::UnknownProtection| PyValueError::new_err(unknown.to_string()))
}

fn describe<'py>(py: Python<'py>, entry: &Entry) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    described.set_item("name", &entry.name)?;
    described.set_item("created", entry.made.at_s)?;
    described.set_item("mtime", entry.modified.as_ns() as f64 * 1e-9)?;
    match &entry.kind {
        EntryKind::Directory(_) => {
            described.set_item("type", "directory")?;
            described.set_item("version", "0")?;
            described.set_item("size", 0)?;
        }
        EntryKind::Special(special) => {
            let (kind, target) = match special {
                Special::Link { target } => ("link", Some(target)),
                Special::Fifo => ("fifo", None),
                Special::Socket => ("socket", None),
            };
            described.set_item("type", kind)?;
            described.set_item("version", "0")?;
            described.set_item("size", target.map_or(0, String::len))?;
            if let Some(target) = target {
                described.set_item("destination", target)?;
            }
        }
        EntryKind::File(record) => {
            described.set_item("type", "file")?;
            described.set_item("size", record.bytes)?;
            let version = format!("{}.{}", record.file.0, entry.modified.as_ns());
            described.set_item("version", version)?;
            described.set_item("block_bytes", record.stripe.block_bytes)?;
            described.set_item("protection", record.protection.to_string())?;
            let servers: Vec<u32> = record.servers().map(|server| server.0).collect();
            described.set_item("servers", servers)?;
        }
    }
    Ok(described)
}
