//! Commands on names in an instance: `ls`, `tree`, `find`, `stat`, `mkdir`, `mv`, `rm`, `du`.

use super::entries::{self, entry_json, last_part, long_line, short_line};
use super::globs;
use crate::arguments::{Du, Find, InstanceOnly, Kind, Ls, MaybeNamed, Mkdir, Mv, Named, Rm};
use crate::instances::servers::instance;
use crate::output::format::{printable, show_size};
use crate::output::present;
use crate::output::protection::{protected_words, protection_json};
use client::{
    Entry, EntryKind, Place, Protection, SCHEME, Session, Timestamp, instance_name, no_directory,
};
use globset::Glob;
use interface::{ErrorKind, ExitCode, UserError};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::UNIX_EPOCH;

pub(crate) fn list(which: &InstanceOnly, arguments: &Ls) -> Result<(), UserError> {
    let session = Session::new(instance(which));
    let names = match arguments.names.is_empty() {
        true => vec![String::new()],
        false => globs::names(&session, &arguments.names)?,
    };
    // Files that were named, and directories with what they have.
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for name in names {
        let entry = session.look_at(&name)?;
        let mut found = match entry.kind {
            EntryKind::File(_) | EntryKind::Special(_) => {
                files.push(entry);
                continue;
            }
            EntryKind::Directory(_) if arguments.recursive => session.walk(&name)?.split_off(1),
            EntryKind::Directory(_) => session.list(&name)?,
        };
        let is_hidden = |entry: &Entry| entry.name[name.len()..].split('/').any(is_dotted);
        found.retain(|entry| arguments.all || !is_hidden(entry));
        directories.push((name, found));
    }
    if which.json {
        let inside = directories.into_iter().flat_map(|(_, found)| found);
        return present_all("unisono.ls/2", &files.into_iter().chain(inside).collect::<Vec<_>>());
    }
    present_lists(arguments, &files, &directories)
}

/// Prints the files, then each directory; as in ls, with its name above it if it is not alone.
fn present_lists(
    arguments: &Ls,
    files: &[Entry],
    directories: &[(String, Vec<Entry>)],
) -> Result<(), UserError> {
    let is_alone = files.len() + directories.len() == 1;
    let line = |entry: &Entry, shown: &str| match arguments.long {
        true => long_line(entry, shown, arguments.sizes.human_readable),
        false => short_line(entry, shown, arguments.sizes.human_readable),
    };
    let whole = arguments.recursive || !is_alone;
    present::lines(
        files
            .iter()
            .map(|entry| line(entry, if whole { &entry.name } else { last_part(&entry.name) })),
    )?;
    for (number, (name, found)) in directories.iter().enumerate() {
        if !is_alone {
            let gap = if number > 0 || !files.is_empty() { "\n" } else { "" };
            let shown = if name.is_empty() { "/".to_owned() } else { printable(name) };
            present::line(&format!("{gap}{shown}:"))?;
        }
        present::lines(found.iter().map(|entry| {
            line(entry, if arguments.recursive { &entry.name } else { last_part(&entry.name) })
        }))?;
    }
    Ok(())
}

fn is_dotted(part: &str) -> bool {
    part.starts_with('.')
}

pub(crate) fn tree(which: &InstanceOnly, arguments: &MaybeNamed) -> Result<(), UserError> {
    let name = instance_name(arguments.name.as_deref().unwrap_or(""));
    let all = Session::new(instance(which)).walk(&name)?;
    if which.json {
        return present_all("unisono.tree/1", &all);
    }
    let depth = |entry: &Entry| depth_below(&name, &entry.name);
    // For each depth, true if another entry follows there. Earlier lines need it, so the loop runs
    // backwards.
    let mut more_at: Vec<bool> = Vec::new();
    let mut lines: Vec<String> = Vec::with_capacity(all.len());
    for entry in all.iter().rev() {
        let own = depth(entry);
        more_at.resize(own + 1, false);
        let bars = (1..own).map(|level| if more_at[level] { "│   " } else { "    " });
        let branch = match (own, more_at[own]) {
            (0, _) => "",
            (_, true) => "├── ",
            (_, false) => "└── ",
        };
        let slash = if entry.is_directory() && own > 0 { "/" } else { "" };
        lines.push(format!(
            "{}{branch}{}{slash}",
            bars.collect::<String>(),
            printable(last_part(&entry.name))
        ));
        more_at[own] = true;
    }
    present::lines(lines.into_iter().rev())?;
    let directories = all.iter().filter(|entry| entry.is_directory()).count();
    let files = all.len() - directories;
    present::line(&format!("\n{} directories, {files} files", directories.saturating_sub(1)))
}

