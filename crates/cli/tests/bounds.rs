//! Proves: a server takes no more memory than its configuration and a constant say, whatever
//! clients with its key send, and does not grow with what was removed again.

use crate::support;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use support::{CONNECTION_VERSION, Place, bytes, resident_bytes};

const MIB: u64 = 1 << 20;

/// Memory that messages of all clients may take while they arrive.
const ARRIVING_BYTES: u64 = 64 * MIB;

/// Memory that a connection may take besides.
const CONNECTION_BYTES: u64 = MIB;

/// Clients of an attack.
const CLIENTS: u64 = 40;

/// Files that are created and removed.
const REMOVALS: u64 = 3000;

/// Greeting of a node: its mark, its version, its side, an address, a secret.
fn hello() -> Vec<u8> {
    let mut hello = [&b"UNISONO\0"[..], &[CONNECTION_VERSION, 0], &[0; 30]].concat();
    hello[24..].fill(7);
    hello
}

/// A greeting, the fixed part of a message, and its bytes but the last.
fn unfinished(header: u32, body: u64) -> Vec<u8> {
    let mut sent = hello();
    sent.extend([b'U', b'N', 0, 2]);
    sent.extend(header.to_le_bytes());
    sent.extend(body.to_le_bytes());
    sent.extend([0; 16]);
    sent.resize(sent.len() + header as usize + body as usize - 1, 5);
    sent
}

#[test]
fn unfinished_messages_take_bounded_memory() {
    // Proves: clients that announce large messages and send all but the last byte make a server
    // take the bytes of its pool and a constant for each, and others are served meanwhile.
    let place = Place::new();
    place.start(&["--servers", "1", "--cache", "16MiB"]);
    let local = place.file("local", &bytes(3 << 20));
    let put_and_get = |name: &str| {
        place.run(&["put".as_ref(), local.as_os_str(), name.as_ref()]).done();
        assert!(place.run(&["get", name, "-"]).done().output == bytes(3 << 20));
    };
    put_and_get("before");
    let server = place.server_pids()[0];
    let first = resident_bytes(server);
    for (number, (header, body)) in [(0, 64 * MIB), (8, MIB), (4 << 20, 0)].into_iter().enumerate()
    {
        let sent = unfinished(header, body);
        // What the server has freed stays with it for its next use.
        let before = resident_bytes(server);
        let open: Vec<UnixStream> = std::thread::scope(|scope| {
            let senders: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    let path = place.instance().join("server-0.sock");
                    let mut stream = UnixStream::connect(path).expect("the server listens");
                    scope.spawn(|| {
                        // The server may read no further, or end the connection.
                        stream.set_write_timeout(Some(Duration::from_secs(2))).expect("a socket");
                        let _ = stream.write_all(&sent);
                        stream
                    })
                })
                .collect();
            senders.into_iter().map(|sender| sender.join().expect("it ends")).collect()
        });
        let grown = resident_bytes(server).saturating_sub(before);
        let limit = ARRIVING_BYTES + CLIENTS * CONNECTION_BYTES;
        assert!(grown < limit, "{grown} bytes for bodies of {body} and headers of {header} bytes");
        put_and_get(&number.to_string());
        drop(open);
        place.assert_nothing_held();
    }
    // Bodies and headers come out of different pools.
    assert!(resident_bytes(server) < first + 2 * ARRIVING_BYTES + CLIENTS * CONNECTION_BYTES);
}

/// A message of a client, in postcard: the greeting of version 15 with a key, or a request with its
/// number.
fn frame(header: &[u8]) -> Vec<u8> {
    let mut sent = vec![b'U', b'N', 0, 2];
    sent.extend((header.len() as u32).to_le_bytes());
    sent.extend([0; 24]);
    sent.extend(header);
    sent
}

#[test]
fn answers_that_nobody_reads_take_bounded_memory() {
    // Proves: clients that request long lists, as many as they may, and read none of the answers,
    // make a server take the memory of its answers and a constant for each; when they have gone,
    // others are served. (While they stay they are disconnected one after the other.)
    const FILES: usize = 1500;
    const LISTS: u64 = 1000;
    const ANSWERS_BYTES: u64 = 64 * MIB;
    // Of 32 MiB for 4,096 requests.
    const REQUEST_BYTES: u64 = 8 << 10;
    let place = Place::new();
    place.start(&["--servers", "1", "--cache", "16MiB"]);
    let connection = client::Connection::open(&client::Instance::at(place.instance())).unwrap();
    for number in 0..FILES {
        let name = format!("{number:05} {}", "long".repeat(50));
        connection
            .create_by_default(&name, client::NewFileOptions::default())
            .unwrap()
            .close()
            .unwrap();
    }
    let server = place.server_pids()[0];
    let before = resident_bytes(server);
    let open: Vec<UnixStream> = (0..CLIENTS)
        .map(|client| {
            let path = place.instance().join("server-0.sock");
            let mut stream = UnixStream::connect(path).expect("the server listens");
            stream.set_write_timeout(Some(Duration::from_millis(200))).expect("a socket");
            // Message::Hello with `wire::PROTOCOL_VERSION`.
            let greeting = frame(&[0, 30, 200 + client as u8 % 50, client as u8 + 1]);
            let mut sent = [hello(), greeting].concat();
            for number in 0..LISTS {
                // Message::Request, its number, CatalogueRequest::List of the root.
                let number = [(number & 127) as u8 | 128, (number >> 7) as u8];
                sent.extend(frame(&[&[1][..], &number, &[68, 0, 0]].concat()));
            }
            // The server may read no further.
            let _ = stream.write_all(&sent);
            stream
        })
        .collect();
    // Time in which a server without a limit would make many answers.
    std::thread::sleep(Duration::from_secs(3));
    let grown = resident_bytes(server).saturating_sub(before);
    let limit = 2 * ANSWERS_BYTES + CLIENTS * (CONNECTION_BYTES + LISTS * REQUEST_BYTES);
    assert!(grown < limit, "{} MiB", grown / MIB);
    // The answers are such lists.
    let mut answer = vec![0; MIB as usize / 4];
    let mut stream = &open[0];
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    stream.read_exact(&mut answer).expect("it has been sent");
    assert!(answer.windows(8).any(|part| part == b"longlong"));
    drop(open);
    assert_eq!(connection.list("").unwrap().len(), FILES);
    drop(connection);
    place.assert_nothing_held();
}

#[test]
fn removed_files_leave_no_memory_behind() {
    // Proves: the resident size of the servers after a thousand creates and removes is that after
    // many thousand.
    let place = Place::with_servers(2);
    let connection = client::Connection::open(&client::Instance::at(place.instance())).unwrap();
    let create_and_remove = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            let name = format!("file {number}");
            connection
                .create_by_default(&name, client::NewFileOptions::default())
                .unwrap()
                .close()
                .unwrap();
            connection.remove(&name).unwrap();
        }
    };
    let servers = place.server_pids();
    let resident = || servers.iter().map(|server| resident_bytes(*server)).collect::<Vec<_>>();
    create_and_remove(0..1000);
    let before = resident();
    create_and_remove(1000..1000 + REMOVALS);
    for (server, (before, after)) in before.into_iter().zip(resident()).enumerate() {
        // With 16 bytes for each file, or the holes that such bytes leave, it would be more.
        let grown = after.saturating_sub(before);
        assert!(grown < REMOVALS * 100, "server {server} grew by {grown} bytes");
    }
}
