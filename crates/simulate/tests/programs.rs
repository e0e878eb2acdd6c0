//! Proves: a program of computations takes as long as they do; ranks wait for one another in
//! messages and collectives; transfers go through the file system, and other machines give other
//! times, as do caches at the ranks; a program has one digest; one that never ends is refused.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use interface::Strategy;
use policy::{ClientCacheSpec, Level, Nested, OwnPart, WritePolicy};
use program::Program;
use simulate::{Machine, Point, ProgramOutcome, Scenario, simulate_points, simulate_program};
use std::ops::ControlFlow;
use std::sync::Arc;
use trace::{
    BtioClass, BtioMode, BtioProgram, Collective, Communicator, Direction, Event, FileNumber,
    Message, Operation, PartNumber, RankTrace, RequestNumber,
};
use units::Duration;

const MS: u64 = 1_000_000;

fn event(computed_ns: u64, operation: Operation) -> Event {
    Event { computed_ns, blocked_ns: 0, took_ns: 0, depends_on_timing: false, operation }
}

fn rank_of(ranks: u32, events: Vec<Event>) -> RankTrace {
    let mut all = vec![event(0, Operation::Begin)];
    all.extend(events);
    all.push(event(0, Operation::End));
    RankTrace {
        events: all,
        communicators: vec![(0..ranks).collect()],
        files: vec!["data".to_owned(); 4],
        parts: Vec::new(),
        is_cut: false,
    }
}

fn scenario(servers: u32) -> Scenario {
    Scenario { servers, ..Scenario::default() }
}

fn run(scenario: &Scenario, ranks: Vec<RankTrace>) -> ProgramOutcome {
    let program = Arc::new(Program::new(ranks).unwrap());
    simulate_program(scenario, &program, 1).expect("the program ends")
}

fn message(peer: u32, bytes: u64) -> Message {
    Message { communicator: Communicator(0), peer, tag: 5, bytes }
}

fn barrier(computed_ns: u64) -> Event {
    let (kind, communicator) = (Collective::Barrier, Communicator(0));
    event(
        computed_ns,
        Operation::Collective { kind, communicator, root: 0, bytes: 0, request: None },
    )
}

#[test]
fn computations_take_their_time_and_ranks_wait_for_the_slowest() {
    let ranks = (0..3).map(|rank| rank_of(3, vec![barrier(100 * MS * (rank + 1))]));
    let outcome = run(&scenario(1), ranks.collect());
    assert!((0.3..0.302).contains(&outcome.seconds), "{}", outcome.seconds);
    let waited = outcome.ranks[0].messages.as_seconds();
    assert!((0.2..0.202).contains(&waited), "rank 0 waits in the barrier: {waited}");
    assert_eq!(outcome.ranks[2].computing, Duration::from_ms(300));
}

#[test]
fn ranks_that_poll_take_cores_from_those_that_compute() {
    // Rank 0 waits while rank 1 computes, on one core that both share with the servers.
    let seconds = |kind, polls, shared_cores| {
        let meet = |computed_ns| {
            let communicator = Communicator(0);
            let (root, bytes, request) = (0, 8, None);
            event(computed_ns, Operation::Collective { kind, communicator, root, bytes, request })
        };
        let ranks = [0, 100].map(|ms| rank_of(2, vec![meet(ms * MS)]));
        let program = Program::new(ranks.into()).unwrap();
        let program = Arc::new(if polls { program.with_polling_ranks() } else { program });
        let mut scenario = scenario(1);
        scenario.machine.shared_cores = shared_cores;
        simulate_program(&scenario, &program, 1).expect("it ends").seconds
    };
    for (kind, polls, shared_cores, expected) in [
        (Collective::Barrier, true, 1, 0.2),
        (Collective::Agree, true, 1, 0.1),
        (Collective::Barrier, false, 1, 0.1),
        (Collective::Barrier, true, 2, 0.1),
        (Collective::Barrier, true, 0, 0.1),
    ] {
        let took = seconds(kind, polls, shared_cores);
        let near = expected..expected + 0.002;
        assert!(near.contains(&took), "{kind:?}, polls: {polls}, {shared_cores} cores: {took}");
    }
}

