//! Cases for messages: in order, whole, in both directions, and with notification of the end of a
//! connection.

use super::support::{
    abandon, eventually, expect_bytes, expect_departure, expect_message, header, list_cases, meet,
    pattern, turn, two,
};
use super::{Fixture, PayloadOf};
use crate::{
    Address, Clock, HEADER_BYTES_MAX, Header, Memory, Message, Network, NetworkError, OneSided,
    Payload, Payloads, Place, World,
};
use futures_util::future::{join, join_all};
use std::rc::{Rc, Weak};
use units::{Duration, MIB, PeerId, Run};

list_cases![
    nodes_have_different_addresses,
    connecting_to_nobody_fails,
    a_connection_carries_messages_both_ways_in_order,
    senders_wait_for_a_slow_receiver,
    connections_are_told_apart,
    headers_of_every_size_arrive,
    a_header_over_the_limit_is_refused,
    bodies_of_every_size_arrive,
    a_body_can_be_a_slice,
    messages_with_and_without_bodies_keep_their_order,
    a_placed_body_lands_in_its_place,
    a_lent_body_comes_back_when_it_is_dropped,
    a_lent_body_comes_back_when_the_receiver_leaves,
    memory_made_of_a_lent_body_can_be_written,
    an_abandoned_receive_loses_nothing,
    a_disconnect_is_reported_once,
    messages_sent_before_a_disconnect_arrive,
    a_node_that_disconnects_receives_nothing_more,
    messages_sent_after_work_keep_their_order,
    nothing_is_sent_to_who_left,
    a_ping_is_answered_without_the_program,
    a_ping_ends_with_its_connection,
    a_node_can_come_back,
];

/// Sends and expects success.
async fn send<N: Network>(node: &N, to: PeerId, message: Message<N::Payload>) {
    node.send(to, message).await.expect("a connection must carry messages");
}

/// Returns the next message, which must come from `peer`.
async fn receive<N: Network>(node: &N, peer: PeerId) -> (Header, Option<N::Payload>) {
    let (from, header, body) = expect_message(node.receive().await);
    assert_eq!(from, peer, "a message must name its sender");
    (header, body)
}

/// Sends from one node to another. Returns the message that arrives.
async fn pass<W: World>(
    (sender, to): (&W, PeerId),
    (receiver, from): (&W, PeerId),
    message: Message<W::Payload>,
) -> (Header, Option<W::Payload>) {
    join(send(sender, to, message), receive(receiver, from)).await.1
}

fn number(index: u32) -> Header {
    header(&index.to_be_bytes())
}

fn nodes_have_different_addresses<F: Fixture>(fixture: &mut F) {
    fixture.run(3, |worlds| async move {
        let addresses: Vec<Address> = worlds.iter().map(Network::address).collect();
        assert_ne!(addresses[0], addresses[1]);
        assert_ne!(addresses[1], addresses[2]);
        assert_ne!(addresses[0], addresses[2]);
        assert_eq!(worlds[0].address(), addresses[0], "a node must keep its address");
    });
}

fn connecting_to_nobody_fails<F: Fixture>(fixture: &mut F) {
    // Each of these is no address of this world, or the address of no node.
    const NOBODY: [&str; 9] = [
        "",
        "nobody",
        "node:",
        "node:4000000000",
        "node:99999999999999999999",
        "tcp:127.0.0.1:0",
        "tcp:127.0.0.1:99999",
        "unix:",
        "unix:/nonexistent/unisono/nobody.sock",
    ];
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        for nobody in NOBODY {
            let address = Address(nobody.to_owned());
            match a.connect(&address).await {
                Err(NetworkError::Unreachable { address: told, .. }) => {
                    assert_eq!(told, address, "the error must name the address");
                }
                other => panic!("connecting to {nobody:?} must be Unreachable, not {other:?}"),
            }
        }
        meet(&a, &b).await;
    });
}

