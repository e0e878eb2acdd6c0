//! Proves: the library that programs link reads and writes any bytes, blocking or not, within a
//! pool of its size; its pages are seen in the memory of a server on this machine, are what they
//! were however others write, survive their server, and are let go of. Servers are processes of the
//! command, on Unix sockets and on TCP.

use crate::support;
use client::{Buffering, Connection, ConnectionOptions, Instance, ListEntry, OwnPart};
use interface::ExitCode;
use rustix::process::Signal;
use std::io::{IoSlice, IoSliceMut};
use support::{Place, bytes, gone, signal, until};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn connect(place: &Place, pool_bytes: u64) -> Connection {
    Connection::open_with(&Instance::at(place.instance()), ConnectionOptions::with_pool(pool_bytes))
        .unwrap()
}

/// Starts an instance on Unix sockets or TCP.
fn started(words: &[&str]) -> Place {
    let place = Place::new();
    place.start(words);
    place
}

#[test]
fn any_bytes_go_in_and_out() {
    for listen in [&["--servers", "3"][..], &["--servers", "2", "--tcp", "127.0.0.1"]] {
        let place = started(listen);
        // The pool is smaller than what is moved at once.
        let library = connect(&place, 512 * KIB);
        let size = 5 * MIB + 123;
        let file = library.create("f", size, 64 * KIB, Buffering::default()).unwrap();
        let model = bytes(size as usize);
        file.write_at(&model, 0).unwrap();
        file.flush(true).unwrap();
        let other = connect(&place, 8 * MIB);
        let seen = other.open_file("f").unwrap();
        for (offset, length) in [(0, size), (1, 1), (65_535, 2), (131_000, 3 * MIB), (size - 5, 5)]
        {
            let mut read = vec![0; length as usize];
            assert_eq!(seen.read_at(&mut read, offset).unwrap() as u64, length);
            assert!(read == model[offset as usize..(offset + length) as usize], "{offset}");
        }
        // At its end there is less to read, behind it nothing; and some offsets cannot be.
        let mut read = vec![7; 100];
        assert_eq!(seen.read_at(&mut read, size - 10).unwrap(), 10);
        assert_eq!((&read[..10], read[10]), (&model[size as usize - 10..], 7));
        assert_eq!(seen.read_at(&mut read, size).unwrap(), 0);
        assert_eq!(seen.read_at(&mut read, u64::MAX).unwrap(), 0);
        let refused = seen.write_at(&[1; 10], u64::MAX - 9).unwrap_err();
        assert_eq!(refused.code, ExitCode::Usage, "{refused}");
        // What one writes the other reads.
        seen.write_at(&[9; 1000], 99_999).unwrap();
        let (mut first, mut second) = ([0; 600], [0; 500]);
        let mut parts = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(file.read_vectored_at(&mut parts, 99_999).unwrap(), 1100);
        assert_eq!((first, &second[..400]), ([9; 600], &[9; 400][..]));
        assert_eq!(second[400..], model[100_999..101_099]);
        file.write_vectored_at(&[IoSlice::new(&[1; 3]), IoSlice::new(&[2; 4])], 10).unwrap();
        let mut seven = [0; 7];
        seen.read_at(&mut seven, 10).unwrap();
        assert_eq!(seven, [1, 1, 1, 2, 2, 2, 2]);
        file.close().unwrap();
    }
}

/// Slices of `lengths` that follow one another in `bytes`.
fn slices<'a>(mut bytes: &'a mut [u8], lengths: &[usize]) -> Vec<IoSliceMut<'a>> {
    let mut slices = Vec::new();
    for length in lengths {
        let (slice, rest) = bytes.split_at_mut(*length);
        slices.push(IoSliceMut::new(slice));
        bytes = rest;
    }
    slices
}

