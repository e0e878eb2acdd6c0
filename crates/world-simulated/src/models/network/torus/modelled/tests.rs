//! Proves: the cost of a message without contention, the cost of contention, and the agreement of
//! both with the exact torus.

use super::Torus;
use crate::models::network::LinkSpec;
use crate::models::network::torus::exact::ExactTorus;
use crate::models::network::torus::grid::{BUFFER_FLITS, Grid, TorusSize};
use crate::models::network::torus::test_messages::{SIX, Sending, TICK_NS, flits};
use proptest::prelude::*;
use std::collections::VecDeque;
use units::{Duration, Instant};

/// Returns the arrival of each message in ns; `sendings` are in order of time. Asks at every
/// instant that the network names, as its driver does, and checks that every message arrives once,
/// at such an instant.
fn arrivals_with(size: TorusSize, link: LinkSpec, sendings: &[Sending]) -> Vec<u64> {
    arrivals_in(Torus::new(size, link), sendings)
}

fn arrivals_in(mut torus: Torus, sendings: &[Sending]) -> Vec<u64> {
    let mut arrivals = vec![None; sendings.len()];
    let mut take = |torus: &mut Torus, until: Option<u64>, known: Option<(usize, Instant)>| {
        if let Some((number, at)) = known {
            assert_eq!(arrivals[number].replace(at.as_ns()), None);
        }
        while let Some(next) = torus.next_arrival_from() {
            if until.is_some_and(|until| next.as_ns() > until) {
                break;
            }
            while let Some(parcel) = torus.arrived(next) {
                let before = arrivals[parcel as usize].replace(next.as_ns());
                assert_eq!(before, None, "parcel {parcel} arrives once");
            }
        }
    };
    for (number, sending) in sendings.iter().enumerate() {
        let Sending { at_ns, from, to, bytes } = *sending;
        take(&mut torus, Some(at_ns), None);
        let known = torus.send(Instant::from_ns(at_ns), (from, to), bytes, || number as u32);
        take(&mut torus, Some(at_ns), known.map(|at| (number, at)));
    }
    take(&mut torus, None, None);
    arrivals.into_iter().map(|at| at.expect("everything must arrive")).collect()
}

fn arrivals(size: TorusSize, sendings: &[Sending]) -> Vec<u64> {
    arrivals_with(size, LinkSpec::TOCS_1997, sendings)
}

/// Returns the arrivals by the exact torus.
fn exact_arrivals(size: TorusSize, sendings: &[Sending]) -> Vec<u64> {
    let mut torus = ExactTorus::new(size, LinkSpec::TOCS_1997, BUFFER_FLITS).unwrap();
    let mut arrivals = vec![0; sendings.len()];
    for (number, sending) in sendings.iter().enumerate() {
        let Sending { at_ns, from, to, bytes } = *sending;
        // It stores arrivals with their instants until it is asked.
        torus.send(Instant::from_ns(at_ns), (from, to), bytes, number as u32);
    }
    while let Some(next) = torus.next_arrival_from() {
        while let Some(parcel) = torus.arrived(next) {
            arrivals[parcel as usize] = next.as_ns();
        }
    }
    arrivals
}

/// Returns the hops from node 0 by breadth-first search.
fn hops_by_search(width: u32, height: u32) -> Vec<u32> {
    let mut hops = vec![u32::MAX; (width * height) as usize];
    let mut queue = VecDeque::from([(0, 0)]);
    hops[0] = 0;
    while let Some((x, y)) = queue.pop_front() {
        let next = hops[(y * width + x) as usize] + 1;
        let around = [
            ((x + 1) % width, y),
            ((x + width - 1) % width, y),
            (x, (y + 1) % height),
            (x, (y + height - 1) % height),
        ];
        for (x, y) in around {
            let known = &mut hops[(y * width + x) as usize];
            if *known == u32::MAX {
                *known = next;
                queue.push_back((x, y));
            }
        }
    }
    hops
}