fn a_connection_carries_messages_both_ways_in_order<F: Fixture>(fixture: &mut F) {
    const MESSAGES: u32 = 200;
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        let talk = async |node: &F::World, peer: PeerId| {
            for index in 0..MESSAGES {
                send(node, peer, Message::new(number(index))).await;
            }
        };
        let hear = async |node: &F::World, peer: PeerId| {
            for index in 0..MESSAGES {
                let (header, _) = receive(node, peer).await;
                assert_eq!(header, number(index), "messages must arrive in order");
            }
        };
        let talking = join(talk(&a, b_of_a), talk(&b, a_of_b));
        join(talking, join(hear(&a, b_of_a), hear(&b, a_of_b))).await;
    });
}

fn senders_wait_for_a_slow_receiver<F: Fixture>(fixture: &mut F) {
    const MESSAGES: u32 = 24;
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        let bytes = pattern(1, MIB as usize);
        let body = F::payload(&bytes);
        let sends = (0..MESSAGES)
            .map(|index| send(&a, b_of_a, Message::with_body(number(index), body.clone())));
        let hearing = async {
            for _ in 0..MESSAGES {
                b.sleep(Duration::from_us(10)).await;
                let (_, body) = receive(&b, a_of_b).await;
                expect_bytes::<F>(&expect_body::<F>(body), &bytes, "a body among many");
            }
        };
        join(join_all(sends), hearing).await;
    });
}

fn connections_are_told_apart<F: Fixture>(fixture: &mut F) {
    fixture.run(4, |worlds| async move {
        let server = &worlds[3];
        let mut peers = Vec::new();
        for client in &worlds[..3] {
            peers.push(meet(client, server).await);
        }
        for index in [2, 0, 1] {
            let (to_server, to_client) = peers[index];
            let client = (&worlds[index], to_server);
            let message = Message::new(number(index as u32));
            let (heard, _) = pass(client, (server, to_client), message.clone()).await;
            assert_eq!(heard, number(index as u32), "a message must name its own sender");
            let (answer, _) = pass((server, to_client), client, message).await;
            assert_eq!(answer, number(index as u32), "an answer must reach the asking node");
        }
    });
}

fn headers_of_every_size_arrive<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        for length in [0, 1, 96, 97, 4095, 100_000, HEADER_BYTES_MAX] {
            let bytes = header(&pattern(length as u64, length));
            let (heard, body) = pass((&a, b_of_a), (&b, a_of_b), Message::new(bytes.clone())).await;
            assert!(heard == bytes, "a header of {length} bytes must arrive as it was sent");
            assert!(body.is_none(), "a message without a body must arrive without one");
        }
    });
}

fn a_header_over_the_limit_is_refused<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        let bytes = HEADER_BYTES_MAX + 1;
        let refused = a.send(b_of_a, Message::new(Header::from_elem(1, bytes))).await;
        let (bytes, bytes_max) = (bytes as u64, HEADER_BYTES_MAX as u64);
        assert_eq!(refused, Err(NetworkError::TooLarge { what: "header", bytes, bytes_max }));
        let (heard, _) = pass((&a, b_of_a), (&b, a_of_b), Message::new(number(1))).await;
        assert_eq!(heard, number(1), "a refused message must not hurt the connection");
    });
}

fn expect_body<F: Fixture>(body: Option<PayloadOf<F>>) -> PayloadOf<F> {
    body.expect("a body must arrive with its header")
}

fn bodies_of_every_size_arrive<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        for length in [0, 1, 4095, 4096, 4097, 65_537, MIB as usize] {
            let bytes = pattern(length as u64, length);
            let message = Message::with_body(number(7), F::payload(&bytes));
            let (heard, body) = pass((&a, b_of_a), (&b, a_of_b), message).await;
            assert_eq!(heard, number(7));
            // A body of no bytes is still a body.
            let what = format!("a body of {length} bytes");
            expect_bytes::<F>(&expect_body::<F>(body), &bytes, &what);
        }
    });
}

