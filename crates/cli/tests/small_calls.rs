//! Proves: small reads and writes that the calling thread carries out by itself are the same as all
//! others, count no client more, and end with the name of a server that has stopped or was killed.
//! Servers are processes of the command, on Unix sockets and on TCP.

use crate::support;
use client::{Buffering, Connection, ConnectionOptions, File, Instance};
use interface::ErrorKind;
use rustix::process::Signal;
use std::time::{Duration, Instant};
use support::{ENDLESS, Place, bytes, gone, impatient_group, signal, until, until_moving};

const BLOCK: u64 = 4 << 10;

const LISTENING: [&[&str]; 2] = [&["--servers", "3"], &["--servers", "2", "--tcp", "127.0.0.1"]];

fn connect(place: &Place, timeout: Duration) -> Connection {
    let options = ConnectionOptions { timeout, ..ConnectionOptions::default() };
    Connection::open_with(&Instance::at(place.instance()), options).unwrap()
}

/// Reads of the whole file, block after block: more than it takes until the thread reads by itself.
fn read_all(file: &File, size: u64) -> Vec<u8> {
    let mut all = vec![0; size as usize];
    for (block, part) in all.chunks_mut(BLOCK as usize).enumerate() {
        assert_eq!(file.read_at(part, block as u64 * BLOCK).unwrap(), part.len());
    }
    all
}

#[test]
fn small_calls_are_like_all_others() {
    // Proves: after small writes of any place and length, small reads, large reads and another
    // client find the same bytes, also when another client writes, grows or truncates the file.
    for listen in LISTENING {
        let place = Place::new();
        place.start(listen);
        let own = connect(&place, Duration::from_secs(60));
        let size = 64 * BLOCK + 100;
        let file = own.create("f", size, BLOCK, Buffering::default()).unwrap();
        let mut model = vec![0; size as usize];
        let (data, mut at) = (bytes(64 << 10), 0_u64);
        for number in 0..600 {
            at = (at * 7919 + 4321 + number) % size;
            let length = ((number * number) % (2 * BLOCK) + 1).min(size - at);
            let part = &data[number as usize..(number + length) as usize];
            file.write_at(part, at).unwrap();
            model[at as usize..(at + length) as usize].copy_from_slice(part);
        }
        assert!(read_all(&file, size) == model, "small reads");
        let other = connect(&place, Duration::from_secs(60));
        let seen = other.open_file("f").unwrap();
        let mut whole = vec![0; size as usize];
        assert_eq!(seen.read_at(&mut whole, 0).unwrap() as u64, size);
        assert!(whole == model, "a large read of another client");
        // What the other writes is seen by the next small read, and the other way round.
        for round in 0..20_u8 {
            seen.write_at(&[round; 64 << 10], 0).unwrap();
            let mut found = [0; 100];
            file.read_at(&mut found, 5 * BLOCK).unwrap();
            assert_eq!(found, [round; 100]);
            file.write_at(&[round ^ 255; 100], 5 * BLOCK).unwrap();
            let mut found = vec![0; 64 << 10];
            seen.read_at(&mut found, 0).unwrap();
            let (from, to) = (5 * BLOCK as usize, 5 * BLOCK as usize + 100);
            assert!(found[from..to].iter().all(|byte| *byte == round ^ 255));
            assert_eq!((found[from - 1], found[to]), (round, round));
        }
        // The end of the file, which another client moves.
        seen.set_size(10 * BLOCK + 7).unwrap();
        let mut found = [9; 20];
        assert_eq!(file.read_at(&mut found, 10 * BLOCK).unwrap(), 7);
        assert_eq!(file.read_at(&mut found, 20 * BLOCK).unwrap(), 0);
        file.write_at(&[3; 5], 30 * BLOCK).unwrap();
        assert_eq!(seen.size().unwrap(), 30 * BLOCK + 5);
        let mut found = [9; 20];
        assert_eq!(seen.read_at(&mut found, 20 * BLOCK).unwrap(), 20);
        assert_eq!(found, [0; 20]);
        // A write within the file as this client knows it, which has become shorter.
        seen.set_size(BLOCK).unwrap();
        file.write_at(&[4; 5], 20 * BLOCK).unwrap();
        assert_eq!(seen.size().unwrap(), 20 * BLOCK + 5);
        let mut found = vec![9; 20 * BLOCK as usize + 5];
        assert_eq!(seen.read_at(&mut found, 0).unwrap(), found.len());
        assert!(found[BLOCK as usize..20 * BLOCK as usize].iter().all(|byte| *byte == 0));
        assert_eq!(found[20 * BLOCK as usize..], [4; 5]);
    }
}

