//! Messages: the k-th send of a source, destination, communicator and tag is that of the k-th
//! receive which got such a message.

use super::communicators::Communicators;
use super::contradiction;
use crate::describe::call;
use crate::event::{Message, Operation, RankTrace};
use interface::UserError;
use std::cmp::Ordering;

/// Envelope of messages that do not overtake one another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Envelope {
    source: u32,
    destination: u32,
    communicator: u32,
    tag: i32,
}

/// One end of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    envelope: Envelope,
    event: usize,
    bytes: u64,
}

/// Matches all messages.
pub(super) fn check(ranks: &[RankTrace], known: &Communicators) -> Result<(), UserError> {
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for (rank, trace) in (0_u32..).zip(ranks) {
        for (index, event) in trace.events.iter().enumerate() {
            let (message, is_send) = match &event.operation {
                Operation::Send { message, .. } => (message, true),
                Operation::Receive { message, .. } => (message, false),
                _ => continue,
            };
            let Message { communicator, peer, tag, bytes } = *message;
            let members = &trace.communicators[communicator.0 as usize];
            let is_member = match members.len() == ranks.len() {
                true => (peer as usize) < ranks.len(),
                false => members.contains(&peer),
            };
            if !is_member {
                let cause = format!("rank {peer} is no member of its communicator");
                return Err(contradiction(format!("{}: {cause}", call(ranks, rank, index))));
            }
            let (source, destination) = if is_send { (rank, peer) } else { (peer, rank) };
            let communicator = known.number(rank, communicator);
            let envelope = Envelope { source, destination, communicator, tag };
            let ends = if is_send { &mut sends } else { &mut receives };
            ends.push(End { envelope, event: index, bytes });
        }
    }
    // Ends of one envelope stay in the order of their events.
    sends.sort_unstable();
    receives.sort_unstable();
    let equal = sends.iter().zip(&receives).take_while(|(send, receive)| {
        send.envelope == receive.envelope && send.bytes == receive.bytes
    });
    let equal = equal.count();
    match (sends.get(equal).copied(), receives.get(equal).copied()) {
        (None, None) => Ok(()),
        // The smaller envelope has an end without another.
        (Some(send), Some(receive)) => Err(match send.envelope.cmp(&receive.envelope) {
            Ordering::Less => explain(ranks, Some(send), None),
            Ordering::Equal => explain(ranks, Some(send), Some(receive)),
            Ordering::Greater => explain(ranks, None, Some(receive)),
        }),
        (send, receive) => Err(explain(ranks, send, receive)),
    }
}

/// Error of a send and a receive that do not fit, or of one without the other.
fn explain(ranks: &[RankTrace], send: Option<End>, receive: Option<End>) -> UserError {
    let last = |rank: u32| call(ranks, rank, ranks[rank as usize].events.len().saturating_sub(1));
    contradiction(match (send, receive) {
        (Some(send), Some(receive)) => {
            let how = if send.bytes > receive.bytes { "more" } else { "fewer" };
            format!(
                "{} sends {how} bytes than {} receives",
                call(ranks, send.envelope.source, send.event),
                call(ranks, receive.envelope.destination, receive.event)
            )
        }
        (Some(send), None) => format!(
            "{} is received by no call up to {}",
            call(ranks, send.envelope.source, send.event),
            last(send.envelope.destination)
        ),
        (None, Some(receive)) => format!(
            "{} receives what no call sends up to {}",
            call(ranks, receive.envelope.destination, receive.event),
            last(receive.envelope.source)
        ),
        (None, None) => "a message has neither sender nor receiver".to_owned(),
    })
}
