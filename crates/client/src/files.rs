//! Directories and files of an instance: the operations on names.

use crate::library::Connection;
use crate::session::Session;
use filesystem::{Client, Fault};
use futures_util::future::{Either, select};
use interface::UserError;
use policy::{Buffering, PageMap, Pool, Protection, Stripe};
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::SystemTime;
use units::{Duration, FileId, MIB, ServerId, Timestamp};
use wire::{Entry, EntryKind, FileDefaults, FileRecord, FileSize, Made};
use world::Clock;
use world_real::RealWorld;

impl Session {
    /// Lists a directory, sorted by name. The sizes of open files may be slightly old.
    pub fn list(&self, directory: &str) -> Result<Vec<Entry>, UserError> {
        let what = format!("cannot list {directory:?}");
        self.with_onlooker(&what, async |client| {
            let open = client.open_sizes().await?;
            Ok(with_sizes(client.list(directory).await?, &open))
        })
    }

    /// Lists a file, or a directory with everything below it. Each directory comes before its
    /// content, sorted by name. Sizes are as in [`Session::list`].
    pub fn walk(&self, name: &str) -> Result<Vec<Entry>, UserError> {
        let what = format!("cannot list everything below {}", shown(name));
        self.with_onlooker(&what, async |client| {
            let open = client.open_sizes().await?;
            Ok(with_sizes(walk(client, name).await?, &open))
        })
    }

    /// Entry of a name in the catalogue.
    pub fn stat(&self, name: &str) -> Result<Entry, UserError> {
        let what = format!("cannot read the metadata of {}", shown(name));
        self.with_onlooker(&what, async |client| client.stat(name).await)
    }

    /// Entry of a name, with the current size if it is a file.
    pub fn look_at(&self, name: &str) -> Result<Entry, UserError> {
        let what = format!("cannot read the metadata of {}", shown(name));
        self.with_onlooker(&what, async |client| client.look_at(name).await)
    }

    /// Entry of a name, or `None` if the name does not exist.
    pub fn find(&self, name: &str) -> Result<Option<Entry>, UserError> {
        let what = format!("cannot read the metadata of {}", shown(name));
        self.with_onlooker(&what, async |client| match client.stat(name).await {
            Err(Fault::NoSuchFile { .. }) => Ok(None),
            found => found.map(Some),
        })
    }

    /// Record of a file in the catalogue.
    pub fn stat_file(&self, name: &str) -> Result<FileRecord, UserError> {
        let what = format!("cannot read the metadata of {}", shown(name));
        self.with_onlooker(&what, async |client| client.stat_file(name).await)
    }

    /// Makes a directory. With `parents`, also makes missing parents, and an existing directory is
    /// no error.
    pub fn make_directory(&self, name: &str, parents: bool) -> Result<(), UserError> {
        let what = format!("cannot make the directory {name:?}");
        self.with_client(&what, async |client| match parents {
            true => make_directories(client, name).await,
            false => client.make_directory(name, made_now()).await,
        })
    }

    /// Sets the defaults for new files in a directory.
    pub fn set_defaults(&self, directory: &str, defaults: FileDefaults) -> Result<(), UserError> {
        let what = format!("cannot set the defaults for new files in {directory:?}");
        let told = |fault| match fault {
            Fault::BadRequest { cause } => {
                UserError::usage(&what, cause, "see: unisono layout set --help")
            }
            fault => UserError::of_fault(&what, &fault),
        };
        self.with_connected(&what, async |client| {
            client.set_defaults(directory, defaults).await.map_err(told)
        })
    }

    /// Protects new files in the root, and in directories that are made in it later.
    ///
    /// # Errors
    /// Fails when there are too few servers.
    pub fn protect(&self, protection: Protection) -> Result<(), UserError> {
        let defaults = match self.stat("")?.kind {
            EntryKind::Directory(defaults) => defaults,
            EntryKind::File(_) | EntryKind::Special(_) => FileDefaults::default(),
        };
        self.set_defaults("", FileDefaults { protection: Some(protection), ..defaults })
    }

