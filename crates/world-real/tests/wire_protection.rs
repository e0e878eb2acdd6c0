//! Proves: over a protected connection, whatever somebody on the way changes, repeats, moves,
//! leaves out or cuts off ends the connection with that cause, and nothing wrong is delivered; what
//! is private cannot be read on the way; the stronger protection of the two ends holds; keys
//! change.

mod support;

use futures_util::future::join;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::JoinHandle;
use support::{KEY, Kind, Place};
use units::{PeerId, PieceRun};
use world::{
    Address, Header, Incoming, Memory, Message, Network, OneSided, Payloads, TransferError,
};
use world_real::{NodeConfig, RealWorld, WireProtection, run};

/// Bytes of a handshake: from the initiator, and from the responder, whose challenge comes first.
const HANDSHAKE_BYTES: [u64; 2] = [2 + 48 + 2 + 56, 32 + 2 + 48 + 2 + 56];

const PROTECTED: [Kind; 2] = [Kind::TcpIntegrity, Kind::TcpPrivate];

/// Change that the forwarder makes to a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attack {
    None,
    FlipLength,
    FlipData,
    FlipTag,
    Repeat,
    Swap,
    LeaveOut,
    Cut,
    CutInLength,
}

const ATTACKS: [Attack; 8] = [
    Attack::FlipLength,
    Attack::FlipData,
    Attack::FlipTag,
    Attack::Repeat,
    Attack::Swap,
    Attack::LeaveOut,
    Attack::Cut,
    Attack::CutInLength,
];

/// Direction that the forwarder attacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direction {
    ToResponder,
    ToInitiator,
}

/// Forwards one connection to `node`, with `attack` on record `number` of `direction`. Returns its
/// address and the thread that returns the bytes of both directions as they were sent.
fn forwarder(
    node: &Address,
    (attack, number, direction): (Attack, usize, Direction),
) -> (Address, JoinHandle<Vec<u8>>) {
    let port = node.0.replace("tcp:", "");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let forwarding = std::thread::spawn(move || {
        let (caller, _) = listener.accept().expect("a node connects");
        let node = TcpStream::connect(port).expect("a node listens");
        let handles = |stream: &TcpStream| stream.try_clone().expect("a second handle");
        let (from_node, to_caller) = (handles(&node), handles(&caller));
        let of = |attacked| if direction == attacked { attack } else { Attack::None };
        let (to_initiator, to_responder) = (of(Direction::ToInitiator), of(Direction::ToResponder));
        let back = std::thread::spawn(move || {
            forward(from_node, to_caller, HANDSHAKE_BYTES[1], to_initiator, number)
        });
        let mut recorded = forward(caller, node, HANDSHAKE_BYTES[0], to_responder, number);
        recorded.extend(back.join().expect("the other direction ends"));
        recorded
    });
    (Address(format!("tcp:{address}")), forwarding)
}

/// Forwards one direction until it ends; returns what came.
fn forward(
    mut from: TcpStream,
    mut to: TcpStream,
    handshake_bytes: u64,
    attack: Attack,
    number: usize,
) -> Vec<u8> {
    let mut recorded = Vec::new();
    pass(&mut (&from).take(handshake_bytes), &mut to, &mut recorded);
    if attack == Attack::None || attack_records(&mut from, &mut to, attack, number).is_some() {
        pass(&mut from, &mut to, &mut recorded);
    }
    let _ = to.shutdown(Shutdown::Write);
    // A node that has ended the connection still reads.
    let _ = std::io::copy(&mut from, &mut std::io::sink());
    recorded
}

fn pass(from: &mut impl Read, to: &mut TcpStream, recorded: &mut Vec<u8>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        recorded.extend(&buffer[..count]);
        let _ = to.write_all(&buffer[..count]);
    }
}

