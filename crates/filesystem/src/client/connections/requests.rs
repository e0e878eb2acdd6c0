//! Requests of a client to its servers.

use super::attempts::Attempts;
use super::calls::Answer;
use crate::client::faults::{not_sent, unexpected};
use crate::client::state::Client;
use crate::scale::{frequent_header, rare};
use futures_util::future::{Either, join_all};
use units::{Duration, PeerId, ServerId};
use wire::{
    Fault, Frequent, Message, Persistence, PreparedRequest, Reply, Request, RequestId,
    ServerRequest,
};
use world::{Header, Payloads, World};

/// Result of a frequent request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// The request is done.
    Done,
    /// The server has no room for the data of the request.
    NoRoom,
}

/// A copy of the catalogue.
pub struct CopiedCatalogue {
    /// Number of the last change that it has; 0 if it is not whole.
    pub position: u64,
    /// Its records and their keys.
    pub records: Vec<(u64, Vec<u8>)>,
}

/// Result of a call: the reply, and its data.
type Answered<W> = Result<(Reply, Option<<W as Payloads>::Payload>), Fault>;

impl<W: World> Client<W> {
    /// Sends a server a request and waits for the reply.
    pub(crate) fn call(
        &self,
        server: ServerId,
        request: impl Into<Request>,
    ) -> impl Future<Output = Result<Reply, Fault>> {
        let called = self.call_for_data(server, request);
        async { called.await.map(|(reply, _)| reply) }
    }

    /// Sends a request that was encoded once for several servers, and waits for the reply.
    pub(crate) async fn call_prepared(
        &self,
        server: ServerId,
        request: &PreparedRequest,
    ) -> Result<Reply, Fault> {
        let answered = self.call_prepared_with_data(server, request, None).await;
        answered.map(|(reply, _)| reply)
    }

    /// Sends a request that was encoded once for several servers with data of its own, and waits
    /// for the reply and its data.
    pub(crate) async fn call_prepared_with_data(
        &self,
        server: ServerId,
        request: &PreparedRequest,
        body: Option<W::Payload>,
    ) -> Answered<W> {
        match self.0.servers().returns().are_awaited() {
            true => rare(self.call_persistently(server, request, body)).await,
            false => self.call_with_body(server, |id| request.encode(id), body).await,
        }
    }

    /// Sends a server a request and waits for the reply and its data.
    pub(crate) fn call_for_data(
        &self,
        server: ServerId,
        request: impl Into<Request>,
    ) -> impl Future<Output = Answered<W>> {
        self.call_request(server, request.into(), None)
    }

    /// Sends a server a request with data and waits for the reply and its data.
    pub(crate) fn call_with_data(
        &self,
        server: ServerId,
        request: impl Into<Request>,
        body: Option<W::Payload>,
    ) -> impl Future<Output = Answered<W>> {
        self.call_request(server, request.into(), body)
    }

    /// The one form of all these calls.
    fn call_request(
        &self,
        server: ServerId,
        request: Request,
        body: Option<W::Payload>,
    ) -> impl Future<Output = Answered<W>> {
        match self.0.servers().returns().are_awaited() {
            true => Either::Left(rare(async move {
                self.call_persistently(server, &PreparedRequest::new(request), body).await
            })),
            false => {
                let header = |id| wire::encode(&Message::Request { id, request });
                Either::Right(self.call_with_body(server, header, body))
            }
        }
    }

    /// Sends a request, when its server is there, and again if it is lost meanwhile, as far as the
    /// request allows.
    async fn call_persistently(
        &self,
        server: ServerId,
        request: &PreparedRequest,
        body: Option<W::Payload>,
    ) -> Answered<W> {
        if request.persistence() == Persistence::Fails {
            return self.call_with_body(server, |id| request.encode(id), body).await;
        }
        let mut attempts = Attempts::of(self, server);
        loop {
            attempts.begin().await?;
            let header = |id| request.encode(id);
            let answered = self.call_with_body(server, header, body.clone()).await;
            let repeats = request.persistence() == Persistence::Repeats;
            match &answered {
                Err(fault) if repeats && attempts.may_repeat(fault).await => {}
                _ => return answered,
            }
        }
    }

    async fn call_with_body(
        &self,
        server: ServerId,
        header: impl FnOnce(RequestId) -> Header,
        body: Option<W::Payload>,
    ) -> Answered<W> {
        let call = self.0.servers().begin_call(server)?;
        let peer = match self.0.servers().peer(server) {
            Some(peer) => peer,
            None => rare(self.connect_to(server)).await?,
        };
        let message = world::Message { body, ..world::Message::new(header(call.id())) };
        let sent = self.world().send(peer, message).await;
        sent.map_err(|error| not_sent(server, &error))?;
        call.await.result()
    }

