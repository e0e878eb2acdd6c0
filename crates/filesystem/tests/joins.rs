//! Proves: a server refuses invalid registrations, and joins for members that the sender has not
//! registered or that have joined; a call begins when all members have joined, whoever joins for
//! them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::raw::{KEY, Raw, Reaction, record};
use crate::support;

use filesystem::Fault;
use policy::{Access, Direction, DiskOrder, OwnPart};
use support::{Cluster, Shape, Start};
use units::{ClientId, FileId, RegionId, Run, ServerId};
use wire::{
    CallId, ClientKey, CollectiveCall, CollectiveRequest, FileRecord, FileRequest, GroupRequest,
    JoinRequest, LeaveRequest, MemberRun, Message, PROTOCOL_VERSION, RegisterRequest, Reply,
    TransferName,
};
use world::payload::Bytes;
use world::{Clock, Memory, OneSided, Payloads};

const GROUP: u64 = 7;

const OTHER_KEY: ClientKey = ClientKey(78);

fn register(group: u64, size: u32, ranks: &[u32], key: ClientKey) -> GroupRequest {
    let members = ranks.iter().map(|rank| (ClientId(*rank), key)).collect();
    GroupRequest::Register(Box::new(RegisterRequest { group, size, members }))
}

/// Join of [`GROUP`] for runs of members, given by first rank and number.
fn join(number: u64, runs: &[(u32, u32)], region: RegionId, access: Access) -> JoinRequest {
    let run =
        |(first, count): &(u32, u32)| MemberRun { first: ClientId(*first), count: *count, region };
    JoinRequest {
        call: CallId { group: GROUP, number },
        parameters: CollectiveCall {
            direction: Direction::Read,
            file: FileId(1),
            order: DiskOrder::Sorted,
            sync: false,
        },
        members: runs.iter().map(run).collect(),
        access: Ok(access),
        timeout_ms: 500,
    }
}

fn nothing(clients: u32) -> Access {
    Access::All { bytes: 0, clients }
}

fn is_refused(reaction: &Reaction) -> bool {
    matches!(reaction, Reaction::Answers(Err(Fault::BadRequest { .. })))
}

fn is_done(reaction: &Reaction) -> bool {
    matches!(reaction, Reaction::Answers(Ok(Reply::Done)))
}

async fn other(start: &Start) -> Raw {
    let other = Raw::connect(start).await;
    other.send_message(&Message::Hello { version: PROTOCOL_VERSION, key: OTHER_KEY }).await;
    other
}

#[test]
fn invalid_registrations_are_refused() {
    let cluster = Cluster::<Bytes>::new(Shape::default());
    cluster.run_alone(0, |start| async move {
        let (raw, other) = (Raw::greeted(&start).await, other(&start).await);
        for (size, ranks) in [(0, &[][..]), (0, &[0]), (3, &[3]), (3, &[]), (65_537, &[0])] {
            let reaction = raw.ask(register(1, size, ranks, KEY), None).await;
            assert!(is_refused(&reaction), "{size} {ranks:?}: {reaction:?}");
        }
        assert!(is_done(&raw.ask(register(1, 3, &[0, 2], KEY), None).await));
        assert!(is_done(&raw.ask(register(1, 3, &[2, 0], KEY), None).await), "the same again");
        assert!(is_refused(&raw.ask(register(1, 4, &[1], KEY), None).await), "another size");
        assert!(is_refused(&other.ask(register(1, 3, &[2], OTHER_KEY), None).await));
        assert!(is_refused(&raw.ask(register(1, 3, &[2], OTHER_KEY), None).await));
        let leave = LeaveRequest { group: 1, first: ClientId(0), count: u32::MAX };
        assert!(is_done(&other.ask(GroupRequest::Leave(leave), None).await));
        assert!(is_refused(&other.ask(register(1, 3, &[2], OTHER_KEY), None).await));
        // With its last member the group goes, and so does its size.
        assert!(is_done(&raw.ask(GroupRequest::Leave(leave), None).await));
        assert!(is_done(&other.ask(register(1, 5, &[2], OTHER_KEY), None).await));
    });
}

