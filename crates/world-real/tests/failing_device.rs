//! Proves: write errors of a device are kept until the bytes are written again, though Linux
//! reports each once.
//!
//! Each test runs again in a process with a preloaded library, whose writes and syncs fail while a
//! file exists.

mod support;

use futures_util::future::join_all;
use std::path::Path;
use support::Place;
use support::device::{Library, failing_directory};
use support::disks::{OBJECT, PIECE, bytes, damaged, node_on, read, write};
use world::{Disk, DiskError, Disks, RecordChange, RecordTable, Records};
use world_real::{DiskOptions, NodeConfig, OpenError, RealDisk, RealWorld};

/// Runs test `name` of this file in a process of its own whose device can fail.
fn in_a_process_that_fails(name: &str) {
    let Some(library) = Library::build() else { return };
    let place = Place::new();
    // Its lines of results are not those of this run, which are counted.
    let ended = library.process(name, &place).output().expect("it starts");
    let printed =
        [ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(
        ended.status.success(),
        "the process that fails must pass its test:\n{}",
        printed.concat()
    );
}

/// Makes an operation of the device fail or succeed.
fn refuse(directory: &Path, what: &str, refused: bool) {
    let trigger = match what {
        "hold-cuts" => directory.join(what),
        _ => directory.join(format!("refuse-{what}")),
    };
    let done = if refused { std::fs::write(trigger, "") } else { std::fs::remove_file(trigger) };
    done.expect("a test may write");
}

fn with_disk<F: Future<Output = ()>>(directory: &Path, program: impl FnOnce(RealDisk) -> F) {
    with_disk_as(directory, DiskOptions::default(), program);
}

fn with_disk_as<F: Future<Output = ()>>(
    directory: &Path,
    options: DiskOptions,
    program: impl FnOnce(RealDisk) -> F,
) {
    world_real::run(async {
        let world = node_on(directory, options);
        program(world.disks()[0].clone()).await;
    });
}

fn has_failed<T>(outcome: Result<T, DiskError>) -> bool {
    matches!(outcome, Err(DiskError::Failed { cause, .. }) if cause.contains("Input/output error"))
}

#[test]
fn a_failed_sync_is_told_until_the_bytes_are_stored() {
    // Proves: after a failed sync, syncs fail though the system lets them succeed, until every
    // earlier byte was written again and synced; other objects are not affected.
    const NAME: &str = "a_failed_sync_is_told_until_the_bytes_are_stored";
    let Some(directory) = failing_directory() else { return in_a_process_that_fails(NAME) };
    with_disk(&directory, |disk| {
        let directory = directory.clone();
        async move {
            let other = units::FileId(9);
            write(&disk, 0, &bytes(1, 1000)).await.expect("it can be written");
            disk.write(other, 0, b"other".to_vec().into()).await.expect("it can be written");
            refuse(&directory, "syncs", true);
            assert!(has_failed(disk.sync(OBJECT).await));
            refuse(&directory, "syncs", false);
            assert!(has_failed(disk.sync(OBJECT).await), "the first failure must not be forgotten");
            disk.sync(other).await.expect("nothing of it failed");
            write(&disk, 1, &bytes(2, 999)).await.expect("it can be written");
            assert!(has_failed(disk.sync(OBJECT).await), "byte 0 was not written again");
            write(&disk, 0, b"x").await.expect("it can be written");
            disk.sync(OBJECT).await.expect("everything was written again");
            disk.sync(OBJECT).await.expect("nothing failed since");
            assert_eq!(read(&disk, 1, 999).await.expect("it is whole"), bytes(2, 999));
        }
    });
}

#[test]
fn a_failed_write_is_told_by_syncs() {
    // Proves: a failed write damages no earlier bytes, and every later sync fails until the bytes
    // are written, or the object is truncated or removed.
    const NAME: &str = "a_failed_write_is_told_by_syncs";
    let Some(directory) = failing_directory() else { return in_a_process_that_fails(NAME) };
    with_disk(&directory, |disk| {
        let directory = directory.clone();
        async move {
            let old = bytes(1, 3 * PIECE as usize);
            for healed in ["written", "truncated", "removed"] {
                write(&disk, 0, &old).await.expect("it can be written");
                disk.sync(OBJECT).await.expect("it is stored");
                refuse(&directory, "writes", true);
                assert!(has_failed(write(&disk, PIECE + 7, b"new").await));
                refuse(&directory, "writes", false);
                assert!(read(&disk, 0, 3 * PIECE).await.expect("it is whole") == old);
                for _ in 0..2 {
                    assert!(has_failed(disk.sync(OBJECT).await), "{healed}");
                }
                match healed {
                    "written" => write(&disk, PIECE, &old[..100]).await.expect("it can be written"),
                    "truncated" => disk.truncate(OBJECT, PIECE).await.expect("it can be cut"),
                    _ => disk.remove(OBJECT).await.expect("it can be removed"),
                }
                disk.sync(OBJECT).await.expect(healed);
            }
        }
    });
}

#[test]
fn a_write_to_an_object_that_cannot_be_made_is_told_by_syncs() {
    // Proves: as above, if the write was to create the object.
    const NAME: &str = "a_write_to_an_object_that_cannot_be_made_is_told_by_syncs";
    let Some(directory) = failing_directory() else { return in_a_process_that_fails(NAME) };
    with_disk(&directory, |disk| {
        let directory = directory.clone();
        async move {
            for healed in ["written", "truncated", "removed"] {
                refuse(&directory, "writes", true);
                assert!(has_failed(write(&disk, 7, b"new").await));
                refuse(&directory, "writes", false);
                for _ in 0..2 {
                    assert!(has_failed(disk.sync(OBJECT).await), "{healed}");
                }
                match healed {
                    "written" => write(&disk, 0, &[9; 14]).await.expect("it can be written"),
                    "truncated" => disk.truncate(OBJECT, 7).await.expect("it can be cut"),
                    _ => disk.remove(OBJECT).await.expect("it can be removed"),
                }
                disk.sync(OBJECT).await.expect(healed);
                disk.remove(OBJECT).await.expect("it can be removed");
            }
        }
    });
}

/// Length of an object; 0 if there is none.
async fn length_of(disk: &RealDisk, object: units::FileId) -> Result<u64, DiskError> {
    Ok(disk.metadata(object).await?.map_or(0, |metadata| metadata.length))
}

#[test]
fn length_during_a_direct_write_is_the_old_or_the_new_one() {
    // Proves: during a direct write, which writes the last sector whole and then truncates, a query
    // of the length returns the old or the new one.
    const NAME: &str = "length_during_a_direct_write_is_the_old_or_the_new_one";
    let Some(directory) = failing_directory() else { return in_a_process_that_fails(NAME) };
    let options = DiskOptions { direct: true, ..DiskOptions::default() };
    with_disk_as(&directory, options, |disk| {
        let directory = directory.clone();
        async move {
            refuse(&directory, "hold-cuts", true);
            let hold = directory.join("hold-cuts");
            let goes_on = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(300));
                std::fs::remove_file(hold).expect("a test may remove");
            });
            // The queries before it delay this one until the write is in progress.
            let others = join_all((100..300).map(|number| length_of(&disk, units::FileId(number))));
            let bytes = bytes(1, 50);
            let (_, length, written) =
                futures_util::join!(others, length_of(&disk, OBJECT), write(&disk, 0, &bytes));
            written.expect("it can be written");
            assert!(matches!(length, Ok(0 | 50)), "{length:?}");
            goes_on.join().expect("it ends");
        }
    });
}

