//! Sending gathered writes.

use super::gatherings::Gathering;
use super::store::{GatheredBatch, GatheredStore, TakenWrites};
use crate::client::faults::unexpected;
use crate::client::state::Client;
use futures_util::future::join_all;
use policy::GatheredWrite;
use std::collections::BTreeMap;
use std::rc::Rc;
use units::{Duration, FileId, ServerId};
use wire::{Fault, FileRecord, FileRequest, PreparedRequest, Reply, WriteGathered};
use world::World;

/// Time after which gathered writes are sent again to a server that had no room for them. It
/// doubles with each time.
const PAUSE_MIN: Duration = Duration::from_ms(1);

/// Longest such time.
const PAUSE_MAX: Duration = Duration::from_ms(64);

/// Maximum number of times that writes are sent again because another client has made the file
/// shorter.
const CUTS_MAX: u32 = 16;

/// One request of a flush.
struct Sending<P> {
    server: ServerId,
    request: PreparedRequest,
    data: Option<P>,
}

impl<W: World> Client<W> {
    /// Sends all gathered writes of a file, after those that are being sent. With `ends`, returns
    /// the lease. The work goes on if the caller gives up.
    pub(super) async fn begin_flush(
        &self,
        file: FileId,
        gathering: &Rc<Gathering<W::Payload>>,
        ends: bool,
    ) {
        let gatherings = self.gatherings();
        let has_ended = |gathering: &Rc<Gathering<W::Payload>>| {
            gatherings.of(file).is_none_or(|known| !Rc::ptr_eq(&known, gathering))
        };
        let turn = || {
            let is_free = !gathering.is_flushing.get();
            (is_free || has_ended(gathering)).then_some(())
        };
        gatherings.changed.until(turn).await;
        if has_ended(gathering) {
            return;
        }
        gathering.is_flushing.set(true);
        let (client, own) = (self.clone(), Rc::clone(gathering));
        self.spawn(async move {
            client.flush_gathering(file, &own, ends).await;
            own.is_flushing.set(false);
            client.gatherings().changed.notify();
            Ok(())
        });
        let is_done = || (!gathering.is_flushing.get()).then_some(());
        gatherings.changed.until(is_done).await;
    }

    async fn flush_gathering(
        &self,
        file: FileId,
        gathering: &Rc<Gathering<W::Payload>>,
        ends: bool,
    ) {
        let store = &gathering.store;
        if ends {
            store.permit(false);
        }
        let mut outcome = self.send_all(store, ends).await;
        let is_lost = outcome.is_err();
        if is_lost {
            // The lease ends, with what was gathered meanwhile.
            store.permit(false);
            if !ends {
                outcome = outcome.and(self.send_all(store, true).await);
            }
            self.return_leases(file, store.record().servers()).await;
        }
        store.flushed(outcome.map_err(|fault| self.of_gathered(fault, gathering)));
        if is_lost {
            self.gatherings().failed(file, store);
        }
        if ends || is_lost {
            self.gatherings().end(file, gathering);
        }
    }

    /// Fault of gathered writes. A server that was lost since they could be gathered has no lease
    /// for them when it is there again, and other clients may have written meanwhile.
    fn of_gathered(&self, fault: Fault, gathering: &Gathering<W::Payload>) -> Fault {
        match self.losses(gathering.store.record().servers()) == gathering.losses {
            true => fault,
            false => Fault::WritesLost { cause: fault.to_string() },
        }
    }

    /// Sends all that is gathered. All servers are told, so that all know of the same flushes.
    async fn send_all(
        &self,
        store: &Rc<dyn GatheredStore<W::Payload>>,
        returns: bool,
    ) -> Result<(), Fault> {
        let taken = store.take();
        let mut record = store.record();
        let outcome = self.send_taken(&mut record, taken, returns).await;
        store.learn(&record);
        outcome
    }

    /// Makes the file long enough, and sends each server its writes.
    async fn send_taken(
        &self,
        record: &mut FileRecord,
        taken: TakenWrites<W::Payload>,
        returns: bool,
    ) -> Result<(), Fault> {
        let TakenWrites { batches, until, end } = taken;
        let mut of_servers: BTreeMap<ServerId, GatheredBatch<W::Payload>> =
            batches.into_iter().map(|batch| (batch.server, batch)).collect();
        let servers: Vec<ServerId> = record.servers().collect();
        let mut left: Vec<Sending<W::Payload>> = Vec::with_capacity(servers.len());
        for server in servers {
            let batch = of_servers.remove(&server);
            left.push(sending(record.file, server, batch, until, returns));
        }
        for cuts in 0..CUTS_MAX {
            if cuts > 0 || record.bytes < end {
                self.reach_everywhere(record, end).await?;
            }
            let sent = join_all(left.iter().map(|sending| self.send_gathered(sending))).await;
            let mut again = Vec::new();
            for (sending, sent) in left.into_iter().zip(sent) {
                match sent {
                    Ok(()) => {}
                    // Another client has made the file shorter.
                    Err(Fault::PastEnd { .. }) => again.push(sending),
                    Err(fault) => return Err(fault),
                }
            }
            if again.is_empty() {
                return Ok(());
            }
            left = again;
        }
        let cause = "it was truncated too often by other clients".to_owned();
        Err(Fault::BadRequest { cause })
    }

    async fn send_gathered(&self, sending: &Sending<W::Payload>) -> Result<(), Fault> {
        let Sending { server, request, data } = sending;
        let mut pause = PAUSE_MIN;
        loop {
            let called = self.call_prepared_with_data(*server, request, data.clone());
            let replied = match called.await {
                // A lost server had nothing of it, and its lease is lost too.
                Err(Fault::ServerLeft { .. }) if data.is_none() && self.awaits_lost_servers() => {
                    return Ok(());
                }
                replied => replied?.0,
            };
            match replied {
                Reply::Done => return Ok(()),
                Reply::NoRoom => {
                    self.world().sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                other => return Err(unexpected(&other)),
            }
        }
    }
}

/// Makes the request of one server. Stamps are sent from the first on, since they are alike.
fn sending<P>(
    file: FileId,
    server: ServerId,
    batch: Option<GatheredBatch<P>>,
    until: u64,
    returns: bool,
) -> Sending<P> {
    let (writes, data) = match batch {
        Some(GatheredBatch { writes, data, .. }) => (writes, Some(data)),
        None => (Vec::new(), None),
    };
    let since = writes.first().map_or(until, |first| first.stamp);
    let relative =
        |write: GatheredWrite| GatheredWrite { stamp: write.stamp.saturating_sub(since), ..write };
    let writes = writes.into_iter().map(relative).collect();
    let request = WriteGathered { file, since, writes, until, returns };
    let request = PreparedRequest::new(FileRequest::WriteGathered(Box::new(request)));
    Sending { server, request, data }
}
