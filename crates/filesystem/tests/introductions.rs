//! Proves: an introduction that cannot be, or one too many, is refused, and so is a collective of a
//! group that was not introduced, or not as it says.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::raw::{KEY, Raw, Reaction, record};
use crate::support;

use filesystem::Fault;
use policy::{Access, Direction, DiskOrder};
use support::{Cluster, Shape};
use units::{FileId, RegionId};
use wire::{CollectiveRequest, GroupCollective, Introduction, Reply, Request};
use world::payload::Bytes;

#[test]
fn an_introduction_has_an_address_for_each() {
    let introduce = |members: usize, addresses: usize| {
        let cluster = Cluster::<Bytes>::new(Shape::default());
        cluster.run_alone(0, move |start| async move {
            let raw = Raw::greeted(&start).await;
            let (members, addresses) = (vec![KEY; members], vec!["node:1"; addresses]);
            let addresses = addresses.into_iter().collect();
            let introduction = Introduction { group: 1, members, addresses };
            raw.ask(Request::Introduce(Box::new(introduction)), None).await
        })
    };
    for (members, addresses) in [(0, 0), (1, 1), (9, 9), (0, 3)] {
        let reaction = introduce(members, addresses);
        assert!(matches!(reaction, Reaction::Answers(Ok(Reply::Done))), "{reaction:?}");
    }
    for (members, addresses) in [(1, 0), (3, 2), (2, 3), (65_537, 65_537)] {
        let reaction = introduce(members, addresses);
        let is_refused = matches!(reaction, Reaction::Answers(Err(Fault::BadRequest { .. })));
        assert!(is_refused, "{members}, {addresses}: {reaction:?}");
    }
}

#[test]
fn nobody_introduces_more_groups_than_a_server_keeps() {
    let cluster = Cluster::<Bytes>::new(Shape::default());
    let reactions = cluster.run_alone(0, |start| async move {
        let raw = Raw::greeted(&start).await;
        let mut reactions = Vec::new();
        // The last but one of them is known already; then one ends.
        for (group, count) in (0..1024).map(|group| (group, 1)).chain([(1024, 1), (7, 1), (7, 0)]) {
            let addresses = vec![""; count].into_iter().collect();
            let introduction = Introduction { group, members: vec![KEY; count], addresses };
            let reaction = raw.ask(Request::Introduce(Box::new(introduction)), None).await;
            reactions.push(matches!(reaction, Reaction::Answers(Ok(Reply::Done))));
        }
        reactions
    });
    let refused: Vec<usize> = (0..reactions.len()).filter(|&at| !reactions[at]).collect();
    assert_eq!(refused, [1024]);
}

#[test]
fn a_group_collective_is_of_a_group_that_was_introduced() {
    let ask = |introduced: usize, regions: usize, clients: u32| {
        let cluster = Cluster::<Bytes>::new(Shape::default());
        cluster.run_alone(0, move |start| async move {
            let raw = Raw::greeted(&start).await;
            let open = record(1, 0, start.shape.stripe());
            raw.ask(Request::Open(open), None).await;
            let (members, addresses) = (vec![KEY; introduced], vec![""; introduced]);
            let addresses = addresses.into_iter().collect();
            let introduction = Introduction { group: 7, members, addresses };
            raw.ask(Request::Introduce(Box::new(introduction)), None).await;
            let request = CollectiveRequest {
                collective: 1,
                direction: Direction::Read,
                file: FileId(1),
                access: Access::All { bytes: 0, clients },
                participants: Vec::new(),
                order: DiskOrder::Sorted,
                sync: false,
            };
            let regions = (0..regions).map(|_| RegionId(0)).collect();
            let request = GroupCollective { group: 7, regions, request };
            raw.ask(Request::GroupCollective(Box::new(request)), None).await
        })
    };
    let reaction = ask(3, 3, 3);
    let moves_nothing = matches!(reaction, Reaction::Answers(Ok(Reply::Moved { bytes: 0 })));
    assert!(moves_nothing, "{reaction:?}");
    for (introduced, regions, clients) in [(0, 3, 3), (3, 2, 3), (3, 4, 3), (3, 0, 3), (3, 3, 2)] {
        let reaction = ask(introduced, regions, clients);
        let is_refused = matches!(reaction, Reaction::Answers(Err(Fault::BadRequest { .. })));
        assert!(is_refused, "{introduced}, {regions}, {clients}: {reaction:?}");
    }
}
