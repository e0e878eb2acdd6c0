//! Proves: messages, placed messages and one-sided transfers arrive whole over every kind of
//! network, and misbehaving peers end only their own connection.

mod support;

use futures_util::future::{join, join_all};
use std::io::{Read, Write};
use support::{KINDS, Kind, Place, open};
use units::{PeerId, PieceRun, RegionId, Run};
use world::{
    Address, Header, Incoming, Message, Network, NetworkError, OneSided, Payloads, Place as Placed,
    TransferError,
};
use world_real::{NodeConfig, OpenError, RealMemory, RealPayload, RealWorld, run};

fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(..)).collect()
}

async fn message(world: &RealWorld) -> (PeerId, Header, Option<RealPayload>) {
    match world.receive().await {
        Incoming::Message { from, header, body } => (from, header, body),
        Incoming::Departed { cause, .. } => panic!("a peer departed: {cause}"),
    }
}

/// Returns two connected nodes, each with its number for the other; the first one connected.
async fn met(place: &Place, kind: Kind) -> (RealWorld, PeerId, RealWorld, PeerId) {
    let (a, b) = (place.node(kind, 0), place.node(kind, 1));
    let of_a = a.connect(&b.address()).await.expect("b listens");
    a.send(of_a, Message::new(Header::from_slice(b"hello"))).await.expect("b receives");
    let (of_b, ..) = message(&b).await;
    (a, of_a, b, of_b)
}

#[test]
fn bodies_of_all_sizes_go_both_ways() {
    for kind in KINDS {
        let place = Place::new();
        run(async {
            let (a, of_a, b, of_b) = met(&place, kind).await;
            for length in [0, 1, 2047, 2049, 65_536, 1 << 20, (8 << 20) + 1] {
                let data = bytes(1, length);
                for (from, to, name) in [(&a, &b, of_a), (&b, &a, of_b)] {
                    let body = data.clone().into();
                    let sent = Message::with_body(Header::from_slice(&data[..length.min(9)]), body);
                    let (sent, got) = join(from.send(name, sent), message(to)).await;
                    sent.expect("the peer receives");
                    let body = got.2.expect("a body comes with its message");
                    assert!(body.bytes() == data, "{length} bytes over {kind:?}");
                }
            }
        });
    }
}

#[test]
fn placed_bodies_and_strided_transfers_land_in_place() {
    for kind in KINDS {
        let place = Place::new();
        run(async {
            let (a, of_a, b, of_b) = met(&place, kind).await;
            let memory = b.thaw(bytes(2, 3 << 20).into());
            let mut model = bytes(2, 3 << 20);
            let region = b.expose(&memory, &[of_b]).await.expect("a can learn of it");
            for (offset, length) in [(5_usize, 100_usize), (70_000, 2 << 20)] {
                let data = bytes(length as u64, length);
                let place = Placed { region, offset: offset as u64 };
                let sent = Message::placed(Header::new(), data.clone().into(), place);
                let (sent, got) = join(a.send(of_a, sent), message(&b)).await;
                sent.expect("the peer receives");
                assert!(got.2.is_none());
                model[offset..offset + length].copy_from_slice(&data);
                assert!(*memory.bytes() == model, "{length} placed bytes over {kind:?}");
            }
            for (length, near, far, count) in [
                (8, 64, 8, 16_384),
                (8, 8, 24, 100_000),
                (4096, 5000, 9000, 200),
                (3 << 20, 0, 0, 1),
            ] {
                let piece = PieceRun {
                    offset: 3 * u64::from(near > 0),
                    stride: near,
                    memory_offset: 7 * u64::from(far > 0),
                    memory_stride: far,
                    length,
                    count,
                };
                let source = bytes(length, 3 << 20);
                let put = a.put(of_a, region, &[piece], &source.clone().into()).await;
                put.expect("the pieces lie in the region");
                copy(&source, piece.file_side(), &mut model, piece.memory_side());
                assert!(*memory.bytes() == model, "put {piece:?} over {kind:?}");
                let target = a.thaw(bytes(9, 3 << 20).into());
                let mut expected = bytes(9, 3 << 20);
                a.get(of_a, region, &[piece], &target).await.expect("as above");
                copy(&model, piece.memory_side(), &mut expected, piece.file_side());
                assert!(*target.bytes() == expected, "get {piece:?} over {kind:?}");
            }
            b.withdraw(region).await;
            refused(&a, of_a, region).await;
        });
    }
}

