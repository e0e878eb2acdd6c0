//! Release times: the instants at which a packet leaves the channels of its route, by the formula
//! of `contention.rs`.

use smallvec::SmallVec;
use std::ops::Range;

/// Places of channels with times in ns; few packets have more than four.
pub(super) type Starts = SmallVec<[(u32, u64); 4]>;

/// Parameters of the release times of one packet.
pub(super) struct ReleaseTimes {
    busy_ns: u64,
    hop_ns: u64,
    /// Time by which a flit waits less in a buffer, for each channel of distance from the one where
    /// the head is held up.
    held_up_ns: u64,
    /// Number of channels ahead of a channel in which the packet still fills buffers: only within
    /// this distance does a start matter there.
    reach: u32,
}

/// Release times of consecutive channels: the later of two times, each of which grows by a step
/// from channel to channel.
pub(super) struct ReleaseSequence {
    flows_ns: u64,
    flow_step_ns: u64,
    stopped_ns: u64,
    stopped_step_ns: u64,
}

impl ReleaseSequence {
    fn once(at_ns: u64) -> Self {
        Self { flows_ns: at_ns, flow_step_ns: 0, stopped_ns: 0, stopped_step_ns: 0 }
    }

    /// Returns the release time of the next channel. (The sums do not wrap: `ReleaseTimes` has
    /// computed them for the last channel.)
    #[inline(always)]
    pub(super) fn next_ns(&mut self) -> u64 {
        let at_ns = self.flows_ns.max(self.stopped_ns);
        self.flows_ns = self.flows_ns.wrapping_add(self.flow_step_ns);
        self.stopped_ns = self.stopped_ns.wrapping_add(self.stopped_step_ns);
        at_ns
    }
}

impl ReleaseTimes {
    /// Creates the parameters of a packet for which a link needs `busy_ns` and that fills `fills`
    /// buffers. A blocked flit waits `held_up_ns` less in each buffer farther from the head.
    pub(super) fn of(busy_ns: u64, fills: u32, hop_ns: u64, held_up_ns: u64) -> Self {
        Self { busy_ns, hop_ns, held_up_ns, reach: fills.saturating_sub(1) }
    }