/// Proves that routes are shortest, between all nodes, and that a message without contention costs
/// 20 ns for each 4 bytes begun and 20 ns a hop, from the next multiple of 20 ns on: to the
/// nanosecond its cost in the exact torus.
#[test]
fn alone_a_message_costs_what_it_does_in_the_exact_torus() {
    for (width, height) in [(1, 1), (2, 1), (2, 2), (3, 2), (5, 4), (6, 6), (7, 3)] {
        let hops = hops_by_search(width, height);
        let size = TorusSize { width, height };
        for from in 0..width * height {
            for to in 0..width * height {
                let mut torus = Torus::new(size, LinkSpec::TOCS_1997);
                let mut alone = |at_ns, bytes| {
                    let at = Instant::from_ns(at_ns);
                    torus.send(at, (from, to), bytes, || panic!("it is alone")).unwrap().as_ns()
                };
                if from == to {
                    assert_eq!(alone(7, 8192), 7, "at once");
                    continue;
                }
                let x = (to % width + width - from % width) % width;
                let y = (to / width + height - from / width) % height;
                let hops = hops[(y * width + x) as usize];
                assert_eq!(Grid::new(size).route(from, to).hops(), hops, "{from} to {to}");
                let route_ns = u64::from(hops) * 20;
                assert_eq!(alone(7, 8192), 20 + 40_960 + route_ns, "{from} to {to}");
                assert_eq!(alone(1_000_000, 0), 1_000_000 + 20 + route_ns, "{from} to {to}");
                assert_eq!(alone(2_000_001, 9), 2_000_020 + 60 + route_ns, "{from} to {to}");
                for (at_ns, bytes) in [(0, 8192), (7, 33), (40, 1), (41, 0)] {
                    let sendings = [Sending { at_ns, from, to, bytes }];
                    assert_eq!(arrivals(size, &sendings), exact_arrivals(size, &sendings));
                }
            }
        }
    }
}

/// Proves that without whole flits a message enters when it is sent and takes the time of its
/// bytes, and that packets contend all the same.
#[test]
fn a_hop_need_not_carry_whole_bytes() {
    let with_hop = |hop_ns| LinkSpec { hop: Duration::from_ns(hop_ns), ..LinkSpec::TOCS_1997 };
    for hop_ns in [0, 21] {
        let at_7 = |from, to, bytes| Sending { at_ns: 7, from, to, bytes };
        let sendings = [at_7(0, 2, 1_001), at_7(3, 2, 100), at_7(20, 21, 0)];
        let ticks = arrivals_with(SIX, with_hop(hop_ns), &sendings);
        assert_eq!(ticks[0], 7 + 5_005 + 2 * hop_ns, "{hop_ns} ns");
        assert_eq!(ticks[2], 7 + hop_ns, "{hop_ns} ns");
        assert_eq!(ticks[1], ticks[0] + 500, "the link into node 2 is taken, {hop_ns} ns");
        // Blocked packets all round a ring.
        let circle: Vec<_> = (0..6).map(|from| at_7(from, (from + 2) % 6, 4_000)).collect();
        let ring = TorusSize { width: 6, height: 1 };
        let last = arrivals_with(ring, with_hop(hop_ns), &circle).into_iter().max();
        assert!((40_000..=6 * 20_000 + 500).contains(&last.unwrap()), "{last:?} ns");
    }
}

/// Proves that two packets over one link go one after the other, and that two packets without a
/// common link do not disturb each other.
#[test]
fn a_link_carries_one_packet_at_a_time() {
    let sendings = [flits(0, 2, 2_048), flits(1, 2, 2_048), flits(2, 1, 2_048)];
    let sendings = [&sendings[..], &[flits(20, 21, 2_048)]].concat();
    let expected = [40_960 + 40, 2 * 40_960 + 40, 40_960 + 20, 40_960 + 20];
    // The second uses the link that the first holds until its tail has passed.
    assert_eq!(arrivals(SIX, &sendings), expected);
}

