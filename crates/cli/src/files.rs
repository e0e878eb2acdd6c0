//! `put`, `get`, `ls`, `stat`, `rm`.

use crate::arguments::{Get, InstanceOnly, Named, Put};
use crate::instances::instance;
use crate::present;
use crate::words::{plural, show_size};
use launch::{ExitCode, FileRecord, LaunchError, PartFile, Session};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

pub(crate) fn put(arguments: &Put) -> Result<(), LaunchError> {
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = arguments.name.clone().or_else(|| last(&arguments.local)).ok_or_else(|| {
        LaunchError::usage(
            format!("{} has no name", arguments.local.display()),
            "it ends in .. or /",
            "name the file in the instance: unisono put LOCAL NAME",
        )
    })?;
    launch::clean_up_on_signals()?;
    let session = Session::new(instance(&arguments.which));
    let record = session.put(&arguments.local, &name, arguments.block)?;
    show("unisono.put/1", &record, arguments.which.json)
}

pub(crate) fn get(arguments: &Get) -> Result<(), LaunchError> {
    let last = arguments.name.rsplit('/').next().unwrap_or(&arguments.name);
    let local = arguments.local.clone().unwrap_or_else(|| PathBuf::from(last));
    if local.as_os_str().is_empty() {
        return Err(LaunchError::usage(
            format!("{:?} gives the local file no name", arguments.name),
            "its last part is empty",
            "name the local file: unisono get NAME LOCAL",
        ));
    }
    launch::clean_up_on_signals()?;
    let session = Session::new(instance(&arguments.which));
    if local == Path::new("-") {
        let mut output = std::io::stdout().lock();
        return session.get(&arguments.name, &mut output, "standard output").map(|_| ());
    }
    // A file that is not there must not leave an empty local one, nor destroy one.
    session.stat(&arguments.name)?;
    let shown = local.display().to_string();
    let failed = |error: &std::io::Error| {
        LaunchError::new(
            ExitCode::Failed,
            format!("cannot write {shown}"),
            error.to_string(),
            "name a local file that you may write to",
        )
    };
    // What a link leads to is written, not the link; a device or a pipe is never replaced.
    let local = local.canonicalize().unwrap_or(local.clone());
    if std::fs::metadata(&local).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let opened = OpenOptions::new().write(true).open(&local);
        let mut target = opened.map_err(|error| failed(&error))?;
        let record = session.get(&arguments.name, &mut target, &shown)?;
        return show("unisono.get/1", &record, arguments.which.json);
    }
    let mut part = PartFile::new(&local).map_err(|error| failed(&error))?;
    let record = session.get(&arguments.name, &mut part, &shown)?;
    part.keep().map_err(|error| failed(&error))?;
    show("unisono.get/1", &record, arguments.which.json)
}

pub(crate) fn list(arguments: &InstanceOnly) -> Result<(), LaunchError> {
    let files = Session::new(instance(arguments)).list()?;
    if arguments.json {
        let files: Vec<Value> = files.iter().map(fields).collect();
        return present::json(&json!({ "schema": "unisono.ls/1", "files": files }));
    }
    files.iter().try_for_each(|file| present::line(&format!("{:>14}  {}", file.bytes, file.name)))
}

pub(crate) fn stat(arguments: &Named) -> Result<(), LaunchError> {
    let record = Session::new(instance(&arguments.which)).stat(&arguments.name)?;
    show("unisono.stat/1", &record, arguments.which.json)
}

pub(crate) fn remove(arguments: &Named) -> Result<(), LaunchError> {
    Session::new(instance(&arguments.which)).remove(&arguments.name)?;
    match arguments.which.json {
        true => present::json(&json!({ "schema": "unisono.rm/1", "removed": arguments.name })),
        false => Ok(()),
    }
}

fn fields(record: &FileRecord) -> Value {
    json!({
        "name": record.name, "bytes": record.bytes, "file": record.file.0,
        "block_bytes": record.stripe.block_bytes, "servers": record.stripe.servers,
        "disks_per_server": record.stripe.disks_per_server,
    })
}

fn show(schema: &str, record: &FileRecord, as_json: bool) -> Result<(), LaunchError> {
    if as_json {
        let mut object = fields(record);
        object["schema"] = schema.into();
        return present::json(&object);
    }
    present::line(&format!(
        "{}  {} bytes in blocks of {} over {} with {} each",
        record.name,
        record.bytes,
        show_size(record.stripe.block_bytes),
        plural(record.stripe.servers, "server"),
        plural(record.stripe.disks_per_server, "disk"),
    ))
}
