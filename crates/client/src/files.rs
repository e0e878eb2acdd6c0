//! Directories and files of an instance: what can be done with their names.

use crate::library::Connection;
use crate::session::Session;
use filesystem::{Client, Fault};
use futures_util::future::{Either, select};
use interface::UserError;
use policy::{Buffering, PageMap, Pool, Stripe};
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::SystemTime;
use units::{Duration, FileId, MIB, ServerId};
use wire::{Entry, EntryKind, FileDefaults, FileRecord, FileSize, Made};
use world::Clock;
use world_real::RealWorld;

impl Session {
    /// Everything in a directory, by name. Of files that are open the size is that of a moment
    /// ago.
    pub fn list(&self, directory: &str) -> Result<Vec<Entry>, UserError> {
        let what = format!("cannot list {directory:?}");
        self.with_onlooker(&what, async |client| {
            let open = client.open_sizes().await?;
            Ok(with_sizes(client.list(directory).await?, &open))
        })
    }

    /// A file or a directory with all that is in it, at any depth: each before what it holds, by
    /// name; sizes as in [`Session::list`].
    pub fn walk(&self, name: &str) -> Result<Vec<Entry>, UserError> {
        let what = format!("cannot walk through {}", shown(name));
        self.with_onlooker(&what, async |client| {
            let open = client.open_sizes().await?;
            Ok(with_sizes(walk(client, name).await?, &open))
        })
    }

    /// What the catalogue knows of a name.
    pub fn stat(&self, name: &str) -> Result<Entry, UserError> {
        let what = format!("cannot look at {}", shown(name));
        self.with_onlooker(&what, async |client| client.stat(name).await)
    }

    /// What is known of a name; of a file its size now.
    pub fn look_at(&self, name: &str) -> Result<Entry, UserError> {
        let what = format!("cannot look at {}", shown(name));
        self.with_onlooker(&what, async |client| client.look_at(name).await)
    }

    /// What is known of a name, if there is something of that name.
    pub fn find(&self, name: &str) -> Result<Option<Entry>, UserError> {
        let what = format!("cannot look at {}", shown(name));
        self.with_onlooker(&what, async |client| match client.stat(name).await {
            Err(Fault::NoSuchFile { .. }) => Ok(None),
            found => found.map(Some),
        })
    }

    /// What is known of a file.
    pub fn stat_file(&self, name: &str) -> Result<FileRecord, UserError> {
        let what = format!("cannot look at {}", shown(name));
        self.with_onlooker(&what, async |client| client.stat_file(name).await)
    }

    /// Makes a directory; with `parents` also those that it is to be in, and nothing if it is
    /// there.
    pub fn make_directory(&self, name: &str, parents: bool) -> Result<(), UserError> {
        let what = format!("cannot make the directory {name:?}");
        self.with_client(&what, async |client| match parents {
            true => make_directories(client, name).await,
            false => client.make_directory(name, made_now()).await,
        })
    }

