//! Proves: processes of any program make collective calls through the library, on Unix sockets and
//! over TCP; a missing member is named to all others; transfers go on while the program computes.
//! Nobody writes memory of the program after a call has ended, also not a server that was stopped
//! during the transfer.

use crate::support;
use client::{
    ClientId, CollectiveOptions, Connection, ConnectionOptions, Dimension, Direction, Distribution,
    ErrorKind, File, FileTransfer, Group, Instance, OwnPart, RawMemory, Slice, Strategy, UserError,
    wait_any,
};
use rustix::process::Signal;
use std::time::Duration;
use support::{Place, bytes, signal};

const MIB: u64 = 1 << 20;
const MEMBERS: u32 = 4;

/// Runs a program for each member, all in threads of this process, each with its own connection.
fn members<R: Send>(
    place: &Place,
    timeout: Duration,
    program: impl Fn(Group) -> R + Sync,
) -> Vec<R> {
    let instance = Instance::at(place.instance());
    let program = &program;
    std::thread::scope(|scope| {
        let start = |rank| {
            let instance = instance.clone();
            scope.spawn(move || {
                let options = ConnectionOptions { timeout, ..ConnectionOptions::default() };
                let connection = Connection::open_with(&instance, options).unwrap();
                program(Group::form(&connection, "test", rank, MEMBERS).unwrap())
            })
        };
        let running: Vec<_> = (0..MEMBERS).map(start).collect();
        running.into_iter().map(|member| member.join().unwrap()).collect()
    })
}

const USUAL: Duration = Duration::from_secs(30);

/// The part of a member of an array of `records` records of 8 bytes.
fn dealt(rule: Dimension, records: u64, rank: u32) -> OwnPart {
    let distribution = Distribution {
        shape: vec![records],
        record_bytes: 8,
        dimensions: vec![rule],
        grid: vec![MEMBERS],
        clients: MEMBERS,
    };
    OwnPart::Dealt { distribution, client: ClientId(rank), file_offset: 0 }
}

/// The memory of a member whose file looks like `image`.
fn memory_of(image: &[u8], rule: Dimension, rank: u32) -> Vec<u8> {
    let records = image.chunks(8).zip(0_u64..);
    let per_block = (image.len() as u64 / 8).div_ceil(u64::from(MEMBERS));
    let owner = |record: u64| match rule {
        Dimension::Cyclic(chunk) => record / chunk % u64::from(MEMBERS),
        _ => record / per_block,
    };
    let own = records.filter(|(_, record)| owner(*record) == u64::from(rank));
    own.flat_map(|(bytes, _)| bytes.to_vec()).collect()
}

#[test]
fn arrays_written_in_one_distribution_are_read_in_another() {
    const BYTES: u64 = 5 * MIB;
    let image = bytes(BYTES as usize);
    for listen in [&["--servers", "3"][..], &["--servers", "2", "--tcp", "127.0.0.1"]] {
        let place = Place::new();
        place.start(listen);
        members(&place, USUAL, |group| {
            let rank = group.rank();
            let file = group.connection().open_or_create("f").unwrap();
            let block = dealt(Dimension::Block, BYTES / 8, rank);
            let own = memory_of(&image, Dimension::Block, rank);
            assert_eq!(group.write(&file, &block, &own).unwrap(), own.len() as u64);
            for strategy in Strategy::NAMED {
                let options = CollectiveOptions { strategy, ..CollectiveOptions::default() };
                let cyclic = dealt(Dimension::Cyclic(11), BYTES / 8, rank);
                let expected = memory_of(&image, Dimension::Cyclic(11), rank);
                let mut read = vec![0xee; expected.len()];
                group.read_as(options, &file, &cyclic, &mut read).unwrap();
                assert!(read == expected, "{strategy} by rank {rank}");
            }
            file.close().unwrap();
        });
        place.assert_nothing_held();
    }
}