/// Number of parts of `name` below `above`, its prefix.
fn depth_below(above: &str, name: &str) -> usize {
    let parts = |name: &str| name.split('/').filter(|part| !part.is_empty()).count();
    parts(name) - parts(above)
}

pub(crate) fn find(which: &InstanceOnly, arguments: &Find) -> Result<(), UserError> {
    let glob = arguments.name.as_deref().map(Glob::new).transpose().map_err(|error| {
        UserError::usage(
            format!("{:?} is not a pattern for names", arguments.name.as_deref().unwrap_or("")),
            error.kind().to_string(),
            "write * for any characters, ? for one, [a-z] for one of several",
        )
    })?;
    let glob = glob.map(|glob| glob.compile_matcher());
    let from = instance_name(arguments.directory.as_deref().unwrap_or(""));
    let session = Session::new(instance(which));
    let newer = arguments.newer.as_deref();
    let newer = newer.map(|word| time_of_place(&session, &Place::of_word(word))).transpose()?;
    let mut found = session.walk(&from)?;
    found.retain(|entry| {
        let bytes = entry.file().map(|record| record.bytes);
        let kind = arguments.kind.is_none_or(|kind| match kind {
            Kind::File => bytes.is_some(),
            Kind::Directory => entry.is_directory(),
        });
        let least = arguments.min_size.is_none_or(|least| bytes.is_some_and(|it| it >= least));
        let most = arguments.max_size.is_none_or(|most| bytes.is_some_and(|it| it <= most));
        let name = || glob.as_ref().is_none_or(|glob| glob.is_match(last_part(&entry.name)));
        let is_newer = newer.is_none_or(|newer| entry.modified > newer);
        kind && least && most && is_newer && !entry.name.is_empty() && name()
    });
    if which.json {
        return present_all("unisono.find/1", &found);
    }
    present::lines(found.into_iter().map(|entry| printable(&entry.name)))
}

/// Time of the last change of a local file or of an entry of the instance.
fn time_of_place(session: &Session, place: &Place) -> Result<Timestamp, UserError> {
    let path = match place {
        Place::Instance(name) => return Ok(session.look_at(name)?.modified),
        Place::Local(path) => path,
    };
    let modified = std::fs::metadata(path).and_then(|found| found.modified()).map_err(|error| {
        UserError::new(
            ExitCode::Failed,
            format!("cannot find out when {} was changed", path.display()),
            error.to_string(),
            format!("name a local file, or one in the instance as {SCHEME}NAME"),
        )
    })?;
    let since_1970 = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Timestamp::from_ns(u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)))
}

pub(crate) fn stat(which: &InstanceOnly, arguments: &Named) -> Result<(), UserError> {
    let name = instance_name(&arguments.name);
    let (entry, protected) = Session::new(instance(which)).look_at_protected(&name)?;
    let protection = entry.file().map(|record| record.protection);
    let protection = protection.filter(|protection| *protection != Protection::None);
    if which.json {
        let mut object = entry_json(&entry);
        object["schema"] = "unisono.stat/1".into();
        if let Some(protection) = protection {
            object["protection"] = protection_json(protected);
            object["protection"]["by"] = protection.to_string().into();
        }
        return present::json(&object);
    }
    let [created, changed] = [entry.made.at(), entry.modified].map(entries::time_text);
    let made = format!("made by user {} at {created}", entry.made.owner);
    match &entry.kind {
        EntryKind::File(record) => {
            present::line(&entries::file_line(record))?;
            let servers: Vec<String> =
                record.servers().map(|server| server.0.to_string()).collect();
            present::line(&format!(
                "  {made}, changed at {changed}; on servers {}",
                servers.join(", ")
            ))?;
            let Some(protection) = protection else { return Ok(()) };
            let words = protected.map_or_else(|| "unknown now".to_owned(), protected_words);
            present::line(&format!("  protection {protection}: {words}"))
        }
        EntryKind::Directory(_) if name.is_empty() => present::line("/  the root directory"),
        EntryKind::Directory(_) => {
            present::line(&format!("{}/  a directory, {made}", printable(&entry.name)))
        }
        EntryKind::Special(special) => {
            present::line(&format!("{}  {}, {made}", printable(&entry.name), special.kind()))
        }
    }
}

pub(crate) fn make_directories(which: &InstanceOnly, arguments: &Mkdir) -> Result<(), UserError> {
    let session = Session::new(instance(which));
    let names: Vec<String> = arguments.names.iter().map(|name| instance_name(name)).collect();
    names.iter().try_for_each(|name| session.make_directory(name, arguments.parents))?;
    present_names("unisono.mkdir/1", "made", &names, which.json)
}

