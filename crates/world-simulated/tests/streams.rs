//! Proves: where data travels in streams of sockets, its receiver pays for each byte of a message,
//! a memput and a memget, and single operations take exactly the sums of their parts.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::cell::Cell;
use std::rc::Rc;
use support::{MESSAGES, machine_with_costs};
use units::{Duration, PeerId, PieceRun, RegionId};
use world::payload::{Bytes, BytesMemory};
use world::{Clock, Header, Incoming, Message, Network, OneSided, Payloads};
use world_simulated::{MessageCosts, Pieces, PutCopier, SimulatedWorld};

/// Receiving costs 5 us and 2 ns a byte, and each piece but the first 100 ns. Sending costs 5 us,
/// and 5 ns for each byte of a memput or memget.
const STREAM: MessageCosts = MessageCosts {
    receive_ps_per_byte: 2_000,
    pieces: Pieces::Batched { gather_ps: 100_000 },
    ..MESSAGES
};

/// The same where data goes by DMA to its place.
const DMA: MessageCosts = MessageCosts { receive_ps_per_byte: 0, ..STREAM };

/// Bytes that are moved, in ten pieces, and the time of gathering these.
const BYTES: u64 = 10_000;
const GATHER_NS: u64 = 9 * 100;

/// Time of bytes on the network to the next node: links of 200 * 10^6 bytes a second, 20 ns a hop.
const fn wire_ns(bytes: u64) -> u64 {
    5 * bytes + 20
}

fn pieces() -> Vec<PieceRun> {
    let length = BYTES / 10;
    let (stride, memory_stride) = (length, 2 * length);
    vec![PieceRun { offset: 0, stride, memory_offset: 0, memory_stride, length, count: 10 }]
}

/// Returns the nanoseconds that `act` takes at node 0, whose peer is node 1 with this memory.
fn taken(
    costs: MessageCosts,
    act: impl AsyncFnOnce(SimulatedWorld<Bytes>, (PeerId, RegionId), BytesMemory) + 'static,
) -> u64 {
    let (engine, machine) = machine_with_costs(costs);
    let (one, other) = (machine.world(0), machine.world(1));
    let taken = Rc::new(Cell::new(0));
    let written = Rc::clone(&taken);
    let done = engine.run(async move {
        one.connect(&other.address()).await.unwrap();
        let memory = other.memory(2 * BYTES);
        let region = other.expose_to_all(&memory).await;
        let peer = one.connect(&other.address()).await.unwrap();
        act(one.clone(), (peer, region), memory).await;
        written.set(one.now().as_ns());
    });
    done.unwrap();
    taken.get()
}

/// Time of a memput of the pieces.
fn put_ns(costs: MessageCosts) -> u64 {
    taken(costs, async |one, (peer, region), memory| {
        let source = Bytes::from(vec![7; BYTES as usize]);
        one.put(peer, region, &pieces(), &source).await.unwrap();
        assert_eq!(memory.to_vec().iter().filter(|byte| **byte == 7).count() as u64, BYTES);
    })
}

/// Time of a memget of the pieces.
fn get_ns(costs: MessageCosts) -> u64 {
    taken(costs, async |one, (peer, region), _| {
        one.get(peer, region, &pieces(), &one.memory(BYTES)).await.unwrap();
    })
}

#[test]
fn a_memput_is_copied_by_both_ends() {
    let sent_ns = 5_000 + GATHER_NS + 5 * BYTES;
    let carried_ns = wire_ns(BYTES + 16);
    let received_ns = 5_000 + GATHER_NS + 2 * BYTES;
    assert_eq!(put_ns(STREAM), sent_ns + carried_ns + received_ns + wire_ns(16));
    assert_eq!(put_ns(DMA), sent_ns + carried_ns + wire_ns(16));
}

#[test]
fn a_memget_is_a_question_and_an_answer() {
    let asked_ns = 5_000 + wire_ns(16);
    let answered_ns = 5_000 + GATHER_NS + 5_000 + 5 * BYTES;
    let received_ns = 5_000 + GATHER_NS + 2 * BYTES;
    assert_eq!(get_ns(STREAM), asked_ns + answered_ns + wire_ns(BYTES + 16) + received_ns);
    let asked_ns = 5_000 + GATHER_NS + 5 * BYTES + wire_ns(16);
    assert_eq!(get_ns(DMA), asked_ns + 5 * BYTES + wire_ns(BYTES + 16));
}

#[test]
fn a_message_is_paid_for_each_byte() {
    for (costs, byte_ns) in [(STREAM, 2), (DMA, 0)] {
        let (engine, machine) = machine_with_costs(costs);
        let (one, other) = (machine.world(0), machine.world(1));
        let done = engine.run(async move {
            let peer = one.connect(&other.address()).await.unwrap();
            let body = Bytes::from(vec![1; BYTES as usize]);
            one.send(peer, Message::with_body(Header::from_slice(&[0; 4]), body)).await.unwrap();
            assert!(matches!(other.receive().await, Incoming::Message { .. }));
            // An envelope of 16 bytes and a header of 4. All times are whole ticks of the torus.
            let bytes = BYTES + 20;
            let expected_ns = 5_000 + wire_ns(bytes) + 5_000 + byte_ns * bytes;
            assert_eq!(other.now().as_ns(), expected_ns);
            // A message of a program, whose data the sender copies for 5 ns a byte.
            let begin = one.now();
            one.send_as_program(1, BYTES).await;
            one.carry_as_program(1, BYTES).await;
            other.receive_as_program(BYTES).await;
            let parts_ns = 5_000 + 5 * BYTES + wire_ns(BYTES + 16) + 5_000 + byte_ns * BYTES;
            assert_eq!(one.now(), begin + Duration::from_ns(parts_ns));
        });
        done.unwrap();
    }
}

#[test]
fn a_message_wakes_an_idle_node_only() {
    let wake = Duration::from_us(30);
    let (engine, machine) = machine_with_costs(MessageCosts { wake, ..MESSAGES });
    let (one, other) = (machine.world(0), machine.world(1));
    let done = engine.run(async move {
        let peer = one.connect(&other.address()).await.unwrap();
        let message = || Message::new(Header::from_slice(&[0; 4]));
        let times = async |messages: usize| {
            let begin = one.now();
            for _ in 0..messages {
                one.send(peer, message()).await.unwrap();
            }
            for _ in 0..messages {
                assert!(matches!(other.receive().await, Incoming::Message { .. }));
            }
            other.now().since(begin).as_ns()
        };
        // An envelope of 16 bytes and a header of 4.
        let first_ns = 5_000 + wire_ns(20) + 30_000 + 5_000;
        assert_eq!(times(1).await, first_ns);
        // Three messages, of which the last two find the node at work on the first.
        assert_eq!(times(3).await, first_ns + 2 * 5_000);
    });
    done.unwrap();
}

#[test]
fn a_memput_wakes_the_owner_that_copies() {
    let costs = MessageCosts { put_copier: PutCopier::Owner, ..MESSAGES };
    let wake = Duration::from_us(30);
    assert_eq!(put_ns(MessageCosts { wake, ..costs }), put_ns(costs) + 30_000);
}
