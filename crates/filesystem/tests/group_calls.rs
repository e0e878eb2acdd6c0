//! Proves, for groups whose members join calls at the servers: every byte comes to its place,
//! whatever each member says of its own part; a missing member is named after the time-out, one
//! that died at once; members that disagree all learn it; nothing hangs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::support;

use filesystem::collective::Strategy;
use filesystem::{Fault, Group, PeerCall, PeerMesh, Peers};
use policy::{
    Access, Dimension, Direction, DiskOrder, Distribution, Level, ListEntry, Nested, OwnPart,
};
use std::cell::Cell;
use std::rc::Rc;
use support::{
    Cluster, Kill, Numbers, Shape, Start, expect_equal, for_each_seed, image, memory_of, overlay,
};
use units::{ClientId, Duration, Instant};
use wire::{CollectiveCall, FileRecord};
use world::payload::Bytes;
use world::{Address, Clock, Memory, Payloads};
use world_simulated::SimulatedWorld;

const BYTES: u64 = 64 * 64;
const TIMEOUT: Duration = Duration::from_ms(2_000);

type Member = Group<SimulatedWorld<Bytes>>;

/// Gets the number of rank 0 by an all-gather of this name, and registers with it.
async fn register(start: &Start, name: &str, size: u32) -> Result<Member, Fault> {
    let client = start.connect().await?;
    let group = 77 + start.shape.seed;
    let own = group.to_le_bytes().to_vec();
    let met = client.all_gather(name, (start.rank, size), own, TIMEOUT).await?;
    let group = u64::from_le_bytes(met[0][..].try_into().unwrap());
    Group::register(client, group, (start.rank, size), TIMEOUT).await
}

async fn open(member: &Member, start: &Start, bytes: u64) -> FileRecord {
    if member.rank() == ClientId(0) {
        member.client().create("f", bytes, start.shape.stripe()).await.unwrap();
    }
    member.all_gather(Vec::new()).await.unwrap();
    member.client().open("f").await.unwrap()
}

fn call(direction: Direction, file: &FileRecord) -> CollectiveCall {
    CollectiveCall { direction, file: file.file, order: DiskOrder::Sorted, sync: false }
}

async fn write(
    member: &Member,
    file: &FileRecord,
    part: OwnPart,
    memory: Vec<u8>,
) -> Result<u64, Fault> {
    let memory = member.client().world().thaw(memory.into());
    let number = member.begin_call();
    member.transfer(number, file, call(Direction::Write, file), Ok(part), &memory).await
}

async fn read(member: &Member, file: &FileRecord, part: OwnPart) -> Result<Vec<u8>, Fault> {
    let bytes = vec![0xee; part.memory_bytes() as usize];
    let memory = member.client().world().thaw(bytes.into());
    let number = member.begin_call();
    member.transfer(number, file, call(Direction::Read, file), Ok(part), &memory).await?;
    Ok(memory.freeze().to_vec())
}

/// The part of each of 4 members: every byte of `BYTES` has one owner.
fn some_parts(numbers: &mut Numbers) -> Vec<OwnPart> {
    let record = 1 << numbers.below(5);
    let level = |stride| Level { count: BYTES / stride, file_stride: stride, memory_stride: 0 };
    let cyclic = |rank: u64, length: u64| {
        let level = Level { memory_stride: length, ..level(4 * length) };
        let (file_offset, memory_offset) = (rank * length, 0);
        Nested { file_offset, memory_offset, length, levels: vec![level] }
    };
    match numbers.below(4) {
        0 => (0..4).map(|rank| OwnPart::Nested(vec![cyclic(rank, record)])).collect(),
        // Each nest is cut in two, and the second half comes first.
        1 => (0..4)
            .map(|rank| {
                let whole = cyclic(rank, 2 * record);
                let first = Nested { length: record, ..whole.clone() };
                let second = Nested {
                    file_offset: whole.file_offset + record,
                    memory_offset: record,
                    ..first.clone()
                };
                OwnPart::Nested(vec![second, first])
            })
            .collect(),
        // Everyone by another kind of rule, the last with nothing.
        2 => {
            let half = BYTES / 2;
            let distribution = Distribution {
                shape: vec![half / record],
                record_bytes: record,
                dimensions: vec![Dimension::Cyclic(3)],
                grid: vec![2],
                clients: 2,
            };
            let dealt = |client| OwnPart::Dealt {
                distribution: distribution.clone(),
                client: ClientId(client),
                file_offset: half,
            };
            let entry = |index: u64| ListEntry {
                file_offset: index * record,
                memory_offset: half - (index + 1) * record,
                length: record,
            };
            let list = OwnPart::List((0..half / record).map(entry).collect());
            vec![list, dealt(0), dealt(1), OwnPart::NOTHING]
        }
        _ => {
            let distribution = Distribution {
                shape: vec![BYTES / record],
                record_bytes: record,
                dimensions: vec![Dimension::Block],
                grid: vec![4],
                clients: 4,
            };
            let dealt = |client| OwnPart::Dealt {
                distribution: distribution.clone(),
                client: ClientId(client),
                file_offset: 0,
            };
            (0..4).map(dealt).collect()
        }
    }
}

