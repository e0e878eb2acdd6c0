//! The contract of networks, as a test that any kind can be put to.

use super::built_network::{BuiltNetwork, EventDrivenNetwork, SwitchedNetwork};
use super::links::LinkSpec;
use super::spec::{NetworkKind, NetworkSpec};
use std::collections::BTreeSet;
use units::{Instant, SplitMix64};

/// Numbers of nodes of the tested networks. A kind may refuse some of them.
const NODES: [u32; 4] = [1, 2, 7, 64];

/// Number of messages over each network.
const MESSAGES: u32 = 400;

/// Largest number of instants at which the test asks for arrivals.
const ROUNDS_MAX: u32 = 1_000_000;

/// Tests a kind of networks with some hundred messages over networks of a few sizes. Returns the
/// first violation of the contract of [`SwitchedNetwork`] or [`EventDrivenNetwork`].
///
/// # Errors
/// The violation, as a clause about the network.
pub fn check(kind: &NetworkKind) -> Result<(), String> {
    let spec = NetworkSpec { kind: kind.clone(), link: LinkSpec::TOCS_1997 };
    for nodes in NODES {
        let Ok(network) = spec.build(nodes) else { continue };
        let checked = match network {
            BuiltNetwork::Switched(mut network) => check_switched(&mut *network, nodes),
            BuiltNetwork::EventDriven(mut network) => check_event_driven(&mut *network, nodes),
        };
        checked.map_err(|cause| format!("{cause}, with {nodes} nodes"))?;
    }
    Ok(())
}

/// Ends and bytes of message `number`, and the instant of its sending.
fn message(number: u32, nodes: u32) -> (Instant, (u32, u32), u64) {
    let random = |salt: u64| SplitMix64::new(u64::from(number) << 8 | salt).next_u64();
    let node = |salt| (random(salt) % u64::from(nodes)) as u32;
    let now = Instant::from_ns(u64::from(number) * 1_000);
    (now, (node(1), node(2)), random(3) % 10_000)
}

fn check_switched(network: &mut dyn SwitchedNetwork, nodes: u32) -> Result<(), String> {
    for number in 0..MESSAGES {
        let (now, (from, to), bytes) = message(number, nodes);
        check_arrival(now, (from, to), network.deliver(now, from, to, bytes))?;
    }
    Ok(())
}

fn check_event_driven(network: &mut dyn EventDrivenNetwork, nodes: u32) -> Result<(), String> {
    let mut under_way = BTreeSet::new();
    for number in 0..MESSAGES {
        let (now, ends, bytes) = message(number, nodes);
        take_arrivals(network, now, &mut under_way)?;
        let mut named = 0;
        let mut parcel = || {
            named += 1;
            number
        };
        match network.send(now, ends, bytes, &mut parcel) {
            Some(arrival) if named == 0 => check_arrival(now, ends, arrival)?,
            None if named == 1 => _ = under_way.insert(number),
            _ => return Err(format!("it names {named} parcels for one message")),
        }
        if network.next_arrival_from().is_none() && !under_way.is_empty() {
            return Err("it expects no arrival of a message under way".to_owned());
        }
    }
    let mut now = message(MESSAGES, nodes).0;
    for _ in 0..ROUNDS_MAX {
        take_arrivals(network, now, &mut under_way)?;
        match network.next_arrival_from() {
            Some(next) => now = now.max(next),
            None if under_way.is_empty() => return Ok(()),
            None => return Err(format!("{} messages never arrive", under_way.len())),
        }
    }
    Err(format!("{} messages do not arrive", under_way.len()))
}

/// Removes the parcels that have arrived by `now`.
fn take_arrivals(
    network: &mut dyn EventDrivenNetwork,
    now: Instant,
    under_way: &mut BTreeSet<u32>,
) -> Result<(), String> {
    while let Some(parcel) = network.arrived(now) {
        if !under_way.remove(&parcel) {
            return Err(format!("parcel {parcel} arrives that is not under way"));
        }
    }
    Ok(())
}

fn check_arrival(now: Instant, (from, to): (u32, u32), arrival: Instant) -> Result<(), String> {
    if arrival < now {
        return Err("a message arrives before it was sent".to_owned());
    }
    if from == to && arrival > now {
        return Err("a message of a node to itself takes time".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Proves: networks that lose a message, or deliver one before it was sent, are refused.
    use super::*;
    use crate::models::network::{NetworkShape, UnfitNetwork};

    /// Wrong network: event-driven, never delivers; or switched, delivers at the beginning of time.
    #[derive(Clone, Copy, Debug)]
    struct Wrong {
        is_switched: bool,
    }

    impl NetworkShape for Wrong {
        fn build(&self, _link: LinkSpec, _nodes: u32) -> Result<BuiltNetwork, UnfitNetwork> {
            Ok(match self.is_switched {
                true => BuiltNetwork::Switched(Box::new(*self)),
                false => BuiltNetwork::EventDriven(Box::new(*self)),
            })
        }
    }

    impl SwitchedNetwork for Wrong {
        fn deliver(&mut self, _: Instant, _: u32, _: u32, _: u64) -> Instant {
            Instant::START
        }
    }

    impl EventDrivenNetwork for Wrong {
        fn send(
            &mut self,
            _: Instant,
            _: (u32, u32),
            _: u64,
            parcel: &mut dyn FnMut() -> u32,
        ) -> Option<Instant> {
            parcel();
            None
        }
        fn arrived(&mut self, _: Instant) -> Option<u32> {
            None
        }
        fn next_arrival_from(&self) -> Option<Instant> {
            None
        }
    }

    #[test]
    fn wrong_networks_are_refused() {
        for (is_switched, cause) in [(true, "before it was sent"), (false, "expects no arrival")] {
            let refused = check(&NetworkKind::of(Wrong { is_switched })).expect_err(cause);
            assert!(refused.contains(cause), "{refused}");
        }
    }
}
