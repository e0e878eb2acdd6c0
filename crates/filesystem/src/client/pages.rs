//! Pages: whole blocks of a file, seen in the memory of the server that has them.

use super::faults::unexpected;
use super::state::Client;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::ops::Range;
use wire::{Fault, FileRecord, Reply, Request};
use world::{Payload, World};

/// Pages that one call asks for at the same time; a server refuses who asks for thousands.
const PAGES_AT_ONCE: usize = 256;

/// A page of a file as it was when it was asked for, pinned until the last clone is dropped.
///
/// A server on this machine lends it from its cache, and whoever writes the page meanwhile writes
/// elsewhere; from other machines, or when clients hold half of the server's cache already, it is
/// a copy. Clones of its payload must not outlive it: from then on the server may use the memory
/// for other things.
pub struct Page<W: World> {
    payload: W::Payload,
    /// As long as it is connected the server keeps what it lent.
    client: Client<W>,
}

impl<W: World> Clone for Page<W> {
    fn clone(&self) -> Self {
        Self { payload: self.payload.clone(), client: self.client.clone() }
    }
}

impl<W: World> Page<W> {
    /// Its bytes: a whole block, or what the file had of its last one.
    pub fn payload(&self) -> &W::Payload {
        &self.payload
    }

    /// Whose page it is.
    pub fn client(&self) -> &Client<W> {
        &self.client
    }
}

impl<W: World> Client<W> {
    /// Pins page `number` (its block of that number) of an open file.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when the file has no such page; what its server meets.
    pub async fn page(&self, file: &FileRecord, number: u64) -> Result<Page<W>, Fault> {
        let length = file.stripe.block_range(number, file.bytes).length();
        if length == 0 {
            let cause = format!("{:?} of {} bytes has no page {number}", file.name, file.bytes);
            return Err(Fault::BadRequest { cause });
        }
        let request = Request::Page { file: file.file, block: number };
        let answer = self.call_for_data(file.server_of(number), request).await?;
        match answer {
            (Reply::Done, Some(payload)) if payload.length() <= file.stripe.block_bytes => {
                Ok(Page { payload, client: self.clone() })
            }
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// Pins the pages of a range, asking for many of them at once.
    pub async fn pages(
        &self,
        file: &FileRecord,
        numbers: Range<u64>,
    ) -> Result<Vec<Page<W>>, Fault> {
        let pages = stream::iter(numbers).map(|number| self.page(file, number));
        pages.buffered(PAGES_AT_ONCE).try_collect().await
    }
}
