//! Proves: events of typical programs take at most 10 bytes, and come back. Prints the time of
//! writing and of reading each, which depends on the build and the machine.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use fastrand::Rng;
use policy::{Direction, Level, Nested, OwnPart};
use std::time::Instant;
use trace::{
    Collective, Communicator, Event, FileNumber, Header, Message, Operation, Recorded,
    RequestNumber, Trace, Writer,
};

const RANK: u32 = 5;
const RANKS: u32 = 16;
const EVENTS: usize = 200_000;

/// Times of a program: it computes for about `computed_ns` and its calls take about `took_ns`.
fn event(random: &mut Rng, computed_ns: u64, took_ns: u64, operation: Operation) -> Event {
    let mut near = |ns: u64| ns / 2 + random.u64(0..=ns);
    Event {
        computed_ns: near(computed_ns),
        blocked_ns: 0,
        took_ns: near(took_ns),
        depends_on_timing: false,
        operation,
    }
}

fn transfer(
    writer: &mut Writer,
    file: FileNumber,
    direction: Direction,
    part: &OwnPart,
) -> Operation {
    let placed = writer.part(part).unwrap();
    Operation::Transfer {
        file,
        direction,
        is_collective: false,
        part: placed.map(|placed| placed.part),
        shift: placed.map_or(0, |placed| placed.shift),
        request: None,
    }
}

fn header() -> Header {
    Header {
        schema: Header::SCHEMA.to_owned(),
        command: vec!["./app".to_owned()],
        ranks: 1,
        hosts: vec!["here".to_owned()],
        mpi: "MPI".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        recorded: Recorded::Program,
        instance: None,
        processor_pressure_percent: None,
        steal_percent: None,
        not_recorded: Vec::new(),
    }
}

/// Measures the stream of a program that is made of calls, and reads it back.
fn measure(name: &str, mut next: impl FnMut(&mut Writer, &mut Rng, usize) -> Event) {
    let room = tempfile::tempdir().unwrap();
    let mut random = Rng::with_seed(7);
    let mut writer = Writer::create(room.path(), (RANK, RANKS), "here", "MPI").unwrap();
    let before = writer.bytes();
    let mut events = Vec::with_capacity(EVENTS);
    let mut spent = std::time::Duration::ZERO;
    for index in 0..EVENTS {
        // The part is looked up in `next`, which the recorder does too.
        let begun = Instant::now();
        let event = next(&mut writer, &mut random, index);
        writer.write(&event).unwrap();
        spent += begun.elapsed();
        events.push(event);
    }
    let bytes = (writer.bytes() - before) as f64 / EVENTS as f64;
    writer.close().unwrap();
    let stream = |rank| room.path().join(format!("rank-{rank:05}.events"));
    // A header for all ranks needs a stream of each.
    for rank in (0..RANKS).filter(|rank| *rank != RANK) {
        Writer::create(room.path(), (rank, RANKS), "here", "MPI").unwrap().close().unwrap();
    }
    let hosts = vec!["here".to_owned(); RANKS as usize];
    Header { ranks: RANKS, hosts, ..header() }.write(room.path()).unwrap();
    assert!(stream(RANK).exists());
    let begun = Instant::now();
    let trace = Trace::open(room.path()).unwrap();
    let read = begun.elapsed();
    assert_eq!(known(&trace.ranks[RANK as usize].events), known(&events));
    println!(
        "{name}: {bytes:.2} B/event, {:.0} ns to make and write, {:.0} ns to read",
        spent.as_nanos() as f64 / EVENTS as f64,
        read.as_nanos() as f64 / EVENTS as f64,
    );
    assert!(bytes <= 10.0, "{name}: {bytes:.2} bytes an event");
}

#[test]
fn writes_of_small_cells_at_explicit_offsets() {
    // BTIO simple, class A, 16 ranks: 40 bytes of a cell row, rows of a 64^3 grid.
    let mut file = None;
    measure("BTIO simple", |writer, random, index| {
        let file = *file.get_or_insert_with(|| writer.file("btio.out").unwrap());
        let (row, step) = (index as u64 % 4096, index as u64 / 4096);
        let part = OwnPart::contiguous(step * 10_485_760 + row * 2560 + 640, 640);
        let operation = transfer(writer, file, Direction::Write, &part);
        event(random, 900, 12_000, operation)
    });
}

