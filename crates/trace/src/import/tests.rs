//! Proves: segments of a log become transfers with the times between them blocked; each malformed
//! line is refused with its number, and leaves no trace behind; logs of all releases are imported.

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

fn imported_of(ranks: u32, segments: u64, left_out: u64) -> Imported {
    Imported { ranks, segments, left_out, without_offset: 0, is_incomplete: false }
}

fn times(event: &crate::event::Event) -> (u64, u64) {
    (event.blocked_ns, event.took_ns)
}

#[test]
fn segments_become_transfers() {
    let room = tempfile::tempdir().unwrap();
    let directory = room.path().join("app.trace");
    let imported = import_dxt("log", LOG.as_bytes(), &directory).unwrap();
    assert_eq!(imported, imported_of(3, 5, 1));
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
        ("X_POSIX 0 write 1 0 4 0.6 1.0 7", "7 follows the last column"),
        ("X_POSIX 0 write 1 0 4 0.6 1.0 [ 3", "a bracket is not closed"),
        ("X_MPIIO 0 write 1 -2 4 0.6 1.0", "no number of bytes"),
        ("# Module Rank Wt/Rd Segment Offset Start(s) End(s)", "0 columns are named Length"),
        (
            "# Module Rank Wt/Rd Segment Offset Length Length Start(s) End(s)",
            "2 columns are named Length",
        ),
        ("# DXT, file_id: 8", "no name of a file"),
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
    let headless = "# DXT, file_id: 8, file_name: f\nX_POSIX 0 write 1 0 4 0.6 1.0\n";
    let headless = import_dxt("log", headless.as_bytes(), &directory).unwrap_err();
    assert_eq!(headless.cause, "line 2: no line before it names its columns");
    let long = format!("#{}", "x".repeat(1 << 18));
    assert!(
        import_dxt("log", long.as_bytes(), &directory)
            .unwrap_err()
            .cause
            .contains("more than 131072 bytes")
    );
    let binary = import_dxt("log", &b"\n\xff\xfe\n"[..], &directory).unwrap_err();
    assert_eq!(binary.cause, "line 2: it is not UTF-8");
    let empty = import_dxt("log", &b"# nothing\n"[..], &directory).unwrap_err();
    assert!(empty.cause.contains("no segments"));
    std::fs::create_dir(&directory).unwrap();
    let taken = import_dxt("log", LOG.as_bytes(), &directory).unwrap_err();
    assert_eq!(taken.kind, ErrorKind::AlreadyExists);
}

/// Tables as releases of Darshan print them, one file each, with their header.
const RELEASES: [(&str, &str); 6] = [
    (
        "3.2.1",
        "\
# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)
 X_POSIX       0  write        0              64            4096      0.5000      0.7000
",
    ),
    (
        "3.3.1, Lustre",
        "\
# DXT, Lustre stripe_size: 1048576, Lustre stripe_count: 2
# DXT, Lustre OST obdidx: 3 141
# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)  [OST]
 X_POSIX       0  write        0              64            4096      0.5000      0.7000  \
[  3]  [141]
",
    ),
    (
        "3.4.7, Lustre",
        "\
# DXT, Lustre stripe components:
#\t[Component 1] stripe_ext: 0 - EOF, stripe_size: 1048576, stripe_count: 1, OSTs: 7
# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)   [OST]
 X_POSIX       0  write        0              64            4096      0.5000      0.7000    [7]
",
    ),
    (
        "main, Lustre",
        "\
# DXT, number of threads: 1
# Module    Rank  Wt/Rd  Segment          Offset          Length    Start(s)      End(s)   [OST]  \
Pthread-ID
 X_POSIX       0  write        0              64            4096      0.5000      0.7000  \
 [7] [8]   140735
",
    ),
    (
        "main, a log without threads and objects",
        "\
# Module    Rank  Wt/Rd  Segment          Offset          Length    Start(s)      End(s)   [OST]  \
Pthread-ID
 X_MPIIO       0  write        0              64            4096      0.5000      0.7000   N/A
",
    ),
    (
        "columns of a later release, in another order",
        "\
# Module    Rank  Weight  End(s)  Start(s)  Length  Offset  Wt/Rd  Segment  [NUMA]  Color
 X_MPIIO       0   0.1   0.7000    0.5000     4096      64  write        0           red
",
    ),
];

#[test]
fn logs_of_all_releases_are_imported() {
    let room = tempfile::tempdir().unwrap();
    for (number, (release, table)) in RELEASES.iter().enumerate() {
        let directory = room.path().join(number.to_string());
        let log = format!(
            "# nprocs: 1\n# DXT, file_id: 7, file_name: f\n# DXT, rank: 0, hostname: h\n{table}"
        );
        let imported = import_dxt("log", log.as_bytes(), &directory);
        let imported = imported.unwrap_or_else(|error| panic!("{release}: {error}"));
        assert_eq!(imported, imported_of(1, 1, 0), "{release}");
        let rank = &Trace::open(&directory).unwrap().ranks[0];
        let Operation::Transfer { shift, part: Some(part), direction, .. } =
            rank.events[2].operation
        else {
            panic!("{release}: it is a transfer");
        };
        assert_eq!((shift, direction), (64, Direction::Write), "{release}");
        assert_eq!(rank.parts[part.0 as usize], OwnPart::contiguous(0, 4096), "{release}");
        assert_eq!(times(&rank.events[2]), (500_000_000, 200_000_000), "{release}");
    }
}

/// Calls of MPI-IO without offsets, as 3.1 prints them and as later parsers print such logs.
#[test]
fn calls_without_offsets_are_left_out_for_those_below_them() {
    let room = tempfile::tempdir().unwrap();
    let posix = "\
# DXT, file_id: 7, file_name: f
# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)
 X_POSIX       0  write        0              64            4096      0.5000      0.7000
";
    let old = "\
# Module    Rank  Wt/Rd  Segment       Length    Start(s)      End(s)
 X_MPIIO       0  write        0            4096      0.5000      0.7000
";
    let upgraded = "\
# Module    Rank  Wt/Rd  Segment          Offset       Length    Start(s)      End(s)
 X_MPIIO       0  write        0              -1            4096      0.5000      0.7000
";
    let warning = "# *WARNING*: The DXT_POSIX module contains incomplete data!\n";
    for (number, table) in [old, upgraded].iter().enumerate() {
        let directory = room.path().join(number.to_string());
        let log = format!("{posix}{warning}{table}");
        let imported = import_dxt("log", log.as_bytes(), &directory).unwrap();
        let expected = Imported { without_offset: 1, is_incomplete: true, ..imported_of(1, 1, 0) };
        assert_eq!(imported, expected);
        assert_eq!(Trace::open(&directory).unwrap().ranks[0].events.len(), 5);

        let alone = format!("# DXT, file_id: 7, file_name: f\n{table}");
        let directory = room.path().join(format!("{number} alone"));
        let refused = import_dxt("log", alone.as_bytes(), &directory).unwrap_err();
        assert_eq!(refused.cause, "it has no offsets of its segments");
        assert!(!directory.exists());
    }
}
