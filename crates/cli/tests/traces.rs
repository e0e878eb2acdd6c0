//! Proves: `trace import` makes a trace of a log and `trace btio` one of a benchmark, `trace info`
//! and `trace export` show it and a trace whose rank was killed; each refusal has three parts and
//! leaves nothing behind.

use crate::support;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use support::{DATA_CHECK, FAILED, Place, USAGE, run, unisono};
use trace::{
    Collective, Communicator, Direction, Event, Header, Message, Operation, Recorded, Trace, Writer,
};

/// Two ranks that exchange a message, and write a file together.
fn recorded(place: &Place, is_whole: bool) -> PathBuf {
    let directory = place.path("app.trace");
    fs::create_dir(&directory).unwrap();
    for rank in 0..2 {
        write_rank(&directory, rank, is_whole || rank == 0);
    }
    let header = Header {
        schema: Header::SCHEMA.to_owned(),
        command: vec!["./app".to_owned(), "-x".to_owned()],
        ranks: 2,
        hosts: vec!["here".to_owned(), "there".to_owned()],
        mpi: "MPI".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        recorded: Recorded::Program,
        instance: None,
        processor_pressure_percent: Some(2.5),
        steal_percent: None,
        not_recorded: Vec::new(),
    };
    header.write(&directory).unwrap();
    directory
}

fn event(operation: Operation) -> Event {
    Event { computed_ns: 1500, blocked_ns: 0, took_ns: 2500, depends_on_timing: false, operation }
}

fn write_rank(directory: &Path, rank: u32, is_whole: bool) {
    let mut writer = Writer::create(directory, (rank, 2), "here", "MPI").unwrap();
    writer.write(&event(Operation::Begin)).unwrap();
    let communicator = Communicator(0);
    let message = Message { communicator, peer: 1 - rank, tag: 7, bytes: 4096 };
    let message = match rank {
        0 => Operation::Send { message, is_synchronous: false, request: None },
        _ => Operation::Receive { message, request: None },
    };
    let timing = Event { blocked_ns: 500, depends_on_timing: true, ..event(message) };
    writer.write(&timing).unwrap();
    let file = writer.file("data/out").unwrap();
    let (creates, is_fresh, bytes) = (true, true, 0);
    let open = Operation::Open { file, communicator, creates, is_fresh, bytes };
    writer.write(&event(open)).unwrap();
    let part = client::OwnPart::contiguous(u64::from(rank) * 1024, 1024);
    let placed = writer.part(&part).unwrap().unwrap();
    writer
        .write(&event(Operation::Transfer {
            file,
            direction: Direction::Write,
            is_collective: true,
            part: Some(placed.part),
            shift: placed.shift,
            request: None,
        }))
        .unwrap();
    if is_whole {
        let kind = Collective::Barrier;
        let barrier =
            Operation::Collective { kind, communicator, root: 0, bytes: 0, request: None };
        writer.write(&event(barrier)).unwrap();
        writer.write(&event(Operation::Close { file })).unwrap();
        writer.write(&event(Operation::End)).unwrap();
        writer.close().unwrap();
    }
}

fn export(trace: &Path, format: &str, output: &Path) -> std::process::Command {
    let mut command = unisono(&["trace", "export", "--format", format]);
    command.arg(trace).arg("-o").arg(output);
    command
}

fn info(trace: &Path, words: &[&str]) -> std::process::Command {
    let mut command = unisono(&["trace", "info"]);
    command.args(words).arg(trace);
    command
}

#[test]
fn a_summary_has_calls_times_and_bytes() {
    let place = Place::new();
    let trace = recorded(&place, true);
    let summary = run(info(&trace, &["--json"])).done().json();
    assert_eq!(summary["schema"], "unisono.trace-info/1");
    assert_eq!((&summary["events"], &summary["refused"]), (&14.into(), &Value::Null));
    assert_eq!(summary["written_bytes"], 2048);
    let stream_bytes: u64 = (0..2)
        .map(|rank| fs::metadata(trace.join(format!("rank-{rank:05}.events"))).unwrap().len())
        .sum();
    assert_eq!(summary["stream_bytes"], stream_bytes);
    let share = summary["depends_on_timing"]["calls_percent"].as_f64().unwrap();
    assert!((share - 100.0 / 7.0).abs() < 1e-9);
    let rank = &summary["ranks"][1];
    assert_eq!((&rank["host"], &rank["events"]), (&"there".into(), &7.into()));
    assert!((rank["blocked_s"].as_f64().unwrap() - 5e-7).abs() < 1e-15);
    let calls = summary["operations"].as_array().unwrap();
    let send = calls.iter().find(|of| of["call"] == "MPI_Send").unwrap();
    assert_eq!((&send["calls"], &send["bytes"]), (&1.into(), &4096.into()));
    let shown = run(info(&trace, &[])).done();
    for line in ["command    ./app -x", "ranks      2 ranks on 2 hosts", "replay     possible"] {
        assert!(shown.text().contains(line), "{line}: {}", shown.text());
    }
}

