//! Cores of one computer that several nodes share: generalised processor sharing (Parekh and
//! Gallager, IEEE/ACM Transactions on Networking 1(3), 1993).
//!
//! ```text
//! n runnable nodes on c cores: each advances at the rate min(1, c/n)
//! node 0   ████████ computation ████████████████
//! node 1       ▒▒ message ▒▒       its own computation stands still meanwhile
//! ```
//!
//! Invariants:
//!
//! - A node has work of two kinds. *Urgent* work (messages, requests) is accepted with its end: its
//!   length is stretched by the load at that instant. It is short.
//! - A *computation* is long. Its progress follows the load exactly, and urgent work of its node
//!   interrupts it.
//! - A node that *polls* waits for something, and uses a core meanwhile.
//! - A node is runnable while it has work of either kind, or polls.
//! - Computations of one node run one after the other.

use std::collections::VecDeque;
use units::{Duration, Instant};

/// Parts of a nanosecond in which progress is counted.
const PARTS: u128 = 1 << 32;

/// Progress that is lost to rounding at most, in parts: one part for each change of the load.
const ROUNDING: u128 = 1 << 20;

/// Shared cores, and the work of the nodes on them.
#[derive(Clone, Debug)]
pub struct Host {
    cores: u64,
    /// Instant that all progress is counted to.
    now: Instant,
    members: Vec<Member>,
    next_computation: u64,
}

/// Number of a computation, of one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ComputationId(u64);

/// Work of one node.
#[derive(Clone, Debug, Default)]
struct Member {
    /// End of its urgent work.
    urgent_until: Option<Instant>,
    /// Computations; the first one runs.
    computations: VecDeque<Computation>,
    /// Waits in which it polls.
    polls: u32,
}

#[derive(Clone, Copy, Debug)]
struct Computation {
    id: ComputationId,
    /// Remaining work, in parts of a nanosecond on a core of its own.
    left: u128,
}

impl Member {
    fn is_urgent(&self, now: Instant) -> bool {
        self.urgent_until.is_some_and(|until| until > now)
    }

    fn is_runnable(&self, now: Instant) -> bool {
        self.is_urgent(now) || !self.computations.is_empty() || self.polls > 0
    }
}

impl Host {
    /// Creates an idle host with this number of cores, at least one, for this number of nodes.
    pub fn new(cores: u32, members: usize) -> Self {
        assert!(cores > 0, "a host must have a core");
        Self {
            cores: cores.into(),
            now: Instant::START,
            members: vec![Member::default(); members],
            next_computation: 0,
        }
    }

    /// Accepts urgent work of a node at `now`. Returns the time that it takes with the load at this
    /// instant, at least `length`.
    pub fn stretch(&mut self, member: usize, now: Instant, length: Duration) -> Duration {
        self.advance(now);
        let others = self.members.iter().enumerate();
        let others = others.filter(|(index, it)| *index != member && it.is_runnable(now)).count();
        let runnable = others as u64 + 1;
        let stretched = match runnable > self.cores {
            true => (u128::from(length.as_ns()) * u128::from(runnable)).div_ceil(self.cores.into()),
            false => length.as_ns().into(),
        };
        Duration::from_ns(u64::try_from(stretched).expect("work must end within 584 years"))
    }

    /// Notes that the urgent work of a node, accepted at `now`, ends at `until`.
    pub fn note_urgent(&mut self, member: usize, until: Instant) {
        self.members[member].urgent_until = Some(until);
    }

    /// Begins a computation of a node, which takes `length` on a core of its own.
    pub fn begin(&mut self, member: usize, now: Instant, length: Duration) -> ComputationId {
        self.advance(now);
        let id = ComputationId(self.next_computation);
        self.next_computation += 1;
        let left = u128::from(length.as_ns()) * PARTS;
        self.members[member].computations.push_back(Computation { id, left });
        id
    }

    /// Drops a computation, if it has not ended.
    pub fn cancel(&mut self, member: usize, now: Instant, id: ComputationId) {
        self.advance(now);
        self.members[member].computations.retain(|computation| computation.id != id);
    }

    /// Begins a wait of a node in which it polls.
    pub fn begin_polling(&mut self, member: usize, now: Instant) {
        self.advance(now);
        self.members[member].polls += 1;
    }

    /// Ends such a wait.
    pub fn end_polling(&mut self, member: usize, now: Instant) {
        self.advance(now);
        self.members[member].polls -= 1;
    }

    /// Returns the end of a computation if no further work comes; nothing if it has ended.
    pub fn end_of(&mut self, member: usize, now: Instant, id: ComputationId) -> Option<Instant> {
        self.advance(now);
        if !self.has(member, id) {
            return None;
        }
        let mut future = self.clone();
        while future.has(member, id) {
            future.step(None);
        }
        Some(future.now)
    }

    fn has(&self, member: usize, id: ComputationId) -> bool {
        self.members[member].computations.iter().any(|computation| computation.id == id)
    }

    /// Counts all progress up to `now`.
    fn advance(&mut self, now: Instant) {
        while self.now < now {
            self.step(Some(now));
        }
    }

