//! A node that speaks to a server without the client library, for tests of bad input.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support::Start;

use filesystem::Fault;
use policy::{Buffering, Pool, Protection, Stripe};
use units::{Duration, FileId, PeerId};
use wire::{ClientKey, FileRecord, Message, PROTOCOL_VERSION, Reply, Request, RequestId};
use world::payload::Bytes;
use world::{Clock, Header, Incoming, Network};

/// Key of the node.
pub(crate) const KEY: ClientKey = ClientKey(77);

/// Reaction of a server.
#[derive(Debug)]
pub(crate) enum Reaction {
    Answers(Result<Reply, Fault>),
    HangsUp,
    IsSilent,
}

/// A node that speaks to server 0 without the client library.
pub(crate) struct Raw {
    start: Start,
    pub(crate) server: PeerId,
}

impl Raw {
    pub(crate) async fn connect(start: &Start) -> Self {
        let server = start.world.connect(&start.servers[0]).await.unwrap();
        Self { start: start.clone(), server }
    }

    pub(crate) async fn greeted(start: &Start) -> Self {
        let raw = Self::connect(start).await;
        raw.send_message(&Message::Hello { version: PROTOCOL_VERSION, key: KEY }).await;
        raw
    }

    pub(crate) async fn send_message(&self, message: &Message) {
        self.send(wire::encode(message), None).await;
    }

    pub(crate) async fn send(&self, header: Header, body: Option<Bytes>) {
        let message = world::Message { header, body, place: None, loan: None };
        self.start.world.send(self.server, message).await.unwrap();
    }

    pub(crate) async fn ask(&self, request: impl Into<Request>, body: Option<Bytes>) -> Reaction {
        let request = Message::Request { id: RequestId(5), request: request.into() };
        self.send(wire::encode(&request), body).await;
        self.reaction().await
    }

    pub(crate) async fn reaction(&self) -> Reaction {
        let world = &self.start.world;
        let heard = std::pin::pin!(world.receive());
        let timeout = std::pin::pin!(world.sleep(Duration::from_ms(1_000)));
        match futures_util::future::select(heard, timeout).await {
            futures_util::future::Either::Left((Incoming::Message { header, .. }, _)) => {
                match wire::decode(&header) {
                    Ok(Message::Reply { id: RequestId(5), result }) => Reaction::Answers(result),
                    other => panic!("a server must answer what it was asked, not {other:?}"),
                }
            }
            futures_util::future::Either::Left((Incoming::Departed { .. }, _)) => Reaction::HangsUp,
            futures_util::future::Either::Right(_) => Reaction::IsSilent,
        }
    }
}

/// A file of two servers, which the catalogue need not have.
pub(crate) fn record(file: u64, bytes: u64, stripe: Stripe) -> FileRecord {
    let pool = Pool::all(2);
    FileRecord {
        file: FileId(file),
        name: "f".to_owned(),
        bytes,
        cuts: 0,
        stripe,
        pool,
        buffering: Buffering::default(),
        protection: Protection::None,
    }
}