pub(crate) fn rename(which: &InstanceOnly, arguments: &Mv) -> Result<(), UserError> {
    let session = Session::new(instance(which));
    let target = instance_name(&arguments.target);
    let is_there = session.find(&target)?;
    let into = is_there.as_ref().is_some_and(Entry::is_directory);
    let sources = globs::names(&session, &arguments.sources)?;
    if sources.len() > 1 && !into {
        return Err(UserError::usage(
            format!("cannot move several sources to {target:?}"),
            "the target is not a directory",
            "make it first: unisono mkdir -p DIRECTORY",
        ));
    }
    let mut names = Vec::new();
    for source in sources {
        if arguments.target.ends_with('/') && !into {
            let is_file = session.find(&source)?.is_some_and(|entry| !entry.is_directory());
            // The new name of a directory may have a slash at its end.
            if is_file || is_there.is_some() {
                let what = format!("cannot move {source:?} to {SCHEME}{target}");
                return Err(no_directory(what, is_there.is_some()));
            }
        }
        let to = match into && source != target {
            true if target.is_empty() => last_part(&source).to_owned(),
            true => format!("{target}/{}", last_part(&source)),
            false => target.clone(),
        };
        session.rename(&source, &to, true)?;
        names.push(to);
    }
    present_names("unisono.mv/1", "moved_to", &names, which.json)
}

pub(crate) fn remove(which: &InstanceOnly, arguments: &Rm) -> Result<(), UserError> {
    let session = Session::new(instance(which));
    let mut names = Vec::new();
    for word in &arguments.names {
        match arguments.force {
            true => names.extend(globs::matching(&session, word)?),
            false => names.extend(globs::names(&session, std::slice::from_ref(word))?),
        }
    }
    if names.iter().any(String::is_empty) {
        return Err(UserError::usage(
            "cannot remove the root directory",
            "every instance must have a root directory",
            "name the files and directories in it; `unisono ls` lists them",
        ));
    }
    let mut removed = Vec::new();
    for name in names {
        let done = match arguments.recursive {
            true => session.remove_tree(&name).map(|_| ()),
            false => session.remove(&name),
        };
        match done {
            // It does not exist, or another client was faster.
            Err(error) if arguments.force && error.kind == ErrorKind::NotFound => {}
            done => {
                done?;
                removed.push(name);
            }
        }
    }
    session.free_leftovers();
    present_names("unisono.rm/2", "removed", &removed, which.json)
}

pub(crate) fn usage(which: &InstanceOnly, arguments: &Du) -> Result<(), UserError> {
    let name = instance_name(arguments.name.as_deref().unwrap_or(""));
    let all = Session::new(instance(which)).walk(&name)?;
    // Bytes and number of files below each directory, at any depth.
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for entry in &all {
        let Some(record) = entry.file() else {
            sums.entry(&entry.name).or_default();
            continue;
        };
        let mut above = entry.name.as_str();
        loop {
            let sum = sums.entry(above).or_default();
            *sum = (sum.0.saturating_add(record.bytes), sum.1 + 1);
            if above == name {
                break;
            }
            above = above.rsplit_once('/').map_or("", |(directory, _)| directory);
        }
    }
    let is_shown =
        |entry: &&Entry| entry.name == name || (!arguments.summarize && entry.is_directory());
    let mut shown: Vec<&Entry> = all.iter().filter(is_shown).collect();
    // Content comes before its directory, as in du.
    shown.reverse();
    if which.json {
        let rows: Vec<Value> = shown
            .iter()
            .map(|entry| {
                let (bytes, files) = sums[entry.name.as_str()];
                json!({ "name": entry.name, "bytes": bytes, "files": files })
            })
            .collect();
        return present::json(&json!({ "schema": "unisono.du/1", "usage": rows }));
    }
    shown.iter().try_for_each(|entry| {
        let (bytes, files) = sums[entry.name.as_str()];
        let name = if entry.name.is_empty() { "/".to_owned() } else { printable(&entry.name) };
        present::line(&format!("{:>10}  {files:>8} files  {name}", show_size(bytes)))
    })
}

/// A list of entries as JSON.
#[derive(Serialize)]
struct Listing<'a> {
    entries: EachAsJson<'a>,
    schema: &'a str,
}

/// Entries serialised one by one: a million at once would take gigabytes.
struct EachAsJson<'a>(&'a [Entry]);

impl Serialize for EachAsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(entry_json))
    }
}

fn present_all(schema: &str, entries: &[Entry]) -> Result<(), UserError> {
    present::json(&Listing { entries: EachAsJson(entries), schema })
}

/// Result of a command that prints nothing on success.
fn present_names(
    schema: &str,
    key: &str,
    names: &[String],
    as_json: bool,
) -> Result<(), UserError> {
    match as_json {
        true => present::json(&json!({ "schema": schema, key: names })),
        false => Ok(()),
    }
}
