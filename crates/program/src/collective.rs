//! Messages of the collective operations of MPI, by the algorithms that MPI libraries use for them.
//!
//! R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of Collective Communication Operations in
//! MPICH", IJHPCA 19 (2005), describes all of them, and where MPICH changes from one to another.
//! Members contribute equal amounts: what others contribute to a gather is taken to be what this
//! member does.

use trace::Collective;

/// One step of a member in a collective operation. Its messages travel at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Member to send to, and the bytes of the message.
    pub send: Option<(u32, u64)>,
    /// Member to receive from.
    pub receive: Option<u32>,
}

/// Bytes up to which a broadcast sends everything along a tree; and the least number of members for
/// which a longer one is scattered first.
const BROADCAST_TREE_BYTES_MAX: u64 = 12 << 10;
const BROADCAST_SCATTER_MEMBERS_MIN: u32 = 8;

/// Bytes up to which each member of an all-reduce sends everything in each step.
const ALL_REDUCE_DOUBLING_BYTES_MAX: u64 = 2 << 10;

/// Bytes of all members up to which an all-gather doubles what is known in each step.
const ALL_GATHER_DOUBLING_BYTES_MAX: u64 = 80 << 10;

/// Returns the steps of member `rank` of `size`; `bytes` and `root` are those of
/// [`trace::Operation::Collective`], with the root as a member. `largest` is the largest `bytes` of
/// all members, by which all of them choose the same algorithm.
pub fn steps_of(
    kind: Collective,
    (rank, size): (u32, u32),
    root: u32,
    (bytes, largest): (u64, u64),
) -> Vec<Step> {
    let mut member = Member { rank, size, largest, steps: Vec::new() };
    if size < 2 {
        return member.steps;
    }
    match kind {
        Collective::Barrier => member.dissemination(|_| 0),
        Collective::Agree => member.all_reduce(bytes),
        Collective::Broadcast => member.broadcast(root, bytes),
        Collective::Reduce => member.tree_up(root, |_| bytes),
        Collective::AllReduce => member.all_reduce(bytes),
        Collective::Gather => {
            member.tree_up(root, |members| bytes.saturating_mul(u64::from(members)))
        }
        Collective::Scatter => {
            member.tree_down(root, |members| bytes.saturating_mul(u64::from(members)))
        }
        Collective::AllGather => member.all_gather(bytes),
        Collective::AllToAll => member.pairwise(bytes / u64::from(size)),
        Collective::Scan => member.scan(bytes),
        Collective::ReduceScatter => member.pairwise(bytes / u64::from(size)),
    }
    member.steps
}

struct Member {
    rank: u32,
    size: u32,
    largest: u64,
    steps: Vec<Step>,
}

impl Member {
    fn exchange(&mut self, to: u32, bytes: u64, from: u32) {
        self.steps.push(Step { send: Some((to, bytes)), receive: Some(from) });
    }

    fn send(&mut self, to: u32, bytes: u64) {
        self.steps.push(Step { send: Some((to, bytes)), receive: None });
    }

    fn receive(&mut self, from: u32) {
        self.steps.push(Step { send: None, receive: Some(from) });
    }

    /// Member that is `distance` behind this one, in the circle of members.
    fn behind(&self, distance: u32) -> u32 {
        (self.rank + distance % self.size) % self.size
    }

    /// Member that is `distance` before this one.
    fn before(&self, distance: u32) -> u32 {
        (self.rank + self.size - distance % self.size) % self.size
    }

    /// Each step reaches twice as far. `bytes` is told the number of members known so far.
    fn dissemination(&mut self, bytes: impl Fn(u32) -> u64) {
        let mut distance = 1;
        while distance < self.size {
            let known = distance.min(self.size - distance);
            self.exchange(self.behind(distance), bytes(known), self.before(distance));
            distance *= 2;
        }
    }