/// Forwards records until one is attacked; returns `None` when the stream ends with that.
fn attack_records(
    from: &mut TcpStream,
    to: &mut TcpStream,
    attack: Attack,
    number: usize,
) -> Option<()> {
    for _ in 0..number {
        to.write_all(&record(from)?).ok()?;
    }
    let mut next = record(from)?;
    let last = next.len() - 1;
    match attack {
        Attack::None => to.write_all(&next),
        Attack::FlipLength => {
            next[0] ^= 1;
            to.write_all(&next)
        }
        Attack::FlipData => {
            next[4 + (last - 19) / 2] ^= 16;
            to.write_all(&next)
        }
        Attack::FlipTag => {
            next[last] ^= 128;
            to.write_all(&next)
        }
        Attack::Repeat => to.write_all(&[&next[..], &next].concat()),
        Attack::Swap => {
            let second = record(from)?;
            to.write_all(&[second, next].concat())
        }
        Attack::LeaveOut => Ok(()),
        Attack::Cut => {
            to.write_all(&next[..last / 2]).ok()?;
            return None;
        }
        Attack::CutInLength => {
            to.write_all(&next[..3]).ok()?;
            return None;
        }
    }
    .ok()
}

fn record(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length).ok()?;
    let mut rest = vec![0; u32::from_le_bytes(length) as usize + 16];
    from.read_exact(&mut rest).ok()?;
    Some([&length[..], &rest].concat())
}

/// Returns a node that only connects, and leaves the protection to its peers.
fn client() -> RealWorld {
    let config = NodeConfig { key: Some(KEY), ..NodeConfig::default() };
    RealWorld::open(config).expect("a client opens nothing")
}

/// Returns a client and a listener of `kind` that are connected by a forwarder, each with the
/// number of the other, and the thread of the forwarder.
async fn met(
    place: &Place,
    kind: Kind,
    attack: (Attack, usize, Direction),
) -> (RealWorld, PeerId, RealWorld, PeerId, JoinHandle<Vec<u8>>) {
    let (a, b) = (client(), place.node(kind, 1));
    let (address, forwarding) = forwarder(&b.address(), attack);
    let of_a = a.connect(&address).await.expect("the forwarder forwards");
    a.send(of_a, Message::new(Header::from_slice(b"hello"))).await.expect("it is written");
    let Incoming::Message { from: of_b, .. } = b.receive().await else { panic!("a is there") };
    (a, of_a, b, of_b, forwarding)
}

fn body(number: u8, length: usize) -> Vec<u8> {
    (0..length).map(|index| number ^ (index % 251) as u8).collect()
}

#[test]
fn attacks_end_the_connection_and_deliver_nothing_wrong() {
    const MESSAGES: u8 = 8;
    for kind in PROTECTED {
        for direction in [Direction::ToResponder, Direction::ToInitiator] {
            // Small messages are records of their own; bodies have many.
            for (attack, length) in ATTACKS.into_iter().flat_map(|it| [(it, 9), (it, 300_000)]) {
                let name = format!("{attack:?} {direction:?} {length} bytes over {kind:?}");
                let place = Place::new();
                run(async {
                    let attacked = (attack, 3, direction);
                    let (a, of_a, b, of_b, forwarding) = met(&place, kind, attacked).await;
                    let (from, to, of_to) = match direction {
                        Direction::ToResponder => (a, b, of_a),
                        Direction::ToInitiator => (b, a, of_b),
                    };
                    let sending = async {
                        for number in 0..MESSAGES {
                            let header = Header::from_slice(&[number]);
                            let message = Message::with_body(header, body(number, length).into());
                            // The peer may have ended the connection.
                            if from.send(of_to, message).await.is_err() {
                                break;
                            }
                        }
                    };
                    let receiving = async {
                        let mut received = 0;
                        loop {
                            match to.receive().await {
                                Incoming::Message { header, body: Some(data), .. } => {
                                    assert_eq!(&header[..], &[received], "{name}");
                                    let expected = body(received, length);
                                    assert!(data.bytes() == expected, "{name}");
                                    received += 1;
                                }
                                Incoming::Message { .. } => panic!("{name}: a body is missing"),
                                Incoming::Departed { cause, .. } => return (received, cause),
                            }
                        }
                    };
                    let (_, (received, cause)) = join(sending, receiving).await;
                    assert!(received < MESSAGES, "{name}");
                    let expected = match attack {
                        Attack::Cut | Attack::CutInLength => ["in the middle of record"; 2],
                        // A changed length may be impossible.
                        Attack::FlipLength => ["not what the peer sent at this place", "claims"],
                        _ => ["not what the peer sent at this place"; 2],
                    };
                    let is_named = expected.into_iter().any(|expected| cause.contains(expected));
                    assert!(is_named, "{name}: {cause}");
                    drop((from, to));
                    drop(forwarding);
                });
            }
        }
    }
}