fn copy(source: &[u8], from: Run, target: &mut [u8], to: Run) {
    for (from, to_start) in from.offsets().zip(to.offsets()) {
        let (from, to_start, length) = (from as usize, to_start as usize, to.length as usize);
        target[to_start..to_start + length].copy_from_slice(&source[from..from + length]);
    }
}

/// More bytes than the framed transfers of a connection carry at a time, in parts of 1 MiB.
const LARGE_BYTES: usize = (65 << 20) + 5;

/// Returns `length` bytes with an odd period: fast to make, and wrong at any other offset.
fn long(seed: u64, length: usize) -> Vec<u8> {
    let mut long = bytes(seed, 1_000_003).repeat(length / 1_000_003 + 1);
    long.truncate(length);
    long
}

/// [`LARGE_BYTES`] or a little less, whole and in pieces with gaps on both sides.
const LARGE_PIECES: [PieceRun; 2] = [
    PieceRun {
        offset: 0,
        stride: 0,
        memory_offset: 0,
        memory_stride: 0,
        length: LARGE_BYTES as u64,
        count: 1,
    },
    PieceRun {
        offset: 3,
        stride: 1100,
        memory_offset: 7,
        memory_stride: 1300,
        length: 1000,
        count: LARGE_BYTES as u64 / 1000,
    },
];

/// Space for each of [`LARGE_PIECES`].
const LARGE_ROOM_BYTES: usize = LARGE_BYTES / 10 * 14;

/// Puts `piece` of fresh bytes to `region`, which is `owned`, gets it back, and checks both.
async fn put_and_get(
    (world, peer, region): (&RealWorld, PeerId, RegionId),
    piece: PieceRun,
    owned: &RealMemory,
    seed: u64,
) {
    let mut model = owned.bytes().to_vec();
    let source = long(seed, LARGE_ROOM_BYTES);
    let put = world.put(peer, region, &[piece], &source.clone().into()).await;
    put.expect("the pieces lie in the region");
    copy(&source, piece.file_side(), &mut model, piece.memory_side());
    assert!(*owned.bytes() == model, "put {piece:?}");
    let target = world.thaw(vec![1; LARGE_ROOM_BYTES].into());
    world.get(peer, region, &[piece], &target).await.expect("as above");
    let mut expected = vec![1; LARGE_ROOM_BYTES];
    copy(&model, piece.memory_side(), &mut expected, piece.file_side());
    assert!(*target.bytes() == expected, "get {piece:?}");
}

#[test]
fn framed_transfers_of_more_parts_than_may_be_under_way_arrive() {
    for kind in [Kind::Framed, Kind::Tcp] {
        let place = Place::new();
        run(async {
            let (a, of_a, b, of_b) = met(&place, kind).await;
            for piece in LARGE_PIECES {
                let owned = b.memory(LARGE_ROOM_BYTES as u64);
                let region = b.expose(&owned, &[of_b]).await.expect("a can learn of it");
                put_and_get((&a, of_a, region), piece, &owned, 3).await;
            }
        });
    }
}

#[test]
fn large_framed_transfers_share_a_connection() {
    for kind in [Kind::Framed, Kind::Tcp] {
        let place = Place::new();
        run(async {
            let (a, of_a, b, of_b) = met(&place, kind).await;
            let transfers = [0, 1, 1, 0].into_iter().enumerate().map(async |(index, pieces)| {
                let owned = b.memory(LARGE_ROOM_BYTES as u64);
                let region = b.expose(&owned, &[of_b]).await.expect("a can learn of it");
                let piece = LARGE_PIECES[pieces];
                put_and_get((&a, of_a, region), piece, &owned, index as u64).await;
            });
            join_all(transfers).await;
        });
    }
}

