//! Proves: a node with limits holds no more for its peers than they say, and a peer that stops in
//! the middle of a message, or reads no answers, keeps no other peer from being served.

mod support;

use futures_util::future::join;
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use support::{Kind, Place, open};
use units::MIB;
use world::{Header, Incoming, Message, Network};
use world_real::{RealWorld, ReceiveLimits, run};

const LIMITS: ReceiveLimits = ReceiveLimits {
    body_bytes_max: MIB,
    held_bytes_max: MIB as u32,
    // Stalls are part of the tests.
    stall_timeout: Duration::from_millis(10),
};

/// Opens a node with limits, and another that is connected to it.
async fn nodes(place: &Place) -> (RealWorld, RealWorld, units::PeerId) {
    let limited = world_real::NodeConfig { limits: Some(LIMITS), ..place.config(Kind::Framed, 0) };
    let (limited, other) = (open(Kind::Framed, limited), place.node(Kind::Framed, 1));
    let of_limited = other.connect(&limited.address()).await.expect("the node listens");
    (limited, other, of_limited)
}

/// Connects to a node as one that does not read.
fn stranger(node: &RealWorld) -> UnixStream {
    let path = node.address().0.replace("unix:", "");
    let mut stream = UnixStream::connect(path).expect("the node listens");
    let mut hello = b"UNISONO\0".to_vec();
    hello.extend([5, 0, 0, 0, 0, 0, 0, 0]);
    hello.extend([0; 24]);
    stream.write_all(&hello).expect("the node reads the hello");
    stream
}

/// Fixed part of a frame with a body.
fn frame(kind: u8, header: u32, body: u64) -> Vec<u8> {
    let mut frame = vec![b'U', b'N', kind, 2];
    frame.extend(header.to_le_bytes());
    frame.extend(body.to_le_bytes());
    frame.extend([0; 16]);
    frame
}

#[test]
fn a_body_over_the_limit_ends_its_connection() {
    let place = Place::new();
    run(async {
        let (node, other, of_node) = nodes(&place).await;
        let body = vec![1; MIB as usize];
        let fits = Message::with_body(Header::from_slice(b"fits"), body.clone().into());
        let (sent, got) = join(other.send(of_node, fits), node.receive()).await;
        sent.expect("it is within the limit");
        let Incoming::Message { body: Some(got), .. } = got else { panic!("it arrives") };
        assert!(got.bytes() == body);
        let exceeds = Message::with_body(Header::new(), vec![1; MIB as usize + 1].into());
        let (_, got) = join(other.send(of_node, exceeds), node.receive()).await;
        let Incoming::Departed { cause, .. } = got else { panic!("it is refused") };
        assert!(cause.contains("a body of 1048577 bytes is over this node's limit"), "{cause}");
    });
}

#[test]
fn peers_that_stop_in_a_message_are_disconnected_when_others_wait() {
    let place = Place::new();
    run(async {
        let (node, other, of_node) = nodes(&place).await;
        let almost = [frame(0, 0, MIB), vec![7; MIB as usize - 1]].concat();
        let stopped: Vec<UnixStream> = (0..4).map(|_| stranger(&node)).collect();
        for stream in &stopped {
            let (mut stream, almost) = (stream.try_clone().expect("a handle"), almost.clone());
            // The node reads the second when it has disconnected the first.
            std::thread::spawn(move || stream.write_all(&almost));
        }
        // More than a frame that needs no room.
        let data = vec![3; 512 << 10];
        let sending = async {
            let message = Message::with_body(Header::from_slice(b"in"), data.clone().into());
            other.send(of_node, message).await.expect("the node receives");
        };
        let receiving = async {
            let mut causes = Vec::new();
            loop {
                match node.receive().await {
                    Incoming::Departed { cause, .. } => causes.push(cause),
                    Incoming::Message { header, body: Some(body), .. } => {
                        assert!(&header[..] == b"in" && body.bytes() == data);
                        return causes;
                    }
                    Incoming::Message { .. } => panic!("nobody sent it"),
                }
            }
        };
        let ((), causes) = join(sending, receiving).await;
        assert!(causes.iter().all(|cause| cause.contains("it stalled in a message")), "{causes:?}");
    });
}

#[test]
fn a_peer_that_stops_alone_is_left_in_peace() {
    let place = Place::new();
    run(async {
        let (node, other, of_node) = nodes(&place).await;
        let mut slow = stranger(&node);
        let (first, last) = (frame(0, 0, MIB), vec![7; MIB as usize]);
        slow.write_all(&first).expect("the node reads");
        // Small messages need no room, so nobody waits for that of the slow one.
        for _ in 0..3 {
            tokio::time::sleep(LIMITS.stall_timeout).await;
            let small = Message::with_body(Header::new(), vec![1; 1000].into());
            let (sent, got) = join(other.send(of_node, small), node.receive()).await;
            sent.expect("the node receives");
            assert!(matches!(got, Incoming::Message { .. }), "{got:?}");
        }
        let rest = std::thread::spawn(move || slow.write_all(&last).map(|()| slow));
        let got = node.receive().await;
        let Incoming::Message { body: Some(body), .. } = got else { panic!("it arrives: {got:?}") };
        assert_eq!(body.bytes().len() as u64, MIB);
        drop(rest.join());
    });
}

#[test]
fn answers_that_a_peer_does_not_read_end_its_requests() {
    // A withdrawal of no region asks for an answer only.
    let requests = frame(2, 0, 0).repeat(1 << 15);
    let place = Place::new();
    run(async {
        let (node, other, of_node) = nodes(&place).await;
        let mut deaf = stranger(&node);
        let (done, stopped) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            // Long enough for a node that reads.
            deaf.set_write_timeout(Some(Duration::from_millis(500))).expect("a socket has one");
            // A node that goes on reading takes all of this, 64 MiB.
            let ended = (0..64).find_map(|_| deaf.write_all(&requests).err());
            let _ = done.send((ended.map(|error| error.kind()), deaf));
        });
        let (ended, deaf) = stopped.await.expect("the thread ends");
        assert_eq!(ended, Some(ErrorKind::WouldBlock));
        let message = Message::new(Header::from_slice(b"still"));
        let (sent, got) = join(other.send(of_node, message), node.receive()).await;
        sent.expect("the node receives");
        assert!(matches!(got, Incoming::Message { .. }), "{got:?}");
        drop(deaf);
    });
}
