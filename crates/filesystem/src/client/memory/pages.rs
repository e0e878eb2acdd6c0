//! Pages: whole blocks of a file, mapped from the memory of a server.

use crate::client::faults::unexpected;
use crate::client::state::Client;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use std::ops::Range;
use wire::{BlockRequest, Fault, FileRecord, Reply};
use world::{Payload, World};

/// Maximum number of pages that one call asks for at the same time. A server refuses a client that
/// asks for thousands.
const PAGES_AT_ONCE: usize = 256;

/// A page of a file as it was at the request, pinned until the last clone is dropped.
///
/// A server on this machine lends the page from its cache, and a later write of the page goes to
/// other memory. From other machines, or when half of the server's cache is pinned already, the
/// page is a copy. Clones of its payload must not outlive it: from then on the server may reuse the
/// memory.
pub struct Page<W: World> {
    payload: W::Payload,
    /// Keeps the connection: the server keeps the loan as long as the client is connected.
    client: Client<W>,
}

impl<W: World> Clone for Page<W> {
    fn clone(&self) -> Self {
        Self { payload: self.payload.clone(), client: self.client.clone() }
    }
}

impl<W: World> Page<W> {
    /// Returns the bytes of a whole block, or of the file's part of its last block.
    pub fn payload(&self) -> &W::Payload {
        &self.payload
    }

    /// Returns the client that holds the page.
    pub fn client(&self) -> &Client<W> {
        &self.client
    }
}

impl<W: World> Client<W> {
    /// Pins page `number`, which is the block of that number, of an open file.
    ///
    /// # Errors
    /// [`Fault::BadRequest`] when the file has no such page; faults of its server.
    pub async fn page(&self, file: &FileRecord, number: u64) -> Result<Page<W>, Fault> {
        let length = file.stripe.block_range(number, file.bytes).length();
        if length == 0 {
            let cause = format!("{:?} of {} bytes has no page {number}", file.name, file.bytes);
            return Err(Fault::BadRequest { cause });
        }
        self.settle(file.file, false).await;
        let request = BlockRequest::Page { file: file.file, block: number };
        let answer = self.call_for_data(file.server_of(number), request).await?;
        match answer {
            (Reply::Done, Some(payload)) if payload.length() <= file.stripe.block_bytes => {
                Ok(Page { payload, client: self.clone() })
            }
            (other, _) => Err(unexpected(&other)),
        }
    }

    /// Pins the pages of a range, many of them at once.
    pub async fn pages(
        &self,
        file: &FileRecord,
        numbers: Range<u64>,
    ) -> Result<Vec<Page<W>>, Fault> {
        let pages = stream::iter(numbers).map(|number| self.page(file, number));
        pages.buffered(PAGES_AT_ONCE).try_collect().await
    }
}
