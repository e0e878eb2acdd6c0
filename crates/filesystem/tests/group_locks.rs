//! Proves, for the counter and the range locks of a group: each addition gives a value of its own;
//! locks that conflict are never held together and are granted in order; a member that dies, leaves
//! or gives up blocks no other; a stranger is refused; nothing is left of a group without members.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::raw::{KEY, Raw, Reaction};
use crate::support;

use filesystem::{Fault, Group, RangeLock};
use futures_util::future::join_all;
use policy::LockKind;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use support::{Cluster, Kill, Numbers, Shape, Start, for_each_seed};
use units::{ByteRange, ClientId, Duration, Instant};
use wire::{
    CounterChange, CounterRequest, GroupRequest, LockRequest, RegisterRequest, UnlockRequest,
};
use world::Clock;
use world::payload::Bytes;
use world_simulated::SimulatedWorld;

const TIMEOUT: Duration = Duration::from_ms(2_000);
const GROUP: u64 = 77;
const SHARED: LockKind = LockKind::Shared;
const EXCLUSIVE: LockKind = LockKind::Exclusive;

type Member = Group<SimulatedWorld<Bytes>>;
type Lock = RangeLock<SimulatedWorld<Bytes>>;

fn shape(seed: u64) -> Shape {
    Shape { servers: 1 + (seed % 3) as u32, seed, ..Shape::default() }
}

/// Registers, and waits until all members have.
async fn register(start: &Start, size: u32) -> Member {
    let client = start.connect().await.unwrap();
    let member = Group::register(client, GROUP, (start.rank, size), TIMEOUT).await.unwrap();
    member.all_gather(Vec::new()).await.unwrap();
    member
}

async fn lock(member: &Member, (start, end): (u64, u64), kind: LockKind) -> Result<Lock, Fault> {
    member.lock_range(ByteRange::new(start, end), kind).await
}

#[test]
fn each_addition_gives_its_own_value() {
    for_each_seed("group_locks", "each_addition_gives_its_own_value", 20, |seed| {
        const ADDITIONS: u64 = 25;
        let cluster = Cluster::new(shape(seed));
        let got = cluster.run(0..4, |start| async move {
            let member = register(&start, 4).await;
            let values = join_all((0..ADDITIONS).map(|_| member.counter_fetch_add(3)));
            let values: Vec<u64> = values.await.into_iter().map(Result::unwrap).collect();
            member.all_gather(Vec::new()).await.unwrap();
            assert_eq!(member.counter_get().await.unwrap(), 4 * 3 * ADDITIONS);
            values
        });
        let mut all: Vec<u64> = got.into_iter().flatten().collect();
        all.sort_unstable();
        assert_eq!(all, (0..4 * ADDITIONS).map(|number| 3 * number).collect::<Vec<_>>());
    });
}

#[test]
fn a_counter_does_not_overflow() {
    let cluster = Cluster::<Bytes>::new(shape(1));
    cluster.run_alone(0, |start| async move {
        let member = register(&start, 1).await;
        member.counter_set(u64::MAX - 1).await.unwrap();
        assert_eq!(member.counter_fetch_add(1).await, Ok(u64::MAX - 1));
        let fault = member.counter_fetch_add(1).await.unwrap_err();
        assert_eq!(fault, Fault::CounterOverflow { value: u64::MAX, add: 1 });
        assert_eq!(member.counter_get().await, Ok(u64::MAX));
        assert_eq!(member.counter_fetch_add(0).await, Ok(u64::MAX));
    });
}

/// Locks that are held now, as the members know them.
#[derive(Default)]
struct Held(RefCell<Vec<(ClientId, ByteRange, LockKind)>>);

impl Held {
    fn add(&self, owner: ClientId, range: ByteRange, kind: LockKind) {
        for (other, held, held_kind) in self.0.borrow().iter() {
            let share = [kind, *held_kind] == [SHARED; 2] || *other == owner;
            let apart = range.intersect(*held).is_empty();
            assert!(share || apart, "{owner} got {range:?} while {other} holds {held:?}");
        }
        self.0.borrow_mut().push((owner, range, kind));
    }

    fn remove(&self, owner: ClientId, range: ByteRange) {
        let mut held = self.0.borrow_mut();
        let at = held.iter().position(|(who, what, _)| (*who, *what) == (owner, range)).unwrap();
        held.remove(at);
    }
}

#[test]
fn locks_that_conflict_are_never_held_together() {
    for_each_seed("group_locks", "locks_that_conflict_are_never_held_together", 60, |seed| {
        let cluster = Cluster::new(shape(seed));
        let held = Rc::new(Held::default());
        cluster.run(0..4, |start| {
            let held = Rc::clone(&held);
            async move {
                let member = register(&start, 4).await;
                let mut numbers = Numbers::new(seed * 4 + u64::from(start.rank.0));
                for _ in 0..20 {
                    let from = numbers.below(20);
                    let range = ByteRange::at(from, 1 + numbers.below(10));
                    let kind = if numbers.below(2) == 0 { SHARED } else { EXCLUSIVE };
                    let lock = member.lock_range(range, kind).await.unwrap();
                    held.add(start.rank, range, kind);
                    start.world.sleep(Duration::from_us(numbers.below(200))).await;
                    held.remove(start.rank, range);
                    match numbers.below(2) {
                        0 => lock.unlock().await.unwrap(),
                        _ => drop(lock),
                    }
                }
            }
        });
        assert!(held.0.borrow().is_empty());
    });
}