    /// Protects a file that is there, or ceases to. Its copies are written then, or removed.
    ///
    /// # Errors
    /// Fails when the file is on too few servers, or one of them does not answer.
    pub fn protect_file(&self, file: &FileRecord, protection: Protection) -> Result<(), UserError> {
        let what = format!("cannot change the protection of {:?}", file.name);
        let told = |fault| match fault {
            Fault::BadRequest { cause } => UserError::usage(
                &what,
                cause,
                "copy the file into a directory with that protection: unisono layout set, cp; or, \
                 while a lost part is filled, wait: unisono status",
            ),
            fault => UserError::of_fault(&what, &fault),
        };
        self.with_connected(&what, async |client| {
            client.protect(file, protection).await.map_err(told)
        })
    }

    /// Renames a file or a directory. With `replace`, an existing file of the new name is replaced.
    pub fn rename(&self, from: &str, to: &str, replace: bool) -> Result<(), UserError> {
        let what = format!("cannot rename {from:?} to {to:?}");
        self.with_client(&what, async |client| match replace {
            true => client.replace(from, to).await,
            false => client.rename(from, to).await,
        })
    }

    /// Removes a file or an empty directory.
    pub fn remove(&self, name: &str) -> Result<(), UserError> {
        let what = format!("cannot remove {name:?}");
        self.with_client(&what, async |client| client.remove(name).await)
    }

    /// Removes a file. A missing file is no error.
    pub(crate) fn remove_if_any(&self, name: &str) -> Result<(), UserError> {
        let what = format!("cannot remove {name:?}");
        self.with_client(&what, async |client| match client.remove(name).await {
            Err(Fault::NoSuchFile { .. }) => Ok(()),
            removed => removed,
        })
    }

    /// Frees the data of files that have lost their names, whose removal was cut short by the end
    /// of a client or a server. Takes at most 200 ms; the rest is left for the next call.
    pub fn free_leftovers(&self) {
        let _ = self.with_onlooker("cannot free the data of removed files", async |client| {
            let limit = pin!(client.world().sleep(LEFTOVERS_TIMEOUT));
            match select(pin!(client.drop_nameless()), limit).await {
                Either::Left((dropped, _)) => dropped,
                Either::Right(_) => Ok(()),
            }
        });
    }

    /// Removes a file, or a directory with everything below it. Returns the number of entries
    /// removed.
    pub fn remove_tree(&self, name: &str) -> Result<usize, UserError> {
        let what = format!("cannot remove {name:?}");
        self.with_client(&what, async |client| {
            let entries = walk(client, name).await?;
            let (files, directories): (Vec<&Entry>, _) =
                entries.iter().partition(|entry| entry.file().is_some());
            for some in files.chunks(REMOVALS_AT_ONCE) {
                let removals = some.iter().map(|file| client.remove(&file.name));
                // A removal that has begun goes on to its end.
                let removed = futures_util::future::join_all(removals).await;
                removed.into_iter().collect::<Result<(), Fault>>()?;
            }
            // In reverse, the content of a directory comes before it. The root stays.
            for directory in directories.iter().rev().filter(|entry| !entry.name.is_empty()) {
                client.remove(&directory.name).await?;
            }
            Ok(entries.len())
        })
    }
}

/// Name as shown to the user.
fn shown(name: &str) -> String {
    if name.is_empty() { "the root directory".to_owned() } else { format!("{name:?}") }
}

/// Time limit of freeing leftovers, for a command that has other work to do. Disks that have begun
/// to free data go on.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_ms(200);

/// Maximum number of files removed at the same time.
const REMOVALS_AT_ONCE: usize = 64;

/// Bytes of a file for each server, in the choice of the number of servers. A small file lies on
/// one server, and its access takes the time of one server only.
const BYTES_PER_SERVER_MIN: u64 = MIB;

pub(crate) async fn walk(client: &Client<RealWorld>, name: &str) -> Result<Vec<Entry>, Fault> {
    let mut found = Vec::new();
    // A stack of entries still to visit, the first name on top.
    let mut left = vec![client.stat(name).await?];
    while let Some(entry) = left.pop() {
        if matches!(entry.kind, EntryKind::Directory(_)) {
            left.extend(client.list(&entry.name).await?.into_iter().rev());
        }
        found.push(entry);
    }
    Ok(found)
}

/// Updates the catalogue's entries with the sizes of files that were open shortly before. The
/// servers must be asked before the catalogue: otherwise a file could be closed in between, and
/// neither would know its size.
fn with_sizes(
    mut entries: Vec<Entry>,
    open: &BTreeMap<FileId, (FileSize, Timestamp)>,
) -> Vec<Entry> {
    for entry in &mut entries {
        if let EntryKind::File(record) = &mut entry.kind
            && let Some((size, modified)) = open.get(&record.file)
        {
            record.learn(*size);
            entry.modified = entry.modified.max(*modified);
        }
    }
    entries
}

