//! Proves: a server refuses an invalid group roster, one roster too many, and a collective of a
//! group whose roster it does not have or that does not match the roster.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::raw::{KEY, Raw, Reaction, record};
use crate::support;

use filesystem::Fault;
use policy::{Access, Direction, DiskOrder};
use support::{Cluster, Shape};
use units::{FileId, RegionId};
use wire::{
    ClientKey, CollectiveRequest, GroupCollective, GroupRoster, Message, PROTOCOL_VERSION, Reply,
    Request,
};
use world::payload::Bytes;

#[test]
fn roster_without_an_address_for_each_member_is_refused() {
    let send = |members: usize, addresses: usize| {
        let cluster = Cluster::<Bytes>::new(Shape::default());
        cluster.run_alone(0, move |start| async move {
            let raw = Raw::greeted(&start).await;
            let (members, addresses) = (vec![KEY; members], vec!["node:1"; addresses]);
            let addresses = addresses.into_iter().collect();
            let roster = GroupRoster { group: 1, members, addresses };
            raw.ask(Request::RegisterGroup(Box::new(roster)), None).await
        })
    };
    for (members, addresses) in [(0, 0), (1, 1), (9, 9), (0, 3)] {
        let reaction = send(members, addresses);
        assert!(matches!(reaction, Reaction::Answers(Ok(Reply::Done))), "{reaction:?}");
    }
    for (members, addresses) in [(1, 0), (3, 2), (2, 3), (65_537, 65_537)] {
        let reaction = send(members, addresses);
        assert!(is_refused(&reaction), "{members}, {addresses}: {reaction:?}");
    }
}

#[test]
fn one_roster_too_many_is_refused() {
    let cluster = Cluster::<Bytes>::new(Shape::default());
    let reactions = cluster.run_alone(0, |start| async move {
        let raw = Raw::greeted(&start).await;
        let mut reactions = Vec::new();
        // The last but one of them is known already; then one ends.
        for (group, count) in (0..1024).map(|group| (group, 1)).chain([(1024, 1), (7, 1), (7, 0)]) {
            let reaction = raw.ask(roster_of(group, count), None).await;
            reactions.push(matches!(reaction, Reaction::Answers(Ok(Reply::Done))));
        }
        reactions
    });
    let refused: Vec<usize> = (0..reactions.len()).filter(|&at| !reactions[at]).collect();
    assert_eq!(refused, [1024]);
}

fn is_refused(reaction: &Reaction) -> bool {
    matches!(reaction, Reaction::Answers(Err(Fault::BadRequest { .. })))
}

/// A collective of group 7 that moves nothing.
fn collective_of(clients: u32, regions: usize) -> Request {
    let request = CollectiveRequest {
        collective: 1,
        direction: Direction::Read,
        file: FileId(1),
        access: Access::All { bytes: 0, clients },
        order: DiskOrder::Sorted,
        sync: false,
    };
    let regions = (0..regions).map(|_| RegionId(0)).collect();
    Request::GroupCollective(Box::new(GroupCollective { request, group: 7, regions }))
}

fn roster_of(group: u64, members: usize) -> Request {
    let addresses = vec![""; members].into_iter().collect();
    let members = vec![KEY; members];
    Request::RegisterGroup(Box::new(GroupRoster { group, members, addresses }))
}

#[test]
fn group_collective_without_a_matching_roster_is_refused() {
    // Request after the roster of group 7, and its outcome.
    let ask = |member_count: usize, request: Request| {
        let cluster = Cluster::<Bytes>::new(Shape::default());
        cluster.run_alone(0, move |start| {
            let request = request.clone();
            async move {
                let raw = Raw::greeted(&start).await;
                raw.ask(Request::Open(record(1, 0, start.shape.stripe())), None).await;
                // Rosters of other groups, which the request does not mean.
                for (group, members) in [(6, 5), (7, 3), (7, member_count), (8, 4)] {
                    raw.ask(roster_of(group, members), None).await;
                }
                raw.ask(request, None).await
            }
        })
    };
    let reaction = ask(3, collective_of(3, 3));
    let moves_nothing = matches!(reaction, Reaction::Answers(Ok(Reply::Moved { bytes: 0 })));
    assert!(moves_nothing, "{reaction:?}");
    for (member_count, clients, regions) in [(0, 3, 3), (3, 3, 2), (3, 3, 4), (3, 3, 0), (3, 2, 3)]
    {
        let reaction = ask(member_count, collective_of(clients, regions));
        assert!(is_refused(&reaction), "{member_count}, {clients}, {regions}: {reaction:?}");
    }
}

#[test]
fn roster_serves_only_the_client_that_sent_it() {
    let cluster = Cluster::<Bytes>::new(Shape::default());
    let reaction = cluster.run_alone(0, |start| async move {
        let (one, other) = (Raw::greeted(&start).await, Raw::connect(&start).await);
        other.send_message(&Message::Hello { version: PROTOCOL_VERSION, key: ClientKey(78) }).await;
        one.ask(roster_of(7, 3), None).await;
        other.ask(Request::Open(record(1, 0, start.shape.stripe())), None).await;
        other.ask(collective_of(3, 3), None).await
    });
    assert!(is_refused(&reaction), "{reaction:?}");
}
