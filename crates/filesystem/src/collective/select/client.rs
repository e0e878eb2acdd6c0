//! Client side of a selection.

use super::all_ended;
use crate::client::{Client, WithdrawnOnDrop, unexpected};
use futures_util::FutureExt;
use policy::{DiskOrder, Reduced, Selection};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use units::{RegionId, Run, ServerId};
use wire::{
    COUNTED_BLOCKS_MAX, CollectiveRequest, Fault, FileRecord, HEADS_BYTES_MAX, Reply, SelectReply,
    SelectRequest, TakenRecords,
};
use world::{Memory, Payload, World};

/// Bytes of rests of records in one message.
const RESTS_BYTES_MAX: u64 = HEADS_BYTES_MAX;

/// Selection at the servers of a file, for the client that began it and for others. It ends when
/// the client that began it drops it.
pub struct Selected<W: World> {
    client: Client<W>,
    file: FileRecord,
    number: u64,
    record_bytes: u64,
    /// True if this client began it, and it has not ended.
    is_own: Cell<bool>,
    /// Blocks that were read, and blocks that were not, since no record of them matches. Known to
    /// the client that began it.
    blocks: Cell<(u64, u64)>,
}

/// Number of records of a destination, by blocks.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RecordCounts {
    /// Blocks that have some, ascending.
    blocks: Vec<(u64, u32)>,
}

impl RecordCounts {
    /// Number of records.
    pub fn total(&self) -> u64 {
        self.blocks.iter().map(|(_, count)| u64::from(*count)).sum()
    }
}

impl<W: World> Client<W> {
    /// Has the servers of an open file look at its records. Returns the selection; others take
    /// records of it by its [name](Selected::number).
    ///
    /// # Errors
    /// [`Fault::BadSelection`] for a selection that cannot be made of the file, and for a key that
    /// names no client. Other faults of the servers.
    pub async fn select(
        &self,
        file: &FileRecord,
        selection: Selection,
        order: DiskOrder,
    ) -> Result<Selected<W>, Fault> {
        self.settle(file.file, false).await;
        let record_bytes = selection.records.record_bytes;
        let selected = self.selected(file, self.world().random(), record_bytes);
        selected.is_own.set(true);
        let begin = SelectRequest::Begin {
            number: selected.number,
            file: file.file,
            selection: Box::new(selection),
            order,
        };
        selected.begin(begin).await.map(|()| selected)
    }

    /// The selection of this name, which another client began.
    pub fn selected(&self, file: &FileRecord, number: u64, record_bytes: u32) -> Selected<W> {
        let record_bytes = u64::from(record_bytes);
        let (client, is_own) = (self.clone(), Cell::new(false));
        let (file, blocks) = (file.clone(), Cell::default());
        Selected { client, file, number, record_bytes, is_own, blocks }
    }
}

impl<W: World> Selected<W> {
    /// Name of the selection at the servers.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of a record.
    pub(super) fn record_bytes(&self) -> u64 {
        self.record_bytes
    }

    async fn begin(&self, begin: SelectRequest) -> Result<(), Fault> {
        let servers: Vec<ServerId> = self.file.servers().collect();
        self.client.reach(|| servers.clone()).await?;
        // Each to its end: none looks at records for a selection that has ended.
        let begun = servers.iter().map(|server| self.begin_at(*server, &begin).boxed_local());
        let begun = all_ended(begun).await?;
        let with_heads = servers.iter().zip(begun).filter(|(_, bytes)| *bytes > 0);
        let routed = with_heads.map(|(server, _)| self.route_heads(*server).boxed_local());
        all_ended(routed).await.map(|_| ())
    }

    /// Begins at one server. Returns the bytes of the starts of its blocks.
    async fn begin_at(&self, server: ServerId, begin: &SelectRequest) -> Result<u64, Fault> {
        match self.call(server, begin.clone()).await? {
            SelectReply::Begun { blocks, skipped, head_bytes } => {
                let (read, left_out) = self.blocks.get();
                self.blocks.set((read + blocks, left_out + skipped));
                Ok(head_bytes)
            }
            _ => Err(out_of_place()),
        }
    }

