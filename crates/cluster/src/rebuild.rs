//! The catalogue made again of a copy at another server: of one in a data directory while nothing
//! runs, or of that of a server that runs.
//!
//! *Invariants:*
//! - A catalogue that is there is never replaced.
//! - The new one appears in one step, when it is whole.

use crate::data::{DataDirectories, has_catalogue};
use crate::durable::cannot_write;
use crate::generations::{catalogue_log_in, of_disk};
use crate::instance::{begin_start, directories, forget, lock, why_running};
use crate::private::make_data_directory;
use crate::server::{CATALOGUE, CATALOGUE_COPY};
use client::{Instance, InstanceFile, ServerEntry, catalogue_copy, for_each_at_once};
use filesystem::{COPIES_MAX, COPY_POSITION_KEY, CopiedCatalogue, copy_position};
use interface::{ExitCode, UserError};
use std::fs;
use std::path::{Path, PathBuf};
use world::{RecordChange, RecordTable, Records};
use world_real::{Generation, NodeConfig, RealWorld, begin_generation, complete_generation, run};

/// Directory in which a new catalogue is made.
const NEW: &str = "catalogue.new";

/// Records of one change.
const RECORDS_AT_ONCE: usize = 4096;

/// A catalogue that was made again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rebuilt {
    /// Server whose copy it was made of.
    pub server: u32,
    /// Directory of the catalogue.
    pub directory: PathBuf,
    /// Number of its files, directories and other entries.
    pub entries: usize,
    /// Servers whose copies are older, or not whole.
    pub older: Vec<u32>,
}

/// A copy of the catalogue.
struct Copy {
    server: u32,
    position: u64,
    records: Vec<(u64, Vec<u8>)>,
}

/// Makes the catalogue of an instance again, whose servers have ended, of the newest copy in the
/// data directories: those in `data`, or those of the last start.
///
/// # Errors
/// When the instance runs, has a catalogue, or no whole copy is there.
pub fn rebuild_catalogue(
    instance: &Instance,
    data: Option<DataDirectories>,
) -> Result<Rebuilt, UserError> {
    let _nobody_starts = lock(instance)?;
    if let Ok(file) = instance.read()
        && let Some(cause) = why_running(instance, &file)
    {
        return Err(UserError::usage(
            "cannot make the catalogue of an instance that runs",
            cause,
            "stop it first: unisono stop",
        ));
    }
    let data = match data {
        Some(data) => data,
        None => {
            // Records the directories of servers that were killed.
            forget(instance)?;
            DataDirectories::remembered(&directories(instance)).ok_or_else(|| {
                UserError::usage(
                    "the data directories are not known",
                    format!("{} lists none", directories(instance).display()),
                    "name them as at the start: --servers N --data DIR ...",
                )
            })?
        }
    };
    if let Some(own) = data.firsts().next().filter(|own| has_catalogue(own)) {
        return Err(UserError::usage(
            "there is a catalogue",
            format!("{} has records", own.join(CATALOGUE).display()),
            "if it is damaged, move that directory away first",
        ));
    }
    let none = || no_copy("no data directory of another server has a whole one");
    rebuild_in(&data, copies_in(&data)?)?.ok_or_else(none)
}

/// Makes a catalogue that is lost again, before a start that fills lost directories again. `None`
/// if there is one, or if a copy of it is lost or not whole, too: others may lack changes that were
/// answered, so [`rebuild_catalogue`] must be asked for.
///
/// # Errors
/// Copies that cannot be read, and directories that cannot be written.
pub fn rebuild_lost_catalogue(
    instance: &Instance,
    data: &DataDirectories,
) -> Result<Option<Rebuilt>, UserError> {
    let has_copy = |first: &Path| first.join(CATALOGUE_COPY).is_dir();
    let mut holders = data.firsts().skip(1).take(COPIES_MAX).peekable();
    let are_there = holders.peek().is_some() && holders.all(has_copy);
    if data.firsts().next().is_none_or(has_catalogue) || !are_there {
        return Ok(None);
    }
    let _nobody_starts = begin_start(instance)?;
    match instance.read() {
        // The start says so.
        Ok(file) if why_running(instance, &file).is_some() => Ok(None),
        _ => {
            let copies = copies_in(data)?;
            let are_whole = copies.len() == data.by_server.len().saturating_sub(1).min(COPIES_MAX);
            if are_whole { rebuild_in(data, copies) } else { Ok(None) }
        }
    }
}