#[test]
fn a_program_connects_once() {
    let open = |file| {
        let (file, communicator, bytes) = (FileNumber(file), Communicator(0), 0);
        event(0, Operation::Open { file, communicator, creates: true, is_fresh: true, bytes })
    };
    let close = |file| event(0, Operation::Close { file: FileNumber(file) });
    let delete = || event(0, Operation::Delete { name: "data".to_owned() });
    let seconds = |connect_ms: u64, events: Vec<Event>| {
        let mut scenario = scenario(2);
        scenario.machine.connect = Duration::from_ms(connect_ms);
        scenario.machine.variation_percent = 0;
        run(&scenario, vec![rank_of(1, events)]).seconds
    };
    let twice = || vec![delete(), open(0), close(0), open(1), close(1), delete()];
    let added = seconds(300, twice()) - seconds(0, twice());
    assert!((0.299..0.301).contains(&added), "{added}");
    assert_eq!(seconds(300, vec![barrier(0)]), seconds(0, vec![barrier(0)]));
}

#[test]
fn a_receiver_waits_for_the_message_and_not_for_what_follows() {
    for bytes in [8, 1 << 20] {
        let send = Operation::Send {
            message: message(1, bytes),
            is_synchronous: false,
            request: Some(RequestNumber(3)),
        };
        let wait = Operation::Wait { requests: vec![RequestNumber(3)] };
        let sender = rank_of(2, vec![event(50 * MS, send), event(100 * MS, wait)]);
        let receive = Operation::Receive { message: message(0, bytes), request: None };
        let receiver = rank_of(2, vec![event(0, receive)]);
        let outcome = run(&scenario(1), vec![sender, receiver]);
        let waited = outcome.ranks[1].messages.as_seconds();
        // It waits at the end too, for the sender's.
        assert!((0.15..0.17).contains(&waited), "{bytes}: {waited}");
        assert!((0.15..0.17).contains(&outcome.seconds), "{bytes}: {}", outcome.seconds);
    }
}

#[test]
fn a_synchronous_send_waits_for_its_receiver() {
    let send = Operation::Send { message: message(1, 8), is_synchronous: true, request: None };
    let receive = Operation::Receive { message: message(0, 8), request: None };
    let ranks = vec![
        rank_of(2, vec![event(0, send), event(100 * MS, Operation::Wait { requests: vec![] })]),
        rank_of(2, vec![event(100 * MS, receive)]),
    ];
    let outcome = run(&scenario(1), ranks);
    assert!((0.2..0.202).contains(&outcome.seconds), "{}", outcome.seconds);
}

#[test]
fn a_program_of_too_many_blocks_is_refused_before_it_runs() {
    // Proves: the blocks that a program moves count, not the size of the scenario's file, and the
    // error names the key; all points are checked before the first runs.
    let transfer = Operation::Transfer {
        file: FileNumber(0),
        direction: Direction::Write,
        is_collective: false,
        part: Some(PartNumber(0)),
        shift: 1 << 20,
        request: None,
    };
    let open = Operation::Open {
        file: FileNumber(0),
        communicator: Communicator(0),
        creates: true,
        is_fresh: true,
        bytes: 0,
    };
    let close = Operation::Close { file: FileNumber(0) };
    let rank = |bytes: u64| RankTrace {
        parts: vec![OwnPart::contiguous(0, bytes)],
        ..rank_of(1, [&open, &transfer, &close].map(|it| event(0, it.clone())).to_vec())
    };
    let program = |bytes: u64| Arc::new(Program::new(vec![rank(bytes)]).unwrap());
    let bytewise = Scenario { block_bytes: 1, ..scenario(2) };
    let mut bytewise = Scenario { strategy: Strategy::Caching, ..bytewise };
    bytewise.machine.cache_bytes = 1 << 30;
    let refused = simulate_program(&bytewise, &program(16 << 20), 1).unwrap_err();
    assert!(refused.cause.contains("16777216 blocks in the caches of servers"), "{refused}");
    assert!(refused.help.contains("block"), "{refused}");
    simulate_program(&bytewise, &program(100), 1).expect("a hundred blocks fit");
    let point = |scenario: &Scenario| Point { values: Vec::new(), scenario: scenario.clone() };
    let points = [point(&scenario(2)), point(&bytewise)];
    let none_begins = |_| -> ControlFlow<()> { panic!("no point may run") };
    let refused = simulate_points(&points, &program(16 << 20), Some(1), &none_begins).unwrap_err();
    assert!(refused.cause.contains("16777216 blocks"), "{refused}");
}