#[test]
fn a_write_that_failed_half_way_makes_no_object_longer() {
    // Proves: a direct write writes the last sector whole and first. If the rest fails, the object
    // keeps its size; after a successful retry it has the new one.
    const NAME: &str = "a_write_that_failed_half_way_makes_no_object_longer";
    let Some(directory) = failing_directory() else { return in_a_process_that_fails(NAME) };
    let options = DiskOptions { direct: true, ..DiskOptions::default() };
    with_disk_as(&directory, options, |disk| {
        let directory = directory.clone();
        async move {
            let ends =
                async |expected: u64| assert_eq!(length_of(&disk, OBJECT).await, Ok(expected));
            write(&disk, 0, &bytes(1, 50)).await.expect("it can be written");
            ends(50).await;
            let new = bytes(2, PIECE as usize + 100);
            refuse(&directory, "large-writes", true);
            assert!(has_failed(write(&disk, 0, &new).await));
            ends(50).await;
            refuse(&directory, "large-writes", false);
            write(&disk, 0, &new).await.expect("it can be written");
            ends(PIECE + 100).await;
            assert!(read(&disk, 0, PIECE + 100).await.expect("it is whole") == new);
        }
    });
}

/// Opens a node with records in `directory`. The thread of the node before closes its file a moment
/// after its drop.
fn with_records(directory: &Path) -> RealWorld {
    let records = vec![(RecordTable::Catalogue, directory.to_owned())];
    let config = NodeConfig { records, ..NodeConfig::default() };
    loop {
        match RealWorld::open(config.clone()) {
            Err(OpenError::Directory { .. }) => std::thread::yield_now(),
            opened => break opened.expect("it begins"),
        }
    }
}

