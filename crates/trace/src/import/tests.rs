//! Proves: segments of a log become transfers with the times between them blocked; each malformed
//! line is refused with its number, and leaves no trace behind.

use super::{Imported, import_dxt};
use crate::check::check;
use crate::directory::{Trace, stream_starts};
use crate::event::{Direction, FileNumber, Operation};
use crate::header::Recorded;
use interface::ErrorKind;
use policy::OwnPart;

const LOG: &str = "\
# darshan log version: 3.41
# exe: ./app -n 4
# nprocs: 3
# start_time: 1570810440
# run time: 2.5

# ***************************************************
# DXT_POSIX module data
# ***************************************************

# DXT, file_id: 16457598720760448348, file_name: /scratch/out
# DXT, rank: 0, hostname: one
# DXT, write_count: 2, read_count: 1
# DXT, mnt_pt: /scratch, fs_type: lustre
# DXT, Lustre stripe_size: 1048576, Lustre stripe_count: 1
# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)  [OST]
 X_POSIX       0  write        0             0    262144    0.5000    0.7000  [  3]
 X_POSIX       0  write        1        262144    262144    0.6000    1.0000  [  3]
 X_POSIX       0   read        0        524288       100    2.0000    2.0001  [  3]  [  4]

# DXT, file_id: 7, file_name: /scratch/in
# DXT, rank: 2, hostname: two
 X_POSIX       2   read        0             0       512    0.1000    0.2000

# DXT_MPIIO module data
# DXT, file_id: 7, file_name: /scratch/in
# DXT, rank: 2, hostname: two
 X_MPIIO       2   read        0             0      1024    0.0000    0.3000
 X_MPIIO       2   read        1          1024         0    0.4000    0.4000
";

fn times(event: &crate::event::Event) -> (u64, u64) {
    (event.blocked_ns, event.took_ns)
}

#[test]
fn segments_become_transfers() {
    let room = tempfile::tempdir().unwrap();
    let directory = room.path().join("app.trace");
    let imported = import_dxt("log", LOG.as_bytes(), &directory).unwrap();
    assert_eq!(imported, Imported { ranks: 3, segments: 5, left_out: 1 });
    let trace = Trace::open(&directory).unwrap();
    let header = trace.header();
    assert_eq!(header.recorded, Recorded::DarshanDxt);
    assert_eq!(header.hosts, ["one", "unknown", "two"]);
    assert_eq!(header.command, ["./app", "-n", "4"]);
    assert_eq!(header.started, "2019-10-11T16:14:00Z");
    check(&trace.ranks).unwrap();
    let starts = stream_starts(&directory).unwrap();
    assert_eq!(starts.len(), 3);
    assert_eq!(starts[2].as_ref().map(|start| start.host.as_str()), Some("two"));

    let first = &trace.ranks[0];
    assert_eq!(first.files, ["/scratch/out"]);
    assert_eq!(first.communicators, [vec![0, 1, 2], vec![0]]);
    let names: Vec<_> = first.events.iter().map(|event| event.operation.name()).collect();
    let (open, write) = ("MPI_File_open", "MPI_File_write");
    let expected =
        ["MPI_Init", open, write, write, "MPI_File_read", "MPI_File_close", "MPI_Finalize"];
    assert_eq!(names, expected);
    // Threads overlap for 0.1 s, which count once.
    assert_eq!(times(&first.events[2]), (500_000_000, 200_000_000));
    assert_eq!(times(&first.events[3]), (0, 300_000_000));
    assert_eq!(times(&first.events[4]), (1_000_000_000, 100_000));
    assert_eq!(times(&first.events[6]), (499_900_000, 0));
    // The program wrote the file before it read it, so it need not be there.
    assert!(matches!(
        first.events[1].operation,
        Operation::Open { creates: true, is_fresh: false, bytes: 0, .. }
    ));
    let Operation::Transfer { part: Some(part), shift, direction, .. } = first.events[3].operation
    else {
        panic!("it is a transfer");
    };
    assert_eq!((shift, direction), (262_144, Direction::Write));
    assert_eq!(first.parts[part.0 as usize], OwnPart::contiguous(0, 262_144));

    assert_eq!(trace.ranks[1].events.len(), 2);
    let last = &trace.ranks[2];
    // MPI-IO, and not the calls of the system below it.
    assert_eq!(last.events.len(), 6);
    assert!(matches!(
        last.events[1].operation,
        Operation::Open { creates: false, bytes: 1024, .. }
    ));
    let nothing = Operation::Transfer {
        file: FileNumber(0),
        direction: Direction::Read,
        is_collective: false,
        part: None,
        shift: 0,
        request: None,
    };
    assert_eq!(last.events[3].operation, nothing);
}

#[test]
fn malformed_lines_are_refused_with_their_numbers() {
    let room = tempfile::tempdir().unwrap();
    let directory = room.path().join("app.trace");
    let good = " X_POSIX       0  write        1        262144    262144       0.6       1.0";
    let wrong = [
        ("X_STDIO 0 write 1 0 4 0.6 1.0", "neither X_POSIX nor X_MPIIO"),
        ("X_POSIX -1 write 1 0 4 0.6 1.0", "no rank"),
        ("X_POSIX 3 write 1 0 4 0.6 1.0", "one of the processes"),
        ("X_POSIX 1 write 1 0 4 0.6 1.0", "that of its table is another"),
        ("X_POSIX 0 wrote 1 0 4 0.6 1.0", "neither write nor read"),
        ("X_POSIX 0 write x 0 4 0.6 1.0", "no number of a segment"),
        ("X_POSIX 0 write 1 -2 4 0.6 1.0", "no number of bytes"),
        ("X_POSIX 0 write 1 4611686018427387904 4 0.6 1.0", "do not fit"),
        ("X_POSIX 0 write 1 0 4 nan 1.0", "no time"),
        ("X_POSIX 0 write 1 0 4 0.6 inf", "no time"),
        ("X_POSIX 0 write 1 0 4 0.6 0.5", "ends before it begins"),
        ("X_POSIX 0 write 1 0 4 0.6", "has no end"),
        ("X_POSIX", "has no rank"),
        ("X_POSIX 0 write 1 0 4 0.6 1.0 7", "follows the end"),
    ];
    for (line, cause) in wrong {
        let text = LOG.replacen(LOG.lines().nth(17).unwrap(), line, 1);
        let error = import_dxt("log", text.as_bytes(), &directory).unwrap_err();
        assert!(error.cause.starts_with("line 18: "), "{line}: {error}");
        assert!(error.cause.contains(cause), "{line}: {error}");
        assert!(!directory.exists());
    }
    let early = import_dxt("log", good.as_bytes(), &directory).unwrap_err();
    assert_eq!(early.cause, "line 1: no line before it names its file");
    let long = format!("#{}", "x".repeat(1 << 18));
    assert!(import_dxt("log", long.as_bytes(), &directory).unwrap_err().cause.contains("too long"));
    let binary = import_dxt("log", &b"\n\xff\xfe\n"[..], &directory).unwrap_err();
    assert_eq!(binary.cause, "line 2: it is not UTF-8");
    let empty = import_dxt("log", &b"# nothing\n"[..], &directory).unwrap_err();
    assert!(empty.cause.contains("no segments"));
    std::fs::create_dir(&directory).unwrap();
    let taken = import_dxt("log", LOG.as_bytes(), &directory).unwrap_err();
    assert_eq!(taken.kind, ErrorKind::AlreadyExists);
}