#[test]
fn the_members_of_all_groups_are_limited() {
    // Proves: a server keeps a million members; a registration of more is refused until some leave.
    let cluster = Cluster::<Bytes>::new(Shape::default());
    cluster.run_alone(0, |start| async move {
        let raw = Raw::greeted(&start).await;
        let size = 65_536;
        // A key of 1 byte, so that a registration fits a message.
        let ranks: Vec<u32> = (0..size).collect();
        for group in 0..16 {
            let registered = raw.ask(register(group, size, &ranks, ClientKey(7)), None).await;
            assert!(is_done(&registered), "group {group}: {registered:?}");
        }
        let one = register(16, size, &[0], ClientKey(7));
        assert!(is_refused(&raw.ask(one.clone(), None).await));
        let leave = LeaveRequest { group: 3, first: ClientId(5), count: 1 };
        assert!(is_done(&raw.ask(GroupRequest::Leave(leave), None).await));
        assert!(is_done(&raw.ask(one, None).await));
    });
}

#[test]
fn invalid_joins_are_refused() {
    let cluster = Cluster::<Bytes>::new(Shape::default());
    cluster.run_alone(0, |start| async move {
        let (raw, other) = (Raw::greeted(&start).await, other(&start).await);
        raw.ask(FileRequest::Open(record(1, 0, start.shape.stripe())), None).await;
        let region = RegionId(0);
        let ask = async |raw: &Raw, request| {
            raw.ask(CollectiveRequest::Join(Box::new(request)), None).await
        };
        let unregistered = ask(&raw, join(0, &[(0, 4)], region, nothing(4))).await;
        assert!(is_refused(&unregistered), "{unregistered:?}");
        assert!(is_done(&raw.ask(register(GROUP, 4, &[0, 1, 3], KEY), None).await));
        assert!(is_done(&other.ask(register(GROUP, 4, &[2], OTHER_KEY), None).await));
        for (runs, clients) in [
            (&[][..], 0),
            (&[(0, 0)], 0),
            (&[(0, 1)], 2),
            (&[(0, 2)], 0),
            (&[(0, 3)], 3),
            (&[(2, 1)], 1),
            (&[(3, 2)], 2),
            (&[(4, 1)], 1),
            (&[(3, u32::MAX)], 1),
            (&[(u32::MAX, u32::MAX)], 1),
            (&[(3, 1), (0, 1)], 2),
            (&[(0, 1), (0, 1)], 2),
        ] {
            let reaction = ask(&raw, join(1, runs, region, nothing(clients))).await;
            assert!(is_refused(&reaction), "{runs:?}, {clients}: {reaction:?}");
        }
        // One member has joined: its client waits for the others until the time-out.
        let alone = ask(&raw, join(1, &[(3, 1)], region, nothing(1))).await;
        let missing = [ClientId(0), ClientId(1), ClientId(2)];
        assert!(
            matches!(&alone, Reaction::Answers(Err(Fault::MembersMissing { missing: named, .. }))
                if *named == missing),
            "{alone:?}"
        );
    });
}

/// A node that has opened a file of 32 blocks of one server, and the bytes of the file.
async fn with_file(start: &Start) -> (Raw, u64) {
    let raw = Raw::greeted(start).await;
    let bytes = 32 * start.shape.block_bytes;
    let file = FileRecord { pool: policy::Pool::all(1), ..record(1, bytes, start.shape.stripe()) };
    raw.ask(FileRequest::Open(file), None).await;
    (raw, bytes)
}