    /// A binomial tree from the root; `bytes` is told the members below the receiver, with itself.
    fn tree_down(&mut self, root: u32, bytes: impl Fn(u32) -> u64) {
        let place = (self.rank + self.size - root) % self.size;
        let mut span = 1;
        while span < self.size && place & span == 0 {
            span *= 2;
        }
        if place != 0 {
            self.receive((place - span + root) % self.size);
        }
        while span > 1 {
            span /= 2;
            if place + span < self.size {
                let members = span.min(self.size - place - span);
                self.send((place + span + root) % self.size, bytes(members));
            }
        }
    }

    /// The same tree towards the root; `bytes` is told the members below the sender, with itself.
    fn tree_up(&mut self, root: u32, bytes: impl Fn(u32) -> u64) {
        let place = (self.rank + self.size - root) % self.size;
        let mut span = 1;
        while span < self.size && place & span == 0 {
            if place + span < self.size {
                self.receive((place + span + root) % self.size);
            }
            span *= 2;
        }
        if place != 0 {
            let members = span.min(self.size - place);
            self.send((place - span + root) % self.size, bytes(members));
        }
    }

    fn broadcast(&mut self, root: u32, bytes: u64) {
        if self.largest <= BROADCAST_TREE_BYTES_MAX || self.size < BROADCAST_SCATTER_MEMBERS_MIN {
            return self.tree_down(root, |_| bytes);
        }
        let share = bytes.div_ceil(u64::from(self.size));
        self.tree_down(root, |members| share.saturating_mul(u64::from(members)));
        self.ring(share);
    }

    /// Each member passes on what it received in the step before.
    fn ring(&mut self, bytes: u64) {
        for _ in 1..self.size {
            self.exchange(self.behind(1), bytes, self.before(1));
        }
    }

    fn all_gather(&mut self, bytes: u64) {
        if self.largest.saturating_mul(u64::from(self.size)) <= ALL_GATHER_DOUBLING_BYTES_MAX {
            self.dissemination(|known| bytes.saturating_mul(u64::from(known)));
        } else {
            self.ring(bytes);
        }
    }

    /// Each member exchanges with each other.
    fn pairwise(&mut self, bytes: u64) {
        for distance in 1..self.size {
            self.exchange(self.behind(distance), bytes, self.before(distance));
        }
    }

    fn scan(&mut self, bytes: u64) {
        let mut distance = 1;
        while distance < self.size {
            let to = (self.rank + distance < self.size).then(|| (self.rank + distance, bytes));
            let from = self.rank.checked_sub(distance);
            if to.is_some() || from.is_some() {
                self.steps.push(Step { send: to, receive: from });
            }
            distance *= 2;
        }
    }