#[test]
fn oversized_message_is_refused_with_its_size() {
    let place = Place::new();
    run(async {
        let (a, of_a, ..) = met(&place, Kind::Framed).await;
        let body = vec![0; (64 << 20) + 1].into();
        let refused = a.send(of_a, Message::with_body(Header::new(), body)).await;
        let text = refused.expect_err("the body is over the limit").to_string();
        assert_eq!(text, "a body of 67108865 bytes is over the limit of 67108864");
        let header = Header::from_elem(0, (4 << 20) + 1);
        let refused = a.send(of_a, Message::new(header)).await;
        let text = refused.expect_err("the header is over the limit").to_string();
        assert_eq!(text, "a header of 4194305 bytes is over the limit of 4194304");
    });
}

async fn refused(world: &RealWorld, peer: PeerId, region: RegionId) {
    let whole =
        PieceRun { offset: 0, stride: 8, memory_offset: 0, memory_stride: 8, length: 8, count: 1 };
    let outcome = world.put(peer, region, &[whole], &bytes(1, 8).into()).await;
    assert!(matches!(outcome, Err(TransferError::OutOfRegion { .. })), "{outcome:?}");
}

#[test]
fn pieces_outside_the_region_are_refused() {
    for kind in KINDS {
        let place = Place::new();
        run(async {
            let (a, of_a, b, of_b) = met(&place, kind).await;
            let memory = b.memory(100);
            let region = b.expose(&memory, &[of_b]).await.expect("a can learn of it");
            refused(&a, of_a, RegionId(region.0 + 1)).await;
            for (memory_offset, memory_stride, count) in
                [(93, 8, 1), (0, 8, 13), (u64::MAX - 3, 8, 1), (0, u64::MAX / 2, 3)]
            {
                let piece = PieceRun {
                    offset: 0,
                    stride: 0,
                    memory_offset,
                    memory_stride,
                    length: 8,
                    count,
                };
                let outcome = a.get(of_a, region, &[piece], &a.memory(8)).await;
                assert!(matches!(outcome, Err(TransferError::OutOfRegion { .. })), "{outcome:?}");
            }
        });
    }
}

#[test]
fn a_wrong_key_is_refused() {
    let place = Place::new();
    run(async {
        let server = place.node(Kind::Tcp, 0);
        for key in [Some([8; 32]), None] {
            let client = RealWorld::open(NodeConfig { key, ..NodeConfig::default() });
            let client = client.expect("a client opens nothing");
            let refused = client.connect(&server.address()).await;
            assert!(matches!(refused, Err(NetworkError::Unreachable { .. })), "{refused:?}");
        }
        let keyless = NodeConfig { key: None, ..place.config(Kind::Tcp, 1) };
        let refused = RealWorld::open(keyless).err();
        assert!(matches!(refused, Some(OpenError::KeyRequired { .. })), "{refused:?}");
    });
}

#[test]
fn a_node_of_another_version_is_refused_with_its_version() {
    let place = Place::new();
    let path = place.path().join("older");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket of a node");
    let older = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a node connects");
        let hello = [&b"UNISONO\0\x02\0\x01"[..], &[0; 29]].concat();
        stream.write_all(&hello).expect("the node reads the hello");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let address = Address(format!("unix:{}", path.display()));
    run(async {
        let node = open(Kind::OneSided, NodeConfig::default());
        let refused = node.connect(&address).await;
        let expected = NetworkError::WrongVersion { address: address.clone(), own: 5, peer: 2 };
        assert_eq!(refused, Err(expected));
    });
    older.join().expect("the older node ends");
}

#[test]
fn an_address_that_nobody_can_call_is_refused() {
    // Proves: the address of a node is one that others can reach; 0.0.0.0 and [::] are refused.
    let place = Place::new();
    run(async {
        for (index, listen) in ["tcp:0.0.0.0:0", "tcp:[::]:0"].into_iter().enumerate() {
            let listen = Some(Address(listen.to_owned()));
            // Each has its own directory: the disks of a refused node may take a moment to close.
            let refused = RealWorld::open(NodeConfig { listen, ..place.config(Kind::Tcp, index) });
            let refused = refused.err();
            assert!(matches!(refused, Some(OpenError::Listen { .. })), "{refused:?}");
        }
    });
}

