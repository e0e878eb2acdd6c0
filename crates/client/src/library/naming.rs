//! Names: opening, making, finding and removing files and directories.
//!
//! *Invariant:* each call takes a name as users write it ([`instance_name`]), and asks servers for
//! that which it means.

use super::cached_record::CachedRecord;
use super::connection::Connection;
use super::file::File;
use super::group::random_number;
use crate::files::{Placement, Usual, made_now, make_directories, placement};
use crate::protection::look_at_protected;
use filesystem::{Fault, NewFile};
use interface::{ErrorKind, UserError};
use policy::{Buffering, Pool, ProtectedBytes, Protection, Stripe};
use wire::{Entry, EntryKind, FileDefaults, FileRecord, instance_name};

/// Options of a new file, in place of the defaults of its directory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NewFileOptions {
    /// Unit of striping, in bytes.
    pub block_bytes: Option<u64>,
    /// Protection against the loss of a server.
    pub protection: Option<Protection>,
}

/// Times that a file is tried to be opened or made while others make and remove it.
const OPEN_ATTEMPTS_MAX: u32 = 16;

impl Connection {
    /// Opens a file, to be buffered as it was made.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](interface::ErrorKind::NotFound) when there is none.
    pub fn open_file(&self, name: &str) -> Result<File, UserError> {
        self.open_file_as(name, None)
    }

    /// Opens a file, to be buffered as `buffering` says, if it says something.
    ///
    /// # Errors
    /// As for [`Connection::open_file`].
    pub fn open_file_as(
        &self,
        name: &str,
        buffering: Option<Buffering>,
    ) -> Result<File, UserError> {
        let (what, name) = (format!("cannot open {name:?}"), instance_name(name));
        let record = self.run(
            || what,
            async move |shared| match buffering {
                Some(buffering) => shared.client.open_as(&name, buffering).await,
                None => shared.client.open(&name).await,
            },
        )?;
        Ok(self.file(record))
    }

    /// Makes a file of `bytes` bytes, all zero, in blocks of `block_bytes` over all disks, and
    /// opens it. It is protected as its directory says.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`](interface::ErrorKind::AlreadyExists) when the name is taken.
    pub fn create(
        &self,
        name: &str,
        bytes: u64,
        block_bytes: u64,
        buffering: Buffering,
    ) -> Result<File, UserError> {
        let stripe = self.stripe(block_bytes)?;
        self.create_striped(name, bytes, stripe, buffering)
    }

    /// Makes a file with a stripe of the caller's, and opens it.
    ///
    /// # Errors
    /// As for [`Connection::create`].
    pub fn create_striped(
        &self,
        name: &str,
        bytes: u64,
        stripe: Stripe,
        buffering: Buffering,
    ) -> Result<File, UserError> {
        let name = instance_name(name);
        let (pool, made) = (Pool::all(self.servers()), made_now());
        let protection = self.defaults_for(&name)?.protection.unwrap_or_default();
        self.create_as(NewFile { name, bytes, stripe, pool, buffering, protection, made })
    }

    /// Defaults of a new file of this name: those of its directory.
    fn defaults_for(&self, name: &str) -> Result<FileDefaults, UserError> {
        let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
        Ok(match self.find(directory)?.map(|entry| entry.kind) {
            Some(EntryKind::Directory(defaults)) => defaults,
            // The creation finds out why there is no such directory.
            Some(EntryKind::File(_) | EntryKind::Special(_)) | None => FileDefaults::default(),
        })
    }

    /// Makes a file as said, and opens it.
    pub(crate) fn create_as(&self, new: NewFile) -> Result<File, UserError> {
        let what = format!("cannot create {:?}", new.name);
        let record = self.run(|| what, async move |shared| shared.client.create_as(new).await)?;
        Ok(self.file(record))
    }

    /// Number of servers.
    pub fn servers(&self) -> u32 {
        self.0.servers
    }

    /// A random number.
    pub(crate) fn random(&self) -> u64 {
        random_number()
    }

    /// Entry of a name, if there is something of that name.
    ///
    /// # Errors
    /// Faults that the servers answer with.
    pub fn find(&self, name: &str) -> Result<Option<Entry>, UserError> {
        let (what, name) = (format!("cannot read the metadata of {name:?}"), instance_name(name));
        self.run(
            || what,
            async move |shared| match shared.client.stat(&name).await {
                Err(Fault::NoSuchFile { .. }) => Ok(None),
                found => found.map(Some),
            },
        )
    }