/// Proves that a blocked packet holds the channels behind its head except for what the buffers
/// take, and that a node sends one packet after the other: as in the exact torus.
#[test]
fn a_blocked_packet_holds_the_links_that_its_buffers_do_not_free() {
    for length in [5, 8, 9, 16, 17, 100, 2_000] {
        let at = |at_ns, sending| Sending { at_ns, ..sending };
        let sendings = [
            flits(2, 3, 1_000),
            at(200, flits(0, 3, length)),
            at(400, flits(0, 1, 10)),
            at(600, flits(1, 2, 10)),
        ];
        let arrivals = arrivals(SIX, &sendings);
        assert_eq!(arrivals, exact_arrivals(SIX, &sendings), "{length} flits");
        if length == 100 {
            // The tail of the first leaves router 2 in tick 999, the head of the second follows in
            // tick 1,001; eight flits are there, 92 leave router 1 from then on.
            assert_eq!(arrivals[2], (1_001 + 92 + 10) * TICK_NS);
        }
    }
}

/// Proves that two packets in the two channels of one link need as long as one after the other.
#[test]
fn channels_share_a_link() {
    // Over the link from 0 to 1 in channel 1, having closed the ring, and in channel 0.
    let sendings = [flits(5, 1, 100), Sending { at_ns: 200, ..flits(0, 2, 100) }];
    let ticks = arrivals(SIX, &sendings);
    assert_eq!(ticks[0], (100 + 2) * TICK_NS);
    assert_eq!(ticks[1], (100 + 1 + 100 + 2) * TICK_NS);
}

/// Proves that packets that follow one another round a ring do not deadlock.
#[test]
fn packets_round_a_ring_do_not_deadlock() {
    for (width, height) in [(6, 1), (1, 6), (7, 7), (5, 4)] {
        let size = TorusSize { width, height };
        let nodes = width * height;
        for hops in 2..=3 {
            for length in [3, 100, 5_000] {
                let circle: Vec<_> = (0..2 * nodes)
                    .map(|number| flits(number % nodes, (number + hops) % nodes, length))
                    .collect();
                let last = arrivals(size, &circle).into_iter().max().unwrap();
                assert!(last >= 2 * length * TICK_NS, "each node sends two");
            }
        }
    }
}

/// Messages of a torus, sent within `span_ns`, in order of time.
fn cases(
    size: impl Strategy<Value = (u32, u32)>,
    count_max: usize,
    span_ns: u64,
) -> impl Strategy<Value = (TorusSize, Vec<Sending>)> {
    let size = size.prop_filter("two nodes", |(w, h)| w * h > 1);
    size.prop_flat_map(move |(width, height)| {
        let nodes = width * height;
        let bytes = prop_oneof![0_u64..=200, 0_u64..=9_000];
        let sending = (0..span_ns, 0..nodes, 1..nodes, bytes);
        let sendings = prop::collection::vec(sending, 1..=count_max).prop_map(move |sendings| {
            let sending = |(at_ns, from, span, bytes)| Sending {
                at_ns,
                from,
                to: (from + span) % nodes,
                bytes,
            };
            let mut sendings: Vec<Sending> = sendings.into_iter().map(sending).collect();
            sendings.sort_by_key(|sending| sending.at_ns);
            sendings
        });
        (Just(TorusSize { width, height }), sendings)
    })
}