#[test]
fn slices_are_read_and_written_as_one_range() {
    let place = started(&["--servers", "3"]);
    // Pools that have room for a short transfer, and that have none for most.
    for (name, pool_bytes) in [("f", MIB), ("g", 4 * KIB)] {
        let library = connect(&place, pool_bytes);
        let file = library.create(name, 0, 64 * KIB, Buffering::default()).unwrap();
        let many: Vec<usize> = (0..3000).map(|number| number % 7 * 100).collect();
        let long = [0, 1, 3 << 20, 0, 70_000, 1 << 20, 5, 0];
        for (lengths, offset) in [(&many[..], 999), (&long[..], 10), (&[40, 0, 50][..], 77)] {
            let total: usize = lengths.iter().sum();
            let mut model = bytes(total + 300);
            model[total..].fill(7);
            let parts = slices(&mut model, lengths);
            let parts: Vec<_> = parts.iter().map(|part| IoSlice::new(part)).collect();
            file.set_size(0).unwrap();
            file.write_vectored_at(&parts, offset).unwrap();
            let end = offset + total as u64;
            assert_eq!(file.size().unwrap(), end);
            // What the file grew by before the first byte is zero.
            let mut read = vec![1; end as usize];
            assert_eq!(file.read_at(&mut read, 0).unwrap() as u64, end);
            assert!(read[..offset as usize].iter().all(|byte| *byte == 0));
            assert!(read[offset as usize..] == model[..total]);
            // By several threads at once; and the slices reach beyond the end, by one of their own.
            std::thread::scope(|scope| {
                for skipped in [0, 1, total / 2, total - 1, total] {
                    let (file, model) = (&file, &model);
                    scope.spawn(move || {
                        let mut read = vec![7; total + 300];
                        let all: Vec<_> = lengths.iter().copied().chain([300]).collect();
                        let at = offset + skipped as u64;
                        let got = file.read_vectored_at(&mut slices(&mut read, &all), at);
                        assert_eq!(got.unwrap(), total - skipped);
                        assert!(read[..total - skipped] == model[skipped..total]);
                        assert!(read[total - skipped..].iter().all(|byte| *byte == 7));
                    });
                }
            });
            // Within the file nothing but the range changes.
            file.write_vectored_at(&[IoSlice::new(&[3; 9]), IoSlice::new(&[4; 2])], offset + 20)
                .unwrap();
            model[20..29].fill(3);
            model[29..31].fill(4);
            let mut read = vec![0; total];
            assert_eq!(file.read_at(&mut read, offset).unwrap(), total);
            assert!(read == model[..total]);
        }
        // Slices without bytes do nothing, and what no file can have is refused as a whole.
        let size = file.size().unwrap();
        file.write_vectored_at(&[], size + 5).unwrap();
        file.write_vectored_at(&[IoSlice::new(&[]), IoSlice::new(&[])], size + 5).unwrap();
        assert_eq!(file.read_vectored_at(&mut [], 0).unwrap(), 0);
        let mut none = [IoSliceMut::new(&mut []), IoSliceMut::new(&mut [])];
        assert_eq!(file.read_vectored_at(&mut none, 0).unwrap(), 0);
        let (one, two) = (IoSlice::new(&[1]), IoSlice::new(&[1; 2]));
        let refused = file.write_vectored_at(&[one, two], (1 << 62) - 2).unwrap_err();
        assert_eq!(refused.code, ExitCode::Usage, "{refused}");
        assert!(refused.error.contains("cannot write 3 bytes"), "{refused}");
        assert_eq!(file.size().unwrap(), size);
        let mut read = [7; 4];
        let mut parts = slices(&mut read, &[2, 2]);
        assert_eq!(file.read_vectored_at(&mut parts, u64::MAX).unwrap(), 0);
        assert_eq!(read, [7; 4]);
    }
}

#[test]
fn a_file_becomes_longer_and_shorter() {
    let place = started(&["--servers", "3"]);
    let (library, other) = (connect(&place, MIB), connect(&place, MIB));
    let file = library.create("log", 0, 4 * KIB, Buffering::default()).unwrap();
    let seen = other.open_file("log").unwrap();
    let model = bytes(100_000);
    for (number, line) in model.chunks(777).enumerate() {
        file.write_at(line, number as u64 * 777).unwrap();
    }
    // The other finds what came behind the end that it knew.
    let mut read = vec![0; 200_000];
    assert_eq!(seen.read_at(&mut read, 0).unwrap(), 100_000);
    assert!(read[..100_000] == model);
    assert_eq!(place.run(&["stat", "log", "--json"]).json()["bytes"], 100_000);
    seen.write_at(&[9; 10], 150_000).unwrap();
    assert_eq!((file.bytes(), file.size().unwrap()), (100_000, 150_010));
    // Cut by one, read and written by the other, who knew it longer.
    seen.set_size(5000).unwrap();
    assert_eq!(file.read_at(&mut read, 0).unwrap(), 5000);
    let buffer = library.buffer(100).unwrap();
    file.start_write(buffer, 60_000).wait().unwrap();
    assert_eq!(seen.read_at(&mut read, 0).unwrap(), 60_100);
    assert!(read[..5000] == model[..5000] && read[5000..60_000] == [0; 55_000]);
    assert_eq!(seen.page(14).unwrap().len(), 60_100 - 14 * 4096);
    file.write_page(15, &[3; 4096]).unwrap();
    assert_eq!(&seen.page(15).unwrap()[..], [3; 4096]);
    assert!(seen.page(16).is_err());
    let list = vec![ListEntry { file_offset: 100_000, memory_offset: 0, length: 8 }];
    file.write_part(&OwnPart::List(list), &[4; 8], false).unwrap();
    assert_eq!(seen.size().unwrap(), 100_008);
    let refused = file.set_size(u64::MAX).unwrap_err();
    assert!(refused.cause.contains("at most"), "{refused}");
    file.set_size(3).unwrap();
    file.flush(true).unwrap();
    drop((library, other, file, seen));
    // What the catalogue knows outlives everyone.
    place.run(&["stop"]);
    place.start(&["--servers", "3"]);
    assert_eq!(place.run(&["stat", "log", "--json"]).json()["bytes"], 3);
}