/// Ranks that write one file by records of 512 bytes each in turn, and read it again.
fn writers(ranks: u32, records: u64, repeat: u64, computed_ns: u64) -> Vec<RankTrace> {
    let communicator = Communicator(0);
    let file = FileNumber(0);
    let of = |rank: u32| {
        let bytes = u64::from(ranks) * records * 512;
        let level =
            Level { count: records, file_stride: 512 * u64::from(ranks), memory_stride: 512 };
        let own = Nested {
            file_offset: 512 * u64::from(rank),
            memory_offset: 0,
            length: 512,
            levels: vec![level],
        };
        let open = Operation::Open { file, communicator, creates: true, is_fresh: true, bytes: 0 };
        let mut events = vec![event(0, open)];
        for direction in [Direction::Write, Direction::Read] {
            for round in 0..repeat {
                events.push(event(
                    computed_ns,
                    Operation::Transfer {
                        file,
                        direction,
                        is_collective: true,
                        part: Some(PartNumber(0)),
                        shift: round * bytes,
                        request: None,
                    },
                ));
            }
        }
        events.push(event(0, Operation::Sync { file }));
        events.push(event(0, Operation::Close { file }));
        RankTrace { parts: vec![OwnPart::Nested(vec![own])], ..rank_of(ranks, events) }
    };
    (0..ranks).map(of).collect()
}

#[test]
fn transfers_go_through_the_file_system() {
    // 4 MiB in 512 blocks, each way, on disks of about 2 MB/s.
    let one = run(&scenario(1), writers(4, 256, 8, 0));
    let four = run(&scenario(4), writers(4, 256, 8, 0));
    assert!((2.0..6.0).contains(&one.seconds), "{}", one.seconds);
    assert!(four.seconds < 0.4 * one.seconds, "{} and {}", four.seconds, one.seconds);
    let report = one.ranks[3];
    assert_eq!((report.written_bytes, report.read_bytes, report.transfers), (1 << 20, 1 << 20, 16));
    assert!(report.files.as_seconds() > 0.9 * one.seconds);
    // The machine of ideal disks has no mechanics.
    let ideal = Scenario { machine: Machine::of("ideal-disks".parse().unwrap()), ..scenario(1) };
    assert!(run(&ideal, writers(4, 256, 8, 0)).seconds < one.seconds);
    // Computation between the transfers adds to them.
    let computing = run(&scenario(4), writers(4, 256, 8, 50 * MS));
    let sum = four.seconds + 16.0 * 0.05;
    assert!((0.8 * sum..1.05 * sum).contains(&computing.seconds), "{}", computing.seconds);
}

#[test]
fn transfers_that_only_begin_overlap_with_computation() {
    let bytes = 1 << 20;
    let program = |request: Option<RequestNumber>| {
        let (file, communicator) = (FileNumber(0), Communicator(0));
        let open = Operation::Open { file, communicator, creates: true, is_fresh: true, bytes: 0 };
        let write = Operation::Transfer {
            file,
            direction: Direction::Write,
            is_collective: false,
            part: Some(PartNumber(0)),
            shift: 0,
            request,
        };
        let wait = Operation::Wait { requests: request.into_iter().collect() };
        let events = vec![
            event(0, open),
            event(0, write),
            event(300 * MS, wait),
            event(0, Operation::Close { file }),
        ];
        let parts = vec![OwnPart::contiguous(0, bytes)];
        vec![RankTrace { parts, ..rank_of(1, events) }]
    };
    let waiting = run(&scenario(1), program(None));
    let overlapping = run(&scenario(1), program(Some(RequestNumber(0))));
    let gained = waiting.seconds - overlapping.seconds;
    assert!(gained > 0.25, "{} and {}", waiting.seconds, overlapping.seconds);
    assert!(overlapping.seconds >= 0.3);
}

#[test]
fn independent_requests_of_many_sizes_arrive() {
    let (file, communicator) = (FileNumber(1), Communicator(0));
    let open =
        Operation::Open { file, communicator, creates: false, is_fresh: false, bytes: 1 << 22 };
    let mut events = vec![event(0, open)];
    for (number, shift) in [(0, 0), (1, 100_000), (2, 4096), (0, 1 << 21)] {
        events.push(event(
            0,
            Operation::Transfer {
                file,
                direction: Direction::Read,
                is_collective: false,
                part: Some(PartNumber(number)),
                shift,
                request: None,
            },
        ));
    }
    events.push(event(0, Operation::GetSize { file }));
    events.push(event(0, Operation::SetSize { file, bytes: 1000, only_grows: false }));
    events.push(event(0, Operation::Close { file }));
    events.push(event(0, Operation::Delete { name: "data".to_owned() }));
    let strided = Nested {
        file_offset: 0,
        memory_offset: 0,
        length: 100,
        levels: vec![Level { count: 50, file_stride: 1000, memory_stride: 100 }],
    };
    let parts = vec![
        OwnPart::contiguous(0, 640),
        OwnPart::contiguous(0, 1 << 20),
        OwnPart::Nested(vec![strided]),
    ];
    let outcome = run(&scenario(2), vec![RankTrace { parts, ..rank_of(1, events) }]);
    assert_eq!(outcome.ranks[0].read_bytes, 640 + (1 << 20) + 5000 + 640);
}