#[test]
fn requests_that_conflict_are_granted_in_their_order() {
    for_each_seed("group_locks", "requests_that_conflict_are_granted_in_their_order", 10, |seed| {
        let cluster = Cluster::new(shape(seed));
        let order = Rc::new(RefCell::new(Vec::new()));
        cluster.run(0..4, |start| {
            let order = Rc::clone(&order);
            async move {
                let member = register(&start, 4).await;
                // Rank 0 reads and holds; 1 wants to write; 2 and 3 come later, and want to read.
                let turn = Duration::from_ms(u64::from(10 * start.rank.0));
                start.world.sleep(turn).await;
                let kind = if start.rank.0 == 1 { EXCLUSIVE } else { SHARED };
                let lock = lock(&member, (0, 100 - turn.as_ms()), kind).await.unwrap();
                order.borrow_mut().push((start.rank.0, start.now()));
                start.world.sleep(Duration::from_ms(100)).await;
                lock.unlock().await.unwrap();
            }
        });
        let order = order.borrow();
        assert_eq!(order[..2].iter().map(|(rank, _)| *rank).collect::<Vec<_>>(), [0, 1]);
        assert!(order[2].1 >= order[1].1 + Duration::from_ms(100), "readers overtook the writer");
        assert!(order[3].1 < order[2].1 + Duration::from_ms(50), "readers share the range");
    });
}

#[test]
fn a_lock_that_is_not_released_is_named_after_the_timeout() {
    let cluster = Cluster::new(shape(4));
    cluster.run(0..3, |start| async move {
        let member = register(&start, 3).await;
        start.world.sleep(Duration::from_ms(u64::from(10 * start.rank.0))).await;
        let before = start.now();
        let lock = lock(&member, (5, 10 + u64::from(start.rank.0)), EXCLUSIVE).await;
        if start.rank.0 == 0 {
            start.world.sleep(Duration::from_ms(5_000)).await;
            return lock.unwrap().unlock().await.unwrap();
        }
        // Rank 2 waits behind rank 1, but rank 0 is the one that holds a lock.
        let fault = lock.err().unwrap();
        let (holder, waited_ms) = (ClientId(0), TIMEOUT.as_ms());
        assert_eq!(fault, Fault::LockTimedOut { holder, start: 5, end: 10, waited_ms });
        let text = "rank 0 holds a lock of bytes 5 to 10, for which the request waited 2 s";
        assert_eq!(fault.to_string(), text);
        assert!(start.now().since(before) < Duration::from_ms(2_100));
        // Others of the range are not affected, and neither is a later request.
        self::lock(&member, (0, 5), EXCLUSIVE).await.unwrap().unlock().await.unwrap();
        start.world.sleep(Duration::from_ms(2_000)).await;
        self::lock(&member, (0, 50), EXCLUSIVE).await.unwrap().unlock().await.unwrap();
    });
}

#[test]
fn a_request_that_is_given_up_leaves_the_queue() {
    let cluster = Cluster::new(shape(5));
    cluster.run(0..3, |start| async move {
        let member = register(&start, 3).await;
        start.world.sleep(Duration::from_ms(u64::from(10 * start.rank.0))).await;
        let waits = lock(&member, (0, 10), if start.rank.0 == 1 { EXCLUSIVE } else { SHARED });
        if start.rank.0 == 1 {
            // It waits for rank 0, and gives up while rank 2 waits behind it.
            let waits = Box::pin(waits);
            let limit = std::pin::pin!(start.world.sleep(Duration::from_ms(100)));
            let gave_up = futures_util::future::select(waits, limit).await;
            assert!(matches!(gave_up, futures_util::future::Either::Right(_)));
            drop(gave_up);
            member.all_gather(Vec::new()).await.unwrap();
            return;
        }
        let lock = waits.await.unwrap();
        // Both hold it now.
        member.all_gather(Vec::new()).await.unwrap();
        lock.unlock().await.unwrap();
    });
}

#[test]
fn a_member_that_leaves_releases_its_locks() {
    let cluster = Cluster::new(shape(6));
    cluster.run(0..3, |start| async move {
        let member = register(&start, 3).await;
        start.world.sleep(Duration::from_ms(u64::from(10 * start.rank.0))).await;
        if start.rank.0 == 0 {
            let held = lock(&member, (0, 10), EXCLUSIVE).await.unwrap();
            start.world.sleep(Duration::from_ms(100)).await;
            member.leave();
            // There is nothing left to release.
            held.unlock().await.unwrap();
            start.world.sleep(Duration::from_ms(100)).await;
            return;
        }
        let before = start.now();
        let lock = lock(&member, (0, 10), SHARED).await.unwrap();
        assert!(start.now().since(before) < Duration::from_ms(200));
        lock.unlock().await.unwrap();
        assert!(member.counter_fetch_add(1).await.is_ok(), "the others go on");
    });
}