    /// Brings the starts of blocks of a server to the servers at which these records begin.
    async fn route_heads(&self, server: ServerId) -> Result<(), Fault> {
        let mut from = 0;
        loop {
            let heads = SelectRequest::Heads { number: self.number, from };
            let request = CollectiveRequest::Select(Box::new(heads));
            let (reply, body) = self.client.call_for_data(server, request).await?;
            let Reply::Select(reply) = reply else { return Err(unexpected(&reply)) };
            let SelectReply::Heads { heads, more } = *reply else { return Err(out_of_place()) };
            let bytes: u64 = heads.iter().map(|(_, length)| u64::from(*length)).sum();
            let body = body.filter(|body| body.length() == bytes && bytes <= RESTS_BYTES_MAX);
            let body = body.ok_or_else(out_of_place)?;
            self.complete(&heads, &body).await?;
            match heads.last() {
                Some((last, _)) if more => from = last + 1,
                _ => return Ok(()),
            }
        }
    }

    async fn complete(&self, heads: &[(u64, u32)], body: &W::Payload) -> Result<(), Fault> {
        let mut by_server = BTreeMap::<ServerId, (Vec<(u64, u32)>, Vec<Run>)>::new();
        let mut at = 0;
        for (block, length) in heads {
            let before = block.checked_sub(1).ok_or_else(out_of_place)?;
            let place = self.file.stripe.locate(before).server;
            let (rests, runs) = by_server.entry(self.file.pool.server(place)).or_default();
            rests.push((before, *length));
            runs.push(Run::contiguous(at, u64::from(*length)));
            at += u64::from(*length);
        }
        let calls = by_server.into_iter().map(|(server, (rests, runs))| {
            let complete = SelectRequest::Complete { number: self.number, rests };
            let request = CollectiveRequest::Select(Box::new(complete));
            let call = self.client.call_with_data(server, request, Some(body.gather(&runs)));
            let completed = async move {
                match call.await? {
                    (Reply::Done, _) => Ok(()),
                    (other, _) => Err(unexpected(&other)),
                }
            };
            completed.boxed_local()
        });
        all_ended(calls).await.map(|_| ())
    }

    async fn call(&self, server: ServerId, request: SelectRequest) -> Result<SelectReply, Fault> {
        let request = CollectiveRequest::Select(Box::new(request));
        match self.client.call(server, request).await? {
            Reply::Select(reply) => Ok(*reply),
            other => Err(unexpected(&other)),
        }
    }

    /// Numbers of blocks that were read, and that were not since no record of them matches, at the
    /// client that began the selection.
    pub fn blocks(&self) -> (u64, u64) {
        self.blocks.get()
    }

    /// Has the servers keep the summary that was computed.
    ///
    /// # Errors
    /// [`Fault::TransferFailed`] if the file has changed since.
    pub async fn keep(&self) -> Result<(), Fault> {
        let keep = SelectRequest::Keep { number: self.number };
        let keep = CollectiveRequest::Select(Box::new(keep));
        self.client.call_each_server(self.file.servers(), keep).await.map(|_| ())
    }

    /// Number that was computed from the records of all servers.
    pub async fn reduced(&self) -> Result<Reduced, Fault> {
        let parts = self.file.servers().map(|server| {
            let part = async move {
                match self.call(server, SelectRequest::Number { number: self.number }).await? {
                    SelectReply::Number(reduced) => Ok(reduced),
                    _ => Err(out_of_place()),
                }
            };
            part.boxed_local()
        });
        let mut parts = all_ended(parts).await?.into_iter();
        let mut all = parts.next().ok_or_else(out_of_place)?;
        match parts.all(|part| all.merge(part)) {
            true => Ok(all),
            false => Err(out_of_place()),
        }
    }

    /// Number of records of a destination, by blocks.
    pub async fn counts(&self, destination: u32) -> Result<RecordCounts, Fault> {
        let servers = self.file.servers();
        let counted = servers.map(|server| self.counts_at(server, destination).boxed_local());
        let mut blocks: Vec<(u64, u32)> = all_ended(counted).await?.concat();
        blocks.sort_unstable();
        Ok(RecordCounts { blocks })
    }