    /// Says how new files in a directory are made.
    pub fn set_defaults(&self, directory: &str, defaults: FileDefaults) -> Result<(), UserError> {
        let what = format!("cannot say how files in {directory:?} are made");
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

    /// Gives a file or a directory another name. With `replace`, a file may have that name until
    /// then.
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

    /// The same, if there is such a file.
    pub(crate) fn remove_if_any(&self, name: &str) -> Result<(), UserError> {
        let what = format!("cannot remove {name:?}");
        self.with_client(&what, async |client| match client.remove(name).await {
            Err(Fault::NoSuchFile { .. }) => Ok(()),
            removed => removed,
        })
    }

    /// Frees what is left of files that have lost their names, whose removal was cut short by the
    /// end of a client or a server. Not for long, and what cannot be freed now stays for the next.
    pub fn free_leftovers(&self) {
        let _ = self.with_onlooker("cannot free what is left", async |client| {
            let limit = pin!(client.world().sleep(LEFTOVERS_PATIENCE));
            match select(pin!(client.drop_nameless()), limit).await {
                Either::Left((dropped, _)) => dropped,
                Either::Right(_) => Ok(()),
            }
        });
    }

    /// Removes a file, or a directory with all that is in it. Returns how many there were.
    pub fn remove_tree(&self, name: &str) -> Result<usize, UserError> {
        let what = format!("cannot remove {name:?}");
        self.with_client(&what, async |client| {
            let entries = walk(client, name).await?;
            let (files, directories): (Vec<&Entry>, _) =
                entries.iter().partition(|entry| entry.file().is_some());
            for some in files.chunks(REMOVALS_AT_ONCE) {
                let removals = some.iter().map(|file| client.remove(&file.name));
                // Whatever is begun goes on to its end.
                let removed = futures_util::future::join_all(removals).await;
                removed.into_iter().collect::<Result<(), Fault>>()?;
            }
            // What a directory holds comes behind it. The root stays.
            for directory in directories.iter().rev().filter(|entry| !entry.name.is_empty()) {
                client.remove(&directory.name).await?;
            }
            Ok(entries.len())
        })
    }
}

/// A name as it is told to the user.
fn shown(name: &str) -> String {
    if name.is_empty() { "the root directory".to_owned() } else { format!("{name:?}") }
}

/// How long whoever has something else to do waits until what others have left is freed. Disks that
/// have begun with it go on.
const LEFTOVERS_PATIENCE: Duration = Duration::from_ms(200);

/// Files that are removed at the same time.
const REMOVALS_AT_ONCE: usize = 64;

/// Files get a server for each so many of their bytes, up to all there are: a small file on one
/// server costs one server's time.
const BYTES_PER_SERVER_MIN: u64 = MIB;

pub(crate) async fn walk(client: &Client<RealWorld>, name: &str) -> Result<Vec<Entry>, Fault> {
    let mut found = Vec::new();
    // A stack of what is still to be looked at, the first name on top.
    let mut left = vec![client.stat(name).await?];
    while let Some(entry) = left.pop() {
        if matches!(entry.kind, EntryKind::Directory(_)) {
            left.extend(client.list(&entry.name).await?.into_iter().rev());
        }
        found.push(entry);
    }
    Ok(found)
}

/// What the catalogue knows, with the sizes of files that were open shortly before. (Were the
/// servers asked after the catalogue, a file could be closed in between, and neither would know.)
fn with_sizes(mut entries: Vec<Entry>, open: &BTreeMap<FileId, FileSize>) -> Vec<Entry> {
    for entry in &mut entries {
        if let EntryKind::File(record) = &mut entry.kind
            && let Some(size) = open.get(&record.file)
        {
            record.learn(*size);
        }
    }
    entries
}

/// Makes a directory and those that it is in, where they are not there.
pub(crate) async fn make_directories(client: &Client<RealWorld>, name: &str) -> Result<(), Fault> {
    let ends = name.match_indices('/').map(|(end, _)| end).chain([name.len()]);
    for directory in ends.map(|end| &name[..end]).filter(|name| !name.is_empty()) {
        match client.make_directory(directory, made_now()).await {
            Err(Fault::FileExists { .. }) => match client.stat(directory).await?.kind {
                EntryKind::Directory(_) => {}
                EntryKind::File(_) => {
                    return Err(Fault::NotADirectory { name: directory.to_owned() });
                }
            },
            made => made?,
        }
    }
    Ok(())
}

/// Who makes something, and that it is now.
pub(crate) fn made_now() -> Made {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Made {
        owner: rustix::process::getuid().as_raw(),
        // A clock that stands before 1970 tells nothing.
        at_s: since_1970.map_or(0, |time| time.as_secs()),
    }
}

/// How a new file is made: what is asked for, else what its directory says, else what is usual.
pub(crate) struct Placement {
    pub(crate) stripe: Stripe,
    pub(crate) pool: Pool,
    pub(crate) buffering: Buffering,
}

/// How a file of `bytes` bytes is made in a directory of these `defaults`: on as many servers as
/// its size deserves, beginning with any of them, so that small files share all.
pub(crate) fn placement(
    connection: &Connection,
    usual: Usual,
    defaults: &FileDefaults,
    bytes: u64,
) -> Placement {
    let block_bytes = usual.block_bytes.or(defaults.block_bytes).unwrap_or(BLOCK_BYTES);
    let buffering = defaults.buffering;
    if !defaults.map.is_empty() {
        let (pool, map) = mapped(&defaults.map);
        let servers = pool.len() as u32;
        let dealt = Stripe::round_robin(block_bytes, servers, usual.disks_per_server);
        return Placement { stripe: Stripe { map, ..dealt }, pool: Pool::Named(pool), buffering };
    }
    let unit = block_bytes.max(BYTES_PER_SERVER_MIN);
    let deserved = u32::try_from(bytes.div_ceil(unit)).unwrap_or(u32::MAX).max(1);
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
    Placement { stripe, pool, buffering }
}

/// The servers that a map names, in the order in which it first does, and the map of them. (The
/// catalogue has none of an impossible length.)
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

/// What is the same for all files that one command makes.
#[derive(Clone, Copy)]
pub(crate) struct Usual {
    /// What the user asks for, whatever a directory says.
    pub(crate) block_bytes: Option<u64>,
    pub(crate) disks_per_server: u32,
}

/// Bytes of a block where nobody says anything.
pub(crate) const BLOCK_BYTES: u64 = MIB;