/// A rank that writes a new file, piece by piece, and reads it again and again.
fn reads_again(is_collective: bool) -> Vec<RankTrace> {
    let (file, communicator) = (FileNumber(0), Communicator(0));
    let open = Operation::Open { file, communicator, creates: true, is_fresh: true, bytes: 0 };
    let mut events = vec![event(0, open)];
    let directions = [Direction::Write, Direction::Read, Direction::Read, Direction::Read];
    for direction in directions {
        for piece in 0..40 {
            events.push(event(
                0,
                Operation::Transfer {
                    file,
                    direction,
                    is_collective,
                    part: Some(PartNumber(0)),
                    shift: piece * 5000,
                    request: None,
                },
            ));
        }
    }
    events.push(event(0, Operation::Sync { file }));
    events.push(event(0, Operation::Close { file }));
    let parts = vec![OwnPart::contiguous(0, 5000)];
    vec![RankTrace { parts, ..rank_of(1, events) }]
}

#[test]
fn programs_use_caches_at_their_ranks() {
    for is_collective in [false, true] {
        for write in [WritePolicy::Through, WritePolicy::Back] {
            let without = Scenario { strategy: Strategy::Caching, ..scenario(2) };
            let client_cache = ClientCacheSpec { lines: 64, write, ..ClientCacheSpec::default() };
            let with = Scenario { client_cache, ..without.clone() };
            let slow = run(&without, reads_again(is_collective));
            let fast = run(&with, reads_again(is_collective));
            let (slow_s, fast_s) = (slow.seconds, fast.seconds);
            assert!(fast_s < slow_s, "{is_collective} {write}: {fast_s} and {slow_s}");
            assert_eq!(fast.ranks[0].read_bytes, slow.ranks[0].read_bytes);
            // Other strategies do not use them.
            let directed = |scenario: &Scenario| {
                let scenario = Scenario { strategy: Strategy::DiskDirected, ..scenario.clone() };
                run(&scenario, reads_again(is_collective)).digest
            };
            assert_eq!(directed(&with), directed(&without));
        }
    }
}

#[test]
fn two_phase_transfers_leave_the_rest_of_a_file_alone() {
    // Dumps are appended, so the file grows, and a dump costs no more for that.
    let of = |dumps| {
        let program = BtioProgram {
            class: BtioClass::W,
            mode: BtioMode::Full,
            ranks: 4,
            dumps,
            computed_ns: 0,
            sync: true,
        };
        let scenario = Scenario { strategy: Strategy::TwoPhase, ..scenario(2) };
        run(&scenario, program.rank_traces().unwrap()).server_requests
    };
    let (one, two, six) = (of(1), of(2), of(6));
    assert!(two > one, "requests are counted: {one} and {two}");
    // A dump has 67.5 blocks, and may begin in one that it shares with the one before.
    assert!(six - one <= 5 * (two - one + 2), "{one}, {two} and {six} requests");
}

#[test]
fn a_program_has_one_digest() {
    let first = run(&scenario(2), writers(3, 100, 3, MS));
    assert_eq!(first, run(&scenario(2), writers(3, 100, 3, MS)));
    assert_ne!(first.digest, run(&scenario(2), writers(3, 100, 3, 2 * MS)).digest);
}

#[test]
fn a_program_that_never_ends_is_refused() {
    // Each rank sends what the other waits for after it has received.
    let waits_first = |peer: u32| {
        let message = message(peer, 8);
        let receive = Operation::Receive { message, request: None };
        let send = Operation::Send { message, is_synchronous: false, request: None };
        rank_of(2, vec![event(0, receive), event(0, send)])
    };
    let program = Arc::new(Program::new(vec![waits_first(1), waits_first(0)]).unwrap());
    let error = simulate_program(&scenario(1), &program, 1).expect_err("nobody sends first");
    assert_eq!(error.error, "the simulated program does not end");
}

#[test]
fn a_read_beyond_the_end_fails() {
    let mut ranks = writers(2, 100, 1, 0);
    for rank in &mut ranks {
        rank.events.remove(2);
    }
    let program = Arc::new(Program::new(ranks).unwrap());
    let error = simulate_program(&scenario(1), &program, 1).expect_err("nobody wrote");
    assert_eq!(error.error, "the simulated program failed", "{error:?}");
}