#[test]
fn lists_move_with_one_request_to_each_server() {
    let place = started(&["--servers", "2"]);
    let library = connect(&place, MIB);
    let file = library.create("f", 4 * MIB, 256 * KIB, Buffering::default()).unwrap();
    let (count, length) = (4096, 8);
    let entry = |number: u64| ListEntry {
        file_offset: number * 1000 + 3,
        memory_offset: number * 16,
        length,
    };
    let access = OwnPart::List((0..count).map(entry).collect());
    let model = bytes((count * 16) as usize);
    let requests = || {
        let of = |server: &serde_json::Value| server["requests"].as_u64().unwrap();
        place.status().iter().map(of).sum::<u64>()
    };
    let before = requests();
    file.write_part(&access, &model, true).unwrap();
    let mut read = vec![7; model.len()];
    file.read_part(&access, &mut read).unwrap();
    // A write is followed by a flush; asking twice takes two requests of each server.
    let asked = requests() - before;
    assert!(asked <= 2 * 2 + 2 + 2 * 2, "{asked} requests for {count} pieces");
    for (number, (got, wrote)) in read.chunks(16).zip(model.chunks(16)).enumerate() {
        assert_eq!((&got[..8], &got[8..]), (&wrote[..8], &[7; 8][..]), "piece {number}");
    }
}

#[test]
fn what_was_begun_goes_on_and_is_waited_for() {
    let place = started(&["--servers", "2"]);
    let library = connect(&place, 4 * MIB);
    let file = library.create("f", 16 * MIB, 256 * KIB, Buffering::default()).unwrap();
    let model = bytes(16 * MIB as usize);
    let writes: Vec<_> = (0..16)
        .map(|part: usize| {
            // Only four fit: the others wait for those that were begun before.
            let mut buffer = library.buffer(MIB).unwrap();
            let range = part << 20..(part + 1) << 20;
            buffer.copy_from_slice(&model[range]);
            let write = file.start_write(buffer, (part as u64) << 20);
            // Their buffers come back with them, so that some must be left.
            if part < 2 {
                return Some(write);
            }
            // Whoever does not ask hears nothing, but it is done all the same.
            drop(write);
            None
        })
        .collect();
    for write in writes.into_iter().flatten() {
        drop(write.wait().unwrap());
    }
    file.start_flush(true).wait().unwrap();
    let reads: Vec<_> = (0..4)
        .map(|part: u64| {
            let buffer = library.buffer(MIB).unwrap();
            (part, file.start_read(buffer, (12 + part) << 20))
        })
        .collect();
    let refused = library.buffer(1).map(|buffer| buffer.len());
    let mut held = Vec::new();
    for (part, mut read) in reads {
        until("a read ends", || read.test().then_some(()));
        let buffer = read.wait().unwrap();
        let start = ((12 + part) << 20) as usize;
        assert!(buffer[..] == model[start..start + MIB as usize]);
        held.push(buffer);
    }
    // While something is under way a buffer may come back; now none can.
    drop(refused);
    let full = library.buffer(1).map(|buffer| buffer.len()).unwrap_err();
    assert!(full.help.contains("larger pool"), "{full}");
    // A read into memory of the program needs none.
    assert_eq!(file.read_at(&mut [0], 0).unwrap(), 1);
    held.pop();
    assert_eq!(library.buffer(MIB).unwrap().len(), 1 << 20);
    let missing = library.open_file("none").map(|file| file.bytes()).unwrap_err();
    assert!(missing.error.contains("none"), "{missing}");
}