fn shape(seed: u64) -> Shape {
    let mut numbers = Numbers::new(seed);
    Shape {
        servers: 1 + numbers.below(4) as u32,
        disks_per_server: 1 + numbers.below(2) as u32,
        cache_blocks: numbers.below(9),
        // With little room, some small parts go with the messages and others do not.
        buffer_bytes: [u64::MAX, 700, 0][(seed % 3) as usize],
        seed,
        ..Shape::default()
    }
}

#[test]
fn members_move_their_own_parts() {
    for_each_seed("group_calls", "members_move_their_own_parts", 200, |seed| {
        let mut numbers = Numbers::new(seed);
        let (written, read_as) = (some_parts(&mut numbers), some_parts(&mut numbers));
        let cluster = Cluster::new(shape(seed));
        let contents = image(seed, BYTES);
        let (writes, reads) = (Access::Parts(written.clone()), Access::Parts(read_as.clone()));
        let file = overlay(&writes, &vec![0; BYTES as usize], &contents);
        let got = cluster.run(0..4, |start| {
            let rank = start.rank.0 as usize;
            let memory = memory_of(&writes, start.rank, &contents);
            let (own, other) = (written[rank].clone(), read_as[rank].clone());
            async move {
                let member = register(&start, "all", 4).await.unwrap();
                let file = open(&member, &start, BYTES).await;
                write(&member, &file, own, memory).await.unwrap();
                let got = read(&member, &file, other).await.unwrap();
                member.leave();
                got
            }
        });
        for (rank, got) in (0..).map(ClientId).zip(got) {
            expect_equal(&got, &memory_of(&reads, rank, &file), "what a member has read");
        }
    });
}

/// One of many small calls, the same at all members.
#[derive(Clone, Debug)]
struct SmallCall {
    direction: Direction,
    is_synced: bool,
    /// First byte of the file; each member has `length` bytes, one after the other by rank.
    start: u64,
    length: u64,
}

impl SmallCall {
    fn any(numbers: &mut Numbers) -> Self {
        let length = numbers.below(70);
        Self {
            direction: numbers.pick(&[Direction::Read, Direction::Write]),
            is_synced: numbers.below(8) == 0,
            start: numbers.below(BYTES - 4 * length + 1),
            length,
        }
    }
}