/// Reads the whole copies in data directories.
fn copies_in(data: &DataDirectories) -> Result<Vec<Copy>, UserError> {
    let firsts = (0..).zip(data.firsts()).skip(1);
    let copies = firsts.map(|(server, first)| copy_in(server, first));
    Ok(copies.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Makes the catalogue again of the newest of the copies in data directories; `None` if there is
/// none.
fn rebuild_in(data: &DataDirectories, copies: Vec<Copy>) -> Result<Option<Rebuilt>, UserError> {
    let Some(own) = data.firsts().next().filter(|_| !copies.is_empty()) else { return Ok(None) };
    let generation = newest_generation(data.by_server.iter().flatten())?;
    rebuild_of(own, copies, generation).map(Some)
}

/// Makes the catalogue of an instance that runs again, before server 0 takes its place there: of
/// the newest copy at the other servers. `own` is the first directory of server 0.
///
/// A change of the catalogue was answered when the first of the other servers had it, unless that
/// one did not answer: so all must say what they have, and the copy of the first must be whole.
///
/// # Errors
/// For that reason, or when nothing can be written.
pub(crate) fn rebuild_beside(
    instance: &Instance,
    file: &InstanceFile,
    own: &Path,
) -> Result<Rebuilt, UserError> {
    let holders: Vec<ServerEntry> = file.servers.iter().skip(1).take(COPIES_MAX).cloned().collect();
    let node = instance.client_node(file)?;
    let copies = for_each_at_once(&holders, |server| {
        let copied = catalogue_copy(server, node.clone());
        let copied = copied.map_err(|fault| copy_unknown(server.id, &fault.to_string()))?;
        let CopiedCatalogue { position, records } = copied;
        Ok(Copy { server: server.id, position, records })
    });
    let copies = copies.into_iter().collect::<Result<Vec<_>, UserError>>()?;
    match copies.first() {
        None => return Err(no_copy("the instance has one server")),
        Some(first) if first.position == 0 => {
            return Err(copy_unknown(first.server, "its copy is not whole"));
        }
        Some(_) => {}
    }
    let here = file.servers.iter().filter(|server| server.host.is_none());
    let generation = newest_generation(here.flat_map(|server| &server.data))?;
    rebuild_of(own, copies.into_iter().filter(|copy| copy.position > 0).collect(), generation)
}

/// Makes the catalogue again of the newest of some copies.
fn rebuild_of(
    own: &Path,
    mut copies: Vec<Copy>,
    generation: Option<Generation>,
) -> Result<Rebuilt, UserError> {
    copies.sort_by_key(|copy| std::cmp::Reverse(copy.position));
    let older = copies.iter().skip(1).filter(|copy| copy.position < copies[0].position);
    let older = older.map(|copy| copy.server).collect();
    let newest = &copies[0];
    make_data_directory(own)?;
    let directory = own.join(CATALOGUE);
    let entries = newest.records.iter().filter(|(key, _)| *key > 0 && *key != COPY_POSITION_KEY);
    let entries = entries.count();
    write(own, newest, generation)?;
    Ok(Rebuilt { server: newest.server, directory, entries, older })
}

fn copy_unknown(server: u32, cause: &str) -> UserError {
    UserError::new(
        ExitCode::NoServer,
        "cannot make the catalogue again while the instance runs",
        format!("server {server}, which has a copy of it: {cause}"),
        "it can be made when servers 1 to 7 serve with whole copies; or stop the instance: \
         unisono stop; unisono doctor --rebuild-catalogue",
    )
}

fn no_copy(cause: &str) -> UserError {
    UserError::new(
        ExitCode::DataCheck,
        "there is no copy of the catalogue",
        cause,
        "copies are at servers 1 to 7; restore the catalogue, or the directory of one of these, \
         from a copy of your own",
    )
}

/// Reads the copy of the catalogue in the first directory of a server, if there is a whole one.
fn copy_in(server: u32, first: &Path) -> Result<Option<Copy>, UserError> {
    let directory = first.join(CATALOGUE_COPY);
    if !directory.is_dir() {
        return Ok(None);
    }
    let records = vec![(RecordTable::CatalogueCopy, directory.clone())];
    let config = NodeConfig { records, ..NodeConfig::default() };
    let unreadable = |cause: String| {
        UserError::new(
            ExitCode::DataCheck,
            format!("cannot read the copy of the catalogue in {}", directory.display()),
            cause,
            "move that directory away to use the copy of another server",
        )
    };
    let records = run(async {
        let world = RealWorld::open(config).map_err(|error| error.to_string())?;
        let records = world.records(RecordTable::CatalogueCopy).await;
        records.map_err(|error| error.to_string())
    });
    let records = records.map_err(unreadable)?;
    let position = copy_position(&records);
    Ok((position > 0).then_some(Copy { server, position, records }))
}

/// The last complete generation of disks.
fn newest_generation<'a>(
    data: impl Iterator<Item = &'a PathBuf>,
) -> Result<Option<Generation>, UserError> {
    let mut newest: Option<Generation> = None;
    for directory in data.filter(|directory| directory.is_dir()) {
        let complete = of_disk(directory)?.complete;
        let is_newer = |one: &Generation| newest.is_none_or(|known| one.number > known.number);
        newest = complete.filter(is_newer).or(newest);
    }
    Ok(newest)
}

/// Writes the catalogue into the first directory of server 0.
fn write(own: &Path, copy: &Copy, generation: Option<Generation>) -> Result<(), UserError> {
    let (new, directory) = (own.join(NEW), own.join(CATALOGUE));
    let failed = |error: &std::io::Error| cannot_write(&new, error);
    match fs::remove_dir_all(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(&error)),
        _ => {}
    }
    fs::create_dir_all(&new).map_err(|error| failed(&error))?;
    let records = vec![(RecordTable::Catalogue, new.clone())];
    let config = NodeConfig { records, ..NodeConfig::default() };
    let written = run(async {
        let world = RealWorld::open(config).map_err(|error| error.to_string())?;
        for some in copy.records.chunks(RECORDS_AT_ONCE) {
            let put = |(key, value): &(u64, Vec<u8>)| RecordChange::put(*key, value.clone());
            let changes = some.iter().map(put).collect();
            let changed = world.record_change(RecordTable::Catalogue, changes).await;
            changed.map_err(|error| error.to_string())?;
        }
        Ok::<_, String>(())
    });
    written.map_err(|cause| failed(&std::io::Error::other(cause)))?;
    if let Some(generation) = generation {
        let log = catalogue_log_in(&new);
        let logged = begin_generation(&log, generation);
        let logged = logged.and_then(|()| complete_generation(&log, generation));
        logged.map_err(|error| failed(&error))?;
    }
    // What is left of the old one has no records.
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(cannot_write(&directory, &error));
        }
        _ => {}
    }
    fs::rename(&new, &directory).map_err(|error| cannot_write(&directory, &error))?;
    let synced = fs::File::open(own).and_then(|own| own.sync_all());
    synced.map_err(|error| cannot_write(own, &error))
}