#[test]
fn a_trace_of_a_killed_rank_is_shown() {
    let place = Place::new();
    let trace = recorded(&place, false);
    let summary = run(info(&trace, &["--json"])).done().json();
    assert_eq!(summary["cut_ranks"], serde_json::json!([1]));
    assert!(summary["refused"]["cause"].as_str().unwrap().contains("rank 1 was killed"));
    let shown = run(info(&trace, &[])).done();
    assert!(shown.text().contains("cut        ranks 1"), "{}", shown.text());
    let table = place.path("calls.parquet");
    let ended = run(export(&trace, "parquet", &table)).done();
    assert!(ended.error.contains("11 calls"), "{}", ended.error);
    assert!(ended.error.contains("ranks 1"), "{}", ended.error);
}

#[test]
fn a_table_has_a_row_for_each_call() {
    let place = Place::new();
    let trace = recorded(&place, true);
    let table = place.path("calls.parquet");
    run(export(&trace, "parquet", &table)).done();
    let reader = SerializedFileReader::new(fs::File::open(&table).unwrap()).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 14);
    let value = |row: usize, name: &str| {
        let columns = rows[row].get_column_iter();
        columns.into_iter().find(|(column, _)| *column == name).unwrap().1.clone()
    };
    assert_eq!(value(8, "call"), Field::Str("MPI_Recv".to_owned()));
    assert_eq!((value(8, "peer"), value(8, "tag")), (Field::Long(0), Field::Long(7)));
    assert_eq!(value(8, "depends_on_timing"), Field::Bool(true));
    assert_eq!(value(8, "begin_ns"), Field::Long(4000 + 2000));
    assert_eq!(value(8, "file"), Field::Null);
    assert_eq!(value(10, "call"), Field::Str("MPI_File_write_all".to_owned()));
    assert_eq!(value(10, "name"), Field::Str("data/out".to_owned()));
    let extent = (value(10, "first_byte"), value(10, "end_byte"), value(10, "bytes"));
    assert_eq!(extent, (Field::Long(1024), Field::Long(2048), Field::Long(1024)));
    assert_eq!(value(10, "is_collective"), Field::Bool(true));
}

#[test]
fn a_picture_has_a_lane_for_each_rank() {
    let place = Place::new();
    let trace = recorded(&place, true);
    let picture = place.path("calls.json");
    run(export(&trace, "perfetto", &picture)).done();
    let picture: Value = serde_json::from_slice(&fs::read(picture).unwrap()).unwrap();
    let events = picture["traceEvents"].as_array().unwrap();
    let of = |lane: u64| {
        let slices = events.iter().filter(move |event| event["ph"] == "X" && event["tid"] == lane);
        slices.collect::<Vec<_>>()
    };
    // The calls, and the time in which the rank was blocked.
    assert_eq!((of(1).len(), of(2).len()), (8, 8));
    let write = of(2).into_iter().find(|slice| slice["name"] == "MPI_File_write_all").unwrap();
    assert_eq!(write["args"]["first_byte"], 1024);
    assert_eq!(write["dur"], 2.5);
    let mut end = 0.0;
    for slice in of(2) {
        assert!(slice["ts"].as_f64().unwrap() >= end - 1e-9, "{slice}");
        end = slice["ts"].as_f64().unwrap() + slice["dur"].as_f64().unwrap();
    }
}

#[test]
fn a_trace_of_lu_is_made() {
    let place = Place::new();
    let make = |words: &[&str], trace: &Path| {
        let mut command = unisono(&["trace", "lu", "--order", "96", "--ranks", "3"]);
        command.args(words).arg("-o").arg(trace);
        command
    };
    let matrix = 96 * 96 * 8;
    for (name, words) in
        [("by-columns", &[][..]), ("by-rows", &["--rows"]), ("one-file", &["--sequential"])]
    {
        let trace = place.path(name);
        run(make(&[&["--slab", "32"], words].concat(), &trace)).done();
        let summary = run(info(&trace, &["--json"])).done().json();
        // Each rank reads the slabs to the left: the first one twice, the second one once.
        let left = 3 * 8 * (2 * 96 * 32 + 64 * 32);
        assert_eq!(summary["refused"], Value::Null);
        assert_eq!(summary["written_bytes"], matrix);
        assert_eq!(summary["read_bytes"], matrix + left);
    }
    let refused = run(make(&["--slab", "97"], &place.path("wide")));
    refused.refused(USAGE, &["slabs have 97 columns, and the matrix 96"]);
}