#[test]
fn members_with_other_options_are_named_to_all() {
    // Proves: members that would wait for one another unequally get an error at once, and the group
    // goes on.
    let image = bytes(MIB as usize);
    let place = Place::new();
    place.start(&["--servers", "2"]);
    members(&place, USUAL, |group| {
        let rank = group.rank();
        let file = group.connection().open_or_create("f").unwrap();
        let part = dealt(Dimension::Block, MIB / 8, rank);
        let own = memory_of(&image, Dimension::Block, rank);
        let usual = CollectiveOptions {
            strategy: Strategy::NodeGrouping,
            node_group_size: 1,
            ..CollectiveOptions::default()
        };
        assert_eq!(group.write_as(usual, &file, &part, &own).unwrap(), own.len() as u64);
        let of_three = |other| if rank == 2 { other } else { usual };
        let barrier = CollectiveOptions { strategy: Strategy::GlobalBarrier, ..usual };
        for other in [CollectiveOptions { node_group_size: 3, ..usual }, barrier] {
            let mut read = vec![0; own.len()];
            let refused = group.read_as(of_three(other), &file, &part, &mut read).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::CallsDiffer, "{refused}");
            assert!(refused.cause.contains("rank 0 is in a read by node-grouping"), "{refused}");
            assert!(refused.cause.contains("rank 2 in a read by"), "{refused}");
            group.read_as(usual, &file, &part, &mut read).unwrap();
            assert!(read == own, "the group goes on");
        }
        file.close().unwrap();
    });
    place.assert_nothing_held();
}

#[test]
fn one_call_reads_and_writes_several_files() {
    // Proves: all transfers of a call are made; one that fails is the error of the call at every
    // member, and hinders no other.
    const FILES: usize = 5;
    let image = bytes(MIB as usize);
    let place = Place::new();
    place.start(&["--servers", "3"]);
    members(&place, USUAL, |group| {
        let rank = group.rank();
        let named = |prefix: &str, number| {
            group.connection().open_or_create(&format!("{prefix}-{number}")).unwrap()
        };
        let old: Vec<File> = (0..FILES).map(|number| named("old", number)).collect();
        let new: Vec<File> = (0..FILES).map(|number| named("new", number)).collect();
        let part = dealt(Dimension::Cyclic(11), MIB / 8, rank);
        let own = memory_of(&image, Dimension::Cyclic(11), rank);
        for strategy in Strategy::NAMED {
            let options = CollectiveOptions { strategy, ..CollectiveOptions::default() };
            let write = |file| FileTransfer { file, part: part.clone(), slice: Slice::From(&own) };
            let written = group.transfer_files(options, old.iter().map(write).collect());
            assert_eq!(written.unwrap(), (FILES * own.len()) as u64, "{strategy}");
            let mut read = vec![vec![0xee; own.len()]; FILES];
            let reads = old.iter().zip(&mut read).map(|(file, into)| FileTransfer {
                file,
                part: part.clone(),
                slice: Slice::To(into),
            });
            let both = reads.chain(new.iter().map(write)).collect();
            group.transfer_files(options, both).unwrap();
            assert!(read.iter().all(|read| *read == own), "{strategy} by rank {rank}");
            // The second file ends before the part.
            group.barrier().unwrap();
            if rank == 0 {
                old[1].set_size(MIB / 2).unwrap();
            }
            group.barrier().unwrap();
            let mut read = vec![vec![0xee; own.len()]; FILES];
            let reads = old.iter().zip(&mut read).map(|(file, into)| FileTransfer {
                file,
                part: part.clone(),
                slice: Slice::To(into),
            });
            let refused = group.transfer_files(options, reads.collect()).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::PastEnd, "{refused}");
            assert!(refused.error.contains("read \"old-1\" collectively"), "{refused}");
            let others = read.iter().enumerate().filter(|(number, _)| *number != 1);
            assert!(others.into_iter().all(|(_, read)| *read == own), "{strategy}");
        }
        assert_eq!(group.transfer_files(CollectiveOptions::default(), Vec::new()).unwrap(), 0);
        old.into_iter().chain(new).for_each(|file| file.close().unwrap());
    });
    place.assert_nothing_held();
}