fn a_body_can_be_a_slice<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        let bytes = pattern(1, 10_000);
        let memory = a.thaw(F::payload(&bytes));
        let every_other = [Run { offset: 1, length: 1, stride: 2, count: 4000 }];
        let body = memory.gather(&every_other).slice(500, 3000);
        let odd: Vec<u8> = bytes.iter().copied().skip(1).step_by(2).collect();
        let message = Message::with_body(number(1), body);
        let (_, body) = pass((&a, b_of_a), (&b, a_of_b), message).await;
        expect_bytes::<F>(&expect_body::<F>(body), &odd[500..3500], "a slice of gathered bytes");
    });
}

fn messages_with_and_without_bodies_keep_their_order<F: Fixture>(fixture: &mut F) {
    const MESSAGES: u32 = 30;
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        let talking = async {
            for index in 0..MESSAGES {
                let message = match index % 3 {
                    0 => Message::new(number(index)),
                    1 => Message::with_body(number(index), F::payload(b"small")),
                    _ => Message::with_body(number(index), F::payload(&pattern(2, 100_000))),
                };
                send(&a, b_of_a, message).await;
            }
        };
        let hearing = async {
            for index in 0..MESSAGES {
                let (header, body) = receive(&b, a_of_b).await;
                assert_eq!(header, number(index), "a large body must not be overtaken");
                assert_eq!(body.is_some(), index % 3 != 0, "a body belongs to its header");
            }
        };
        join(talking, hearing).await;
    });
}

fn a_placed_body_lands_in_its_place<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        let mut model = pattern(1, 100_000);
        let memory = b.thaw(F::payload(&model));
        let region = b.expose(&memory, &[a_of_b]).await.expect("a memory must be exposable");
        for (seed, offset, length) in [(2, 0, 1), (3, 777, 50_001), (4, 99_000, 1000)] {
            let bytes = pattern(seed, length);
            let place = Place { region, offset: offset as u64 };
            let message = Message::placed(number(1), F::payload(&bytes), place);
            let (heard, body) = pass((&a, b_of_a), (&b, a_of_b), message).await;
            assert_eq!(heard, number(1));
            assert!(body.is_none(), "a body that landed in its place must not come again");
            model[offset..offset + length].copy_from_slice(&bytes);
            // It must be in place already when its header is received.
            let whole = memory.gather(&[Run::contiguous(0, 100_000)]);
            expect_bytes::<F>(&whole, &model, "a memory with placed bodies");
        }
        b.withdraw(region).await;
    });
}

/// Lends `bytes`. Returns the message that arrives, and a handle that tells if the loan is over.
async fn lend<F: Fixture>(
    (sender, to): (&F::World, PeerId),
    (receiver, from): (&F::World, PeerId),
    bytes: &[u8],
) -> (PayloadOf<F>, Weak<()>) {
    let memory = sender.memory(bytes.len() as u64);
    memory.scatter(&[Run::contiguous(0, bytes.len() as u64)], &F::payload(bytes));
    let loan = Rc::new(());
    let lent = Rc::downgrade(&loan);
    let message = Message::lent(number(1), memory.freeze(), loan);
    let (heard, body) = pass((sender, to), (receiver, from), message).await;
    assert_eq!(heard, number(1));
    (body.expect("a lent body must arrive"), lent)
}

/// Longer than any body that is always copied, and not whole pages.
const LENT_BYTES: usize = 100_001;

fn a_lent_body_comes_back_when_it_is_dropped<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        let mut held = Vec::new();
        // Several at a time, each with its own bytes: none may take the place of another.
        for seed in 0..8 {
            let bytes = pattern(seed, LENT_BYTES);
            held.push((bytes.clone(), lend::<F>((&a, b_of_a), (&b, a_of_b), &bytes).await));
            for (bytes, (body, _)) in &held {
                expect_bytes::<F>(body, bytes, "a lent body");
            }
        }
        for (bytes, (body, lent)) in held {
            let slice = body.slice(7, 1000);
            drop(body);
            turn(&a).await;
            expect_bytes::<F>(&slice, &bytes[7..1007], "a part of a lent body");
            drop(slice);
            eventually(&a, "a loan must come back", || lent.upgrade().is_none()).await;
        }
    });
}