    /// Opens a file, or makes an empty one as its directory says when there is none.
    ///
    /// # Errors
    /// Faults that the servers answer with.
    pub fn open_or_create(&self, name: &str) -> Result<File, UserError> {
        for _ in 0..OPEN_ATTEMPTS_MAX {
            match self.open_file(name) {
                Err(error) if error.kind == ErrorKind::NotFound => {}
                opened => return opened,
            }
            match self.create_by_default(name, NewFileOptions::default()) {
                // Another process was faster.
                Err(error) if error.kind == ErrorKind::AlreadyExists => {}
                created => return created,
            }
        }
        self.open_file(name)
    }

    /// Makes an empty file as its directory says, over all servers that the directory permits, and
    /// opens it. What `options` say is used in place of what the directory says.
    ///
    /// # Errors
    /// As for [`Connection::create`].
    pub fn create_by_default(
        &self,
        name: &str,
        options: NewFileOptions,
    ) -> Result<File, UserError> {
        let NewFileOptions { block_bytes, protection } = options;
        let name = instance_name(name);
        let disks_per_server = self.instance().read()?.disks_per_server;
        let usual = Usual { block_bytes, disks_per_server };
        let mut defaults = self.defaults_for(&name)?;
        defaults.protection = protection.or(defaults.protection);
        // A file that is to grow deserves all servers.
        let placed = placement(self, usual, &defaults, u64::MAX);
        let Placement { stripe, pool, buffering, protection } = placed;
        let made = made_now();
        self.create_as(NewFile { name, bytes: 0, stripe, pool, buffering, protection, made })
    }

    /// Stripe over all disks of the instance.
    ///
    /// # Errors
    /// Fails when blocks cannot be that large.
    pub fn stripe(&self, block_bytes: u64) -> Result<Stripe, UserError> {
        crate::session::Session::new(self.instance().clone()).stripe(block_bytes)
    }

    /// Removes a file or an empty directory.
    ///
    /// # Errors
    /// Faults that the servers answer with.
    pub fn remove(&self, name: &str) -> Result<(), UserError> {
        let (what, name) = (format!("cannot remove {name:?}"), instance_name(name));
        self.run(|| what, async move |shared| shared.client.remove(&name).await)
    }

    /// Gives a file or a directory another name. With `replace`, a file may have that name until
    /// then.
    ///
    /// # Errors
    /// Faults that the servers answer with.
    pub fn rename(&self, from: &str, to: &str, replace: bool) -> Result<(), UserError> {
        let what = format!("cannot rename {from:?} to {to:?}");
        let (from, to) = (instance_name(from), instance_name(to));
        self.run(
            || what,
            async move |shared| match replace {
                true => shared.client.replace(&from, &to).await,
                false => shared.client.rename(&from, &to).await,
            },
        )
    }

    /// Makes a directory; with `parents` also those that it is to be in, and nothing if it is
    /// there.
    ///
    /// # Errors
    /// Faults that the servers answer with.
    pub fn make_directory(&self, name: &str, parents: bool) -> Result<(), UserError> {
        let (what, name) = (format!("cannot make the directory {name:?}"), instance_name(name));
        self.run(
            || what,
            async move |shared| match parents {
                true => make_directories(&shared.client, &name).await,
                false => shared.client.make_directory(&name, made_now()).await,
            },
        )
    }

    /// Entry of a name; of a file its size now.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](interface::ErrorKind::NotFound) when there is none.
    pub fn stat(&self, name: &str) -> Result<Entry, UserError> {
        let (what, name) = (format!("cannot read the metadata of {name:?}"), instance_name(name));
        self.run(|| what, async move |shared| shared.client.look_at(&name).await)
    }

    /// Entry of a name as [`stat`](Self::stat) returns it. Of a protected file with the bytes that
    /// are protected now; `None` while a server does not know what is lost, and of other entries.
    ///
    /// # Errors
    /// As for `stat`.
    pub fn stat_protected(&self, name: &str) -> Result<(Entry, Option<ProtectedBytes>), UserError> {
        let (what, name) = (format!("cannot read the metadata of {name:?}"), instance_name(name));
        self.run(|| what, async move |shared| look_at_protected(&shared.client, &name).await)
    }

    /// Entries of a directory, by name. Sizes of files that were not closed may be old.
    ///
    /// # Errors
    /// Faults that the servers answer with.
    pub fn list(&self, directory: &str) -> Result<Vec<Entry>, UserError> {
        let (what, name) = (format!("cannot list {directory:?}"), instance_name(directory));
        self.run(|| what, async move |shared| shared.client.list(&name).await)
    }

    pub(super) fn file(&self, record: FileRecord) -> File {
        File::new(self.clone(), CachedRecord::new(record))
    }
}