#[test]
fn changes_of_records_that_failed_are_not_made() {
    // Proves: changes that failed because the device did not store them are never found, with later
    // changes or without, by this process or the next, though the page cache took all.
    const NAME: &str = "changes_of_records_that_failed_are_not_made";
    let Some(directory) = failing_directory() else { return in_a_process_that_fails(NAME) };
    let put = |key, value| vec![RecordChange::put(key, vec![value])];
    for with_later_changes in [true, false] {
        let mut expected = vec![(1, vec![1]), (2, vec![2])];
        world_real::run(async {
            let world = with_records(&directory);
            let change = async |changes| world.record_change(RecordTable::Catalogue, changes).await;
            change(put(1, 1)).await.expect("it is stored");
            change(put(2, 2)).await.expect("it is stored");
            refuse(&directory, "syncs", true);
            let twice = [put(1, 7), put(3, 7)].concat();
            for failing in [put(1, 8), twice, vec![RecordChange::remove(2)], put(4, 7)] {
                assert!(change(failing).await.is_err());
            }
            // State that a process killed now would leave.
            let left = directory.join("left");
            std::fs::create_dir_all(&left).expect("a test must have room");
            for file in ["records.redb", "records.last", "records.failed"] {
                // Some failures leave nothing to undo.
                let copied = std::fs::copy(directory.join(file), left.join(file));
                assert!(copied.is_ok() || file == "records.failed" && !with_later_changes);
            }
            refuse(&directory, "syncs", false);
            let found = with_records(&left).records(RecordTable::Catalogue).await;
            assert_eq!(found, Ok(expected.clone()));
            if with_later_changes {
                for key in [4, 5] {
                    change(put(key, 9)).await.expect("it is stored");
                    expected.push((key, vec![9]));
                    assert_eq!(world.records(RecordTable::Catalogue).await, Ok(expected.clone()));
                }
            }
        });
        world_real::run(async {
            let world = with_records(&directory);
            assert_eq!(world.records(RecordTable::Catalogue).await, Ok(expected));
            let removed = [1, 2, 4, 5].map(RecordChange::remove).into();
            world.record_change(RecordTable::Catalogue, removed).await.expect("it is stored");
        });
    }
}

#[test]
fn failures_outlive_the_descriptor() {
    // Proves: an object that is closed because too many others are open keeps its failure; a failed
    // write-back at its close is reported by its next sync.
    const NAME: &str = "failures_outlive_the_descriptor";
    let Some(directory) = failing_directory() else { return in_a_process_that_fails(NAME) };
    with_disk(&directory, |disk| {
        let directory = directory.clone();
        async move {
            let open_others = async || {
                for number in 1000..1300 {
                    let payload = b"other".to_vec().into();
                    disk.write(units::FileId(number), 0, payload).await.expect("it can be written");
                }
            };
            write(&disk, 0, b"lost").await.expect("it can be written");
            refuse(&directory, "syncs", true);
            open_others().await;
            refuse(&directory, "syncs", false);
            assert!(has_failed(disk.sync(OBJECT).await), "it could not be stored when closed");
            open_others().await;
            assert!(has_failed(disk.sync(OBJECT).await), "it was not written again");
            write(&disk, 0, b"kept").await.expect("it can be written");
            disk.sync(OBJECT).await.expect("it is stored");
            assert_eq!(damaged(read(&disk, 0, 4).await), None);
        }
    });
}
