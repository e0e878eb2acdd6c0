//! Opening and making files.

use super::connection::Library;
use super::file::LibraryFile;
use super::known::Known;
use crate::files::made_now;
use crate::session::Session;
use filesystem::NewFile;
use interface::UserError;
use policy::{Buffering, Pool, Stripe};
use wire::FileRecord;

impl Library {
    /// Opens a file, to be buffered as it was made, or as `buffering` says.
    pub fn open(&self, name: &str, buffering: Option<Buffering>) -> Result<LibraryFile, UserError> {
        let what = format!("cannot open {name:?}");
        let record = self.run(&what, async |client| match buffering {
            Some(buffering) => client.open_as(name, buffering).await,
            None => client.open(name).await,
        })?;
        Ok(self.file(record))
    }

    /// Makes a file of `bytes` bytes, all zero, in blocks of `block_bytes` over all disks, and
    /// opens it.
    pub fn create(
        &self,
        name: &str,
        bytes: u64,
        block_bytes: u64,
        buffering: Buffering,
    ) -> Result<LibraryFile, UserError> {
        let stripe = Session::new(self.0.instance.clone()).stripe(block_bytes)?;
        self.create_striped(name, bytes, stripe, buffering)
    }

    /// Makes a file as said, and opens it.
    pub fn create_striped(
        &self,
        name: &str,
        bytes: u64,
        stripe: Stripe,
        buffering: Buffering,
    ) -> Result<LibraryFile, UserError> {
        let what = format!("cannot make {name:?}");
        let record = self.run(&what, async |client| {
            let (name, pool, made) = (name.to_owned(), Pool::all(client.servers()), made_now());
            client.create_as(NewFile { name, bytes, stripe, pool, buffering, made }).await
        })?;
        Ok(self.file(record))
    }

    fn file(&self, record: FileRecord) -> LibraryFile {
        LibraryFile { library: self.clone(), known: Known::new(record) }
    }
}
