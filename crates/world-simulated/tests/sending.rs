//! Proves: a processor does work and the sending that follows without a gap, and the sender does
//! not wait for that. Messages that still wait in a processor go out before their program
//! disconnects, and are lost with the node or the connection.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use futures_util::future::{join, select};
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use support::machine;
use units::{Duration, Instant, PeerId};
use world::payload::Bytes;
use world::{Clock, Header, Incoming, Message, Network, Processor};
use world_simulated::models::mechanical::Drive;
use world_simulated::{DiskKind, Machine, SimulatedWorld};

fn us(us: u64) -> Instant {
    Instant::START + Duration::from_us(us)
}

fn message(number: u8) -> Message<Bytes> {
    Message::new(Header::from_slice(&[number]))
}

/// Network time of a message of one byte, with its envelope of 16, to the next node.
const ON_THE_WAY_NS: u64 = 5 * 20 + 20;

/// Returns the receipts of node 1 from node 0 within a millisecond in which `act` happens: numbers
/// of messages, `None` for the departure, and the instants.
fn received(
    act: impl AsyncFnOnce(SimulatedWorld<Bytes>, PeerId, Rc<Machine<Bytes>>) + 'static,
) -> Vec<(Option<u8>, Instant)> {
    let (engine, machine) = machine(DiskKind::of(Drive::hp97560()));
    let (one, other) = (machine.world(0), machine.world(1));
    let heard = Rc::new(RefCell::new(Vec::new()));
    let written = Rc::clone(&heard);
    let done = engine.run(async move {
        let peer = one.connect(&other.address()).await.unwrap();
        let hearing = async {
            loop {
                let number = match other.receive().await {
                    Incoming::Message { header, .. } => Some(header[0]),
                    Incoming::Departed { .. } => None,
                };
                written.borrow_mut().push((number, other.now()));
            }
        };
        let acting = async {
            act(one.clone(), peer, machine).await;
            one.sleep_until(us(1000)).await;
        };
        select(pin!(hearing), pin!(acting)).await;
    });
    done.unwrap();
    heard.take()
}

/// Instant at which a message that is sent at `sent_us` has been received.
fn taken_in(sent_us: u64) -> Instant {
    us(sent_us + 5) + Duration::from_ns(ON_THE_WAY_NS)
}

#[test]
fn work_and_the_sending_that_follows_leave_no_gap() {
    let heard = received(async |one, peer, _| {
        let cost = Duration::from_us(40);
        one.send_after(cost, peer, message(1)).await.unwrap();
        one.send_after(cost, peer, message(2)).await.unwrap();
        assert_eq!(one.now(), Instant::START, "the sender goes on");
        one.compute(Duration::from_us(7)).await;
        assert_eq!(one.now(), us(2 * 45 + 7), "but his processor is occupied");
    });
    // If both were computed first, they would be sent at 85 and 90 us.
    assert_eq!(heard, [(Some(1), taken_in(45)), (Some(2), taken_in(90))]);
}

#[test]
fn a_departure_arrives_after_messages_sent_before() {
    let heard = received(async |one, peer, _| {
        one.send_after(Duration::from_us(40), peer, message(1)).await.unwrap();
        one.disconnect(peer);
        assert!(one.send(peer, message(2)).await.is_err());
    });
    let numbers: Vec<_> = heard.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [Some(1), None]);
    assert_eq!(heard[0].1, taken_in(45));
}

#[test]
fn a_machine_that_is_off_sends_no_departures() {
    let heard = received(async |one, peer, machine| {
        machine.switch_off();
        one.disconnect(peer);
    });
    assert_eq!(heard, []);
}

#[test]
fn messages_waiting_in_a_processor_are_lost_with_its_node() {
    let heard = received(async |one, peer, machine| {
        one.send_after(Duration::from_us(40), peer, message(1)).await.unwrap();
        one.sleep_until(us(20)).await;
        machine.kill(0);
        machine.restart(0);
    });
    let numbers: Vec<_> = heard.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [None], "also if the node is back before it would have been sent");
    assert!(heard[0].1 < us(30));
}

#[test]
fn messages_waiting_in_a_processor_are_lost_with_its_connection() {
    let heard = received(async |one, peer, machine| {
        one.send_after(Duration::from_us(40), peer, message(1)).await.unwrap();
        one.sleep_until(us(20)).await;
        machine.disconnect(0, 1);
    });
    assert_eq!(heard, [(None, us(20))]);
}

#[test]
fn a_message_whose_future_is_not_polled_is_not_sent() {
    let heard = received(async |one, peer, _| {
        drop(one.send_after(Duration::from_us(40), peer, message(1)));
        one.send(peer, message(2)).await.unwrap();
    });
    assert_eq!(heard, [(Some(2), taken_in(5))]);
}

#[test]
fn a_departure_waiting_in_a_processor_arrives_even_if_its_node_dies() {
    for restarts in [false, true] {
        let heard = received(async move |one, peer, machine| {
            one.send_after(Duration::from_us(100), peer, message(1)).await.unwrap();
            one.disconnect(peer);
            one.sleep_until(us(20)).await;
            machine.kill(0);
            if restarts {
                machine.restart(0);
            }
        });
        let numbers: Vec<_> = heard.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [None], "what was sent is lost, the end is not");
    }
}

#[test]
fn messages_sent_in_one_instant_keep_their_order() {
    // The task that wakes when the first is sent was there before it.
    for ends in [false, true] {
        let heard = received(async move |one, peer, _| {
            let later = async {
                one.sleep_until(us(5)).await;
                if ends {
                    one.disconnect(peer);
                } else {
                    one.send(peer, message(2)).await.unwrap();
                }
            };
            let sooner = async { one.send(peer, message(1)).await.unwrap() };
            join(later, sooner).await;
        });
        let numbers: Vec<_> = heard.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [Some(1), Some(2).filter(|_| !ends)]);
    }
}
