//! Proves: traces come back as they were written; a truncated stream is a readable begin of its
//! trace; no bytes make the reader panic, and no changed byte is taken for the original.

use super::head::HEAD_BYTES;
use super::stream::{Stream, decode, read_start, read_stream};
use super::writer::Writer;
use crate::event::{
    Collective, Communicator, Event, FileNumber, Message, Operation, PartNumber, RankTrace,
    RequestNumber,
};
use crate::paths::stream_path;
use fastrand::Rng;
use interface::{ErrorKind, UserError};
use policy::{BYTES_MAX, Dimension, Direction, Distribution, Level, ListEntry, Nested, OwnPart};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use units::ClientId;

const RANKS: u32 = 5;
const RANK: u32 = 2;

fn room() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn number(random: &mut Rng) -> u64 {
    random.u64(..) >> random.u32(0..64)
}

fn part(random: &mut Rng) -> OwnPart {
    let file_offset = number(random) >> 8;
    match random.u32(0..4) {
        0 => OwnPart::contiguous(file_offset, 1 + random.u64(0..100)),
        1 => {
            let nest = |random: &mut Rng, file_offset: u64| {
                let level = Level {
                    count: random.u64(1..5),
                    file_stride: random.u64(8..20),
                    memory_stride: random.u64(8..20),
                };
                let memory_offset = random.u64(0..10);
                Nested { file_offset, memory_offset, length: 8, levels: vec![level; 1] }
            };
            let count = random.u64(1..4);
            OwnPart::Nested((0..count).map(|i| nest(random, file_offset + i * 500)).collect())
        }
        2 => OwnPart::Dealt {
            distribution: Distribution {
                shape: vec![6, 10],
                record_bytes: 8,
                dimensions: vec![Dimension::Block, Dimension::Cyclic(3)],
                grid: vec![2, 2],
                clients: 4,
            },
            client: ClientId(random.u32(0..4)),
            file_offset,
        },
        _ => {
            let entry = |i: u64| ListEntry {
                file_offset: file_offset + 10 * i,
                memory_offset: 7 + 5 * i,
                length: 5,
            };
            OwnPart::List((0..random.u64(1..6)).map(entry).collect())
        }
    }
}

fn message(random: &mut Rng, communicators: u32) -> Message {
    Message {
        communicator: Communicator(random.u32(0..communicators)),
        peer: random.u32(0..RANKS),
        tag: if random.bool() { random.i32(0..3) } else { random.i32(..) },
        bytes: if random.bool() { 8 } else { number(random) },
    }
}

/// A trace that was written as it says; closed or left open.
fn write(directory: &Path, seed: u64, events: usize, closes: bool) -> Result<RankTrace, UserError> {
    let mut random = Rng::with_seed(seed);
    let random = &mut random;
    let mut writer = Writer::create(directory, (RANK, RANKS), "host", "MPI of a test")?;
    let mut trace = RankTrace { is_cut: true, ..RankTrace::default() };
    trace.communicators.push((0..RANKS).collect());
    for members in [vec![2], vec![4, 2, 0], vec![1, 2, 3], vec![1, 2, 3]] {
        let number = writer.communicator(&members)?;
        assert_eq!(number.0 as usize, trace.communicators.len());
        trace.communicators.push(members);
    }
    for name in ["a", "data/été", ""] {
        writer.file(name)?;
        trace.files.push(name.to_owned());
    }
    // Requests of receives that have begun and whose messages are not known.
    let mut unknown: Vec<(u32, usize)> = Vec::new();
    for index in 0..events {
        let operation = operation(random, &mut writer, &mut trace, index, &mut unknown)?;
        let event = Event {
            computed_ns: number(random),
            blocked_ns: if random.u32(0..4) == 0 { number(random) } else { 0 },
            took_ns: number(random),
            depends_on_timing: random.u32(0..4) == 0,
            operation,
        };
        writer.write(&event)?;
        trace.events.push(event);
        if random.bool()
            && let Some((request, begun)) = unknown.pop()
        {
            let Operation::Receive { message: known, .. } = &mut trace.events[begun].operation
            else {
                panic!("a receive has begun");
            };
            let other = message(random, 1);
            *known = Message { communicator: known.communicator, ..other };
            writer.received(RequestNumber(request), known.peer, known.tag, known.bytes)?;
        }
    }
    if closes {
        let end = Event {
            computed_ns: 1,
            blocked_ns: 0,
            took_ns: 0,
            depends_on_timing: false,
            operation: Operation::End,
        };
        writer.write(&end)?;
        trace.events.push(end);
        trace.is_cut = false;
        writer.close()?;
    }
    Ok(trace)
}

