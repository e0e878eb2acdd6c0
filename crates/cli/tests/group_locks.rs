//! Proves: members of a group share a counter and locks of ranges through the library; a lock of a
//! member that leaves blocks no other; after the time-out, the rank that holds a lock is named.

use crate::support;
use client::{Connection, ConnectionOptions, ErrorKind, Group, Instance, LockKind};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use support::Place;

const MEMBERS: u32 = 4;
const USUAL: Duration = Duration::from_secs(30);

/// Runs a program for each member, all in threads of this process, each with its own connection.
fn members<R: Send>(
    place: &Place,
    timeout: Duration,
    program: impl Fn(Group) -> R + Sync,
) -> Vec<R> {
    let instance = Instance::at(place.instance());
    let program = &program;
    std::thread::scope(|scope| {
        let start = |rank| {
            let instance = instance.clone();
            scope.spawn(move || {
                let options = ConnectionOptions { timeout, ..ConnectionOptions::default() };
                let connection = Connection::open_with(&instance, options).unwrap();
                program(Group::form(&connection, "test", rank, MEMBERS).unwrap())
            })
        };
        let running: Vec<_> = (0..MEMBERS).map(start).collect();
        running.into_iter().map(|member| member.join().unwrap()).collect()
    })
}

#[test]
fn members_share_a_counter_and_locks() {
    let place = Place::new();
    place.start(&["--servers", "2"]);
    let inside = AtomicU32::new(0);
    let values = members(&place, USUAL, |group| {
        let mut values = Vec::new();
        for round in 0..50 {
            let value = group.counter_fetch_add(10).unwrap();
            // A range that each of them shares with its neighbours.
            let lock = group.lock_range(value..value + 30, LockKind::Shared).unwrap();
            assert_eq!(lock.range(), value..value + 30);
            lock.unlock().unwrap();
            let lock = group.lock_range(0..10, LockKind::Exclusive).unwrap();
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two members hold the lock");
            inside.fetch_sub(1, Ordering::SeqCst);
            if round % 2 == 0 {
                lock.unlock().unwrap();
            }
            values.push(value);
        }
        group.barrier().unwrap();
        assert_eq!(group.counter_get().unwrap(), 10 * 50 * u64::from(MEMBERS));
        group.barrier().unwrap();
        if group.rank() == 2 {
            group.counter_set(u64::MAX).unwrap();
            let error = group.counter_fetch_add(1).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Usage, "{error}");
        }
        assert_eq!(group.lock_range(7..7, LockKind::Shared).err().unwrap().kind, ErrorKind::Usage);
        group.barrier().unwrap();
        assert_eq!(group.counter_get().unwrap(), u64::MAX);
        values
    });
    let mut values: Vec<u64> = values.into_iter().flatten().collect();
    values.sort_unstable();
    assert!(values.into_iter().eq((0..50 * u64::from(MEMBERS)).map(|number| 10 * number)));
    place.assert_nothing_held();
}

#[test]
fn a_member_that_goes_blocks_no_other_and_one_that_stays_is_named() {
    let place = Place::new();
    place.start(&["--servers", "2"]);
    members(&place, USUAL, |group| {
        let first = (group.rank() == 0).then(|| group.lock_range(0..100, LockKind::Exclusive));
        let lock = first.transpose().unwrap();
        group.barrier().unwrap();
        if let Some(lock) = lock {
            // The others wait for it, or ask later.
            drop(group);
            lock.unlock().unwrap();
        } else {
            let lock = group.lock_range(50..60, LockKind::Shared).unwrap();
            drop(lock);
        }
    });
    let has_timed_out = Barrier::new(2);
    members(&place, Duration::from_secs(5), |group| {
        let first = (group.rank() == 1).then(|| group.lock_range(0..100, LockKind::Shared));
        let lock = first.transpose().unwrap();
        group.barrier().unwrap();
        if let Some(lock) = lock {
            has_timed_out.wait();
            lock.unlock().unwrap();
        }
        if group.rank() == 3 {
            let error = group.lock_range(99..200, LockKind::Exclusive).err().unwrap();
            assert_eq!(error.kind, ErrorKind::LockTimedOut, "{error}");
            assert_eq!(error.place.ranks.iter().map(|rank| rank.0).collect::<Vec<_>>(), [1]);
            assert!(error.to_string().contains("rank 1 holds a lock of bytes 0 to 100"), "{error}");
            has_timed_out.wait();
        }
    });
}