#[test]
fn small_calls_keep_every_byte() {
    // Proves: calls that want parts of blocks, one after the other, read what was written last, by
    // a call of the group or by one member alone, also where some wait for stable storage.
    for_each_seed("group_calls", "small_calls_keep_every_byte", 100, |seed| {
        let mut numbers = Numbers::new(seed);
        let calls: Vec<_> = (0..30).map(|_| SmallCall::any(&mut numbers)).collect();
        let cluster = Cluster::new(shape(seed));
        cluster.run(0..4, |start| {
            let calls = calls.clone();
            async move {
                let member = register(&start, "all", 4).await.unwrap();
                let file = open(&member, &start, BYTES).await;
                let mut expected = vec![0; BYTES as usize];
                for (number, SmallCall { direction, is_synced, start, length }) in (0..).zip(calls)
                {
                    let rank = u64::from(member.rank().0);
                    let all = start as usize..(start + 4 * length) as usize;
                    let own = (start + rank * length) as usize..;
                    let own = own.start..own.start + length as usize;
                    let call = CollectiveCall { sync: is_synced, ..call(direction, &file) };
                    let part = OwnPart::contiguous(own.start as u64, length);
                    if direction == Direction::Write {
                        expected[all].copy_from_slice(&image(number, 4 * length));
                    }
                    let memory = match direction {
                        Direction::Write => expected[own.clone()].to_vec(),
                        Direction::Read => vec![0xee; length as usize],
                    };
                    let memory = member.client().world().thaw(memory.into());
                    let moved = member.begin_call();
                    let moved = member.transfer(moved, &file, call, Ok(part), &memory).await;
                    assert_eq!(moved, Ok(4 * length));
                    expect_equal(&memory.freeze(), &expected[own], "the bytes of a member");
                }
                member.leave();
            }
        });
    });
}

#[test]
fn several_calls_of_one_group_are_under_way() {
    let cluster = Cluster::new(shape(3));
    let contents = image(3, BYTES);
    let parts: Vec<_> =
        (0..4).map(|rank| OwnPart::contiguous(rank * BYTES / 4, BYTES / 4)).collect();
    let access = Access::Parts(parts.clone());
    let got = cluster.run(0..4, |start| {
        let own = parts[start.rank.0 as usize].clone();
        let memory = memory_of(&access, start.rank, &contents);
        async move {
            let member = register(&start, "all", 4).await.unwrap();
            let file = open(&member, &start, BYTES).await;
            write(&member, &file, own.clone(), memory).await.unwrap();
            let reads = (0..8).map(|_| read(&member, &file, own.clone()));
            futures_util::future::join_all(reads).await
        }
    });
    for (rank, all) in (0..).map(ClientId).zip(got) {
        for got in all {
            expect_equal(&got.unwrap(), &memory_of(&access, rank, &contents), "a read");
        }
    }
}

#[test]
fn a_missing_member_is_named_to_all_others() {
    for_each_seed("group_calls", "a_missing_member_is_named_to_all_others", 40, |seed| {
        let cluster = Cluster::new(shape(seed));
        let absent = (seed % 4) as u32;
        let ended = cluster.run(0..4, |start| async move {
            let member = register(&start, "all", 4).await.unwrap();
            let file = open(&member, &start, BYTES).await;
            let before = start.now();
            if start.rank.0 == absent {
                // It computes for longer than anyone waits, and then makes the call.
                start.world.sleep(Duration::from_ms(5_000)).await;
            }
            (read(&member, &file, OwnPart::contiguous(0, 8)).await, start.now().since(before))
        });
        for (outcome, waited) in ended {
            match outcome.unwrap_err() {
                Fault::MembersMissing { missing, call, .. } => {
                    assert_eq!(missing, [ClientId(absent)]);
                    assert_eq!(call, "collective read 0 of \"f\"");
                }
                other => panic!("the missing rank must be named, not: {other}"),
            }
            assert!(waited < Duration::from_ms(5_100), "{waited}");
        }
    });
}

#[test]
fn a_member_that_has_left_is_missing_at_once() {
    let cluster = Cluster::new(shape(1));
    let ended = cluster.run(0..3, |start| async move {
        let member = register(&start, "all", 3).await.unwrap();
        let file = open(&member, &start, BYTES).await;
        if start.rank.0 == 1 {
            member.leave();
            start.world.sleep(Duration::from_ms(100)).await;
            return None;
        }
        let before = start.now();
        let outcome = read(&member, &file, OwnPart::NOTHING).await;
        Some((outcome, start.now().since(before)))
    });
    for (outcome, waited) in ended.into_iter().flatten() {
        let fault = outcome.unwrap_err();
        let named =
            matches!(&fault, Fault::MembersMissing { missing, .. } if *missing == [ClientId(1)]);
        assert!(named && waited < TIMEOUT, "{fault} after {waited}");
    }
}