fn operation(
    random: &mut Rng,
    writer: &mut Writer,
    trace: &mut RankTrace,
    index: usize,
    unknown: &mut Vec<(u32, usize)>,
) -> Result<Operation, UserError> {
    let communicators = trace.communicators.len() as u32;
    let request = random.bool().then_some(RequestNumber(index as u32));
    let file = FileNumber(random.u32(0..3));
    let communicator = Communicator(random.u32(0..communicators));
    let bytes = number(random) >> 2;
    Ok(match random.u32(0..16) {
        0 => Operation::Begin,
        1 => {
            let is_synchronous = random.bool();
            Operation::Send { message: message(random, communicators), is_synchronous, request }
        }
        2 => Operation::Receive { message: message(random, communicators), request },
        3 => {
            unknown.push((index as u32, index));
            let message = Message {
                communicator,
                peer: Message::UNKNOWN_PEER,
                tag: Message::UNKNOWN_TAG,
                bytes: 0,
            };
            Operation::Receive { message, request: Some(RequestNumber(index as u32)) }
        }
        4 => {
            // Not requests of receives: their messages may come later.
            let requests = (0..random.u32(0..4)).map(|_| RequestNumber(random.u32(1 << 20..)));
            Operation::Wait { requests: requests.collect() }
        }
        5 => Operation::Collective {
            kind: Collective::ALL[random.usize(0..Collective::ALL.len())],
            communicator,
            root: random.u32(0..RANKS),
            bytes: bytes & 0xff,
            request,
        },
        6 => {
            let (creates, is_fresh) = (random.bool(), random.bool());
            Operation::Open { file, communicator, creates, is_fresh, bytes }
        }
        7 => Operation::Close { file },
        8 => Operation::Delete { name: "a name".to_owned() },
        9 => Operation::Sync { file },
        10 => Operation::SetSize { file, bytes, only_grows: random.bool() },
        11 => Operation::GetSize { file },
        _ => {
            let direction = if random.bool() { Direction::Read } else { Direction::Write };
            let placed = if random.u32(0..8) == 0 { None } else { writer.part(&part(random))? };
            if let Some(placed) = placed
                && placed.part.0 as usize == trace.parts.len()
            {
                // Its content is compared by the test of parts.
                trace.parts.push(OwnPart::NOTHING);
            }
            let (part, shift) = (placed.map(|it| it.part), placed.map_or(0, |it| it.shift));
            let is_collective = random.bool();
            Operation::Transfer { file, direction, is_collective, part, shift, request }
        }
    })
}

fn read(directory: &Path) -> Result<Stream, UserError> {
    read_stream(&stream_path(directory, RANK), RANKS)
}