    /// Advances to the next change of the load, but not beyond `limit`.
    fn step(&mut self, limit: Option<Instant>) {
        let now = self.now;
        let runnable = self.members.iter().filter(|member| member.is_runnable(now)).count() as u64;
        // Progress in a nanosecond is rate/runnable.
        let rate = u128::from(self.cores.min(runnable));
        let runnable = u128::from(runnable);
        let running = |member: &&mut Member| !member.is_urgent(now);
        let ends_of_urgent = self.members.iter().filter_map(|member| member.urgent_until);
        let ends_of_computations = self.members.iter().filter(|member| !member.is_urgent(now));
        let ends_of_computations = ends_of_computations
            .filter_map(|member| member.computations.front())
            .map(|computation| {
                let ns = (computation.left * runnable).div_ceil(rate * PARTS);
                now + Duration::from_ns(u64::try_from(ns).expect("it must end in 584 years"))
            });
        let next = ends_of_urgent.filter(|until| *until > now).chain(ends_of_computations);
        let next = next.chain(limit).min().expect("a step must have an end");
        let progress = u128::from(next.since(now).as_ns()) * PARTS * rate / runnable.max(1);
        for member in self.members.iter_mut().filter(running) {
            if let Some(computation) = member.computations.front_mut() {
                computation.left = computation.left.saturating_sub(progress);
                if computation.left <= ROUNDING {
                    member.computations.pop_front();
                }
            }
        }
        self.now = next;
    }
}

#[cfg(test)]
mod tests {
    //! Proves: nodes share cores fairly and lose none, urgent work interrupts computations, and no
    //! order of looks at the host changes an end.
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * MS)
    }

    fn ms(length: u64) -> Duration {
        Duration::from_ns(length * MS)
    }

    /// Ends of computations of one node each, given by beginning and length in milliseconds.
    fn ends(cores: u32, computations: &[(u64, u64)]) -> Vec<u64> {
        let mut host = Host::new(cores, computations.len());
        let mut order: Vec<usize> = (0..computations.len()).collect();
        order.sort_by_key(|index| computations[*index].0);
        let mut ids = vec![None; computations.len()];
        for index in order {
            let (begin, length) = computations[index];
            ids[index] = Some(host.begin(index, at(begin), ms(length)));
        }
        let now = host.now;
        let end = |(index, id): (usize, &Option<ComputationId>)| {
            host.clone().end_of(index, now, id.unwrap()).unwrap_or(now).as_ns().div_ceil(MS)
        };
        ids.iter().enumerate().map(end).collect()
    }

    #[test]
    fn nodes_share_the_cores() {
        assert_eq!(ends(2, &[(0, 1000)]), [1000]);
        assert_eq!(ends(2, &[(0, 1000); 2]), [1000; 2]);
        assert_eq!(ends(2, &[(0, 1000); 4]), [2000; 4]);
        assert_eq!(ends(2, &[(0, 1000); 3]), [1500; 3]);
        // Until 100 alone; then half each; at 300 the short one ends, and the other has 800 left.
        assert_eq!(ends(1, &[(0, 1000), (100, 100)]), [1100, 300]);
        assert_eq!(ends(64, &[(0, 7); 64]), [7; 64]);
    }

    #[test]
    fn urgent_work_interrupts_a_computation() {
        let mut host = Host::new(1, 1);
        let id = host.begin(0, at(0), ms(100));
        for begin in [10, 50] {
            assert_eq!(host.stretch(0, at(begin), ms(5)), ms(5));
            host.note_urgent(0, at(begin + 5));
        }
        assert_eq!(host.end_of(0, at(60), id), Some(at(110)));
        assert_eq!(host.end_of(0, at(110), id), None);
    }

    #[test]
    fn urgent_work_is_stretched_by_the_load() {
        let mut host = Host::new(2, 4);
        for member in 0..3 {
            host.begin(member, at(0), ms(100));
        }
        // Four nodes are runnable, with two cores.
        assert_eq!(host.stretch(3, at(10), ms(6)), ms(12));
        // A node that computes is runnable already.
        assert_eq!(host.stretch(2, at(10), ms(6)), ms(9));
    }

    #[test]
    fn a_node_that_polls_uses_a_core() {
        let mut host = Host::new(1, 2);
        let id = host.begin(0, at(0), ms(100));
        host.begin_polling(1, at(10));
        assert_eq!(host.end_of(0, at(10), id), Some(at(190)));
        // Urgent work of a node that polls comes instead of that.
        assert_eq!(host.stretch(1, at(10), ms(5)), ms(10));
        host.end_polling(1, at(50));
        assert_eq!(host.end_of(0, at(50), id), Some(at(120)));
    }

    #[test]
    fn computations_of_one_node_take_turns() {
        let mut host = Host::new(2, 1);
        let first = host.begin(0, at(0), ms(10));
        let second = host.begin(0, at(0), ms(20));
        assert_eq!(host.end_of(0, at(0), second), Some(at(30)));
        host.cancel(0, at(4), first);
        assert_eq!(host.end_of(0, at(4), second), Some(at(24)));
    }

    #[test]
    fn looks_at_the_host_change_nothing() {
        let run = |looks: &[u64]| {
            let mut host = Host::new(3, 7);
            let ids: Vec<_> =
                (0..7).map(|node| host.begin(node, at(0), ms(10 + node as u64 * 7))).collect();
            host.note_urgent(2, at(9));
            for look in looks {
                host.advance(Instant::from_ns(*look));
            }
            ids.iter()
                .enumerate()
                .map(|(node, id)| host.clone().end_of(node, host.now, *id))
                .collect::<Vec<_>>()
        };
        let plain = run(&[]);
        let looks: Vec<u64> = (1..9000).map(|step| step * 1009).collect();
        for (plain, looked) in plain.iter().zip(run(&looks)) {
            let (plain, looked) = (plain.unwrap().as_ns(), looked.unwrap().as_ns());
            assert!(plain.abs_diff(looked) <= 1, "{plain} {looked}");
        }
    }
}