fn a_lent_body_comes_back_when_the_receiver_leaves<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        let bytes = pattern(1, LENT_BYTES);
        let (_body, lent) = lend::<F>((&a, b_of_a), (&b, a_of_b), &bytes).await;
        b.disconnect(a_of_b);
        assert_eq!(expect_departure(a.receive().await), b_of_a);
        eventually(&a, "a loan must come back", || lent.upgrade().is_none()).await;
    });
}

fn memory_made_of_a_lent_body_can_be_written<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        let mut bytes = pattern(1, LENT_BYTES);
        let (body, _) = lend::<F>((&a, b_of_a), (&b, a_of_b), &bytes).await;
        let kept = body.clone();
        let memory = b.thaw(body);
        let change = pattern(2, 10);
        memory.scatter(&[Run::contiguous(5, 10)], &F::payload(&change));
        expect_bytes::<F>(&kept, &bytes, "a lent body that another memory began as");
        bytes[5..15].copy_from_slice(&change);
        expect_bytes::<F>(&memory.freeze(), &bytes, "a memory that began as a lent body");
    });
}

fn an_abandoned_receive_loses_nothing<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        for index in 0..10 {
            assert!(!abandon(b.receive()).await, "nothing was sent yet");
            let (heard, _) = pass((&a, b_of_a), (&b, a_of_b), Message::new(number(index))).await;
            assert_eq!(
                heard,
                number(index),
                "a message must not go to a receiver that no longer waits"
            );
        }
    });
}

fn a_disconnect_is_reported_once<F: Fixture>(fixture: &mut F) {
    fixture.run(3, |worlds| async move {
        let [leaver, server, stayer] = &worlds[..] else { panic!("three nodes were asked for") };
        let (server_of_leaver, leaver_of_server) = meet(leaver, server).await;
        let (server_of_stayer, stayer_of_server) = meet(stayer, server).await;
        leaver.disconnect(server_of_leaver);
        let gone = expect_departure(server.receive().await);
        assert_eq!(gone, leaver_of_server, "a departure must name the peer that left");
        server.disconnect(leaver_of_server);
        for index in 0..10 {
            let message = Message::new(number(index));
            let stayer = (stayer, server_of_stayer);
            let (heard, _) = pass(stayer, (server, stayer_of_server), message).await;
            assert_eq!(heard, number(index), "others must go on undisturbed");
        }
    });
}

fn messages_sent_before_a_disconnect_arrive<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        let bytes = pattern(1, 200_000);
        let talking = async {
            for index in 0..5 {
                send(&a, b_of_a, Message::new(number(index))).await;
            }
            send(&a, b_of_a, Message::with_body(number(5), F::payload(&bytes))).await;
            a.disconnect(b_of_a);
        };
        let hearing = async {
            for index in 0..5 {
                assert_eq!(receive(&b, a_of_b).await.0, number(index));
            }
            let (_, body) = receive(&b, a_of_b).await;
            expect_bytes::<F>(&expect_body::<F>(body), &bytes, "the last body before the end");
            assert_eq!(expect_departure(b.receive().await), a_of_b);
        };
        join(talking, hearing).await;
    });
}

fn a_node_that_disconnects_receives_nothing_more<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        for index in 0..3 {
            send(&b, a_of_b, Message::with_body(number(index), F::payload(&pattern(1, 100)))).await;
        }
        assert_eq!(receive(&a, b_of_a).await.0, number(0));
        // The others have arrived, or are about to.
        a.sleep(Duration::from_ms(20)).await;
        a.disconnect(b_of_a);
        assert_eq!(expect_departure(b.receive().await), a_of_b);
        assert!(!abandon(a.receive()).await, "nothing may come of a connection that was ended");
        // Another connection is not affected.
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        assert_eq!(pass((&b, a_of_b), (&a, b_of_a), Message::new(number(9))).await.0, number(9));
    });
}