fn channels_of(size: TorusSize, sending: &Sending) -> Vec<u32> {
    Grid::new(size).route(sending.from, sending.to).channels().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Proves that two contending packets arrive as in the exact torus, for all common links,
    /// unless they use both channels of a link.
    #[test]
    fn two_contending_packets_arrive_as_in_the_exact_torus(
        (size, mut sendings) in cases((1..=5_u32, 1..=5_u32), 2, 50_000),
    ) {
        // A head that is under way when the second is sent has reserved its route already.
        let head_ns = u64::from(size.width / 2 + size.height / 2 + 1) * TICK_NS;
        sendings.last_mut().unwrap().at_ns += head_ns;
        let routes: Vec<_> = sendings.iter().map(|sending| channels_of(size, sending)).collect();
        let shares = |channel: &u32| routes.iter().any(|route| route.contains(&(channel ^ 1)));
        prop_assume!(!routes[0].iter().any(shares));
        prop_assert_eq!(arrivals(size, &sendings), exact_arrivals(size, &sendings));
    }

    /// Proves that every message arrives, not earlier than without contention, and that the link
    /// into a node carries one message at a time.
    #[test]
    fn no_message_arrives_earlier_than_without_contention((size, sendings) in cases(
        prop_oneof![3 => (1..=7_u32, 1..=7_u32), 1 => (1..=3_u32, 32..=40_u32)],
        80,
        60_000,
    )) {
        let arrivals = arrivals(size, &sendings);
        let mut into_nodes = vec![Vec::new(); (size.width * size.height) as usize];
        for (sending, &at_ns) in sendings.iter().zip(&arrivals) {
            let alone = self::arrivals(size, &[*sending])[0];
            prop_assert!(at_ns >= alone, "{:?} at {}, alone at {}", sending, at_ns, alone);
            let busy_ns = sending.bytes.div_ceil(4).max(1) * TICK_NS;
            into_nodes[sending.to as usize].push((at_ns - busy_ns, at_ns));
        }
        for times in &mut into_nodes {
            times.sort_unstable();
            prop_assert!(times.windows(2).all(|two| two[0].1 <= two[1].0), "{:?}", times);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Proves that heads which skip through free channels arrive at the same instants as heads
    /// which move hop by hop. (In these tests the release times are also compared with a full
    /// evaluation of all starts.)
    #[test]
    fn heads_that_skip_free_channels_arrive_as_those_that_move_hop_by_hop(
        (size, sendings) in cases((1..=4_u32, 33..=40_u32), 150, 30_000),
    ) {
        let mut walking = Torus::new(size, LinkSpec::TOCS_1997);
        walking.moves_hop_by_hop = true;
        prop_assert_eq!(arrivals(size, &sendings), arrivals_in(walking, &sendings));
    }
}

/// Proves that under heavy random traffic messages need as long as in the exact torus, to 3 %, and
/// all of it ends at the same time to 3 %; also where routes are so long that channels are granted
/// in the order of sending. (Single messages differ by more: the order of heads decides.)
#[test]
fn heavy_traffic_takes_as_long_as_in_the_exact_torus() {
    for (size, messages) in [(SIX, 400), (TorusSize { width: 36, height: 2 }, 800)] {
        let [each, all] = modelled_over_exact(size, messages);
        let is_near = |ratio: f64| (0.97..=1.03).contains(&ratio);
        assert!(is_near(each) && is_near(all), "{size:?}: {each:.4}, {all:.4}");
    }
}

/// Returns the times of random messages in the modelled torus over those in the exact one: the sum
/// of all, and the end of the last.
fn modelled_over_exact(size: TorusSize, messages: u32) -> [f64; 2] {
    let nodes = u64::from(size.width * size.height);
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut modelled, mut exact) = ([0, 0], [0, 0]);
    for _ in 0..20 {
        let mut sendings: Vec<Sending> = (0..messages)
            .map(|_| {
                let (from, span) = (random(nodes), random(nodes - 1) + 1);
                let bytes = if random(2) == 0 { random(64) } else { 8192 };
                let (from, to) = (from as u32, ((from + span) % nodes) as u32);
                Sending { at_ns: random(500_000), from, to, bytes }
            })
            .collect();
        sendings.sort_by_key(|sending| sending.at_ns);
        let sums = |arrivals: Vec<u64>, sums: &mut [u64; 2]| {
            sums[0] += arrivals.iter().zip(&sendings).map(|(at, s)| at - s.at_ns).sum::<u64>();
            sums[1] += arrivals.iter().max().unwrap();
        };
        sums(arrivals(size, &sendings), &mut modelled);
        sums(exact_arrivals(size, &sendings), &mut exact);
    }
    [0, 1].map(|which| modelled[which] as f64 / exact[which] as f64)
}