#[test]
fn invalid_joins_with_data_are_refused() {
    let shape = Shape { servers: 1, block_bytes: 4096, cache_blocks: 8, ..Shape::default() };
    let cluster = Cluster::<Bytes>::new(shape);
    cluster.run_alone(0, |start| async move {
        let (raw, bytes) = with_file(&start).await;
        for (group, size) in [(GROUP, 1), (GROUP + 1, 2)] {
            let ranks: Vec<u32> = (0..size).collect();
            assert!(is_done(&raw.ask(register(group, size, &ranks, KEY), None).await));
        }
        let part = |length| Access::Parts(vec![OwnPart::contiguous(8, length)]);
        let ask = async |mut request: JoinRequest, direction, data: Option<usize>| {
            request.parameters.direction = direction;
            let body = data.map(|length| Bytes::from(vec![1; length]));
            raw.ask(with_data(request), body).await
        };
        let alone = |number, access| join(number, &[(0, 1)], RegionId(0), access);
        // Too much data, too little, none, or some that nobody asked for.
        for (number, direction, data) in [
            (0, Direction::Write, Some(17)),
            (1, Direction::Write, Some(15)),
            (2, Direction::Write, None),
            (3, Direction::Read, Some(16)),
            (10, Direction::Write, Some(0)),
        ] {
            let reaction = ask(alone(number, part(16)), direction, data).await;
            assert!(is_refused(&reaction), "{direction:?}, {data:?}: {reaction:?}");
        }
        let large = ask(alone(4, part(100_000)), Direction::Read, None).await;
        assert!(is_refused(&large), "{large:?}");
        let outside = ask(alone(5, part(bytes)), Direction::Read, None).await;
        assert!(matches!(outside, Reaction::Answers(Err(Fault::PastEnd { .. }))), "{outside:?}");
        let cannot = Fault::BadAccess { cause: "a reason".to_owned() };
        let unable = JoinRequest { access: Err(cannot.clone()), ..alone(11, part(16)) };
        let unable = ask(unable, Direction::Write, Some(16)).await;
        assert!(matches!(unable, Reaction::Answers(Err(fault)) if fault == cannot));
        let none_asked = ask(alone(12, part(16)), Direction::Read, Some(0)).await;
        assert!(matches!(none_asked, Reaction::Answers(Ok(Reply::Moved { .. }))), "{none_asked:?}");
        let rule = ask(alone(6, nothing(1)), Direction::Read, None).await;
        assert!(is_refused(&rule), "{rule:?}");
        let mut two = join(0, &[(0, 2)], RegionId(0), nothing(2));
        two.call.group = GROUP + 1;
        assert!(is_refused(&ask(two, Direction::Read, None).await), "two members");
        let mut stranger = alone(7, part(16));
        stranger.call.group = GROUP + 2;
        assert!(is_refused(&ask(stranger, Direction::Read, None).await), "no such group");
        // The group goes on.
        let written = ask(alone(8, part(16)), Direction::Write, Some(16)).await;
        let read = ask(alone(9, part(16)), Direction::Read, None).await;
        for reaction in [written, read] {
            assert!(
                matches!(reaction, Reaction::Answers(Ok(Reply::Moved { bytes: 16 }))),
                "{reaction:?}"
            );
        }
    });
}

#[test]
fn data_of_a_call_serves_no_other_call_of_its_name() {
    // Proves: when a group ends and another with its number begins, the data that waits for a call
    // of the first does not get into the call of the same number of the second.
    let shape = Shape { servers: 1, block_bytes: 4096, cache_blocks: 8, ..Shape::default() };
    let cluster = Cluster::<Bytes>::new(shape);
    cluster.run_alone(0, |start| async move {
        let (raw, bytes) = with_file(&start).await;
        assert!(is_done(&raw.ask(register(GROUP, 2, &[0], KEY), None).await));
        let part = |length| Access::Parts(vec![OwnPart::contiguous(0, length)]);
        let waiting = join(0, &[(0, 1)], RegionId(0), part(8));
        let request = with_data(waiting).into();
        raw.send_message(&Message::Request { id: wire::RequestId(5), request }).await;
        let leave = LeaveRequest { group: GROUP, first: ClientId(0), count: 1 };
        assert!(is_done(&raw.ask(GroupRequest::Leave(leave), None).await));
        assert!(is_done(&raw.ask(register(GROUP, 1, &[0], KEY), None).await));
        let memory = start.world.memory(bytes);
        let region = start.world.expose(&memory, &[raw.server]).await.unwrap();
        let whole = join(0, &[(0, 1)], region, part(bytes));
        let whole = raw.ask(CollectiveRequest::Join(Box::new(whole)), None).await;
        assert!(
            matches!(whole, Reaction::Answers(Ok(Reply::Moved { bytes: all })) if all == bytes),
            "{whole:?}"
        );
        let first = raw.reaction().await;
        assert!(matches!(first, Reaction::Answers(Err(Fault::MembersMissing { .. }))), "{first:?}");
    });
}