#[test]
fn a_meeting_does_not_wait_for_a_member_that_has_left() {
    for before in [true, false] {
        let cluster = Cluster::new(shape(1));
        let ended = cluster.run(0..3, |start| async move {
            let member = register(&start, "all", 3).await.unwrap();
            member.all_gather(Vec::new()).await.unwrap();
            // It leaves before the others come, or while they wait.
            let leaves = start.rank.0 == 1;
            if leaves != before {
                start.world.sleep(Duration::from_ms(50)).await;
            }
            if leaves {
                member.leave();
                start.world.sleep(Duration::from_ms(100)).await;
                return None;
            }
            let began = start.now();
            let met = member.all_gather(Vec::new()).await;
            Some((met, start.now().since(began)))
        });
        for (met, waited) in ended.into_iter().flatten() {
            let fault = met.unwrap_err();
            let Fault::MembersMissing { missing, .. } = &fault else { panic!("{fault}") };
            assert!(*missing == [ClientId(1)] && waited < TIMEOUT, "{fault} after {waited}");
        }
    }
}

#[test]
fn members_that_disagree_all_learn_it() {
    let cluster = Cluster::new(shape(2));
    let ended = cluster.run(0..3, |start| async move {
        let member = register(&start, "all", 3).await.unwrap();
        let file = open(&member, &start, BYTES).await;
        let part = OwnPart::contiguous(0, 8);
        let first = match start.rank.0 {
            2 => write(&member, &file, part.clone(), vec![1; 8]).await.map(|_| ()),
            _ => read(&member, &file, part.clone()).await.map(|_| ()),
        };
        // The next call of the group is not affected.
        (first, read(&member, &file, part).await)
    });
    for (first, second) in ended {
        let fault = first.unwrap_err();
        assert!(matches!(fault, Fault::CallsDiffer { .. }), "{fault}");
        second.unwrap();
    }
}

#[test]
fn a_part_that_does_not_fit_fails_the_call_for_all() {
    let cluster = Cluster::new(shape(5));
    let ended = cluster.run(0..3, |start| async move {
        let member = register(&start, "all", 3).await.unwrap();
        let file = open(&member, &start, BYTES).await;
        let offset = if start.rank.0 == 1 { BYTES } else { 0 };
        read(&member, &file, OwnPart::contiguous(offset, 8)).await
    });
    for outcome in ended {
        let fault = outcome.unwrap_err();
        assert!(matches!(fault, Fault::BadAccess { .. }), "{fault}");
    }
}

#[test]
fn an_all_gather_names_the_members_that_brought_nothing() {
    let cluster = Cluster::new(shape(6));
    let ended = cluster.run(0..3, |start| async move {
        match start.rank.0 {
            1 => None,
            _ => Some(register(&start, "all", 3).await.map(|_| ())),
        }
    });
    for outcome in ended.into_iter().flatten() {
        let fault = outcome.unwrap_err();
        let named =
            matches!(&fault, Fault::MembersMissing { missing, .. } if *missing == [ClientId(1)]);
        assert!(named, "{fault}");
        assert_eq!(
            fault.to_string(),
            "rank 1 did not join the all-gather \"all\", in which the other members wait (waited \
             2 s)"
        );
    }
}

#[test]
fn of_missing_members_those_that_answer_are_not_named() {
    // Two members do not come: one has stopped, the other is busy, perhaps with a wait for the
    // first.
    for is_transfer in [true, false] {
        let cluster = Cluster::new(shape(8));
        let (machine, node) = (Rc::clone(&cluster.machine), cluster.shape.node_of(2));
        let registered = Rc::new(Cell::new(0));
        let ready = Rc::clone(&registered);
        let programs = cluster.programs(&[0, 1, 2, 3], move |start| {
            let (machine, ready) = (Rc::clone(&machine), Rc::clone(&ready));
            async move {
                let member = register(&start, "all", 4).await.unwrap();
                let file = open(&member, &start, BYTES).await;
                ready.set(ready.get() + 1);
                if start.rank.0 % 2 == 0 {
                    start.world.sleep(TIMEOUT * 3).await;
                    return None;
                }
                machine.stop(node);
                let outcome = match is_transfer {
                    true => read(&member, &file, OwnPart::NOTHING).await.map(|_| ()),
                    false => member.all_gather(Vec::new()).await.map(|_| ()),
                };
                Some(outcome)
            }
        });
        let at = Rc::new(Cell::new(Instant::START));
        let kill = Kill { node, after: TIMEOUT * 2, ready: registered, ready_min: 4, at };
        let ended = cluster.run_on(programs, Some(kill));
        let outcomes = ended.into_iter().flatten().flatten();
        let faults: Vec<Fault> = outcomes.map(Result::unwrap_err).collect();
        assert_eq!(faults.len(), 2);
        for fault in faults {
            let Fault::MembersMissing { missing, .. } = &fault else { panic!("{fault}") };
            assert_eq!(missing, &[ClientId(2)]);
        }
    }
}