/// Makes a directory and its missing parents.
pub(crate) async fn make_directories(client: &Client<RealWorld>, name: &str) -> Result<(), Fault> {
    let ends = name.match_indices('/').map(|(end, _)| end).chain([name.len()]);
    for directory in ends.map(|end| &name[..end]).filter(|name| !name.is_empty()) {
        match client.make_directory(directory, made_now()).await {
            Err(Fault::FileExists { .. }) => match client.stat(directory).await?.kind {
                EntryKind::Directory(_) => {}
                EntryKind::File(_) | EntryKind::Special(_) => {
                    return Err(Fault::NotADirectory { name: directory.to_owned() });
                }
            },
            made => made?,
        }
    }
    Ok(())
}

/// Returns the owner and the time of something made now by this process.
pub(crate) fn made_now() -> Made {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Made {
        owner: rustix::process::getuid().as_raw(),
        // A clock set before 1970 gives no time.
        at_s: since_1970.map_or(0, |time| time.as_secs()),
    }
}

/// Stripe, servers and buffering of a new file. The user's options come first, then the defaults of
/// the directory, then those of the program.
pub(crate) struct Placement {
    pub(crate) stripe: Stripe,
    pub(crate) pool: Pool,
    pub(crate) buffering: Buffering,
    pub(crate) protection: Protection,
}

/// Chooses the placement of a file of `bytes` bytes in a directory with these `defaults`. The
/// number of servers grows with the size. The first server is random, so that small files spread
/// over all.
pub(crate) fn placement(
    connection: &Connection,
    usual: Usual,
    defaults: &FileDefaults,
    bytes: u64,
) -> Placement {
    let block_bytes = usual.block_bytes.or(defaults.block_bytes).unwrap_or(BLOCK_BYTES);
    let (buffering, protection) = (defaults.buffering, defaults.protection.unwrap_or_default());
    if !defaults.map.is_empty() {
        let (pool, map) = mapped(&defaults.map);
        let servers = pool.len() as u32;
        let dealt = Stripe::round_robin(block_bytes, servers, usual.disks_per_server);
        let (stripe, pool) = (Stripe { placement: map.into(), ..dealt }, Pool::Named(pool));
        return Placement { stripe, pool, buffering, protection };
    }
    let unit = block_bytes.max(BYTES_PER_SERVER_MIN);
    let deserved = u32::try_from(bytes.div_ceil(unit)).unwrap_or(u32::MAX);
    // A copy, and the pieces of a row with their parity, need servers of their own.
    let deserved = deserved.max(protection.servers_min());
    let most = defaults.servers.unwrap_or(u32::MAX);
    let random = connection.random();
    let (servers, pool) = match &defaults.pool[..] {
        [] => {
            let of = connection.servers();
            let first = (random % u64::from(of)) as u32;
            (deserved.min(most).min(of), Pool::Consecutive { first, of })
        }
        named => {
            let servers = (deserved.min(most) as usize).min(named.len());
            let first = (random % named.len() as u64) as usize;
            let turned = named.iter().cycle().skip(first).take(servers);
            (servers as u32, Pool::Named(turned.copied().collect()))
        }
    };
    let stripe = Stripe::round_robin(block_bytes, servers, usual.disks_per_server);
    Placement { stripe, pool, buffering, protection }
}

/// Returns the servers that a map names, in the order of their first mention, and the map in terms
/// of them. (The catalogue has no map of an impossible length.)
fn mapped(turns: &[ServerId]) -> (Vec<ServerId>, Option<PageMap>) {
    let mut pool = Vec::new();
    let mut places = BTreeMap::new();
    let map = turns.iter().map(|server| {
        *places.entry(*server).or_insert_with(|| {
            pool.push(*server);
            pool.len() as u32 - 1
        })
    });
    let map = PageMap::try_from(map.collect::<Vec<u32>>()).ok();
    (pool, map)
}

/// Options shared by all files that one command makes.
#[derive(Clone, Copy)]
pub(crate) struct Usual {
    /// Block size that the user asks for, in bytes. Overrides the default of the directory.
    pub(crate) block_bytes: Option<u64>,
    pub(crate) disks_per_server: u32,
}

/// Default block size, in bytes.
pub(crate) const BLOCK_BYTES: u64 = MIB;