/// True if an address of this process lies in shared memory mapped by a descriptor. (The total of
/// its shared memory changes with the other tests of this program.)
fn is_shared(address: *const u8) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let address = address as usize;
    let number = |text: &str| usize::from_str_radix(text, 16).unwrap();
    maps.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (start, end) = fields[0].split_once('-').unwrap();
        let holds = (number(start)..number(end)).contains(&address);
        holds && fields[1].ends_with('s') && fields.get(5).is_some_and(|it| it.contains("memfd:"))
    })
}

#[test]
fn pages_are_seen_in_the_servers_memory() {
    const SIZE: u64 = 32 * MIB;
    let place = started(&["--servers", "2", "--cache", "64MiB"]);
    let library = connect(&place, MIB);
    let file = library.create("f", SIZE, MIB, Buffering::default()).unwrap();
    let model = bytes(SIZE as usize);
    file.write_at(&model, 0).unwrap();
    let pages = file.page_range(0..32).unwrap();
    for (page, wrote) in pages.iter().zip(model.chunks(MIB as usize)) {
        assert!(page[..] == *wrote);
    }
    assert!(!is_shared(model.as_ptr()));
    assert!(pages.iter().all(|page| is_shared(page.as_ptr())), "they are looked at where they are");
    // They stay as they are, whoever writes; a page asked for now is the new one.
    let other = connect(&place, MIB);
    other.open_file("f").unwrap().write_at(&vec![5; SIZE as usize], 0).unwrap();
    for (page, wrote) in pages.iter().zip(model.chunks(MIB as usize)) {
        assert!(page[..] == *wrote);
    }
    assert!(file.page(3).unwrap().iter().all(|byte| *byte == 5));
    let found = file.page(32).map(|page| page.len()).unwrap_err();
    assert_eq!(found.kind, interface::ErrorKind::PastEnd, "{found}");
    let wrong = file.write_page(1, &[0; 7]).unwrap_err();
    assert_eq!(wrong.code, ExitCode::Usage, "{wrong}");
    file.write_page(1, &vec![8; MIB as usize]).unwrap();
    assert_eq!(file.page(1).unwrap()[0], 8);
}

#[test]
fn pages_that_are_let_go_of_leave_the_cache_to_others() {
    let place = started(&["--servers", "1", "--cache", "8MiB"]);
    let library = connect(&place, MIB);
    let file = library.create("f", 64 * MIB, MIB, Buffering::default()).unwrap();
    let model = bytes(64 * MIB as usize);
    file.write_at(&model, 0).unwrap();
    file.flush(false).unwrap();
    // Many more than half of the cache at once, again and again: what cannot be lent is copied.
    for _ in 0..3 {
        let pages = file.page_range(0..64).unwrap();
        for (page, wrote) in pages.iter().zip(model.chunks(MIB as usize)) {
            assert!(page[..] == *wrote);
        }
        let held = place.status()[0]["cache_bytes"].as_u64().unwrap();
        assert!(held <= 8 * MIB, "{held} bytes are cached");
    }
    // More pages than a server lets one client ask for at a time.
    let small = library.create("small", 20 * MIB, 4 * KIB, Buffering::default()).unwrap();
    assert_eq!(small.page_range(0..5120).unwrap().len(), 5120);
    drop(small);
    // A client that is gone has let go of everything: all of the cache is there for others.
    drop((file, library));
    place.run(&["cp", "unisono://f", "copy"]).done();
    assert!(std::fs::read(place.path("copy")).unwrap() == model);
    place.assert_nothing_held();
}

#[test]
fn pages_survive_the_server_that_lent_them() {
    let place = started(&["--servers", "1"]);
    let library = connect(&place, MIB);
    let file = library.create("f", 8 * MIB, MIB, Buffering::default()).unwrap();
    let model = bytes(8 * MIB as usize);
    file.write_at(&model, 0).unwrap();
    let pages = file.page_range(0..8).unwrap();
    let begun = file.start_page_range(0..8);
    let server = place.server_pids()[0];
    signal(server, Signal::KILL);
    gone(server);
    for (page, wrote) in pages.iter().zip(model.chunks(MIB as usize)) {
        assert!(page[..] == *wrote);
    }
    // What was begun may have been answered; whatever comes next is told.
    if let Err(error) = begun.wait() {
        assert_eq!(error.code, ExitCode::NoServer, "{error}");
    }
    let error = file.read_at(&mut [0; 10], 0).unwrap_err();
    assert_eq!(error.code, ExitCode::NoServer, "{error}");
    let error = file.flush(true).unwrap_err();
    assert_eq!(error.code, ExitCode::NoServer, "{error}");
}
