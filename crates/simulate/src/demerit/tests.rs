//! Proves: generated traces, read again and replayed, give the known result.

use super::reader::parse;
use super::trace::{Trace, TraceRequest};
use super::*;
use crate::disk::DiskName;
use crate::own_models::OwnModels;
use interface::UserError;
use std::path::Path;
use world_simulated::models::request_queue::QueueKind;

fn named(name: &str) -> DiskName {
    name.parse().expect("it is a built-in disk")
}

/// The service times of the model, in the order of arrival.
fn modelled(requests: &[TraceRequest], disk: &DiskName) -> Vec<u64> {
    let mechanism = disk.kind(&OwnModels::default()).expect("it is a preset");
    replay::replay(requests, mechanism.build(0), mechanism.bus(), QueueKind::Fcfs)
}

/// A mix of reads and writes, some of them sequential, whose times are those of the model and
/// `shift_us` more.
fn synthetic(disk: &DiskName, count: u64, shift_us: u64) -> Vec<TraceRequest> {
    let mut state = 11_u64;
    let mut dice = |limit: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    let (mut arrival_us, mut lbn) = (1_000_000, 0);
    let mut requests = Vec::new();
    for _ in 0..count {
        arrival_us += dice(44_000);
        lbn = if dice(3) == 0 { lbn + 16 } else { dice(1_300_000 - 16) };
        requests.push(TraceRequest {
            arrival_us,
            reads: dice(2) == 0,
            lbn,
            sectors: 1 + dice(16),
            service_us: 0,
            place: 0,
        });
    }
    let services_us = modelled(&requests, disk);
    for (request, service_us) in requests.iter_mut().zip(services_us) {
        request.service_us = service_us + shift_us;
    }
    requests
}