    /// Recursive doubling for short data; a reduce-scatter by recursive halving and an all-gather
    /// by recursive doubling for long data (Rabenseifner). Members beyond a power of two give their
    /// data to a neighbour, and get the result from it.
    fn all_reduce(&mut self, bytes: u64) {
        let power = 1 << self.size.ilog2();
        let rest = self.size - power;
        let is_paired = self.rank < 2 * rest;
        if is_paired && self.rank.is_multiple_of(2) {
            self.send(self.rank + 1, bytes);
            return self.receive(self.rank + 1);
        }
        if is_paired {
            self.receive(self.rank - 1);
        }
        let place = if is_paired { self.rank / 2 } else { self.rank - rest };
        let partner = |distance: u32| {
            let other = place ^ distance;
            if other < rest { other * 2 + 1 } else { other + rest }
        };
        let distances = std::iter::successors(Some(1), |distance| Some(distance * 2));
        let distances: Vec<u32> = distances.take_while(|distance| *distance < power).collect();
        if self.largest <= ALL_REDUCE_DOUBLING_BYTES_MAX {
            for distance in distances {
                self.exchange(partner(distance), bytes, partner(distance));
            }
        } else {
            let share = |distance: u32| bytes / u64::from(power) * u64::from(distance);
            for &distance in distances.iter().rev() {
                self.exchange(partner(distance), share(distance), partner(distance));
            }
            for &distance in &distances {
                self.exchange(partner(distance), share(distance), partner(distance));
            }
        }
        if is_paired {
            self.send(self.rank - 1, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: for 1 to 33 members and each root, every message that is sent is received, no step
    //! waits for ever, and knowledge reaches those whom the operation promises it.
    use super::*;
    use std::collections::{BTreeMap, BTreeSet, VecDeque};

    const ALL: [Collective; 11] = [
        Collective::Barrier,
        Collective::Broadcast,
        Collective::Reduce,
        Collective::AllReduce,
        Collective::Gather,
        Collective::Scatter,
        Collective::AllGather,
        Collective::AllToAll,
        Collective::Scan,
        Collective::ReduceScatter,
        Collective::Agree,
    ];

    /// Unequal contributions: that of a member, and the largest.
    fn share(rank: u32, bytes: u64) -> (u64, u64) {
        (if rank == 0 { bytes } else { bytes / 3 }, bytes)
    }

    /// Carries out the steps of all members; returns whose data each member knows in the end.
    fn carry_out(kind: Collective, size: u32, root: u32, bytes: u64) -> Vec<BTreeSet<u32>> {
        let steps: Vec<Vec<Step>> =
            (0..size).map(|rank| steps_of(kind, (rank, size), root, share(rank, bytes))).collect();
        let mut known: Vec<BTreeSet<u32>> = (0..size).map(|rank| BTreeSet::from([rank])).collect();
        let mut travelling: BTreeMap<(u32, u32), VecDeque<BTreeSet<u32>>> = BTreeMap::new();
        let mut next = vec![0; size as usize];
        let mut has_sent = vec![false; size as usize];
        loop {
            let mut moved = false;
            for rank in 0..size {
                let at = rank as usize;
                while let Some(step) = steps[at].get(next[at]) {
                    if let (Some((to, _)), false) = (step.send, has_sent[at]) {
                        let line = travelling.entry((rank, to)).or_default();
                        line.push_back(known[at].clone());
                        has_sent[at] = true;
                        moved = true;
                    }
                    if let Some(from) = step.receive {
                        let line = travelling.entry((from, rank)).or_default();
                        let Some(news) = line.pop_front() else { break };
                        known[at].extend(news);
                    }
                    (next[at], has_sent[at], moved) = (next[at] + 1, false, true);
                }
            }
            if !moved {
                break;
            }
        }
        for (rank, steps) in steps.iter().enumerate() {
            assert_eq!(next[rank], steps.len(), "{kind:?} of {size}: {rank} waits for ever");
        }
        assert!(travelling.values().all(VecDeque::is_empty), "{kind:?} of {size}: not received");
        known
    }

    #[test]
    fn every_operation_ends_and_does_what_it_promises() {
        for kind in ALL {
            for size in 1..=33 {
                for root in [0, size / 2, size - 1] {
                    for bytes in [0, 100, 1 << 20] {
                        let known = carry_out(kind, size, root, bytes);
                        let all: BTreeSet<u32> = (0..size).collect();
                        for (rank, known) in (0..).zip(known) {
                            let promised = match kind {
                                Collective::Broadcast | Collective::Scatter => {
                                    BTreeSet::from([root])
                                }
                                Collective::Reduce | Collective::Gather if rank != root => continue,
                                Collective::Scan => (0..=rank).collect(),
                                _ => all.clone(),
                            };
                            assert!(
                                known.is_superset(&promised),
                                "{kind:?} of {size} from {root}: {rank} knows {known:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_gather_moves_each_contribution_once_on_each_level() {
        let sent = |kind, size| -> u64 {
            let of = |rank| steps_of(kind, (rank, size), 0, (8, 8));
            (0..size).flat_map(of).filter_map(|step| step.send).map(|(_, bytes)| bytes).sum()
        };
        // 8 members: 4 send their own, 2 those of two, 1 those of four.
        assert_eq!(sent(Collective::Gather, 8), 8 * (4 + 2 * 2 + 4));
        assert_eq!(sent(Collective::Scatter, 8), sent(Collective::Gather, 8));
        assert_eq!(sent(Collective::AllGather, 8), 8 * 8 * 7);
        assert_eq!(sent(Collective::Reduce, 8), 8 * 7);
    }
}