#[test]
fn a_trace_of_btio_is_made() {
    let place = Place::new();
    let make = |mode: &str, ranks: &str, trace: &Path| {
        let words = ["trace", "btio", "--class", "S", "--dumps", "2", "--compute", "9", "--sync"];
        let mut command = unisono(&words);
        command.args(["--mode", mode, "--ranks", ranks, "-o"]).arg(trace);
        command
    };
    for (mode, call, calls) in
        [("full", "MPI_File_write_all", 2 * 9), ("simple", "MPI_File_write", 2 * 12 * 12 * 3)]
    {
        let trace = place.path(mode);
        run(make(mode, "9", &trace)).done();
        let summary = run(info(&trace, &["--json"])).done().json();
        assert_eq!(
            (&summary["refused"], &summary["written_bytes"]),
            (&Value::Null, &138_240.into())
        );
        let operations = summary["operations"].as_array().unwrap();
        let writes = operations.iter().find(|of| of["call"] == call).unwrap();
        assert_eq!(writes["calls"], calls, "{mode}");
    }
    let wrong = place.path("wrong");
    let command = make("full", "8", &wrong);
    let ended = run(command);
    assert!(ended.error.contains("the square of a number from 1 to 4"), "{}", ended.error);
    ended.refused(USAGE, &["8 ranks are no square"]);
    run(make("simple", "25", &wrong)).refused(USAGE, &["fewer than 3 of 12 points"]);
    assert!(!wrong.exists());
}

#[test]
fn a_log_becomes_a_trace() {
    let place = Place::new();
    let log = "# nprocs: 2\n# DXT, file_id: 1, file_name: /data/in\n# DXT, rank: 1, hostname: h\n\
               # Module Rank Wt/Rd Segment Offset Length Start(s) End(s)\n\
               X_POSIX 1 read 0 0 100 0.5 0.75\n";
    let log = place.file("log", log.as_bytes());
    let trace = place.path("in.trace");
    let import = |log: &Path| {
        let mut command = unisono(&["trace", "import"]);
        command.arg(log).arg("-o").arg(&trace);
        command
    };
    let ended = run(import(&log)).done();
    assert!(ended.error.contains("1 calls of 2 ranks"), "{}", ended.error);
    assert!(ended.error.contains("a bound and not a prediction"), "{}", ended.error);
    let summary = run(info(&trace, &["--json"])).done().json();
    assert_eq!((&summary["is_bound"], &summary["refused"]), (&true.into(), &Value::Null));
    assert_eq!(summary["header"]["recorded"], "darshan-dxt");
    run(import(&log)).refused(FAILED, &["cannot make", "exists"]);
    fs::remove_dir_all(&trace).unwrap();
    let wrong = place.file("wrong", b"# a comment\nX_POSIX 1 read\n");
    run(import(&wrong)).refused(USAGE, &["cannot import", "line 2"]);
    run(import(&place.path("nothing"))).refused(FAILED, &["cannot read", "No such file"]);
    assert!(!trace.exists());
}

#[test]
fn a_directory_that_is_no_trace_is_refused() {
    let place = Place::new();
    run(info(&place.path("nothing"), &[])).refused(FAILED, &["cannot read", "does not exist"]);
    let file = place.file("file", b"x");
    run(info(&file, &[])).refused(USAGE, &["it is not a directory"]);
    let trace = recorded(&place, true);
    let (header, stream) = (trace.join("trace.json"), trace.join("rank-00001.events"));
    let text = fs::read_to_string(&header).unwrap();
    let refused = |code, words: &[&str]| {
        run(info(&trace, &[])).refused(code, words);
        let output = place.path("out");
        run(export(&trace, "parquet", &output)).refused(code, words);
        assert!(!output.exists());
    };
    fs::remove_file(&header).unwrap();
    refused(FAILED, &["trace.json is missing", "record"]);
    fs::write(&header, text.replace("trace/1", "trace/2")).unwrap();
    refused(FAILED, &["unisono.trace/2", "unisono.trace/1"]);
    fs::write(&header, text.replace("\"ranks\": 2", "\"ranks\": 3")).unwrap();
    refused(DATA_CHECK, &["3 ranks but 2 hosts"]);
    fs::write(&header, "{}").unwrap();
    refused(DATA_CHECK, &["trace.json: missing field"]);
    fs::write(&header, &text).unwrap();
    let whole = fs::read(&stream).unwrap();
    let mut damaged = whole.clone();
    damaged[100] ^= 4;
    fs::write(&stream, damaged).unwrap();
    refused(DATA_CHECK, &["rank-00001.events", "checksum"]);
    fs::rename(trace.join("rank-00000.events"), &stream).unwrap();
    refused(FAILED, &["rank-00000.events", "the stream is missing"]);
    fs::write(trace.join("rank-00000.events"), &whole).unwrap();
    refused(DATA_CHECK, &["it is the stream of rank 1"]);
    assert!(Trace::open(&trace).is_err());
}
