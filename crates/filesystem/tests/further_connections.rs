//! Proves: a further connection of a client serves reads and writes and nothing else, ends with the
//! first one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::raw::{KEY, record};
use crate::support::{Cluster, Shape, Start};

use units::{Duration, FileId, PeerId};
use wire::{
    ClientKey, FileRequest, Frequent, Message, PROTOCOL_VERSION, Reply, RequestId, ServerRequest,
    WriteRequest,
};
use world::payload::Bytes;
use world::{Clock, Incoming, Network};
use world_simulated::SimulatedWorld;

type World = SimulatedWorld<Bytes>;

const FILE: FileId = FileId(1);

/// A message or the departure of one peer.
#[derive(PartialEq, Debug)]
enum Heard {
    Reply(PeerId, Reply),
    HungUp(PeerId),
    Nothing,
}

async fn send(world: &World, to: PeerId, message: &Message, body: Option<Bytes>) {
    let message = world::Message { body, ..world::Message::new(wire::encode(message)) };
    world.send(to, message).await.unwrap();
}

async fn hear(world: &World) -> Heard {
    let heard = std::pin::pin!(world.receive());
    let timeout = std::pin::pin!(world.sleep(Duration::from_ms(1_000)));
    match futures_util::future::select(heard, timeout).await {
        futures_util::future::Either::Left((Incoming::Message { from, header, .. }, _)) => {
            let Ok(Message::Reply { result, .. }) = wire::decode(&header) else { panic!() };
            Heard::Reply(from, result.unwrap())
        }
        futures_util::future::Either::Left((Incoming::Departed { peer, .. }, _)) => {
            Heard::HungUp(peer)
        }
        futures_util::future::Either::Right(_) => Heard::Nothing,
    }
}

async fn connect(start: &Start, hello: Message) -> PeerId {
    let peer = start.world.connect(&start.servers[0]).await.unwrap();
    send(&start.world, peer, &hello, None).await;
    peer
}

fn again(key: ClientKey) -> Message {
    Message::HelloAgain { version: PROTOCOL_VERSION, key }
}

/// Connects a client, and opens a file.
async fn first(start: &Start) -> PeerId {
    let peer = connect(start, Message::Hello { version: PROTOCOL_VERSION, key: KEY }).await;
    let open = FileRequest::Open(record(FILE.0, 64, start.shape.stripe()));
    let open = Message::Request { id: RequestId(1), request: open.into() };
    send(&start.world, peer, &open, None).await;
    assert!(matches!(hear(&start.world).await, Heard::Reply(from, Reply::Size(_)) if from == peer));
    peer
}

async fn write(start: &Start, over: PeerId) -> Heard {
    let request = WriteRequest { file: FILE, block: 0, offset: 3 };
    let message = Frequent::Write(RequestId(2), request).into();
    send(&start.world, over, &message, Some(Bytes::from(vec![9; 5]))).await;
    hear(&start.world).await
}

fn alone(program: impl AsyncFn(Start) + Clone + 'static) {
    let cluster = Cluster::new(Shape { clients: 1, ..Shape::default() });
    cluster.run_alone(0, move |start| {
        let program = program.clone();
        async move { program(start).await }
    });
}

#[test]
fn further_connections_serve_reads_and_writes_only() {
    // Proves: a write is answered on the connection that it came over; another request, a further
    // connection of nobody and one too many end.
    alone(async |start| {
        let world = &start.world;
        let main = first(&start).await;
        let further = connect(&start, again(KEY)).await;
        assert_eq!(write(&start, further).await, Heard::Reply(further, Reply::Done));
        let status = Message::Request { id: RequestId(3), request: ServerRequest::Status.into() };
        send(world, further, &status, None).await;
        assert_eq!(hear(world).await, Heard::HungUp(further));
        let stranger = connect(&start, again(ClientKey(5))).await;
        assert_eq!(hear(world).await, Heard::HungUp(stranger));
        for _ in 0..4 {
            let further = connect(&start, again(KEY)).await;
            assert_eq!(write(&start, further).await, Heard::Reply(further, Reply::Done));
        }
        let fifth = connect(&start, again(KEY)).await;
        assert_eq!(hear(world).await, Heard::HungUp(fifth));
        send(world, main, &status, None).await;
        let Heard::Reply(from, Reply::Status(status)) = hear(world).await else { panic!() };
        assert_eq!((from, status.clients), (main, 1));
    });
}

#[test]
fn further_connections_end_with_the_first() {
    // Proves: when the server no longer has a client, its further connections end too, and none is
    // made again.
    alone(async |start| {
        let main = first(&start).await;
        let further = connect(&start, again(KEY)).await;
        assert_eq!(write(&start, further).await, Heard::Reply(further, Reply::Done));
        start.world.disconnect(main);
        assert_eq!(hear(&start.world).await, Heard::HungUp(further));
        let late = connect(&start, again(KEY)).await;
        assert_eq!(hear(&start.world).await, Heard::HungUp(late));
    });
}