#[test]
fn a_member_that_dies_releases_its_locks_and_leaves_the_queue() {
    for_each_seed("group_locks", "a_member_that_dies_releases_its_locks", 60, |seed| {
        // It holds a lock, or waits for one.
        let victim = (seed % 2) as u32;
        let cluster = Cluster::new(shape(seed));
        let ready = Rc::new(Cell::new(0));
        let programs = cluster.programs(&[0, 1, 2, 3], |start| {
            let ready = Rc::clone(&ready);
            async move {
                let member = register(&start, 4).await;
                start.world.sleep(Duration::from_ms(u64::from(10 * start.rank.0))).await;
                ready.set(ready.get() + 1);
                let lock = lock(&member, (0, 10), EXCLUSIVE).await.unwrap();
                let granted = start.now();
                start.world.sleep(Duration::from_ms(200)).await;
                lock.unlock().await.unwrap();
                assert!(member.counter_fetch_add(1).await.is_ok(), "the others go on");
                granted
            }
        });
        let at = Rc::new(Cell::new(Instant::START));
        let kill = Kill {
            node: cluster.shape.node_of(victim),
            after: Duration::from_us(10_000 + seed * 1_000),
            ready: Rc::clone(&ready),
            ready_min: 4,
            at: Rc::clone(&at),
        };
        let ended = cluster.run_on(programs, Some(kill));
        let granted: Vec<_> = ended.into_iter().flatten().collect();
        assert_eq!(granted.len(), 3);
        assert!(granted.is_sorted());
        let pause = Duration::from_ms(500);
        assert!(granted.windows(2).all(|two| two[1] <= two[0].max(at.get()) + pause));
    });
}

#[test]
fn strangers_and_senseless_requests_are_refused() {
    let cluster = Cluster::<Bytes>::new(shape(7));
    cluster.run_alone(0, |start| async move {
        let raw = Raw::greeted(&start).await;
        let (group, rank) = (GROUP, ClientId(1));
        let counter = |group, rank| {
            GroupRequest::Counter(CounterRequest { group, rank, change: CounterChange::Add(1) })
        };
        let lock = |rank, number, (start, end)| {
            let (kind, timeout_ms) = (EXCLUSIVE, 0);
            GroupRequest::Lock(LockRequest { group, rank, number, kind, start, end, timeout_ms })
        };
        let unlock = |number| GroupRequest::Unlock(UnlockRequest { group, rank, number });
        let refuses = async |request: GroupRequest| {
            let reaction = raw.ask(request.clone(), None).await;
            let refused = matches!(reaction, Reaction::Answers(Err(Fault::BadRequest { .. })));
            assert!(refused, "{reaction:?} to {request:?}");
        };
        let accepts = async |request: GroupRequest| {
            let reaction = raw.ask(request.clone(), None).await;
            assert!(matches!(reaction, Reaction::Answers(Ok(_))), "{reaction:?} to {request:?}");
        };
        refuses(counter(group, rank)).await;
        refuses(lock(rank, 0, (0, 1))).await;
        refuses(unlock(0)).await;
        let members = vec![(rank, KEY)];
        accepts(GroupRequest::Register(Box::new(RegisterRequest { group, size: 2, members })))
            .await;
        refuses(counter(group, ClientId(0))).await;
        refuses(counter(group + 1, rank)).await;
        refuses(lock(ClientId(0), 0, (0, 1))).await;
        for range in [(1, 1), (2, 1), (u64::MAX, 0), (u64::MAX, u64::MAX)] {
            refuses(lock(rank, 0, range)).await;
        }
        refuses(unlock(0)).await;
        accepts(lock(rank, 0, (0, u64::MAX))).await;
        refuses(lock(rank, 0, (5, 6))).await;
        accepts(unlock(0)).await;
        refuses(unlock(0)).await;
        accepts(counter(group, rank)).await;
        // At the maximum number of locks.
        for number in 0..4096 {
            accepts(lock(rank, u64::MAX - number, (number, number + 1))).await;
        }
        refuses(lock(rank, 0, (0, 1))).await;
        accepts(unlock(u64::MAX)).await;
        accepts(lock(rank, 0, (0, 1))).await;
    });
}

#[test]
fn nothing_is_left_of_a_group_without_members() {
    let cluster = Cluster::<Bytes>::new(shape(8));
    cluster.run(0..2, |start| async move {
        for _ in 0..3 {
            let member = register(&start, 2).await;
            if start.rank.0 == 0 {
                assert_eq!(member.counter_fetch_add(5).await, Ok(0), "the counter is new");
                lock(&member, (0, 10), EXCLUSIVE).await.unwrap();
            }
            member.all_gather(Vec::new()).await.unwrap();
            let kept = lock(&member, (0, 10), SHARED).await.unwrap();
            member.leave();
            drop(kept);
            start.world.sleep(Duration::from_ms(100)).await;
        }
    });
}