#[test]
fn small_calls_of_many_threads() {
    // Proves: threads that use one connection at the same time do not disturb one another.
    let place = Place::new();
    place.start(&["--servers", "2"]);
    let own = connect(&place, Duration::from_secs(60));
    let (threads, each) = (4_u64, 50_u64);
    let size = threads * each * BLOCK;
    let file = own.create("f", size, BLOCK, Buffering::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let file = &file;
            scope.spawn(move || {
                for number in 0..each {
                    let (at, value) =
                        ((number * threads + thread) * BLOCK, (thread * 50 + number) as u8);
                    file.write_at(&[value; 1000], at + thread).unwrap();
                    let mut found = [0; 1000];
                    assert_eq!(file.read_at(&mut found, at + thread).unwrap(), 1000);
                    assert_eq!(found, [value; 1000]);
                }
            });
        }
    });
    let expected: Vec<u8> = (0..threads * each)
        .flat_map(|block| {
            let (thread, value) = (block % threads, (block % threads * 50 + block / threads) as u8);
            let byte = move |at| if (thread..thread + 1000).contains(&at) { value } else { 0 };
            (0..BLOCK).map(byte)
        })
        .collect();
    assert!(read_all(&file, size) == expected);
}

/// One write or read of one byte, with the number of the write.
#[derive(Clone, Copy, Debug)]
struct Access {
    begun: Instant,
    ended: Instant,
    value: u8,
}

/// Writes and reads of the bytes of a file by threads.
#[derive(Default)]
struct History {
    writes: Vec<(std::ops::Range<usize>, Access)>,
    reads: Vec<(usize, Vec<u8>, Access)>,
}

impl History {
    /// Panics if a read got a byte that was not written yet, or was replaced before the read.
    fn check(&self, bytes: usize, zero: Instant) {
        for byte in 0..bytes {
            let first = Access { begun: zero, ended: zero, value: 0 };
            let here = self.writes.iter().filter(|(range, _)| range.contains(&byte));
            let writes: Vec<Access> =
                std::iter::once(first).chain(here.map(|(_, one)| *one)).collect();
            for (offset, values, read) in &self.reads {
                let Some(value) = byte.checked_sub(*offset).and_then(|at| values.get(at)) else {
                    continue;
                };
                // Some values are written several times.
                let is_right = |source: &&Access| {
                    let is_later = |it: &&Access| it.begun > source.ended && it.ended < read.begun;
                    source.value == *value
                        && source.begun <= read.ended
                        && !writes.iter().any(|write| is_later(&write))
                };
                let found = writes.iter().find(is_right);
                assert!(found.is_some(), "byte {byte}: {read:?} got {value} of {writes:?}");
            }
        }
    }
}

#[test]
fn small_calls_of_several_clients_are_in_one_order() {
    // Proves: of clients that write and read the same bytes at the same time, by small calls that
    // are gathered or come from kept pages, and by others, each read gets what was written last.
    const BYTES: usize = 3000;
    for listen in LISTENING {
        let place = Place::new();
        place.start(listen);
        let first = connect(&place, Duration::from_secs(60));
        first.create("f", BYTES as u64, BLOCK / 4, Buffering::default()).unwrap();
        let zero = Instant::now();
        let history = std::sync::Mutex::new(History::default());
        std::thread::scope(|scope| {
            for client in 0..3_u64 {
                let (place, history) = (&place, &history);
                scope.spawn(move || {
                    let own = connect(place, Duration::from_secs(60));
                    let file = own.open_file("f").unwrap();
                    let mut state = client;
                    let mut below = |limit: u64| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        (state >> 33) % limit
                    };
                    for number in 0..700_u64 {
                        // Phases in which the clients mostly write, and mostly read.
                        let writes = below(20) < if number / 80 % 2 == 0 { 19 } else { 1 };
                        let offset = below(BYTES as u64 - 100) as usize;
                        let length = 1 + below(100) as usize;
                        let begun = Instant::now();
                        if writes {
                            let value = (1 + (number * 3 + client) % 255) as u8;
                            let bytes = vec![value; length];
                            file.write_at(&bytes, offset as u64).unwrap();
                            let access = Access { begun, ended: Instant::now(), value };
                            let mut history = history.lock().unwrap();
                            history.writes.push((offset..offset + length, access));
                        } else {
                            let mut bytes = vec![0; length];
                            file.read_at(&mut bytes, offset as u64).unwrap();
                            let access = Access { begun, ended: Instant::now(), value: 0 };
                            history.lock().unwrap().reads.push((offset, bytes, access));
                        }
                    }
                });
            }
        });
        let begun = Instant::now();
        let mut all = vec![0; BYTES];
        first.open_file("f").unwrap().read_at(&mut all, 0).unwrap();
        let access = Access { begun, ended: Instant::now(), value: 0 };
        let mut history = history.into_inner().unwrap();
        history.reads.push((0, all, access));
        history.check(BYTES, zero);
    }
}

/// Number of sockets that a process has open.
fn sockets_of(process: u32) -> usize {
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().flatten();
    let names = open.map(|one| std::fs::read_link(one.path()).unwrap_or_default());
    names.filter(|name| name.to_string_lossy().starts_with("socket:")).count()
}

