//! Proves: a process that is killed leaves a readable stream with all that it had written; a full
//! disk is an error that stays and no signal, and leaves the stream readable.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use interface::ErrorKind;
use policy::{Direction, OwnPart};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use trace::{Event, Header, Operation, Recorded, Trace, Writer};

/// Says to a process of this test what it shall write, and where.
const CHILD: &str = "UNISONO_TEST_TRACE_CHILD";

/// Events that are written before the process says so: several windows of the file.
const EVENTS: usize = 500_000;

fn event(operation: Operation) -> Event {
    Event {
        computed_ns: 1 << 20,
        blocked_ns: 0,
        took_ns: 1 << 20,
        depends_on_timing: false,
        operation,
    }
}

fn writer(directory: &Path) -> Writer {
    let mut writer = Writer::create(directory, (0, 1), "here", "MPI").unwrap();
    writer.write(&event(Operation::Begin)).unwrap();
    writer.file("file").unwrap();
    writer
}

/// Writes a transfer whose offset is the number of the event.
fn transfer(writer: &mut Writer, index: usize) -> Result<(), interface::UserError> {
    let placed = writer.part(&OwnPart::contiguous(index as u64, 8))?.unwrap();
    writer.write(&event(Operation::Transfer {
        file: trace::FileNumber(0),
        direction: Direction::Write,
        is_collective: false,
        part: Some(placed.part),
        shift: placed.shift,
        request: None,
    }))
}

fn header(directory: &Path) {
    let header = Header {
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
    };
    header.write(directory).unwrap();
}

/// The offsets of the transfers are the numbers of the events.
fn in_order(trace: &Trace) -> usize {
    let transfers = trace.ranks[0].events.iter().skip(1);
    for (index, event) in transfers.clone().enumerate() {
        assert!(
            matches!(&event.operation, Operation::Transfer { shift, .. } if *shift == index as u64)
        );
    }
    transfers.count()
}

/// Process that writes until it is killed.
#[test]
fn child_that_is_killed() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let mut writer = writer(Path::new(&directory));
    for index in 0.. {
        transfer(&mut writer, index).unwrap();
        if index == EVENTS {
            println!("written");
        }
    }
}

/// Process that writes until its disk is full.
#[test]
fn child_on_a_full_disk() {
    let Some(directory) = std::env::var_os(CHILD) else { return };
    let directory = Path::new(&directory);
    let mut writer = writer(directory);
    let (written, error) =
        (0..).find_map(|index| Some((index, transfer(&mut writer, index).err()?))).unwrap();
    assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
    assert_eq!(error.kind.row().errno, 28, "ENOSPC");
    assert_eq!(transfer(&mut writer, written), Err(error.clone()));
    assert_eq!(writer.file("another"), Err(error.clone()));
    assert_eq!(writer.close(), Err(error));
    std::fs::remove_file(directory.join("filler")).unwrap();
    header(directory);
    let trace = Trace::open(directory).unwrap();
    assert!(trace.ranks[0].is_cut);
    assert_eq!(in_order(&trace), written);
    println!("a full disk was an error");
}

fn child(test: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(CHILD, directory);
    command.stdout(Stdio::piped());
    command
}

#[test]
fn a_killed_process_leaves_a_readable_stream() {
    let room = tempfile::tempdir().unwrap();
    header(room.path());
    let mut process = child("child_that_is_killed", room.path()).spawn().unwrap();
    let mut output = process.stdout.take().unwrap();
    let (mut said, mut byte) = (String::new(), [0]);
    while !said.contains("written") {
        assert_eq!(output.read(&mut byte).unwrap(), 1, "{said}");
        said.push(byte[0] as char);
    }
    // While the process writes, and after its end.
    let first = Trace::open(room.path()).unwrap();
    assert!(first.ranks[0].is_cut && in_order(&first) > EVENTS);
    process.kill().unwrap();
    process.wait().unwrap();
    let last = Trace::open(room.path()).unwrap();
    assert!(last.ranks[0].is_cut && in_order(&last) >= in_order(&first));
    let refused = trace::check(&last.ranks).unwrap_err();
    assert!(refused.cause.contains("rank 0 was killed"), "{refused}");
}

#[test]
fn a_full_disk_is_an_error() {
    // A file system of its own, which goes with the process.
    let room = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=4m tmpfs \"$0\" || exit 77; \
                  head -c 500000 /dev/zero > \"$0/filler\"; exec \"$@\"";
    let child = child("child_on_a_full_disk", room.path());
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", script]).arg(room.path());
    command.arg(child.get_program()).args(child.get_args()).env(CHILD, room.path());
    match command.output() {
        Ok(output) if output.status.code() != Some(77) && !output.stdout.is_empty() => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{said}");
            assert!(said.contains("a full disk was an error"), "{said}");
        }
        _ => println!("skipped: this process may not mount a small file system"),
    }
}