#[test]
fn collective_writes_through_one_view() {
    // BTIO full: four cells a rank, each a sub-array, at an offset that advances by a step.
    let mut file = None;
    measure("BTIO full", |writer, random, index| {
        let file = *file.get_or_insert_with(|| writer.file("btio.out").unwrap());
        let cell = |cell: u64| Nested {
            file_offset: index as u64 * 10_485_760 + cell * 2_621_440 + cell * 640,
            memory_offset: cell * 163_840,
            length: 640,
            levels: vec![
                Level { count: 16, file_stride: 2560, memory_stride: 640 },
                Level { count: 16, file_stride: 163_840, memory_stride: 10_240 },
            ],
        };
        let part = OwnPart::Nested((0..4).map(cell).collect());
        let operation = match transfer(writer, file, Direction::Write, &part) {
            Operation::Transfer { file, direction, part, shift, request, .. } => {
                let is_collective = true;
                Operation::Transfer { file, direction, is_collective, part, shift, request }
            }
            other => other,
        };
        event(random, 40_000_000, 9_000_000, operation)
    });
}

#[test]
fn random_blocks() {
    // IOR -z: 8 KiB anywhere in 4 GiB.
    let mut file = None;
    measure("random 8 KiB", |writer, random, _| {
        let file = *file.get_or_insert_with(|| writer.file("ior.out").unwrap());
        let part = OwnPart::contiguous(random.u64(0..524_288) * 8192, 8192);
        let operation = transfer(writer, file, Direction::Read, &part);
        event(random, 1500, 60_000, operation)
    });
}

#[test]
fn exchanges_with_neighbours() {
    // A halo exchange: four receives and four sends that begin, a wait for all, a reduction.
    let peers = [1, 4, 6, 9];
    measure("halo exchange", |_, random, index| {
        let (communicator, turn) = (Communicator(0), index % 10);
        let request = Some(RequestNumber(turn as u32));
        let message = |peer: usize| Message {
            communicator,
            peer: peers[peer],
            tag: peer as i32,
            bytes: 16_384,
        };
        let (computed_ns, took_ns, operation) = match turn {
            0..4 => (300, 600, Operation::Receive { message: message(turn), request }),
            4..8 => {
                let message = message(turn - 4);
                (400, 900, Operation::Send { message, is_synchronous: false, request })
            }
            8 => {
                let requests = (0..8).map(RequestNumber).collect();
                (1_000_000, 200_000, Operation::Wait { requests })
            }
            _ => {
                let (kind, root, bytes) = (Collective::AllReduce, 0, 8);
                let operation =
                    Operation::Collective { kind, communicator, root, bytes, request: None };
                (80_000, 150_000, operation)
            }
        };
        event(random, computed_ns, took_ns, operation)
    });
}

#[test]
fn receives_from_anybody() {
    // A receive of whatever comes: its message is told before the wait.
    let mut waits = None;
    let mut next = 0;
    measure("receives from anybody", |writer, random, _| {
        let communicator = Communicator(0);
        if let Some(request) = waits.take() {
            next += 1;
            writer.received(request, next % RANKS, 3, 4096).unwrap();
            let wait = Operation::Wait { requests: vec![request] };
            return event(random, 2000, 40_000, wait);
        }
        let request = RequestNumber(0);
        waits = Some(request);
        let message = Message {
            communicator,
            peer: Message::UNKNOWN_PEER,
            tag: Message::UNKNOWN_TAG,
            bytes: 0,
        };
        let receive = Operation::Receive { message, request: Some(request) };
        event(random, 9000, 700, receive)
    });
}

/// Events without the messages of receives, which may be told later.
fn known(events: &[Event]) -> Vec<Event> {
    let known = |event: &Event| match &event.operation {
        Operation::Receive { message, request: Some(request) } => Event {
            operation: Operation::Wait { requests: vec![*request] },
            took_ns: u64::from(message.communicator.0),
            ..event.clone()
        },
        _ => event.clone(),
    };
    events.iter().map(known).collect()
}