#[test]
fn a_name_serves_one_group_after_another() {
    let cluster = Cluster::<Bytes>::new(shape(7));
    cluster.run(0..3, |start| async move {
        let client = start.connect().await.unwrap();
        for round in 0..10_u8 {
            let own = vec![round, start.rank.0 as u8];
            let met = client.all_gather("again", (start.rank, 3), own, TIMEOUT).await.unwrap();
            assert_eq!(met, (0..3).map(|rank| vec![round, rank]).collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_member_that_dies_is_named_soon() {
    for_each_seed("group_calls", "a_member_that_dies_is_named_soon", 200, |seed| {
        let mut numbers = Numbers::new(seed);
        let victim = numbers.below(4) as u32;
        let cluster = Cluster::new(shape(seed));
        let ready = Rc::new(Cell::new(0));
        let programs = cluster.programs(&[0, 1, 2, 3], |start| {
            let ready = Rc::clone(&ready);
            async move {
                let member = register(&start, "all", 4).await.unwrap();
                let file = open(&member, &start, BYTES).await;
                ready.set(ready.get() + 1);
                loop {
                    let rank = u64::from(start.rank.0);
                    let part = OwnPart::contiguous(rank * BYTES / 4, BYTES / 4);
                    let moved = match seed % 3 {
                        0 => read(&member, &file, part).await.map(|_| ()),
                        1 => member.all_gather(vec![1]).await.map(|_| ()),
                        _ => {
                            let memory = vec![1; BYTES as usize / 4];
                            write(&member, &file, part, memory).await.map(|_| ())
                        }
                    };
                    if let Err(fault) = moved {
                        return (fault, start.now());
                    }
                }
            }
        });
        let at = Rc::new(Cell::new(Instant::START));
        let kill = Kill {
            node: cluster.shape.node_of(victim),
            after: Duration::from_us(numbers.below(3_000)),
            ready: Rc::clone(&ready),
            ready_min: 4,
            at: Rc::clone(&at),
        };
        let ended = cluster.run_on(programs, Some(kill));
        for (rank, end) in (0..).zip(ended).filter(|(rank, _)| *rank != victim) {
            let (fault, when) = end.unwrap();
            let named = matches!(&fault, Fault::ClientLeft { client, .. } if client.0 == victim);
            assert!(named, "rank {rank} must name {victim}, not: {fault}");
            assert!(when <= at.get() + Duration::from_ms(500), "rank {rank} learns too late");
        }
    });
}

/// A call in which members exchange data.
fn call_of_peers(numbers: &mut Numbers) -> PeerCall {
    let strategies =
        [Strategy::Caching, Strategy::TwoPhase, Strategy::GlobalBarrier, Strategy::NodeGrouping];
    PeerCall {
        strategy: numbers.pick(&strategies),
        direction: numbers.pick(&[Direction::Read, Direction::Write]),
        order: DiskOrder::Sorted,
        outstanding_per_disk: 1,
        node_group_size: 0,
        sync: false,
    }
}

#[test]
fn a_member_that_cannot_open_the_file_keeps_no_other_waiting() {
    let name = "a_member_that_cannot_open_the_file_keeps_no_other_waiting";
    for_each_seed("group_calls", name, 40, |seed| {
        let call = call_of_peers(&mut Numbers::new(seed));
        let cluster = Cluster::<Bytes>::new(shape(seed));
        let ended = cluster.run(0..4, move |start| async move {
            let member = register(&start, "all", 4).await.unwrap();
            let mut file = open(&member, &start, BYTES).await;
            if u64::from(start.rank.0) == seed % 4 {
                file.name = "gone".to_owned();
            }
            let part = OwnPart::contiguous(u64::from(start.rank.0) * BYTES / 4, BYTES / 4);
            let memory = start.world.thaw(vec![1; BYTES as usize / 4].into());
            let join = async || {
                let (client, members) = (member.client().clone(), start.members.clone());
                PeerMesh::join(client, seed, start.rank, members, TIMEOUT).await
            };
            let peers = Peers::new(0);
            let place = (&member, member.begin_call(), peers.take_turn());
            let moved = peers.transfer(place, &file, call, Ok(part), &memory, join).await;
            moved.unwrap_err()
        });
        for (rank, fault) in ended.iter().enumerate() {
            assert!(fault.to_string().contains("gone"), "rank {rank}: {fault}");
        }
    });
}

#[test]
fn a_server_that_dies_ends_the_call_of_every_member() {
    // Proves, for every strategy in which members exchange data: none waits for another that has
    // learned of the death before, wherever in the call that was.
    for_each_seed("group_calls", "a_server_that_dies_ends_the_call_of_every_member", 400, |seed| {
        let mut numbers = Numbers::new(seed);
        let call = call_of_peers(&mut numbers);
        let servers = 2 + numbers.below(3) as u32;
        let cluster = Cluster::new(Shape { servers, clients: 8, ..shape(seed) });
        // As in the library, members exchange data by clients of their own, which connect to
        // servers when they are needed.
        let members = (4..8).map(|client| support::address(cluster.shape.node_of(client)));
        let members: Rc<[Address]> = members.collect();
        let ready = Rc::new(Cell::new(0));
        let programs = cluster.programs(&[0, 1, 2, 3], |start| {
            let (ready, members) = (Rc::clone(&ready), Rc::clone(&members));
            let own = Start { world: cluster.world(4 + start.rank.0), ..start.clone() };
            async move {
                let member = register(&start, "all", 4).await.unwrap();
                let file = open(&member, &start, BYTES).await;
                let peers = Peers::new(0);
                ready.set(ready.get() + 1);
                loop {
                    let part = OwnPart::contiguous(u64::from(start.rank.0) * BYTES / 4, BYTES / 4);
                    let memory = own.world.thaw(vec![1; BYTES as usize / 4].into());
                    let join = async || {
                        let (client, members) = (own.connecting_when_needed(), members.clone());
                        PeerMesh::join(client, seed, start.rank, members, TIMEOUT).await
                    };
                    let number = member.begin_call();
                    let place = (&member, number, peers.take_turn());
                    let moved = peers.transfer(place, &file, call, Ok(part), &memory, join).await;
                    if let Err(fault) = moved {
                        let learned = start.now();
                        // Others may have ended this call well, and are in the next one.
                        start.world.sleep(Duration::from_ms(1_000)).await;
                        member.leave();
                        return (fault, learned, number);
                    }
                }
            }
        });
        let at = Rc::new(Cell::new(Instant::START));
        let kill = Kill {
            node: 1,
            after: Duration::from_us(numbers.below(6_000)),
            ready: Rc::clone(&ready),
            ready_min: 4,
            at: Rc::clone(&at),
        };
        let ended = cluster.run_on(programs, Some(kill));
        let first = ended.iter().flatten().map(|(_, _, number)| *number).min().unwrap();
        for (rank, end) in ended.into_iter().enumerate() {
            let (fault, when, number) = end.unwrap();
            if number > first {
                continue;
            }
            let of_server = matches!(&fault, Fault::ServerLeft { server, .. } if server.0 == 1);
            assert!(of_server, "rank {rank} by {}: {fault}", call.strategy);
            assert!(when <= at.get() + Duration::from_ms(500), "rank {rank} learns too late");
        }
    });
}