fn messages_sent_after_work_keep_their_order<F: Fixture>(fixture: &mut F) {
    const MESSAGES: u32 = 12;
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        let memory = b.memory(u64::from(MESSAGES));
        let region = b.expose(&memory, &[a_of_b]).await.expect("a connection can be exposed to");
        let sending = async {
            for index in 0..MESSAGES {
                let (offset, body) = (index.into(), F::payload(&[index as u8]));
                let message = Message::placed(number(index), body, Place { region, offset });
                let sent = match index % 3 {
                    0 => a.send(b_of_a, message).await,
                    work => a.send_after(Duration::from_us(work.into()), b_of_a, message).await,
                };
                sent.expect("a connection must carry messages");
            }
            a.disconnect(b_of_a);
            let refused = a.send_after(Duration::from_us(1), b_of_a, Message::new(number(0))).await;
            expect_departed(refused, b_of_a);
        };
        let hearing = async {
            for index in 0..MESSAGES {
                let (heard, body) = receive(&b, a_of_b).await;
                assert_eq!((heard, body.is_none()), (number(index), true));
            }
            assert_eq!(expect_departure(b.receive().await), a_of_b);
        };
        join(sending, hearing).await;
        let bytes: Vec<u8> = (0..MESSAGES as u8).collect();
        expect_bytes::<F>(&memory.freeze(), &bytes, "what was placed");
    });
}

fn nothing_is_sent_to_who_left<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        a.disconnect(b_of_a);
        let refused = a.send(b_of_a, Message::new(number(1))).await;
        expect_departed(refused, b_of_a);
        assert_eq!(expect_departure(b.receive().await), a_of_b);
        let body = F::payload(&pattern(1, MIB as usize));
        let refused = b.send(a_of_b, Message::with_body(number(2), body)).await;
        expect_departed(refused, a_of_b);
        // Disconnecting twice is no error: both sides may do it at the same time.
        b.disconnect(a_of_b);
        a.disconnect(b_of_a);
    });
}

fn a_ping_is_answered_without_the_program<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        // Nobody receives on either node, and messages are on the way.
        for index in 0..3 {
            send(&a, b_of_a, Message::new(number(index))).await;
        }
        let (there, back) = join(a.ping(b_of_a), b.ping(a_of_b)).await;
        assert_eq!((there, back), (Ok(()), Ok(())));
        assert_eq!(a.awaited_peers(), [], "a ping that was answered leaves nothing");
        for index in 0..3 {
            assert_eq!(receive(&b, a_of_b).await.0, number(index), "a ping is no message");
        }
    });
}

fn a_ping_ends_with_its_connection<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        a.disconnect(b_of_a);
        expect_departed(a.ping(b_of_a).await, b_of_a);
        assert_eq!(expect_departure(b.receive().await), a_of_b);
        expect_departed(b.ping(a_of_b).await, a_of_b);
    });
}

fn expect_departed(outcome: Result<(), NetworkError>, left: PeerId) {
    match outcome {
        Err(NetworkError::Departed { peer, .. }) => assert_eq!(peer, left, "the peer that left"),
        other => panic!("a send to a peer that left must be Departed, not {other:?}"),
    }
}

fn a_node_can_come_back<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        for round in 0..3 {
            let (b_of_a, a_of_b) = meet(&a, &b).await;
            let (heard, _) = pass((&a, b_of_a), (&b, a_of_b), Message::new(number(round))).await;
            assert_eq!(heard, number(round));
            a.disconnect(b_of_a);
            assert_eq!(expect_departure(b.receive().await), a_of_b);
        }
    });
}