#[test]
fn connect_without_listener_is_unreachable() {
    let place = Place::new();
    run(async {
        let node = open(Kind::OneSided, NodeConfig { key: Some([1; 32]), ..Default::default() });
        let nowhere = place.path().join("nobody");
        for address in [format!("unix:{}", nowhere.display()), "tcp:127.0.0.1:1".into(), "x".into()]
        {
            let refused = node.connect(&Address(address)).await;
            assert!(matches!(refused, Err(NetworkError::Unreachable { .. })), "{refused:?}");
        }
    });
}

/// Sends `garbage` from a thread, and returns when the node has closed the connection.
async fn throw(stream: impl Read + Write + Send + 'static, garbage: Vec<u8>) {
    let (done, closed) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut stream = stream;
        // The node may close before it has read everything.
        let _ = stream.write_all(&garbage);
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        let _ = done.send(());
    });
    closed.await.expect("the thread ends");
}

#[test]
fn unauthenticated_garbage_ends_only_its_connection() {
    let place = Place::new();
    run(async {
        let (a, of_a, b, _) = met(&place, Kind::Tcp).await;
        for garbage in [vec![0xff; 1000], vec![0; 1000], b"GET / HTTP/1.1\r\n\r\n".to_vec()] {
            let port = b.address().0.replace("tcp:", "");
            throw(std::net::TcpStream::connect(port).expect("b listens"), garbage).await;
        }
        a.send(of_a, Message::new(Header::from_slice(b"still"))).await.expect("b is there");
        assert_eq!(&message(&b).await.1[..], b"still");
    });
}

/// Three times the maximum number of concurrent handshakes.
const STRANGERS: usize = 200;

#[test]
fn strangers_who_say_nothing_keep_nobody_out() {
    let place = Place::new();
    run(async {
        let (a, b) = (place.node(Kind::Tcp, 0), place.node(Kind::Tcp, 1));
        let port = b.address().0.replace("tcp:", "");
        let call = || std::net::TcpStream::connect(&port).expect("b listens");
        let strangers: Vec<_> = (0..STRANGERS).map(|_| call()).collect();
        // Without the abort they would hold their permits for five seconds each, and this would
        // fail.
        let of_a = a.connect(&b.address()).await.expect("its turn comes");
        a.send(of_a, Message::new(Header::from_slice(b"in"))).await.expect("b receives");
        assert_eq!(&message(&b).await.1[..], b"in");
        drop(strangers);
    });
}

/// Bytes of the first message of an initiator, with its length before it.
const FIRST_MESSAGE_BYTES: usize = 2 + 48;