fn csv(requests: &[TraceRequest]) -> Vec<u8> {
    let mut text = "# made by a test\narrival_us,op,lbn,sectors,service_us\n".to_owned();
    for request in requests {
        let TraceRequest { arrival_us, lbn, sectors, service_us, .. } = request;
        let op = if request.reads { "R" } else { "W" };
        text.push_str(&format!("{arrival_us}, {op},{lbn},{sectors},{service_us}\n"));
    }
    text.into_bytes()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// The words of a request of a version and a type.
fn srt_record(request: &TraceRequest, version: u32, kind: u32, sector_bytes: u64) -> Vec<u8> {
    let start = 77;
    let mut record = vec![
        0,
        version << 16 | kind,
        (request.arrival_us / 1_000_000) as u32,
        (request.arrival_us % 1_000_000) as u32,
        start,
        start + request.service_us as u32,
        (request.sectors * sector_bytes) as u32,
        request.lbn as u32,
        4 << 24 | 3 << 8,
        0,
        0,
        u32::from(request.reads) | 0x100,
        0,
    ];
    record.extend(std::iter::repeat_n(9, usize::from(version == 4) + usize::from(kind == 4)));
    record[0] = record.len() as u32 * 4;
    words(&record)
}

const HEADER: &[u8] = b"tracename: a test\nnspt=113\n\x0c";

/// All versions, both types, and sometimes a record of an unknown type.
fn srt(requests: &[TraceRequest], sector_bytes: u64) -> Vec<u8> {
    let mut bytes = HEADER.to_vec();
    for (index, request) in requests.iter().enumerate() {
        let version = 1 + index as u32 % 4;
        let kind = if index % 5 == 0 { 4 } else { 1 };
        bytes.extend(srt_record(request, version, kind, sector_bytes));
        if index % 7 == 0 {
            bytes.extend(words(&[12, 1 << 16 | 2, 0xffff_ffff]));
        }
    }
    bytes
}

fn same_requests(one: &Trace, other: &Trace) -> bool {
    let without_place = |trace: &Trace| {
        let mut requests = trace.requests.clone();
        requests.iter_mut().for_each(|request| request.place = 0);
        requests
    };
    without_place(one) == without_place(other)
}

fn compare(bytes: &[u8], disk: &DiskName) -> Result<Demerit, UserError> {
    let directory = tempfile::tempdir().expect("there is room for a test");
    let path = directory.path().join("trace");
    std::fs::write(&path, bytes).expect("there is room for a test");
    let models = &OwnModels::default();
    demerit(&DemeritPlan { trace: &path, disk, models, cscan: false, unit: None })
}

/// Proves that a trace whose times are those of the model has demerit 0, and one that is shifted
/// has exactly the shift, on every preset and in both formats.
#[test]
fn the_model_agrees_with_itself() {
    for (name, sector_bytes) in
        [("hp97560", 512), ("hp-c2200a", 256), ("nvme", 512), ("analytic", 512)]
    {
        let disk = named(name);
        for shift_us in [0, 2_500] {
            let requests = synthetic(&disk, 500, shift_us);
            for bytes in [csv(&requests), srt(&requests, sector_bytes)] {
                let found = compare(&bytes, &disk).expect("the trace makes sense");
                assert_eq!(found.requests, 500, "{name}");
                assert_eq!(found.demerit_ms, shift_us as f64 / 1e3, "{name}");
                let apart_ms = found.measured_mean_ms - found.modelled_mean_ms;
                assert!((apart_ms - shift_us as f64 / 1e3).abs() < 1e-6, "{name}: {apart_ms}");
                let percent = found.demerit_ms / found.measured_mean_ms * 100.0;
                assert!((found.demerit_percent - percent).abs() < 1e-9);
            }
        }
    }
}

/// Proves that the two formats say the same, with every version and type of SRT record, and that
/// records of other types are passed over.
#[test]
fn srt_and_csv_agree() {
    let requests = synthetic(&named("hp-c2200a"), 200, 0);
    let text = parse(&csv(&requests), 256, None).expect("it is a trace");
    let binary = parse(&srt(&requests, 256), 256, None).expect("it is a trace");
    assert!(same_requests(&text, &binary));
    assert_eq!((text.records_skipped, binary.records_skipped), (0, 29));
    assert_eq!(binary.requests[0].place, HEADER.len() as u64);
}

/// Proves that a trace of several units needs a choice, and that the choice is kept to.
#[test]
fn units_are_chosen() {
    let requests = synthetic(&named("hp-c2200a"), 2, 0);
    let mut bytes = srt(&requests[..1], 256);
    let mut other = srt_record(&requests[1], 4, 1, 256);
    other[8 * 4 + 2] = 5;
    bytes.extend(other);
    let refused = parse(&bytes, 256, None).expect_err("there are two units");
    assert!(refused.contains("units 3, 5"), "{refused}");
    for (unit, count) in [(3, 1), (5, 1)] {
        let chosen = parse(&bytes, 256, Some(unit)).expect("the unit is there");
        assert_eq!(chosen.requests.len(), count);
    }
    assert!(parse(&bytes, 256, Some(7)).is_err_and(|cause| cause.contains("no requests")));
}

/// Proves that each way in which an SRT trace can be broken is refused with the byte where it is.
#[test]
fn broken_srt_is_refused() {
    let good = synthetic(&named("hp-c2200a"), 1, 0).remove(0);
    let record = srt_record(&good, 4, 1, 256);
    assert_eq!(record.len(), 56);
    let with = |word: usize, value: u32| {
        let mut record = record.clone();
        record[word * 4..word * 4 + 4].copy_from_slice(&value.to_be_bytes());
        record
    };
    let cases = [
        (record[..55].to_vec(), "the file ends after 55"),
        (record[..3].to_vec(), "too few for a record"),
        (with(0, 0), "a record of 0 bytes"),
        (with(0, 7), "a record of 7 bytes"),
        (with(0, u32::MAX), "a record of 4294967295 bytes"),
        (with(0, 52), "in 52 bytes, not 56"),
        (with(1, 9 << 16 | 1), "version 9"),
        (with(1, 1), "version 0"),
        (with(3, 1_000_000), "exceed a second"),
        (with(5, 3), "before it starts"),
        (with(6, 0), "a request for 0 bytes"),
        (with(6, u32::MAX), "a request for 4294967295 bytes"),
    ];
    for (broken, word) in cases {
        let at = HEADER.len() + record.len();
        let bytes = [HEADER, &record, &broken].concat();
        let refused = parse(&bytes, 256, None).expect_err(word);
        assert!(refused.starts_with(&format!("byte {at}: ")), "{refused}");
        assert!(refused.contains(word), "{refused:?} should say {word:?}");
    }
    let beyond = compare(&[HEADER, &with(7, u32::MAX)].concat(), &named("hp-c2200a"));
    let cause = beyond.expect_err("there is no such sector").cause;
    assert!(cause.starts_with(&format!("byte {}: ", HEADER.len())), "{cause}");
    assert!(cause.contains("not all on the disk"), "{cause}");
    assert!(parse(HEADER, 256, None).is_err_and(|cause| cause.contains("no requests")));
}

/// Proves that each way in which a CSV trace can be broken is refused with its line, and that no
/// prefix and no changed byte of either format makes the reader panic.
#[test]
fn broken_text_is_refused() {
    for (line, word) in [
        ("1,R,2,3", "4 fields"),
        ("1,R,2,3,4,5", "6 fields"),
        ("1,X,2,3,4", "op is \"X\""),
        ("-1,R,2,3,4", "arrival_us is \"-1\""),
        ("99999999999999999,R,2,3,4", "arrival_us"),
        ("1,R,2,0,4", "sectors is \"0\""),
        ("1,R,2,9999999,4", "sectors"),
        ("1,R,2,3,soon", "service_us is \"soon\""),
        ("1,R,18446744073709551616,3,4", "lbn"),
    ] {
        let text = format!("arrival_us,op,lbn,sectors,service_us\n1,R,2,3,4\n\n{line}\n");
        let refused = parse(text.as_bytes(), 512, None).expect_err(word);
        assert!(refused.starts_with("line 4: ") && refused.contains(word), "{refused}");
    }
    let beyond = compare(b"5,R,18446744073709551615,3,4\n", &named("hp97560"));
    assert!(beyond.is_err_and(|error| error.cause.starts_with("line 1: 3 sectors")));
    for nothing in ["", "# only a comment\n", "arrival_us,op,lbn,sectors,service_us\n"] {
        let refused = parse(nothing.as_bytes(), 512, None);
        assert!(refused.is_err_and(|cause| cause.contains("no requests")));
    }
    assert!(parse(&[b'1', 0xff, 0xfe], 512, None).is_err_and(|cause| cause.contains("byte 1")));
    let timeless = parse(b"5,R,0,3,0\n9,R,8,3,0\n", 512, None);
    assert!(timeless.is_err_and(|cause| cause.contains("service time of 0")));
    let of_unit = parse(b"5,R,0,3,4\n", 512, Some(5));
    assert!(of_unit.is_err_and(|cause| cause.contains("only an SRT trace has units")));

    let requests = synthetic(&named("hp-c2200a"), 20, 0);
    for bytes in [csv(&requests), srt(&requests, 256)] {
        for end in 0..bytes.len() {
            let _ = parse(&bytes[..end], 256, None);
            let mut changed = bytes.clone();
            changed[end] ^= 0x91;
            let _ = parse(&changed, 256, None);
        }
    }
}

/// Proves that a missing trace is an error in three parts, and that a report has every time of both
/// sides, in order, and figures however short the trace is.
#[test]
fn reports() {
    let plan = DemeritPlan {
        trace: Path::new("/nowhere/<trace>"),
        disk: &named("hp97560"),
        models: &OwnModels::default(),
        cscan: false,
        unit: None,
    };
    let error = demerit(&plan).expect_err("there is none");
    assert!(error.error.contains("/nowhere/<trace>") && !error.cause.is_empty());
    assert!(error.help.contains("arrival_us,op,lbn,sectors,service_us"));

    let requests = synthetic(&named("hp97560"), 100, 300);
    let found = compare(&csv(&requests), &named("hp97560")).expect("it is a trace");
    assert_eq!((found.measured_us.len(), found.modelled_us.len()), (100, 100));
    assert!(found.modelled_us.is_sorted());
    let found = compare(b"1,R,2,3,400\n", &named("nvme")).expect("it is a trace");
    assert!(found.percentiles.iter().all(|it| it.modelled_ms.is_finite()));
    assert!(found.demerit_percent.is_finite());
}
