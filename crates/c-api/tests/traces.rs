//! Proves: a C program that is compiled with all warnings and with the sanitizers of gcc writes the
//! stream that the crate `trace` reads; bad arguments and forked children get errors.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use policy::{Level, Nested, OwnPart};
use std::process::Command;
use support::{compile, done};
use trace::{
    Collective, Communicator, Direction, Event, FileNumber, Header, Message, Operation, PartNumber,
    Recorded, RequestNumber, Trace, Writer,
};

fn times(computed_ns: u64, operation: Operation) -> Event {
    Event { computed_ns, blocked_ns: 0, took_ns: 7, depends_on_timing: false, operation }
}

fn message(communicator: u32, tag: i32, bytes: u64) -> Message {
    Message { communicator: Communicator(communicator), peer: 0, tag, bytes }
}

/// Calls of `tests/c/trace.c`.
fn expected() -> Vec<Event> {
    let file = FileNumber(0);
    let transfer = |direction, is_collective, part, request| {
        let shift = if part { 5000 } else { 0 };
        let part = part.then_some(PartNumber(0));
        times(2, Operation::Transfer { file, direction, is_collective, part, shift, request })
    };
    let (write, read) = (Direction::Write, Direction::Read);
    let wait = |request| times(2, Operation::Wait { requests: vec![RequestNumber(request)] });
    let message_sent = message(1, 5, 100);
    let send = Operation::Send { message: message_sent, is_synchronous: true, request: None };
    let received = message(0, 6, 200);
    vec![
        times(1, Operation::Begin),
        Event { blocked_ns: 11, depends_on_timing: true, ..times(1, send) },
        times(2, Operation::Receive { message: received, request: Some(RequestNumber(3)) }),
        wait(3),
        times(
            2,
            Operation::Collective {
                kind: Collective::AllReduce,
                communicator: Communicator(2),
                root: 0,
                bytes: 8,
                request: None,
            },
        ),
        times(
            2,
            Operation::Open {
                file,
                communicator: Communicator(1),
                creates: true,
                is_fresh: true,
                bytes: 0,
            },
        ),
        transfer(write, true, true, None),
        transfer(read, false, true, Some(RequestNumber(4))),
        transfer(write, true, false, None),
        wait(4),
        times(2, Operation::Sync { file }),
        times(2, Operation::SetSize { file, bytes: 4096, only_grows: true }),
        times(2, Operation::GetSize { file }),
        times(2, Operation::Close { file }),
        times(2, Operation::Delete { name: "data/out".to_owned() }),
        times(2, Operation::End),
    ]
}

#[test]
fn a_c_program_writes_a_stream() {
    let room = tempfile::Builder::new().prefix("unisono-c-").tempdir().unwrap();
    let (program, directory) = (room.path().join("trace"), room.path().join("app.trace"));
    std::fs::create_dir(&directory).unwrap();
    compile("trace", &program);
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "300"]).arg(&program).arg(&directory);
    done(command);
    // The program's refused calls were for rank 0.
    Writer::create(&directory, (0, 2), "there", "MPI").unwrap().close().unwrap();
    let header = Header {
        schema: Header::SCHEMA.to_owned(),
        command: vec!["./app".to_owned()],
        ranks: 2,
        hosts: vec!["there".to_owned(), "here".to_owned()],
        mpi: "MPI of a test".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        recorded: Recorded::Program,
        instance: None,
        processor_pressure_percent: None,
        steal_percent: None,
        not_recorded: Vec::new(),
    };
    header.write(&directory).unwrap();
    let trace = Trace::open(&directory).unwrap();
    let rank = &trace.ranks[1];
    assert_eq!(rank.events, expected());
    assert!(!rank.is_cut && trace.ranks[0].is_cut);
    assert_eq!(rank.communicators, [vec![0, 1], vec![1, 0], vec![1, 0]]);
    assert_eq!(rank.files, ["data/out"]);
    let level = Level { count: 4, file_stride: 100, memory_stride: 10 };
    let nest = Nested { file_offset: 0, memory_offset: 0, length: 10, levels: vec![level] };
    assert_eq!(rank.parts, [OwnPart::Nested(vec![nest])]);
    let starts = trace::stream_starts(&directory).unwrap();
    assert_eq!(starts[1].as_ref().map(|start| start.mpi.as_str()), Some("MPI of a test"));
}
