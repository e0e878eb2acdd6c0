//! Proves: what no client would send ends the connection it came over, and nothing else; and
//! servers of another release are reported as such.

use crate::support;
use client::{Connection, Instance};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use support::{CONNECTION_VERSION, FAILED, Place, STALL_TIMEOUT, bytes};

/// Greeting of a node: its mark, its version, its side, an address, a secret.
fn hello() -> Vec<u8> {
    let mut hello = [&b"UNISONO\0"[..], &[CONNECTION_VERSION, 0], &[0; 30]].concat();
    hello[24..].fill(7);
    hello
}

/// Fixed part of a frame: kind, flags, bytes of header and of body, region, number.
fn frame(kind: u8, flags: u8, header: u32, body: u64, region: u64, number: u64) -> Vec<u8> {
    let mut frame = vec![b'U', b'N', kind, flags];
    frame.extend(header.to_le_bytes());
    frame.extend([body, region, number].map(u64::to_le_bytes).concat());
    frame
}

/// Messages of strangers: name, true if a greeting comes first, and the bytes sent.
fn nonsense() -> Vec<(&'static str, bool, Vec<u8>)> {
    let message =
        |header: &[u8]| [frame(0, 0, header.len() as u32, 0, 0, 0), header.to_vec()].concat();
    let mut strange_hello = hello();
    strange_hello[8] = 99;
    vec![
        ("nothing", false, Vec::new()),
        ("noise instead of a greeting", false, bytes(100_000)),
        ("a greeting of another version", false, strange_hello),
        ("noise instead of a frame", true, bytes(100_000)),
        ("a frame of an unknown kind", true, frame(200, 0, 0, 0, 0, 0)),
        ("unknown flags", true, frame(0, 0xf0, 0, 0, 0, 0)),
        ("a header of 4 GiB", true, frame(0, 0, u32::MAX, 0, 0, 0)),
        ("a body of 2^64 bytes", true, frame(0, 2, 4, u64::MAX, 0, 0)),
        ("an exposure of everything", true, {
            [frame(1, 0, 16, 0, 1, 1), vec![0xff; 16]].concat()
        }),
        ("an exposure of the wrong size", true, [frame(1, 0, 3, 0, 1, 1), vec![0; 3]].concat()),
        ("a message into no region", true, { [frame(0, 3, 4, 4, 77, 0), vec![0; 8]].concat() }),
        ("runs that are cut off", true, [frame(4, 0, 33, 0, 1, 1), vec![0; 33]].concat()),
        ("an answer to no question", true, frame(5, 0, 0, 0, 0, 5)),
        ("an empty message", true, message(&[])),
        ("a message that is none", true, message(&[0xff; 64])),
        ("a request before a greeting", true, message(&[1, 0, 9])),
        ("a message for clients", true, message(&[3, 2])),
    ]
}

#[test]
fn nonsense_ends_its_own_connection_only() {
    // Proves: each kind of nonsense gets the connection closed by the server, which holds nothing
    // for it and serves the next command.
    let place = Place::with_servers(1);
    let content = bytes(200_000);
    let local = place.file("local", &content);
    place.run(&["put".as_ref(), local.as_os_str(), "kept".as_ref()]).done();
    let server = place.server_pids();
    for (what, greets, sent) in nonsense() {
        let mut stream = UnixStream::connect(place.instance().join("server-0.sock")).unwrap();
        stream.set_read_timeout(Some(STALL_TIMEOUT)).unwrap();
        let greeting = if greets { hello() } else { Vec::new() };
        // The server may hang up before it has heard everything.
        let _ = stream.write_all(&greeting).and_then(|()| stream.write_all(&sent));
        let mut heard = Vec::new();
        // Ends when the server closes, be it with bytes that it never read.
        if let Err(error) = stream.read_to_end(&mut heard) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{what}: {error}");
        }
        drop(stream);
        assert_eq!(place.run(&["get", "kept", "-"]).done().output, content, "after {what}");
        place.assert_nothing_held();
    }
    assert_eq!(place.server_pids(), server);
    assert!(support::is_running(server[0]));
}

#[test]
fn half_of_something_holds_nobody_up() {
    // Proves: strangers that stop in the middle of a greeting, a frame or a body keep no other
    // client waiting, and a server with them connected can be stopped.
    let place = Place::with_servers(1);
    let halves = [
        hello()[..20].to_vec(),
        hello(),
        [hello(), frame(0, 0, 40, 0, 0, 0)[..16].to_vec()].concat(),
        [hello(), frame(0, 0, 40, 0, 0, 0), vec![0; 5]].concat(),
        [hello(), frame(0, 2, 4, 64 << 20, 0, 0), vec![0; 5000]].concat(),
    ];
    let open: Vec<UnixStream> = (0..100)
        .map(|number| {
            let path = place.instance().join("server-0.sock");
            let mut stream = UnixStream::connect(path).unwrap();
            stream.write_all(&halves[number % halves.len()]).unwrap();
            stream
        })
        .collect();
    let content = bytes(200_000);
    let local = place.file("local", &content);
    place.run(&["put".as_ref(), local.as_os_str(), "kept".as_ref()]).done();
    assert_eq!(place.run(&["get", "kept", "-"]).done().output, content);
    let pids = place.server_pids();
    place.run(&["stop"]).done();
    pids.into_iter().for_each(support::gone);
    drop(open);
}

#[test]
fn servers_of_another_release_are_reported_with_their_version() {
    // Proves: the library gives the kind of the error, and the command both versions and the help.
    let place = Place::with_servers(1);
    let socket = place.instance().join("server-0.sock");
    std::fs::remove_file(&socket).unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut hello = hello();
            (hello[8], hello[10]) = (2, 1);
            stream.write_all(&hello).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    let refused = Connection::open(&Instance::at(place.instance())).err().unwrap();
    assert_eq!(refused.kind.row().name, "wrong-version", "{refused:?}");
    let ended = place
        .run(&["ls"])
        .refused(FAILED, &[&format!("version {CONNECTION_VERSION}"), "version 2"]);
    assert!(ended.error.contains("use client and servers of the same release"), "{}", ended.error);
}