#[test]
fn a_member_joins_a_call_once() {
    let cluster = Cluster::<Bytes>::new(Shape::default());
    cluster.run(0..2, |start| async move {
        let is_first = start.rank == ClientId(0);
        let raw = if is_first { Raw::greeted(&start).await } else { other(&start).await };
        let key = if is_first { KEY } else { OTHER_KEY };
        raw.ask(FileRequest::Open(record(1, 0, start.shape.stripe())), None).await;
        let ranks = if is_first { [0, 1] } else { [2, 3] };
        assert!(is_done(&raw.ask(register(GROUP, 4, &ranks, key), None).await));
        if is_first {
            let both = join(0, &[(0, 2)], RegionId(0), nothing(2));
            let again = join(0, &[(1, 1)], RegionId(0), nothing(1));
            for request in [both, again] {
                let request = CollectiveRequest::Join(Box::new(request)).into();
                let id = wire::RequestId(5);
                raw.send_message(&Message::Request { id, request }).await;
            }
            assert!(is_refused(&raw.reaction().await), "rank 1 has joined");
        }
        world::Clock::sleep(&start.world, units::Duration::from_ms(10)).await;
        let ended = if is_first {
            raw.reaction().await
        } else {
            let request = join(0, &[(2, 2)], RegionId(0), nothing(2));
            raw.ask(CollectiveRequest::Join(Box::new(request)), None).await
        };
        assert!(matches!(ended, Reaction::Answers(Ok(Reply::Moved { bytes: 0 }))), "{ended:?}");
    });
}

#[test]
fn all_members_learn_why_a_call_was_cancelled() {
    // Proves: when one member cancels a call, before the others have joined or in the middle of the
    // transfer, each gets the fault with which it did so.
    let lost = Fault::ServerLeft { server: ServerId(1), cause: "gone".to_owned() };
    for cancelled_ms in [5, 12] {
        let cluster = Cluster::<Bytes>::new(Shape { servers: 1, ..Shape::default() });
        let ended = cluster.run(0..2, |start| {
            let cause = Box::new(lost.clone());
            async move {
                let is_first = start.rank == ClientId(0);
                let raw = if is_first { Raw::greeted(&start).await } else { other(&start).await };
                let (stripe, key) = (start.shape.stripe(), if is_first { KEY } else { OTHER_KEY });
                let bytes = 64 * stripe.block_bytes;
                let file = FileRecord { pool: policy::Pool::all(1), ..record(1, bytes, stripe) };
                raw.ask(FileRequest::Open(file), None).await;
                assert!(is_done(&raw.ask(register(GROUP, 2, &[start.rank.0], key), None).await));
                let memory = start.world.memory(bytes);
                let region = start.world.expose(&memory, &[raw.server]).await.unwrap();
                let access = Access::All { bytes, clients: 1 };
                let joined = join(0, &[(start.rank.0, 1)], region, access);
                let until =
                    |ms: u64| start.world.sleep_until(units::Instant::from_ns(ms * 1_000_000));
                let send = async |request: CollectiveRequest| {
                    let (id, request) = (wire::RequestId(5), request.into());
                    raw.send_message(&Message::Request { id, request }).await;
                };
                if !is_first {
                    until(10).await;
                }
                send(CollectiveRequest::Join(Box::new(joined))).await;
                if is_first {
                    until(cancelled_ms).await;
                    let transfer = TransferName::Call(CallId { group: GROUP, number: 0 });
                    send(CollectiveRequest::Cancel { transfer, cause }).await;
                }
                // The cancellation itself is done, before or after the call has ended.
                match raw.reaction().await {
                    done if is_done(&done) => raw.reaction().await,
                    ended => ended,
                }
            }
        });
        for reaction in ended {
            let Reaction::Answers(Err(fault)) = reaction else { panic!("{reaction:?}") };
            assert_eq!(fault, lost, "cancelled after {cancelled_ms} ms");
        }
    }
}

