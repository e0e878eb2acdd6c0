//! Proves: the effect of each rule of the exact torus, and that all arrivals equal those of a
//! reference that is computed flit by flit and tick by tick.

use super::ExactTorus;
use super::exact_torus::channel_specs;
use super::reference::{self, Message};
use crate::models::network::LinkSpec;
use crate::models::network::torus::grid::{BUFFER_FLITS, Grid, TorusSize};
use crate::models::network::torus::modelled::Torus;
use crate::models::network::torus::test_messages::{FLIT_BYTES, SIX, Sending, TICK_NS, flits};
use proptest::prelude::*;
use units::Instant;

fn torus(size: TorusSize, buffer_flits: u32) -> ExactTorus {
    ExactTorus::new(size, LinkSpec::TOCS_1997, buffer_flits).unwrap()
}

/// Returns the arrival of each message in ticks; `sendings` are in order of time. Asks at every
/// instant that the network names, as its driver does, and checks that no arrival is missed.
fn arrivals(torus: &mut ExactTorus, sendings: &[Sending]) -> Vec<u64> {
    let mut ticks = vec![0; sendings.len()];
    let mut take = |torus: &mut ExactTorus, until: Option<u64>| {
        while let Some(next) = torus.next_arrival_from() {
            if until.is_some_and(|until| next.as_ns() > until) {
                break;
            }
            while let Some(parcel) = torus.arrived(next) {
                assert_eq!(ticks[parcel as usize], 0, "parcel {parcel} arrives once");
                ticks[parcel as usize] = next.as_ns() / TICK_NS;
            }
        }
    };
    for (parcel, sending) in sendings.iter().enumerate() {
        take(torus, Some(sending.at_ns));
        let Sending { at_ns, from, to, bytes } = *sending;
        torus.send(Instant::from_ns(at_ns), (from, to), bytes, parcel as u32);
    }
    take(torus, None);
    ticks
}

/// Returns the arrivals by the reference.
fn reference_arrivals(size: TorusSize, buffer_flits: u32, sendings: &[Sending]) -> Vec<u64> {
    let grid = Grid::new(size);
    let messages: Vec<Message> = sendings
        .iter()
        .map(|sending| {
            let route = grid.route(sending.from, sending.to).channels().collect();
            let from_tick = sending.at_ns.div_ceil(TICK_NS);
            Message { from_tick, flits: sending.bytes.div_ceil(FLIT_BYTES).max(1), route }
        })
        .collect();
    reference::arrivals(&channel_specs(&grid, buffer_flits).collect::<Vec<_>>(), &messages)
}

/// Proves that a message without contention costs its flits and the shortest route, between all
/// nodes, and that the modelled torus agrees, for lengths and times that are no multiples of a flit
/// and a tick.
#[test]
fn alone_a_message_costs_its_flits_and_its_hops() {
    for from in 0..36 {
        for to in (0..36).filter(|&to| to != from) {
            for (at_ns, bytes) in [(0, 8192), (7, 8193), (40, 1), (41, 0)] {
                let sending = Sending { at_ns, from, to, bytes };
                let ticks = arrivals(&mut torus(SIX, BUFFER_FLITS), &[sending])[0];
                let hops = u64::from(Grid::new(SIX).route(from, to).hops());
                let flits = bytes.div_ceil(FLIT_BYTES).max(1);
                assert_eq!(ticks, at_ns.div_ceil(TICK_NS) + flits + hops, "{sending:?}");
                let mut modelled = Torus::new(SIX, LinkSpec::TOCS_1997);
                let at = Instant::from_ns(at_ns);
                let modelled = modelled.send(at, (from, to), bytes, || 0).unwrap();
                let later_ns = ticks * TICK_NS - modelled.as_ns();
                assert_eq!(later_ns, 0, "{sending:?}");
            }
        }
    }
}

/// Proves that the packet whose head is first at a link gets it first, although it was sent later.
#[test]
fn a_link_is_given_in_the_order_of_arrival() {
    let near = Sending { at_ns: 20, ..flits(2, 3, 50) };
    let ticks = arrivals(&mut torus(SIX, 8), &[flits(0, 3, 50), near]);
    assert_eq!(ticks, [1 + 50 + 50 + 1, 1 + 50 + 1]);
    // Heads that arrive in one tick go in the order of sending.
    let near = Sending { at_ns: 40, ..near };
    let ticks = arrivals(&mut torus(SIX, 8), &[flits(0, 3, 50), near]);
    assert_eq!(ticks, [50 + 3, 50 + 2 + 50 + 1]);
}