#[test]
fn changed_transfers_fail_and_the_memory_of_others_is_whole() {
    // Proves: a memput or memget whose data is changed on the way fails with that cause, and bytes
    // outside its pieces are as they were.
    const BYTES: u64 = 4 << 20;
    let piece = PieceRun {
        offset: 0,
        stride: 0,
        memory_offset: 1000,
        memory_stride: 0,
        length: BYTES - 2000,
        count: 1,
    };
    for kind in PROTECTED {
        for direction in [Direction::ToResponder, Direction::ToInitiator] {
            let place = Place::new();
            run(async {
                let attacked = (Attack::FlipData, 20, direction);
                let (a, of_a, b, of_b, _forwarding) = met(&place, kind, attacked).await;
                let memory = b.thaw(vec![5; BYTES as usize].into());
                let region = b.expose(&memory, &[of_b]).await.expect("a learns of it");
                let outcome = match direction {
                    Direction::ToResponder => {
                        let source = vec![6; BYTES as usize].into();
                        a.put(of_a, region, &[piece], &source).await
                    }
                    Direction::ToInitiator => {
                        let target = a.memory(BYTES);
                        a.get(of_a, region, &[piece], &target).await
                    }
                };
                assert!(matches!(outcome, Err(TransferError::Departed { .. })), "{outcome:?}");
                let view = memory.bytes();
                assert!(view[..1000].iter().all(|byte| *byte == 5), "before the piece");
                assert!(view[view.len() - 1000..].iter().all(|byte| *byte == 5), "behind it");
            });
        }
    }
}

/// Text that is looked for in recorded traffic.
const NAME: &[u8] = b"/results/of-a-secret-run.h5";
const DATA: &[u8] = b"some words that stand in a file of a user, again and again. ";

#[test]
fn recorded_traffic_shows_what_is_not_private() {
    let of = |kind| {
        let place = Place::new();
        run(async {
            let attack = (Attack::None, 0, Direction::ToResponder);
            let (a, of_a, b, of_b, forwarding) = met(&place, kind, attack).await;
            let large = DATA.repeat(10_000);
            let memory = b.thaw(large.clone().into());
            let region = b.expose(&memory, &[of_b]).await.expect("a learns of it");
            let target = a.memory(memory.length());
            let length = memory.length();
            let piece = PieceRun {
                offset: 0,
                stride: 0,
                memory_offset: 0,
                memory_stride: 0,
                length,
                count: 1,
            };
            a.get(of_a, region, &[piece], &target).await.expect("the piece is in the region");
            assert!(*target.bytes() == large, "what came over {kind:?}");
            let message = Message::with_body(Header::from_slice(NAME), large.clone().into());
            let (sent, _) = join(a.send(of_a, message), b.receive()).await;
            sent.expect("b receives");
            a.disconnect(of_a);
            let Incoming::Departed { .. } = b.receive().await else { panic!("a sent no more") };
            forwarding.join().expect("the forwarder ends")
        })
    };
    let shows = |recorded: &[u8], wanted: &[u8]| {
        recorded.windows(wanted.len()).any(|window| window == wanted)
    };
    for kind in [Kind::Tcp, Kind::TcpIntegrity, Kind::TcpPrivate] {
        let recorded = of(kind);
        assert!(recorded.len() > 2 * 10_000 * DATA.len(), "everything was recorded");
        let is_readable = kind != Kind::TcpPrivate;
        assert_eq!(shows(&recorded, NAME), is_readable, "a name over {kind:?}");
        for part in [&DATA[..8], &DATA[30..38], b"UN\0\x02"] {
            assert_eq!(shows(&recorded, part), is_readable, "data over {kind:?}");
        }
    }
}