#[test]
fn started_calls_end_while_the_program_computes() {
    const BYTES: u64 = 8 * MIB;
    let image = bytes(BYTES as usize);
    let place = Place::new();
    // Over TCP the client's own process moves the data.
    place.start(&["--servers", "2", "--tcp", "127.0.0.1"]);
    members(&place, USUAL, |group| {
        let rank = group.rank();
        let file = group.connection().open_or_create("f").unwrap();
        let part = dealt(Dimension::Cyclic(1), BYTES / 8, rank);
        let own = memory_of(&image, Dimension::Cyclic(1), rank);
        let mut write = group.start_write(&file, part.clone(), own.clone());
        // It computes, and is in no call of the library but to ask.
        while !write.test() {
            std::hint::black_box(own.iter().map(|byte| u64::from(*byte)).sum::<u64>());
        }
        let own = write.wait().unwrap();
        let reads = (0..3).map(|_| group.start_read(&file, part.clone(), vec![0; own.len()]));
        let mut reads: Vec<_> = reads.collect();
        while let Some(ended) = wait_any(&mut reads) {
            assert!(reads.remove(ended).wait().unwrap() == own);
        }
        // Memory of the program itself; an empty part takes part.
        let mut read = vec![0; own.len()];
        let memory = unsafe_memory(&mut read);
        let part = if rank == 1 { OwnPart::NOTHING } else { part };
        let options = CollectiveOptions::default();
        let read_all = group.start_memory(Direction::Read, options, &file, part, memory);
        read_all.wait().unwrap();
        assert!(rank == 1 || read == own);
    });
}

/// Memory for a call that is waited for while the vector lives.
#[allow(unsafe_code)]
fn unsafe_memory(bytes: &mut [u8]) -> RawMemory {
    // SAFETY: the callers wait for the operation while they hold the bytes.
    unsafe { RawMemory::new(bytes.as_mut_ptr(), bytes.len()) }
}

#[test]
fn a_member_that_makes_no_call_is_named_to_the_others() {
    let place = Place::new();
    place.start(&["--servers", "2"]);
    let (done, others_done) = std::sync::mpsc::sync_channel::<()>(MEMBERS as usize);
    let others_done = std::sync::Mutex::new(others_done);
    members(&place, Duration::from_secs(2), |group| {
        let file = group.connection().open_or_create("f").unwrap();
        if group.rank() == 2 {
            let others_done = others_done.lock().unwrap();
            (1..MEMBERS).for_each(|_| others_done.recv().unwrap());
            return;
        }
        let error = group.write(&file, &OwnPart::contiguous(0, 8), &[1; 8]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::MembersMissing, "{error}");
        assert_eq!(error.place.ranks, [ClientId(2)]);
        assert!(error.cause.contains("collective write 0 of \"f\""), "{error}");
        done.send(()).unwrap();
    });
}

