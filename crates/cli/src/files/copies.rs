//! `put`, `get`, `cp`, `cat`.

use super::entries;
use super::globs;
use crate::arguments::{Cat, Cp, Get, InstanceOnly, Put};
use crate::instances::servers::instance;
use crate::output::format::show_size;
use crate::output::present;
use client::{
    CopyPlan, FileRecord, LocalOutput, Place, SCHEME, STANDARD_STREAM, Session, instance_name,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use interface::{ExitCode, UserError};
use serde_json::json;
use std::io::{self, StdoutLock, Write};
use std::path::{Path, PathBuf};

pub(crate) fn put(which: &InstanceOnly, arguments: &Put) -> Result<(), UserError> {
    let is_standard_input = arguments.local == Path::new(STANDARD_STREAM);
    let last = arguments.local.file_name().filter(|_| !is_standard_input);
    let last = last.map(|name| name.to_string_lossy().into_owned());
    let name = match (arguments.name.as_deref(), last) {
        (Some(name), Some(last)) if name.ends_with('/') => instance_name(&format!("{name}{last}")),
        (Some(name), None) if is_standard_input && name.ends_with('/') => return Err(no_name()),
        (Some(name), _) => instance_name(name),
        (None, Some(last)) => last,
        (None, None) if is_standard_input => return Err(no_name()),
        (None, None) => {
            return Err(UserError::usage(
                format!("{} has no name", arguments.local.display()),
                "it ends in .. or /",
                "name the file in the instance: unisono put LOCAL NAME",
            ));
        }
    };
    if name.is_empty() {
        return Err(UserError::usage(
            format!("{:?} cannot name a file", arguments.name.as_deref().unwrap_or("")),
            "it is the name of the root directory",
            "name the file in the instance: unisono put LOCAL NAME",
        ));
    }
    client::clean_up_on_signals()?;
    let session = Session::new(instance(which));
    let record = session.put(&arguments.local, &name, arguments.block)?;
    show("unisono.put/1", &record, which.json)
}

fn no_name() -> UserError {
    UserError::usage(
        "cannot name a file in the instance",
        "standard input has no name",
        "name the file in the instance: unisono put - NAME",
    )
}

pub(crate) fn get(which: &InstanceOnly, arguments: &Get) -> Result<(), UserError> {
    let name = instance_name(&arguments.name);
    let last = name.rsplit('/').next().unwrap_or(&name);
    let local = arguments.local.clone().unwrap_or_else(|| PathBuf::from(last));
    client::clean_up_on_signals()?;
    let session = Session::new(instance(which));
    if local == Path::new(STANDARD_STREAM) {
        return print_files(&session, &[name]);
    }
    // A missing source must neither create nor destroy a local file.
    session.stat_file(&name)?;
    let shown = local.display().to_string();
    let failed = |error: &std::io::Error| {
        UserError::new(
            ExitCode::Failed,
            format!("cannot write {shown}"),
            error.to_string(),
            "name a local file that you may write to",
        )
    };
    let mut output = LocalOutput::open(&local).map_err(|error| failed(&error))?;
    let record = session.get(&name, &mut output, &shown)?;
    output.keep().map_err(|error| failed(&error))?;
    show("unisono.get/1", &record, which.json)
}

pub(crate) fn copy(which: &InstanceOnly, arguments: &Cp) -> Result<(), UserError> {
    let sources: Vec<Place> = arguments.sources.iter().map(|word| Place::of_word(word)).collect();
    let target = Place::of_word(&arguments.target);
    let is_local = |place: &Place| matches!(place, Place::Local(_));
    if sources.iter().chain([&target]).all(is_local) {
        return Err(UserError::usage(
            format!("cannot copy to {target}"),
            "the sources and the target are all local files",
            format!("write a name in the instance as {SCHEME}NAME"),
        ));
    }
    client::clean_up_on_signals()?;
    let session = Session::new(instance(which));
    let sources = expanded(&session, sources)?;
    if target == Place::Local(STANDARD_STREAM.into()) {
        return print_files(&session, &names_of(&sources)?);
    }
    let plan = CopyPlan::new(&session, &sources, &target, arguments.recursive, arguments.block)?;
    let plan = if arguments.target.ends_with('/') { plan.with_slash()? } else { plan };
    let plan = if arguments.no_verify { plan.unverified() } else { plan };
    let plan = if arguments.preserve { plan.keeping_times() } else { plan };
    let bar = progress_bar(plan.bytes());
    let copied = session.copy(&plan, &|bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let copied = copied?;
    if which.json {
        return present::json(&json!({
            "schema": "unisono.cp/1", "files": copied.files, "bytes": copied.bytes,
            "target": target.to_string(),
        }));
    }
    let files = if copied.files == 1 { "1 file" } else { &format!("{} files", copied.files) };
    present::line(&format!("{files} copied to {target}, {}", show_size(copied.bytes)))
}

/// Sources with the names that patterns stand for in the instance. Those for local files are the
/// shell's.
fn expanded(session: &Session, sources: Vec<Place>) -> Result<Vec<Place>, UserError> {
    let mut all = Vec::with_capacity(sources.len());
    for source in sources {
        match source {
            Place::Local(_) => all.push(source),
            Place::Instance(name) => {
                all.extend(globs::names(session, &[name])?.into_iter().map(Place::Instance));
            }
        }
    }
    Ok(all)
}

/// Names of sources that are all in the instance.
fn names_of(sources: &[Place]) -> Result<Vec<String>, UserError> {
    let name = |place: &Place| match place {
        Place::Instance(name) => Ok(name.clone()),
        Place::Local(path) => Err(UserError::usage(
            format!("cannot copy {} to standard output", path.display()),
            "it is a local file",
            format!("write a name in the instance as {SCHEME}NAME"),
        )),
    };
    sources.iter().map(name).collect()
}

pub(crate) fn cat(which: &InstanceOnly, arguments: &Cat) -> Result<(), UserError> {
    let session = Session::new(instance(which));
    print_files(&session, &globs::names(&session, &arguments.names)?)
}

/// Prints the content of files. A reader that closes the pipe ends it without an error.
fn print_files(session: &Session, names: &[String]) -> Result<(), UserError> {
    let mut output = Output { stream: std::io::stdout().lock(), is_closed: false };
    for name in names {
        let printed = session.get(name, &mut output, "standard output");
        if output.is_closed {
            return Ok(());
        }
        printed?;
    }
    Ok(())
}

/// Standard output, with a flag for a reader that has gone.
struct Output {
    stream: StdoutLock<'static>,
    is_closed: bool,
}

impl Output {
    fn note<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        self.is_closed |= done.as_ref().is_err_and(|it| it.kind() == io::ErrorKind::BrokenPipe);
        done
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.stream.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.stream.flush();
        self.note(flushed)
    }
}

/// Progress bar of a long copy, on a terminal only.
fn progress_bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(
        "{bar:40} {binary_bytes} of {binary_total_bytes}  {binary_bytes_per_sec}  {eta} left",
    );
    // The template is a literal above; any test that copies would find a mistake in it.
    bar.with_style(style.unwrap_or_else(|error| unreachable!("the template is wrong: {error}")))
}

fn show(schema: &str, record: &FileRecord, as_json: bool) -> Result<(), UserError> {
    if as_json {
        let mut object = entries::file_json(record);
        object["schema"] = schema.into();
        return present::json(&object);
    }
    present::line(&entries::file_line(record))
}