/// Proves that a blocked packet holds the links behind its head unless the buffers take all of it;
/// then its node can send the next. Packets behind it in a buffer wait for it.
#[test]
fn a_blocked_packet_holds_the_links_that_its_buffers_do_not_free() {
    let sendings = [flits(2, 3, 1_000), flits(0, 3, 100), flits(0, 1, 10)];
    let after = |buffer_flits| arrivals(&mut torus(SIX, buffer_flits), &sendings)[2];
    assert_eq!(after(100), 100 + 10 + 1, "all of the second is in the buffer of router 2");
    // The tail of the first leaves router 2 in tick 999. The flits of the second that router 2 does
    // not hold leave router 1 from tick 1,001 on, and then the third, a flit a tick.
    for buffer_flits in [8, 50] {
        let behind = 100 - u64::from(buffer_flits);
        assert_eq!(after(buffer_flits), 1_001 + behind + 10, "{buffer_flits} flits");
    }
}

/// Proves that two channels share a link, a flit each in turn, and that one channel takes all of it
/// when the other has nothing to carry.
#[test]
fn channels_share_a_link() {
    // Over the link from 0 to 1 in channel 1, having closed the ring, and in channel 0.
    let sendings = [flits(5, 1, 100), flits(0, 2, 40)];
    let ticks = arrivals(&mut torus(SIX, 8), &sendings);
    assert_eq!(ticks, [140 + 1, 40 + 39 + 2]);
    // The other direction of the wire is another link.
    assert_eq!(arrivals(&mut torus(SIX, 8), &[flits(0, 1, 9), flits(1, 0, 9)]), [10, 10]);
}

/// Proves that a link into a node carries one packet at a time, without a gap between them.
#[test]
fn a_busy_receiver_takes_the_full_rate_and_no_more() {
    let sendings = [flits(1, 0, 30), flits(5, 0, 30), flits(6, 0, 30), flits(30, 0, 30)];
    assert_eq!(arrivals(&mut torus(SIX, 2), &sendings), [31, 61, 91, 121]);
}

/// Proves that packets that follow one another round a ring do not deadlock, even with the smallest
/// buffers. Without a second virtual channel they would.
#[test]
fn packets_round_a_ring_do_not_deadlock() {
    let ring = TorusSize { width: 6, height: 1 };
    for hops in [2, 3] {
        let circle: Vec<_> = (0..6).map(|from| flits(from, (from + hops) % 6, 100)).collect();
        let ticks = arrivals(&mut torus(ring, 1), &circle);
        assert_eq!(ticks, reference_arrivals(ring, 1, &circle));
    }
}

/// Proves that everything arrives, once, when all nodes send to all others at once.
#[test]
fn all_to_all_arrives() {
    let pairs = (0..36).flat_map(|from| (0..36).map(move |to| (from, to)));
    let pairs = pairs.filter(|(from, to)| from != to);
    let sendings: Vec<_> = pairs.map(|(from, to)| flits(from, to, 20)).collect();
    // A place that becomes free in one tick is taken in the next, so one place is half the rate.
    for (buffer_flits, alone) in [(1, 2 * 20), (8, 20 + 1)] {
        let ticks = arrivals(&mut torus(SIX, buffer_flits), &sendings);
        assert_eq!(ticks.len(), 36 * 35);
        let (first, last) = (ticks.iter().min(), ticks.iter().max());
        assert_eq!(first, Some(&alone), "messages without contention");
        assert!(last >= Some(&(35 * 20)), "no node takes more than a flit a tick: {last:?}");
    }
}

fn cases() -> impl Strategy<Value = (TorusSize, u32, Vec<Sending>)> {
    let size = (1_u32..=6, 1_u32..=6).prop_filter("two nodes", |(w, h)| w * h > 1);
    let buffer_flits = prop_oneof![4 => 1_u32..=9, 1 => Just(10_000)];
    (size, buffer_flits).prop_flat_map(|((width, height), buffer_flits)| {
        let nodes = width * height;
        // Few nodes that send to few others provoke contention.
        let span = 1_u32..=nodes.min(9);
        let sending = (0_u64..3_000, 0..nodes, span, 0_u64..=200);
        let sendings = prop::collection::vec(sending, 1..60).prop_map(move |sendings| {
            let mut sendings: Vec<Sending> = sendings
                .into_iter()
                .map(|(at_ns, from, span, bytes)| {
                    let span = if span == nodes { 1 } else { span };
                    Sending { at_ns, from, to: (from + span) % nodes, bytes }
                })
                .collect();
            sendings.sort_by_key(|sending| sending.at_ns);
            sendings
        });
        (Just(TorusSize { width, height }), Just(buffer_flits), sendings)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Proves that every message arrives at the end of the same tick as in the reference: on all
    /// sizes up to 6 by 6, with buffers of 1 to 9 flits or of any depth, sent at any nanosecond.
    #[test]
    fn arrivals_are_those_of_the_reference((size, buffer_flits, sendings) in cases()) {
        let ticks = arrivals(&mut torus(size, buffer_flits), &sendings);
        prop_assert_eq!(ticks, reference_arrivals(size, buffer_flits, &sendings));
    }
}