#[test]
fn a_stopped_server_writes_no_memory_after_the_call() {
    const BYTES: u64 = 64 * MIB;
    for listen in [&["--servers", "2"][..], &["--servers", "2", "--tcp", "127.0.0.1"]] {
        let place = Place::new();
        place.start(listen);
        let image = bytes(BYTES as usize);
        let connect = |timeout| {
            let options = ConnectionOptions { timeout, ..ConnectionOptions::default() };
            Connection::open_with(&Instance::at(place.instance()), options).unwrap()
        };
        let other = connect(USUAL);
        let file = other.create("f", BYTES, MIB, client::Buffering::default()).unwrap();
        file.write_at(&image, 0).unwrap();
        file.flush(false).unwrap();
        // Only the read waits for a stopped server.
        let connection = connect(Duration::from_secs(1));
        let file = connection.open_file("f").unwrap();
        let group = Group::form(&connection, "alone", 0, 1).unwrap();
        let server = place.server_pids()[1];
        let mut memory = vec![0x11; BYTES as usize];
        // As soon as something has come, in the midst of the transfer.
        let part = OwnPart::contiguous(0, BYTES);
        let options = CollectiveOptions::default();
        let raw = unsafe_memory(&mut memory);
        let read = group.start_memory(Direction::Read, options, &file, part, raw);
        signal(server, Signal::STOP);
        let outcome = read.wait();
        memory.fill(0x22);
        signal(server, Signal::CONT);
        if let Err(error) = outcome {
            assert_eq!(error.kind, ErrorKind::ServerStalled, "{error}");
            assert_eq!(error.place.server, Some(client::ServerId(1)));
        }
        // The server has done all that it had to do when it has answered another client.
        let mut read = vec![0; BYTES as usize];
        other.open_file("f").unwrap().read_at(&mut read, 0).unwrap();
        assert!(read == image);
        assert!(memory.iter().all(|byte| *byte == 0x22), "somebody has written after the call");
    }
}

fn relaxed() -> CollectiveOptions {
    CollectiveOptions { relaxed: true, ..CollectiveOptions::default() }
}

fn write(group: &Group, file: &File, part: &OwnPart, from: &[u8]) -> Result<u64, UserError> {
    group.write_as(relaxed(), file, part, from)
}

fn read(group: &Group, file: &File, part: &OwnPart, into: &mut [u8]) -> Result<u64, UserError> {
    group.read_as(relaxed(), file, part, into)
}

/// Number of requests that all servers have got.
fn requests(place: &Place) -> u64 {
    place.status().iter().map(|server| server["requests"].as_u64().unwrap()).sum()
}

/// Byte `at` of what call number `call` writes.
fn byte_of(call: u64, at: u64) -> u8 {
    (call * 31 + at * 7 % 251) as u8
}

#[test]
fn small_calls_in_a_row_are_made_alone() {
    // Proves: of many small collective calls in a row, members join few; what each has written,
    // all read at once, by small calls that are made alone and by others; a large part, another
    // file, a strided part or a call that does not wait in between changes nothing for the others.
    const CALLS: u64 = 600;
    const PIECE: u64 = 1000;
    let place = Place::new();
    place.start(&["--servers", "2"]);
    let before = requests(&place);
    members(&place, USUAL, |group| {
        let (rank, size) = (u64::from(group.rank()), u64::from(MEMBERS));
        let file = group.connection().open_or_create("f").unwrap();
        for call in 0..CALLS {
            let offset = (call * size + rank) * PIECE;
            let piece: Vec<u8> = (0..PIECE).map(|at| byte_of(call, offset + at)).collect();
            let part = OwnPart::contiguous(offset, PIECE);
            assert_eq!(write(&group, &file, &part, &piece).unwrap(), PIECE);
            let mut found = vec![0; PIECE as usize];
            if call % 50 == 0 {
                // What the next member has written in the call before.
                group.barrier().unwrap();
                let other = (call * size + (rank + 1) % size) * PIECE;
                file.read_at(&mut found, other).unwrap();
                assert!(found.iter().zip(other..).all(|(byte, at)| *byte == byte_of(call, at)));
            }
        }
        for call in 0..CALLS {
            let other = (call * size + (rank + call) % size) * PIECE;
            let mut found = vec![0; PIECE as usize];
            let part = OwnPart::contiguous(other, PIECE);
            assert_eq!(read(&group, &file, &part, &mut found).unwrap(), PIECE);
            assert!(found.iter().zip(other..).all(|(byte, at)| *byte == byte_of(call, at)));
        }
        file.close().unwrap();
    });
    // Each call alone would be at least a request of each member to each server.
    let made = requests(&place) - before;
    assert!(made < CALLS * 2 * u64::from(MEMBERS), "{made} requests for {CALLS} writes and reads");
    members(&place, USUAL, mixed_calls);
}