/// Ranks for which each of two clients joins.
const HOSTS: [[&[(u32, u32)]; 2]; 4] = [
    [&[(0, 2)], &[(2, 2)]],
    [&[(2, 2)], &[(0, 2)]],
    [&[(0, 1), (2, 1)], &[(1, 1), (3, 1)]],
    [&[(0, 1), (3, 1)], &[(1, 2)]],
];

#[test]
fn two_clients_join_for_two_members_each() {
    for hosts in HOSTS {
        let shape = Shape { servers: 1, ..Shape::default() };
        let cluster = Cluster::<Bytes>::new(shape);
        let read = cluster.run(0..2, |start| async move {
            let place = start.rank.0 as usize;
            let (key, runs) = ([KEY, OTHER_KEY][place], hosts[place]);
            let raw = if place == 0 { Raw::greeted(&start).await } else { other(&start).await };
            let stripe = start.shape.stripe();
            let pieces = stripe.block_bytes;
            let file =
                wire::FileRecord { pool: policy::Pool::all(1), ..record(1, 4 * pieces, stripe) };
            raw.ask(FileRequest::Open(file), None).await;
            if place == 0 {
                for block in 0..4_u64 {
                    let write = wire::WriteRequest { file: FileId(1), block, offset: 0 };
                    let body = Bytes::from(vec![block as u8 + 1; pieces as usize]);
                    let request =
                        Message::Request { id: wire::RequestId(5), request: write.into() };
                    raw.send(wire::encode(&request), Some(body)).await;
                    raw.reaction().await;
                }
            }
            world::Clock::sleep(&start.world, units::Duration::from_ms(50)).await;
            let ranks: Vec<u32> =
                runs.iter().flat_map(|(first, count)| *first..first + count).collect();
            assert!(is_done(&raw.ask(register(GROUP, 4, &ranks, key), None).await));
            // Each member reads the block of its rank. Members of one client share a memory.
            let memory = start.world.memory(4 * pieces);
            let region = start.world.expose(&memory, &[raw.server]).await.unwrap();
            let part = |rank: &u32| {
                OwnPart::List(vec![policy::ListEntry {
                    file_offset: u64::from(*rank) * pieces,
                    memory_offset: u64::from(*rank) * pieces,
                    length: pieces,
                }])
            };
            let access = Access::Parts(ranks.iter().map(part).collect());
            let request = CollectiveRequest::Join(Box::new(join(0, runs, region, access)));
            let moved = raw.ask(request, None).await;
            let bytes = 4 * pieces;
            assert!(
                matches!(moved, Reaction::Answers(Ok(Reply::Moved { bytes: all })) if all == bytes),
                "{moved:?}"
            );
            (ranks, memory.gather(&[Run::contiguous(0, bytes)]).to_vec(), pieces)
        });
        for (ranks, bytes, pieces) in read {
            for (at, byte) in bytes.iter().enumerate() {
                let rank = (at as u64 / pieces) as u32;
                let expected = if ranks.contains(&rank) { rank as u8 + 1 } else { 0 };
                assert_eq!(*byte, expected, "{hosts:?}: byte {at}");
            }
        }
    }
}

fn with_data(request: JoinRequest) -> CollectiveRequest {
    CollectiveRequest::JoinWithData(Box::new(request))
}