#[test]
fn the_stronger_protection_of_two_nodes_holds() {
    for (own, other, agreed) in [
        (None, Kind::Tcp, WireProtection::Plain),
        (None, Kind::TcpPrivate, WireProtection::Private),
        (Some(WireProtection::Plain), Kind::TcpIntegrity, WireProtection::Integrity),
        (Some(WireProtection::Private), Kind::Tcp, WireProtection::Private),
    ] {
        let place = Place::new();
        run(async {
            let config = NodeConfig { key: Some(KEY), wire: own, ..NodeConfig::default() };
            let (a, b) = (RealWorld::open(config).expect("it opens"), place.node(other, 0));
            let of_a = a.connect(&b.address()).await.expect("b listens");
            a.send(of_a, Message::new(Header::from_slice(b"in"))).await.expect("b receives");
            let Incoming::Message { from, .. } = b.receive().await else { panic!("a is there") };
            assert_eq!([a.wire_protection(of_a), b.wire_protection(from)], [Some(agreed); 2]);
        });
    }
    // A listener on the loopback interface asks for nothing, and Unix sockets need nothing.
    let place = Place::new();
    run(async {
        let config = NodeConfig { wire: None, ..place.config(Kind::Tcp, 0) };
        let (a, b) = (client(), RealWorld::open(config).expect("it opens"));
        let of_a = a.connect(&b.address()).await.expect("b listens");
        assert_eq!(a.wire_protection(of_a), Some(WireProtection::Plain));
        let b = place.node(Kind::Framed, 1);
        let of_a = a.connect(&b.address()).await.expect("b listens");
        assert_eq!(a.wire_protection(of_a), None);
    });
}

#[test]
fn more_records_pass_than_one_key_protects() {
    // One key protects 65,536 records, and each of these messages is one.
    const MESSAGES: u32 = 70_000;
    let place = Place::new();
    run(async {
        let attack = (Attack::None, 0, Direction::ToResponder);
        let (a, of_a, b, of_b, _forwarding) = met(&place, Kind::TcpPrivate, attack).await;
        let sending = async |from: &RealWorld, to| {
            for number in 0..MESSAGES {
                let header = Header::from_slice(&number.to_le_bytes());
                from.send(to, Message::new(header)).await.expect("the peer receives");
            }
        };
        let receiving = async |to: &RealWorld| {
            for number in 0..MESSAGES {
                match to.receive().await {
                    Incoming::Message { header, .. } => {
                        assert_eq!(&header[..], number.to_le_bytes());
                    }
                    Incoming::Departed { cause, .. } => panic!("message {number}: {cause}"),
                }
            }
        };
        join(sending(&a, of_a), receiving(&b)).await;
        join(sending(&b, of_b), receiving(&a)).await;
    });
}

#[test]
fn blocking_connections_are_protected() {
    use std::time::Duration;
    for kind in [Kind::Tcp, Kind::TcpIntegrity, Kind::TcpPrivate] {
        let place = Place::new();
        run(async {
            let (a, b) = (client(), place.node(kind, 1));
            let attack = (Attack::None, 0, Direction::ToResponder);
            let (address, forwarding) = forwarder(&b.address(), attack);
            let connected = a.connect_blocking(&address, Duration::from_secs(5)).await;
            let mut connection = connected.expect("the forwarder forwards");
            let lengths = [0, 1, 2048, 2049, 65_536];
            let asking = std::thread::spawn(move || {
                for length in lengths {
                    let data = DATA.repeat(1 + length / DATA.len());
                    connection.send(NAME, Some(&data[..length]), &mut || false).expect("room");
                    let (mut header, mut into) = (Vec::new(), vec![0; length]);
                    let answer = connection.receive(&mut header, &mut into, &mut || false);
                    assert_eq!(answer.expect("an answer"), Some(length), "over {kind:?}");
                    assert!(header == NAME && into == data[..length], "over {kind:?}");
                }
            });
            for _ in lengths {
                let Incoming::Message { from, header, body } = b.receive().await else {
                    panic!("the client left early")
                };
                let body = body.expect("each message has one");
                b.send(from, Message::with_body(header, body)).await.expect("it is read");
            }
            asking.join().expect("every answer came");
            let Incoming::Departed { .. } = b.receive().await else { panic!("nothing follows") };
            let recorded = forwarding.join().expect("the forwarder ends");
            for wanted in [NAME, DATA] {
                let is_seen = recorded.windows(wanted.len()).any(|window| window == wanted);
                assert_eq!(is_seen, kind != Kind::TcpPrivate, "over {kind:?}");
            }
        });
    }
}