    /// Number of records of a destination at one server, by blocks.
    async fn counts_at(
        &self,
        server: ServerId,
        destination: u32,
    ) -> Result<Vec<(u64, u32)>, Fault> {
        let (mut all, mut from) = (Vec::new(), 0);
        loop {
            let counts = SelectRequest::Counts { number: self.number, destination, from };
            let SelectReply::Counts { counts, more } = self.call(server, counts).await? else {
                return Err(out_of_place());
            };
            all.extend(counts);
            match all.last() {
                Some((last, _)) if more => from = last + 1,
                _ => return Ok(all),
            }
        }
    }

    /// Puts records of a destination into a memory, in the order of the file: those that `wanted`
    /// numbers among them, the first at byte 0.
    ///
    /// # Errors
    /// [`Fault::BadSelection`] if the memory is too small. Faults of the servers.
    pub async fn take(
        &self,
        destination: u32,
        counts: &RecordCounts,
        wanted: Range<u64>,
        memory: &W::Memory,
    ) -> Result<(), Fault> {
        let records = wanted.end.saturating_sub(wanted.start);
        let needed = records.saturating_mul(self.record_bytes);
        if memory.length() < needed {
            let given = memory.length() / self.record_bytes.max(1);
            let cause = format!("{records} records match, and there is memory for {given}");
            return Err(Fault::BadSelection { cause });
        }
        let places = self.places_of(counts, wanted);
        if places.is_empty() {
            return Ok(());
        }
        let region = self.client.expose_at_once(memory).await;
        let withdrawn_if_dropped = WithdrawnOnDrop { world: self.client.world(), region };
        // Each to its end: nothing arrives in the memory later.
        let taken = places.into_iter().map(|(server, places)| {
            self.take_from(server, destination, region, places).boxed_local()
        });
        let taken = all_ended(taken).await.map(|_| ());
        std::mem::forget(withdrawn_if_dropped);
        self.client.world().withdraw(region).await;
        taken
    }

    /// Returns where the records of each server go.
    fn places_of(
        &self,
        counts: &RecordCounts,
        wanted: Range<u64>,
    ) -> BTreeMap<ServerId, Vec<TakenRecords>> {
        let mut places = BTreeMap::<ServerId, Vec<TakenRecords>>::new();
        let mut before = 0;
        for (block, count) in &counts.blocks {
            let all = before..before + u64::from(*count);
            before = all.end;
            let (from, to) = (all.start.max(wanted.start), all.end.min(wanted.end));
            if from >= to {
                continue;
            }
            let (skipped, count) = ((from - all.start) as u32, (to - from) as u32);
            let at = (from - wanted.start) * self.record_bytes;
            let server = self.file.pool.server(self.file.stripe.locate(*block).server);
            let taken = TakenRecords { block: *block, skipped, count, at };
            places.entry(server).or_default().push(taken);
        }
        places
    }

    async fn take_from(
        &self,
        server: ServerId,
        destination: u32,
        region: RegionId,
        places: Vec<TakenRecords>,
    ) -> Result<(), Fault> {
        for places in places.chunks(COUNTED_BLOCKS_MAX) {
            let (number, places) = (self.number, places.to_vec());
            let take = SelectRequest::Take { number, destination, region, places };
            let request = CollectiveRequest::Select(Box::new(take));
            match self.client.call(server, request).await? {
                Reply::Moved { .. } => {}
                other => return Err(unexpected(&other)),
            }
        }
        Ok(())
    }

    /// Ends a selection of this client. Servers that have left have ended it.
    pub async fn end(&self) {
        self.is_own.set(false);
        let _ = self.client.call_each_server(self.file.servers(), self.ending()).await;
    }

    fn ending(&self) -> CollectiveRequest {
        CollectiveRequest::Select(Box::new(SelectRequest::End { number: self.number }))
    }
}

impl<W: World> Drop for Selected<W> {
    fn drop(&mut self) {
        if self.is_own.get() {
            self.client.notify_servers(self.file.servers(), self.ending());
        }
    }
}

fn out_of_place() -> Fault {
    Fault::BadRequest { cause: "an answer to a selection makes no sense".to_owned() }
}