    /// Calls `visit` with the places from `first` up to `end`, excluded, and the release times of
    /// their channels. Returns the instant at which the tail is in the channel at `end`, in ns. The
    /// packet began to stream into some channels at `starts`, in the order of channels. Starts up
    /// to `end` are merged into one with the same effect on later channels.
    ///
    /// A channel is released to another packet when the tail is in it, and in the next one except
    /// for a hop: the other head would only wait behind this tail in the buffer. The link out of a
    /// node has no buffer, and is free when the tail is in the next channel.
    ///
    /// From one channel to the next, all times from starts behind grow by a hop, and all times from
    /// starts ahead move alike. So both maxima are recomputed only where a start comes to lie
    /// behind, or within reach.
    #[inline]
    pub(super) fn between(
        &self,
        first: u32,
        end: u32,
        starts: &mut Starts,
        mut visit: impl FnMut(Range<u32>, ReleaseSequence),
    ) -> u64 {
        let Self { busy_ns, hop_ns, held_up_ns, reach } = *self;
        // Latest time of the tail by the starts behind, and its growth per channel; none at first.
        let (mut flows_ns, mut flow_step_ns) = (0, 0);
        let (mut place, mut tail_before_ns) = (first, 0);
        let mut behind = 0;
        loop {
            while let Some(&(channel, start_ns)) = starts.get(behind)
                && channel <= place
            {
                let told_ns = start_ns + busy_ns + u64::from(place - channel) * hop_ns;
                (flows_ns, flow_step_ns) = (told_ns.max(flows_ns), hop_ns);
                behind += 1;
            }
            // Latest time of the tail by the starts ahead.
            let (mut stopped_ns, mut stopped_step_ns) = (0, 0);
            let mut until =
                starts.get(behind).map_or(end + 1, |&(channel, _)| channel.min(end + 1));
            for &(channel, start_ns) in &starts[behind..] {
                if channel - place > reach {
                    until = until.min(channel - reach);
                    break;
                }
                let told_ns = start_ns + busy_ns - u64::from(channel - place) * held_up_ns;
                (stopped_ns, stopped_step_ns) = (told_ns.max(stopped_ns), held_up_ns);
            }

            let tail_ns = flows_ns.max(stopped_ns);
            if place == 1 && first == 0 {
                visit(0..1, ReleaseSequence::once(tail_ns));
            } else if place > first {
                let leaves_at_ns = tail_before_ns.max(tail_ns - hop_ns);
                visit(place - 1..place, ReleaseSequence::once(leaves_at_ns));
            }
            if place == 0 {
                until = 1;
            }
            let last = until - 1;
            if place < last {
                // Where the next channel is like this one, the tail is in it a step later.
                let ahead_ns = stopped_step_ns.saturating_sub(hop_ns);
                let stopped_ns = stopped_ns + ahead_ns;
                visit(
                    place..last,
                    ReleaseSequence { flows_ns, flow_step_ns, stopped_ns, stopped_step_ns },
                );
            }
            flows_ns += u64::from(last - place) * flow_step_ns;
            stopped_ns += u64::from(last - place) * stopped_step_ns;
            tail_before_ns = flows_ns.max(stopped_ns);
            if last == end {
                if behind > 0 {
                    starts.drain(1..behind);
                    starts[0] = (end, flows_ns - busy_ns);
                }
                return tail_before_ns;
            }
            flows_ns += flow_step_ns;
            place = until;
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: release times follow the formula, evaluated anew for each channel, for any division
    //! of the route.
    use super::*;
    use proptest::prelude::*;

    const HOP_NS: u64 = 20;
    const BUFFER_NS: u64 = 8 * HOP_NS;

    /// Returns the instant at which the tail of a packet is in a channel, in ns.
    fn tail_ns(busy_ns: u64, starts: &[(u32, u64)], place: u32) -> u64 {
        let releases = starts.iter().map(|&(channel, start_ns)| {
            if channel <= place {
                return start_ns + u64::from(place - channel) * HOP_NS + busy_ns;
            }
            let ahead = u64::from(channel - place);
            if ahead * BUFFER_NS >= busy_ns {
                return 0;
            }
            start_ns + busy_ns - ahead * (BUFFER_NS - HOP_NS)
        });
        releases.max().expect("a packet must have begun to stream")
    }

    fn leaves_at_ns(busy_ns: u64, starts: &[(u32, u64)], place: u32) -> u64 {
        let next_ns = tail_ns(busy_ns, starts, place + 1);
        match place {
            0 => next_ns,
            _ => tail_ns(busy_ns, starts, place).max(next_ns - HOP_NS),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn channels_are_left_when_the_formula_says(
            flits in 1_u64..200,
            waits in prop::collection::vec((1_u32..40, 0_u64..200), 0..6),
            cuts in prop::collection::vec(0_u32..40, 0..4),
        ) {
            let busy_ns = flits * HOP_NS;
            let mut starts = Starts::from_slice(&[(1, 0)]);
            starts.extend(waits.into_iter().map(|(channel, ticks)| (channel, ticks * HOP_NS)));
            starts.sort_unstable();
            let all = starts.clone();
            let fills = u32::try_from(busy_ns.div_ceil(BUFFER_NS)).unwrap();
            let releases = ReleaseTimes::of(busy_ns, fills, HOP_NS, BUFFER_NS - HOP_NS);
            let mut ends = cuts;
            ends.push(40);
            ends.sort_unstable();
            let mut first = 0;
            for end in ends {
                let mut next = first;
                let tail = releases.between(first, end, &mut starts, |places, mut leaves| {
                    assert_eq!(places.start, next, "all places come, in order");
                    next = places.end;
                    for place in places {
                        assert_eq!(leaves.next_ns(), leaves_at_ns(busy_ns, &all, place), "{place}");
                    }
                });
                prop_assert_eq!(next, end);
                prop_assert_eq!(tail, tail_ns(busy_ns, &all, end));
                first = end;
            }
            prop_assert_eq!(starts.len(), 1, "what is behind becomes one");
        }
    }
}
