//! Proves: a process that is killed with SIGKILL at any moment leaves every byte that it was told
//! to be written readable.

mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::Place;
use support::disks::{OBJECT, PIECE, bytes, node_on, read, with_disk, write};
use world::{Disk, Disks};
use world_real::DiskOptions;

/// Names the directory of the process that is killed, which runs this same test.
const VICTIM: &str = "UNISONO_TEST_VICTIM";

const OBJECT_BYTES: u64 = 6 * PIECE;

/// Where write `number` goes, and how long it is: some whole pieces, some parts.
fn place_of(number: u64) -> (u64, u64) {
    let random = bytes(number, 6);
    let number_of = |at: usize| u64::from(random[at]) << 8 | u64::from(random[at + 1]);
    let offset = match random[4] % 3 {
        0 => number_of(0) % 6 * PIECE,
        _ => number_of(0) * 6 % OBJECT_BYTES,
    };
    let length =
        if random[5].is_multiple_of(2) { PIECE } else { 1 + number_of(2) * 3 % (2 * PIECE) };
    (offset, length.min(OBJECT_BYTES - offset))
}

fn contents_of(number: u64) -> Vec<u8> {
    bytes(number ^ 0xabcd, place_of(number).1 as usize)
}

/// Writes until it is killed, and says so before and after each write.
fn be_killed(directory: PathBuf, direct: bool) {
    world_real::run(async {
        let world = node_on(&directory, DiskOptions { direct, ..DiskOptions::default() });
        let disk = &world.disks()[0];
        for number in 1.. {
            println!("begin {number}");
            write(disk, place_of(number).0, &contents_of(number)).await.expect("there is room");
            println!("done {number}");
            if number % 16 == 0 {
                disk.sync(OBJECT).await.expect("it is stored");
            }
        }
    });
}

/// Kills a process after `writes` writes; returns the number of the last write that it began.
fn kill_after(place: &Place, writes: u64, direct: bool, test: &str) -> u64 {
    let mut command = Command::new(std::env::current_exe().expect("a test has a file"));
    command.args(["--exact", test, "--nocapture"]).env(VICTIM, place.path());
    command.stdout(Stdio::piped()).env("UNISONO_TEST_DIRECT", if direct { "1" } else { "" });
    let mut child = command.spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("it was piped")).lines();
    let (mut last, mut killed) = (0, false);
    for line in lines.map_while(Result::ok) {
        // What the harness says stands on the same line as the first.
        let Some((_, number)) = line.rsplit_once("begin ").or(line.rsplit_once("done ")) else {
            continue;
        };
        last = number.parse().expect("a number follows");
        if last >= writes && !killed {
            killed = true;
            child.kill().expect("it is there");
        }
    }
    child.wait().expect("it was started here");
    last
}

#[test]
fn what_was_written_before_a_kill_is_readable() {
    const NAME: &str = "what_was_written_before_a_kill_is_readable";
    if let Some(directory) = std::env::var_os(VICTIM) {
        let direct = std::env::var("UNISONO_TEST_DIRECT").is_ok_and(|value| value == "1");
        return be_killed(directory.into(), direct);
    }
    for (round, direct) in (0..12).map(|round| (round, round % 3 == 2)) {
        let place = Place::new();
        let last = kill_after(&place, 20 + 37 * round, direct, NAME);
        // The last write may have been done, or not, or in part.
        let mut model = vec![0; OBJECT_BYTES as usize];
        for number in 1..last {
            let start = place_of(number).0 as usize;
            let contents = contents_of(number);
            model[start..start + contents.len()].copy_from_slice(&contents);
        }
        with_disk(&place, DiskOptions::default(), |disk| async move {
            let found = read(&disk, 0, OBJECT_BYTES).await.expect("nothing is damaged");
            let (offset, length) = place_of(last);
            let torn = offset as usize..(offset + length) as usize;
            let new = contents_of(last);
            for (index, byte) in found.iter().enumerate() {
                let is_new = torn.contains(&index) && *byte == new[index - torn.start];
                assert!(is_new || *byte == model[index], "round {round}: byte {index} of {last}");
            }
            // What was in flux is settled, and can be written again.
            write(&disk, 3, b"more").await.expect("nothing is damaged");
            assert_eq!(read(&disk, 3, 4).await.expect("it is whole"), b"more");
        });
    }
}