fn bytes_of(directory: &Path) -> (PathBuf, Vec<u8>) {
    let path = stream_path(directory, RANK);
    let bytes = std::fs::read(&path).unwrap();
    (path, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn traces_come_back(seed: u64, events in 0_usize..200, closes: bool) {
        let room = room();
        let written = write(room.path(), seed, events, closes).unwrap();
        let stream = read(room.path()).unwrap();
        let start = stream.start.unwrap();
        prop_assert_eq!((start.rank, start.ranks), (RANK, RANKS));
        prop_assert_eq!((start.host.as_str(), start.mpi.as_str()), ("host", "MPI of a test"));
        prop_assert_eq!(stream.trace.parts.len(), written.parts.len());
        let parts = written.parts.clone();
        prop_assert_eq!(RankTrace { parts, ..stream.trace }, written);
    }

    #[test]
    fn truncated_streams_are_the_begin_of_a_trace(seed: u64, events in 0_usize..40) {
        let room = room();
        let written = write(room.path(), seed, events, true).unwrap();
        let (path, bytes) = bytes_of(room.path());
        for length in 0..bytes.len() {
            let stream = decode(&path, &bytes[..length], RANKS).unwrap();
            prop_assert!(stream.trace.is_cut);
            // A message that came later than the cut is not known.
            let begin = &written.events[..stream.trace.events.len()];
            for (cut, whole) in stream.trace.events.iter().zip(begin) {
                let is_receive = matches!(cut.operation, Operation::Receive { .. });
                prop_assert!(cut == whole || is_receive);
            }
        }
        for length in [0, 8, 30, 64, 66, 80] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            prop_assert!(read(room.path()).unwrap().trace.is_cut);
            prop_assert!(read_start(&path).unwrap().is_none());
        }
    }

    #[test]
    fn no_changed_byte_is_taken_for_the_original(seed: u64, events in 0_usize..30, bit in 0..8) {
        let room = room();
        let written = write(room.path(), seed, events, true).unwrap();
        let (path, bytes) = bytes_of(room.path());
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1_u8 << bit;
            let Ok(stream) = decode(&path, &changed, RANKS) else { continue };
            let same = RankTrace { parts: written.parts.clone(), ..stream.trace.clone() };
            prop_assert!(stream.trace.is_cut || same == written, "byte {} of the stream", at);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(seed: u64, events in 0_usize..60, changes in 1_usize..6) {
        let room = room();
        // A stream that was not closed has no checksum.
        write(room.path(), seed, events, false).unwrap();
        let (path, mut bytes) = bytes_of(room.path());
        let length = u64::from_le_bytes(bytes[16..24].try_into().unwrap()) as usize;
        bytes.truncate(HEAD_BYTES + length);
        let mut random = Rng::with_seed(seed);
        for _ in 0..changes {
            let at = random.usize(HEAD_BYTES..bytes.len());
            bytes[at] = random.u8(..);
        }
        if let Err(error) = decode(&path, &bytes, RANKS) {
            prop_assert_eq!(error.kind, ErrorKind::Corrupt);
        }
        let mut noise: Vec<u8> = bytes[..HEAD_BYTES].to_vec();
        noise.extend_from_slice(&[1, 2, 5, 0, 0]);
        noise.extend((0..length).map(|_| random.u8(..)));
        let behind = (noise.len() - HEAD_BYTES) as u64;
        noise[16..24].copy_from_slice(&behind.to_le_bytes());
        let _ = decode(&path, &noise, RANKS);
        let _ = decode(&path, &noise[HEAD_BYTES..], RANKS);
    }

    #[test]
    fn parts_are_kept_once_and_come_back_at_their_place(seed: u64, count in 1_usize..40) {
        let room = room();
        let mut random = Rng::with_seed(seed);
        let mut writer = Writer::create(room.path(), (RANK, RANKS), "", "").unwrap();
        let mut placed = Vec::new();
        for _ in 0..count {
            let part = part(&mut random);
            placed.push((part.clone(), writer.part(&part).unwrap().unwrap()));
        }
        writer.close().unwrap();
        let parts = read(room.path()).unwrap().trace.parts;
        for (i, part) in parts.iter().enumerate() {
            prop_assert!(!parts[..i].contains(part));
        }
        for (part, place) in placed {
            let kept = &parts[place.part.0 as usize];
            prop_assert_eq!(kept.bytes(), part.bytes());
            let (kept, whole) = (kept.file_extent().unwrap(), part.file_extent().unwrap());
            let shifted = (kept.start + place.shift, kept.end + place.shift);
            prop_assert_eq!(shifted, (whole.start, whole.end));
        }
    }
}

#[test]
fn the_bytes_of_a_stream_are_those_of_the_documentation() {
    let room = room();
    let mut writer = Writer::create(room.path(), (RANK, RANKS), "h", "M").unwrap();
    let event = |operation| Event {
        computed_ns: 300,
        blocked_ns: 0,
        took_ns: 5,
        depends_on_timing: false,
        operation,
    };
    writer.write(&event(Operation::Begin)).unwrap();
    let communicator = writer.communicator(&[1, 2, 3, 0]).unwrap();
    let file = writer.file("f").unwrap();
    let open = Operation::Open { file, communicator, creates: true, is_fresh: true, bytes: 0 };
    writer.write(&event(open)).unwrap();
    let message = Message { communicator, peer: 3, tag: -1, bytes: 200 };
    let send = Operation::Send { message, is_synchronous: false, request: None };
    writer.write(&event(send.clone())).unwrap();
    writer.write(&Event { blocked_ns: 9, depends_on_timing: true, ..event(send) }).unwrap();
    for offset in [1000, 1100, 5000, 4] {
        let placed = writer.part(&OwnPart::contiguous(offset, 100)).unwrap().unwrap();
        writer
            .write(&event(Operation::Transfer {
                file,
                direction: Direction::Write,
                is_collective: false,
                part: Some(placed.part),
                shift: placed.shift,
                request: None,
            }))
            .unwrap();
    }
    writer.write(&event(Operation::End)).unwrap();
    writer.close().unwrap();
    let (_, bytes) = bytes_of(room.path());
    let (times, own): ([u8; 3], u8) = ([0xac, 2, 5], 0x80 | 1 | 8 | 16);
    let [low, high, took] = times;
    let slot = super::recent::Recent::new().find_or_put([0; 4]);
    assert_eq!(slot, Some(0), "four zeros are in slot 0, which begins with them");
    let records: [&[u8]; 13] = [
        &[1, 2, 5, 1, b'h', 1, b'M'],
        &[8, low, high, took],
        // Two runs: three ranks from 1 on, one from 0 on, which is 4 before the 4 that is expected.
        &[2, 4, 2, 3, 7, 1],
        &[3, 1, b'f'],
        &[16 | 0x60, low, high, took, 0, 1, 0],
        &[10, low, high, took, 1, 3, 1, 0xc8, 1],
        // The same message, blocked for 9 ns before and dependent on timing: slot 33.
        &[5 | 0x60, 9, 10 | 0x20, low, high, took, 33],
        &[4, 6, 0, 1, 0, 0, 100, 0],
        // 10 parts behind 0, zigzag 20, with the bit for parts.
        &[own | 0x40, low, high, took, 41],
        // At the end of the one before.
        &[own, low, high, took],
        // 38 parts behind 1200, zigzag 76, with the bit for parts.
        &[own | 0x40, low, high, took, 0x99, 1],
        // 5096 bytes before 5100, zigzag 10191, without the bit.
        &[own | 0x40, low, high, took, 0x9e, 0x9f, 1],
        &[9, low, high, took],
    ];
    let records = records.concat();
    assert_eq!(&bytes[HEAD_BYTES..], records);
    let mut head = *b"unitrace\x01\0\0\0\x01\0\0\0";
    head[8..].copy_from_slice(&[1, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(bytes[..16], head);
    assert_eq!(bytes[16..24], (records.len() as u64).to_le_bytes());
    assert_eq!(bytes[24..28], crc32c::crc32c(&records).to_le_bytes());
    assert_eq!(bytes[28..HEAD_BYTES], [0; 36]);
}

#[test]
fn wrong_numbers_are_refused_and_the_error_stays() {
    let event = |operation| Event {
        computed_ns: 0,
        blocked_ns: 0,
        took_ns: 0,
        depends_on_timing: false,
        operation,
    };
    let transfer = |file, part, shift| Operation::Transfer {
        file: FileNumber(file),
        direction: Direction::Write,
        is_collective: false,
        part: Some(PartNumber(part)),
        shift,
        request: None,
    };
    let message = |communicator, peer| Message {
        communicator: Communicator(communicator),
        peer,
        tag: 0,
        bytes: 0,
    };
    let receive = |message| Operation::Receive { message, request: None };
    let wrong = [
        transfer(1, 0, 0),
        transfer(0, 1, 0),
        transfer(0, 0, BYTES_MAX),
        Operation::Close { file: FileNumber(7) },
        receive(message(1, 0)),
        receive(message(0, RANKS)),
        receive(message(0, Message::UNKNOWN_PEER)),
        Operation::SetSize { file: FileNumber(0), bytes: BYTES_MAX + 1, only_grows: false },
    ];
    for operation in wrong {
        let room = room();
        let mut writer = Writer::create(room.path(), (RANK, RANKS), "", "").unwrap();
        writer.write(&event(Operation::Begin)).unwrap();
        writer.file("f").unwrap();
        writer.part(&OwnPart::contiguous(0, 8)).unwrap();
        let first = writer.write(&event(operation.clone())).unwrap_err();
        assert_eq!(first.kind, ErrorKind::Usage, "{operation:?}");
        assert_eq!(writer.write(&event(Operation::End)), Err(first.clone()), "{operation:?}");
        assert_eq!(writer.file("g"), Err(first.clone()));
        assert_eq!(writer.close(), Err(first));
        let stream = read(room.path()).unwrap();
        assert_eq!((stream.trace.events.len(), stream.trace.is_cut), (1, true));
    }
    let room = room();
    let create = |rank, ranks| Writer::create(room.path(), (rank, ranks), "", "").err();
    assert!(create(0, 0).is_some() && create(3, 3).is_some() && create(0, u32::MAX).is_some());
    let mut writer = Writer::create(room.path(), (RANK, RANKS), "", "").unwrap();
    assert!(writer.communicator(&[1, RANKS]).is_err());
    let mut writer = Writer::create(room.path(), (RANK, RANKS), "", "").unwrap();
    assert!(writer.received(RequestNumber(3), 0, 0, 0).is_err());
    let mut writer = Writer::create(room.path(), (RANK, RANKS), "", "").unwrap();
    assert!(writer.part(&OwnPart::contiguous(BYTES_MAX, 8)).is_err());
}

#[test]
fn streams_of_other_versions_and_ranks_are_refused() {
    let room = room();
    write(room.path(), 1, 5, true).unwrap();
    let (path, bytes) = bytes_of(room.path());
    let mut other = bytes.clone();
    other[8] = 2;
    std::fs::write(&path, other).unwrap();
    assert_eq!(read(room.path()).unwrap_err().kind, ErrorKind::WrongVersion);
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(read_stream(&path, RANKS + 1).unwrap_err().kind, ErrorKind::Corrupt);
    assert_eq!(read_stream(room.path(), RANKS).unwrap_err().kind, ErrorKind::Corrupt);
}