/// Small collective calls with others in between. All members make the same ones.
fn mixed_calls(group: Group) {
    let (rank, size) = (u64::from(group.rank()), u64::from(MEMBERS));
    let connection = group.connection().clone();
    let files = ["g", "h"].map(|name| connection.open_or_create(name).unwrap());
    let large = vec![rank as u8 + 1; MIB as usize];
    for call in 0..200_u64 {
        let file = &files[usize::from(call % 90 > 80)];
        let offset = (call * size + rank) * 100;
        let piece = vec![(call + rank) as u8; 100];
        match call {
            // One member has a large part, while the others make the call alone.
            40 | 41 | 120 if rank == 2 => {
                let part = OwnPart::contiguous(64 * MIB + call * MIB, MIB);
                write(&group, file, &part, &large).unwrap();
            }
            // Nothing to write.
            60 if rank == 1 => assert_eq!(write(&group, file, &OwnPart::NOTHING, &[]).unwrap(), 0),
            // Calls that do not wait.
            70..80 => {
                let part = OwnPart::contiguous(offset, 100);
                let operation = group.start_write(file, part, piece);
                group.barrier().unwrap();
                operation.wait().unwrap();
            }
            // Two pieces.
            100..110 => {
                let list = [(0, 0), (50, 50)].map(|(at, memory_offset)| client::ListEntry {
                    file_offset: offset + at,
                    memory_offset,
                    length: 50,
                });
                write(&group, file, &OwnPart::List(list.to_vec()), &piece).unwrap();
            }
            _ => {
                let part = OwnPart::contiguous(offset, 100);
                write(&group, file, &part, &piece).unwrap();
            }
        }
    }
    group.barrier().unwrap();
    for call in 0..200_u64 {
        let file = &files[usize::from(call % 90 > 80)];
        for other in 0..size {
            let is_other = matches!((call, other), (40 | 41 | 120, 2) | (60, 1));
            let mut found = [0; 100];
            let part = OwnPart::contiguous((call * size + other) * 100, 100);
            read(&group, file, &part, &mut found).unwrap();
            let expected = if is_other { 0 } else { (call + other) as u8 };
            assert_eq!(found, [expected; 100], "call {call} of member {other}");
        }
    }
    let mut found = vec![0; MIB as usize];
    read(&group, &files[0], &OwnPart::contiguous(64 * MIB + 40 * MIB, MIB), &mut found).unwrap();
    assert!(found.iter().all(|byte| *byte == 3));
    // Beyond the end: an error, whether or not the call is made alone.
    let part = OwnPart::contiguous(1 << 40, 100);
    let error = read(&group, &files[0], &part, &mut found).unwrap_err();
    assert_eq!(error.kind, ErrorKind::PastEnd, "{error}");
    files.into_iter().for_each(|file| file.close().unwrap());
}

#[test]
fn small_calls_on_the_same_bytes_are_seen_by_all() {
    // Proves: of collective calls that write the same few bytes again and again, and read those of
    // others, each reads what was written last, whether calls are made alone or together.
    let place = Place::new();
    place.start(&["--servers", "2"]);
    members(&place, USUAL, |group| {
        let (rank, size) = (u64::from(group.rank()), u64::from(MEMBERS));
        let file = group.connection().open_or_create("f").unwrap();
        for call in 0..400_u64 {
            let own = OwnPart::contiguous(rank * 4, 4);
            let value = (call * 10 + rank) as u32;
            write(&group, &file, &own, &value.to_le_bytes()).unwrap();
            if call % 7 == 0 {
                file.flush(call % 2 == 0).unwrap();
            }
            group.barrier().unwrap();
            let other = (rank + 1 + call % 3) % size;
            let mut found = [0; 4];
            read(&group, &file, &OwnPart::contiguous(other * 4, 4), &mut found).unwrap();
            assert_eq!(u32::from_le_bytes(found), (call * 10 + other) as u32, "call {call}");
            group.barrier().unwrap();
        }
        file.close().unwrap();
    });
}