    /// Occupies the processor for `cost`, sends a server a frequent request with its data, and
    /// waits for the result.
    pub(crate) async fn call_often(
        &self,
        cost: Duration,
        server: ServerId,
        request: impl Fn(RequestId) -> Frequent,
        body: Option<W::Payload>,
    ) -> Result<Outcome, Fault> {
        match self.0.servers().returns().are_awaited() {
            true => {
                let persistent = async {
                    let mut attempts = Attempts::of(self, server);
                    loop {
                        attempts.begin().await?;
                        let done = self.call_once(cost, server, &request, body.clone()).await;
                        match &done {
                            Err(fault) if attempts.may_repeat(fault).await => {}
                            _ => return done,
                        }
                    }
                };
                rare(persistent).await
            }
            false => self.call_once(cost, server, request, body).await,
        }
    }

    /// [`Client::call_often`], which fails when the server is lost.
    async fn call_once(
        &self,
        cost: Duration,
        server: ServerId,
        request: impl Fn(RequestId) -> Frequent,
        body: Option<W::Payload>,
    ) -> Result<Outcome, Fault> {
        let call = self.0.servers().begin_call(server)?;
        let header = frequent_header(&request(call.id()));
        let message = world::Message { header, body, place: None, loan: None };
        let peer = match self.0.servers().peer(server) {
            Some(peer) => peer,
            None => rare(self.connect_to(server)).await?,
        };
        let sent = self.world().send_after(cost, peer, message).await;
        sent.map_err(|error| not_sent(server, &error))?;
        match call.await {
            Answer::Done => Ok(Outcome::Done),
            Answer::Other(result) => match *result {
                Ok((Reply::NoRoom, _)) => Ok(Outcome::NoRoom),
                Ok((reply, _)) => Err(unexpected(&reply)),
                Err(fault) => Err(fault),
            },
        }
    }

    /// Sends some servers one request and waits for all replies. The first fault ends it.
    pub(crate) async fn call_servers(
        &self,
        servers: impl Iterator<Item = ServerId>,
        request: impl Into<Request>,
    ) -> Result<(), Fault> {
        let request = PreparedRequest::new(request);
        let calls = servers.map(|server| self.call_prepared(server, &request));
        futures_util::future::try_join_all(calls).await.map(|_| ())
    }

    /// Sends some servers one request and waits for all replies, whatever others answer. Returns
    /// the replies, or the first fault.
    pub(crate) async fn call_each_server(
        &self,
        servers: impl Iterator<Item = ServerId>,
        request: impl Into<Request>,
    ) -> Result<Vec<Reply>, Fault> {
        let request = PreparedRequest::new(request);
        let calls = servers.map(|server| self.call_prepared(server, &request));
        join_all(calls).await.into_iter().collect()
    }

    /// Sends some servers a request, and does not wait for the replies.
    pub(crate) fn notify_servers(
        &self,
        servers: impl Iterator<Item = ServerId>,
        request: impl Into<Request>,
    ) {
        let request = PreparedRequest::new(request);
        let messages: Vec<(PeerId, Header)> = servers
            .filter_map(|server| {
                let (call, peer) =
                    (self.0.servers().begin_call(server).ok()?, self.0.servers().peer(server)?);
                Some((peer, request.encode(call.id())))
            })
            .collect();
        let world = self.world().clone();
        self.0.spawn(async move {
            let send = |(peer, header)| world.send(peer, world::Message::new(header));
            join_all(messages.into_iter().map(send)).await;
            Ok(())
        });
    }

    /// Returns the status of each server, by number.
    pub async fn status(&self) -> Vec<Result<wire::ServerStatus, Fault>> {
        let mut statuses = Vec::new();
        for server in 0..self.servers() {
            let reply = self.call(ServerId(server), ServerRequest::Status).await;
            statuses.push(reply.and_then(|reply| match reply {
                Reply::Status(status) => Ok(*status),
                other => Err(unexpected(&other)),
            }));
        }
        statuses
    }

    /// Returns the copy of the catalogue at a server.
    ///
    /// # Errors
    /// That of a server that keeps the catalogue, and of a copy that changes meanwhile.
    pub async fn catalogue_copy(&self, server: ServerId) -> Result<CopiedCatalogue, Fault> {
        let (mut all, mut first, mut after) = (Vec::new(), None, None);
        loop {
            let reply = self.call(server, ServerRequest::CatalogueCopy { after }).await?;
            let Reply::CatalogueCopy { position, records, more } = reply else {
                return Err(unexpected(&reply));
            };
            if *first.get_or_insert(position) != position {
                let cause = "the copy of the catalogue is being changed".to_owned();
                return Err(Fault::TransferFailed { cause });
            }
            after = records.last().map(|(key, _)| *key);
            all.extend(records);
            if !more || after.is_none() {
                return Ok(CopiedCatalogue { position, records: all });
            }
        }
    }

    /// Asks every server to write everything back and to end.
    pub async fn stop_servers(&self) -> Result<(), Fault> {
        self.call_servers((0..self.servers()).map(ServerId), ServerRequest::Stop).await
    }
}