/// Forwards one connection to `port`; returns the address of the forwarder, and the thread that
/// returns what the caller sent.
fn recorder(port: String) -> (Address, std::thread::JoinHandle<Vec<u8>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let recording = std::thread::spawn(move || {
        let (mut caller, _) = listener.accept().expect("a node connects");
        let mut node = std::net::TcpStream::connect(port).expect("a node listens");
        let (mut answers, mut to) =
            (node.try_clone().expect("a handle"), caller.try_clone().expect("a handle"));
        std::thread::spawn(move || std::io::copy(&mut answers, &mut to));
        let (mut recorded, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = caller.read(&mut buffer) {
            recorded.extend(&buffer[..count]);
            let _ = node.write_all(&buffer[..count]);
        }
        // The node learns that the caller has left.
        let _ = node.shutdown(std::net::Shutdown::Both);
        recorded
    });
    (Address(format!("tcp:{address}")), recording)
}

#[test]
fn replays_of_a_first_message_keep_nobody_out() {
    let place = Place::new();
    run(async {
        let (a, b) = (place.node(Kind::Tcp, 0), place.node(Kind::Tcp, 1));
        let port = b.address().0.replace("tcp:", "");
        let (address, recording) = recorder(port.clone());
        let of_a = a.connect(&address).await.expect("the forwarder forwards");
        a.disconnect(of_a);
        let Incoming::Departed { .. } = b.receive().await else { panic!("a sent nothing") };
        let recorded = recording.join().expect("the forwarder ends");
        let replay = || {
            let mut stream = std::net::TcpStream::connect(&port).expect("b listens");
            // The node may close before it has read everything.
            let _ = stream.write_all(&recorded[..FIRST_MESSAGE_BYTES]);
            stream
        };
        let replays: Vec<_> = (0..STRANGERS).map(|_| replay()).collect();
        // A replay that passed for a first message would hold its permit for five seconds, and this
        // would fail.
        let of_a = a.connect(&b.address()).await.expect("its turn comes");
        a.send(of_a, Message::new(Header::from_slice(b"in"))).await.expect("b receives");
        assert_eq!(&message(&b).await.1[..], b"in");
        drop(replays);
    });
}

#[test]
fn malformed_frames_end_only_their_connection() {
    let place = Place::new();
    run(async {
        let (a, of_a, b, _) = met(&place, Kind::OneSided).await;
        let mut hello = b"UNISONO\0".to_vec();
        hello.extend([5, 0, 0, 0, 0, 0, 0, 0]);
        hello.extend([0; 24]);
        let frame = |kind: u8, header: u32, body: u64| {
            let mut frame = hello.clone();
            frame.extend([b'U', b'N', kind, 2]);
            frame.extend(header.to_le_bytes());
            frame.extend(body.to_le_bytes());
            frame.extend([0; 16]);
            frame
        };
        let magic = [&hello[..], &[0; 64]].concat();
        let cases = [
            (magic, "not a frame"),
            (frame(99, 0, 0), "unknown kind"),
            (frame(0, u32::MAX, 0), "over the limits"),
            (frame(0, 0, u64::MAX), "over the limits"),
            (frame(5, 0, 0), "no request"),
            ([frame(1, 16, 0), vec![0xff; 16]].concat(), "not an exposure"),
            ([frame(1, 17, 0), vec![0xff; 16], vec![1]].concat(), "address space"),
            ([frame(4, 33, 0), vec![0xff; 33]].concat(), "list of runs"),
            ([frame(7, 15, 0), vec![0xff; 15]].concat(), "two numbers"),
            (frame(8, 0, 100), "not shared"),
            (frame(9, 0, 0), "does not have"),
        ];
        for (garbage, expected) in cases {
            let path = b.address().0.replace("unix:", "");
            let stream = std::os::unix::net::UnixStream::connect(path).expect("b listens");
            let mut lingering = stream.try_clone().expect("a second handle");
            let thrown = throw(stream, garbage);
            let (_, departed) = join(thrown, b.receive()).await;
            let Incoming::Departed { cause, .. } = departed else { panic!("no message came") };
            assert!(cause.contains(expected), "{cause} must say {expected}");
            // Later bytes are dropped.
            let _ = lingering.write_all(&[0; 10]);
        }
        a.send(of_a, Message::new(Header::from_slice(b"still"))).await.expect("b is there");
        assert_eq!(&message(&b).await.1[..], b"still");
    });
}

#[test]
fn socket_files_are_private_replaced_when_stale_and_removed() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    run(async {
        let config = place.config(Kind::OneSided, 0);
        let path = config.listen.clone().expect("it listens").0.replace("unix:", "");
        // Socket file of a killed node: bound, without a listener.
        drop(std::os::unix::net::UnixListener::bind(&path).expect("the place is free"));
        let node = RealWorld::open(config.clone()).expect("a stale file is replaced");
        let mode = std::fs::metadata(&path).expect("the file is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let listen = config.listen;
        let second = RealWorld::open(NodeConfig { listen, ..NodeConfig::default() }).err();
        assert!(matches!(second, Some(OpenError::Listen { .. })), "{second:?}");
        drop(node);
        // The accept task is dropped in a later pass of the event loop.
        while std::fs::exists(&path).expect("the directory is there") {
            tokio::task::yield_now().await;
        }
    });
}
