//! Proves: a process killed with SIGKILL at any of its system calls leaves every acknowledged byte
//! readable.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use support::Place;
use support::device::{Library, failing_directory};
use support::disks::{OBJECT, PIECE, bytes, node_on, read, with_disk, write};
use world::{Disk, DiskError, Disks};
use world_real::{DiskOptions, RealDisk};

const OBJECT_BYTES: usize = 6 * PIECE as usize;

/// Steps of the process on the object until it is killed.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Writes (offset, length).
    Write(u64, u64),
    /// Truncates the object.
    Truncate(u64),
    /// Syncs the object.
    Sync,
}

/// Creates the object; writes parts of one piece, whole pieces, and both; first and later writes
/// after a sync.
const STEPS: [Step; 14] = [
    Step::Write(5, 100),
    Step::Write(0, 2 * PIECE),
    Step::Write(PIECE / 2, PIECE),
    Step::Write(5 * PIECE + 7, PIECE - 7),
    Step::Sync,
    Step::Write(PIECE, 3 * PIECE),
    Step::Write(PIECE + 1, 2 * PIECE - 2),
    Step::Truncate(2 * PIECE + 9),
    Step::Write(3 * PIECE, 8192),
    Step::Sync,
    Step::Sync,
    Step::Truncate(PIECE),
    Step::Write(4096, 4096),
    Step::Write(PIECE - 1, 2),
];

impl Step {
    async fn take(self, number: usize, disk: &RealDisk) -> Result<(), DiskError> {
        match self {
            Self::Write(offset, length) => write(disk, offset, &contents(number, length)).await,
            Self::Truncate(length) => disk.truncate(OBJECT, length).await,
            Self::Sync => disk.sync(OBJECT).await,
        }
    }

    /// Applies the step to the bytes of an object.
    fn apply(self, number: usize, object: &mut [u8]) {
        match self {
            Self::Write(offset, length) => object[offset as usize..][..length as usize]
                .copy_from_slice(&contents(number, length)),
            Self::Truncate(length) => object[length as usize..].fill(0),
            Self::Sync => {}
        }
    }
}

fn contents(number: usize, length: u64) -> Vec<u8> {
    bytes(number as u64 + 1, length as usize)
}

/// Takes all steps, and reports each.
fn take_steps(directory: &Path, options: DiskOptions) {
    world_real::run(async {
        let world = node_on(directory, options);
        for (number, step) in STEPS.iter().enumerate() {
            step.take(number, &world.disks()[0]).await.expect("there is room");
            eprintln!("taken");
        }
    });
}

/// Checks that the disk holds the result of `taken` steps, and perhaps, byte by byte, of one more.
fn check(place: &Place, options: DiskOptions, taken: usize) {
    let mut before = vec![0; OBJECT_BYTES];
    for (number, step) in STEPS.iter().enumerate().take(taken) {
        step.apply(number, &mut before);
    }
    let mut after = before.clone();
    if let Some(step) = STEPS.get(taken) {
        step.apply(taken, &mut after);
    }
    with_disk(place, options, |disk| async move {
        let found = read(&disk, 0, OBJECT_BYTES as u64).await.expect("nothing is damaged");
        for (index, byte) in found.iter().enumerate() {
            let is_right = *byte == before[index] || *byte == after[index];
            assert!(is_right, "byte {index} after {taken} steps");
        }
        // Pieces in flux are settled, and can be written again.
        write(&disk, 3, b"more").await.expect("nothing is damaged");
        assert_eq!(read(&disk, 3, 4).await.expect("it is whole"), b"more");
    });
}

#[test]
fn a_kill_at_any_call_leaves_nothing_unreadable() {
    const NAME: &str = "a_kill_at_any_call_leaves_nothing_unreadable";
    let options = |direct| DiskOptions { direct, ..DiskOptions::default() };
    if let Some(directory) = failing_directory() {
        return take_steps(&directory, options(std::env::var_os("UNISONO_DIRECT").is_some()));
    }
    let Some(library) = Library::build() else { return };
    for direct in [false, true] {
        for call in 1.. {
            let place = Place::new();
            let mut process = library.process(NAME, &place);
            process.env("UNISONO_KILL_AT", call.to_string()).stdout(Stdio::null());
            if direct {
                process.env("UNISONO_DIRECT", "1");
            }
            let ended = process.output().expect("it starts");
            let said = String::from_utf8_lossy(&ended.stderr);
            let taken = said.matches("taken").count();
            check(&place, options(direct), taken);
            if ended.status.signal() != Some(9) {
                assert!(ended.status.success() && taken == STEPS.len(), "{said}");
                assert!(call > 40, "there are calls to be killed at: {call}");
                break;
            }
        }
    }
}