#[test]
fn further_connections_count_no_client() {
    // Proves: a client makes one further connection to a server, which says that one client is
    // connected.
    let place = Place::new();
    place.start(&["--servers", "1"]);
    let own = connect(&place, Duration::from_secs(60));
    let file = own.create("f", 64 * BLOCK, BLOCK, Buffering::default()).unwrap();
    let server = place.server_pids()[0];
    // Connections of earlier commands may still be closing.
    let mut before = 0;
    until("the number of sockets stays", || {
        std::thread::sleep(Duration::from_millis(100));
        let now = sockets_of(server);
        (now == std::mem::replace(&mut before, now)).then_some(())
    });
    read_all(&file, 64 * BLOCK);
    assert_eq!(sockets_of(server), before + 1);
    assert_eq!(place.status()[0]["clients"], 1, "whoever asks is not counted");
}

/// A small call on a file of an instance with one server, which the thread carries out by itself.
fn with_small_calls(listen: &[&str], check: impl Fn(&Place, &File, Duration)) {
    let timeout = Duration::from_secs(2);
    let place = Place::new();
    place.start(&[&["--servers", "1"], listen].concat());
    let own = connect(&place, timeout);
    let file = own.create("f", 64 * BLOCK, BLOCK, Buffering::default()).unwrap();
    read_all(&file, 64 * BLOCK);
    check(&place, &file, timeout);
}

#[test]
fn a_stopped_server_is_named_by_small_calls() {
    // Proves: a small read and a small write fail within bounded time with the number of the server
    // that has stopped.
    for listen in [&[][..], &["--tcp", "127.0.0.1"]] {
        for writes in [false, true] {
            with_small_calls(listen, |place, file, timeout| {
                let server = place.server_pids()[0];
                signal(server, Signal::STOP);
                let begun = Instant::now();
                let ended = match writes {
                    true => file.write_at(&[1; 100], 0),
                    false => file.read_at(&mut [0; 100], 0).map(|_| ()),
                };
                let took = begun.elapsed();
                signal(server, Signal::CONT);
                let error = ended.unwrap_err();
                assert_eq!(error.kind, ErrorKind::ServerStalled, "{error}");
                assert!(error.cause.contains("server 0"), "{error}");
                assert!(took < timeout + Duration::from_secs(10), "{took:?}");
            });
        }
    }
}

#[test]
fn a_server_that_pauses_loses_no_small_call() {
    // Proves: a server that is stopped for less than the time-out answers when it goes on.
    with_small_calls(&[], |place, file, timeout| {
        let server = place.server_pids()[0];
        signal(server, Signal::STOP);
        let pause = timeout / 3;
        let goes_on = std::thread::spawn(move || {
            std::thread::sleep(pause);
            signal(server, Signal::CONT);
        });
        file.write_at(&[8; 100], 50).unwrap();
        goes_on.join().unwrap();
        let mut found = [0; 102];
        file.read_at(&mut found, 49).unwrap();
        assert_eq!((found[0], &found[1..101], found[101]), (0, &[8; 100][..], 0));
    });
}

#[test]
fn a_killed_server_is_named_by_small_calls() {
    // Proves: after a server was killed, a small read and a small write name it.
    with_small_calls(&[], |place, file, _| {
        let server = place.server_pids()[0];
        signal(server, Signal::KILL);
        gone(server);
        for ended in [file.read_at(&mut [0; 100], 0).map(|_| ()), file.write_at(&[1; 100], 0)] {
            let error = ended.unwrap_err();
            assert_eq!(error.kind, ErrorKind::ServerLeft, "{error}");
            assert!(error.cause.contains("server 0"), "{error}");
        }
    });
}

#[test]
fn a_stopped_client_holds_no_small_call_up() {
    // Proves: while a client that is alone in its group has stopped in the middle of a transfer, so
    // that servers wait for its memory, small reads and writes of another one in the same blocks
    // end in time, and succeed.
    for listen in LISTENING {
        let place = Place::new();
        place.start(listen);
        let mut clients = impatient_group(&place, 1);
        let case = &ENDLESS[4];
        clients[0].order(case, "f");
        until_moving(&place, 2 * case.file_bytes);
        let timeout = Duration::from_secs(2);
        let own = connect(&place, timeout);
        let file = own.open_file("f").unwrap();
        let blocks = case.file_bytes / file.page_bytes();
        let each_block = |round: u64| {
            for block in 0..blocks {
                let begun = Instant::now();
                let at = block * file.page_bytes() + round;
                file.read_at(&mut [0; 100], at).unwrap();
                file.write_at(&[1; 100], at).unwrap();
                let took = begun.elapsed();
                assert!(took < timeout + Duration::from_secs(10), "{took:?}");
            }
        };
        (0..5).for_each(each_block);
        signal(clients[0].pid(), Signal::STOP);
        (5..10).for_each(each_block);
    }
}
