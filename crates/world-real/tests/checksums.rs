//! Proves: damage to the bytes of an object or to its checksums is reported, with its range, and
//! damaged bytes are never returned; states that only a crash can leave behind are accepted.

mod support;

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use support::Place;
use support::disks::{
    OBJECT, PIECE, bytes, cut, damaged, data_file, flip, node_of, read, sums_file, with_disk, write,
};
use units::FileId;
use world::{Damage, Disk, DiskError, Disks};
use world_real::{DiskConfig, DiskOptions, RealDisk, STORED_LOG};

const BUFFERED: DiskOptions = DiskOptions { direct: false, checksums: true, preallocate: true };

const UNCHECKED: DiskOptions = DiskOptions { checksums: false, ..BUFFERED };

/// Size of the header of the checksum file, in bytes.
const HEADER: u64 = 64;

/// Returns a disk with four pieces and a half.
fn written(contents: &[u8]) -> Place {
    let place = Place::new();
    with_disk(&place, BUFFERED, |disk| async move {
        write(&disk, 0, contents).await.expect("there is room");
        disk.sync(OBJECT).await.expect("it is stored");
    });
    place
}

/// Returns a disk that was written in a generation.
fn written_in(generation: u32, contents: &[u8]) -> Place {
    let place = Place::new();
    in_generation(generation, &place, |disk| async move {
        write(&disk, 0, contents).await.expect("there is room");
        disk.sync(OBJECT).await.expect("it is stored");
    });
    place
}

fn contents() -> Vec<u8> {
    bytes(1, (4 * PIECE + PIECE / 2) as usize)
}

#[test]
fn a_flipped_byte_is_told_wherever_it_is() {
    // Proves: whichever byte is damaged, every read that touches its piece fails with the range of
    // the piece, also a read of other bytes of it; every other piece reads as it was written.
    let contents = contents();
    let places = [0, 1, PIECE - 1, PIECE, 2 * PIECE + 4711, 4 * PIECE, 4 * PIECE + PIECE / 2 - 1];
    for (byte, direct) in places.into_iter().flat_map(|byte| [(byte, false), (byte, true)]) {
        let place = written(&contents);
        flip(&data_file(&place), byte);
        with_disk(&place, DiskOptions { direct, ..BUFFERED }, |disk| async move {
            let piece = byte / PIECE;
            let contents = self::contents();
            assert_eq!(damaged(read(&disk, 0, contents.len() as u64).await), Some(piece));
            assert_eq!(damaged(read(&disk, byte, 1).await), Some(piece));
            assert_eq!(damaged(read(&disk, piece * PIECE + 77, 1).await), Some(piece));
            for other in (0..5).filter(|other| *other != piece) {
                let start = other * PIECE;
                let end = (start + PIECE).min(contents.len() as u64);
                let found = read(&disk, start, end - start).await.expect("it is whole");
                assert!(found == contents[start as usize..end as usize], "piece {other}");
            }
        });
    }
}

#[test]
fn a_damaged_piece_is_healed_only_by_a_write_of_all_of_it() {
    let place = written(&contents());
    flip(&data_file(&place), PIECE + 5);
    with_disk(&place, BUFFERED, |disk| async move {
        // A write that leaves one of its bytes fails, and writes no other piece either.
        let before = read(&disk, 0, PIECE).await.expect("it is whole");
        let all_but_one = bytes(2, 2 * PIECE as usize - 1);
        assert_eq!(damaged(write(&disk, 0, &all_but_one).await), Some(1));
        assert!(read(&disk, 0, PIECE).await.expect("it is whole") == before);
        assert_eq!(damaged(write(&disk, PIECE + 10, b"x").await), Some(1));
        assert_eq!(damaged(disk.truncate(OBJECT, PIECE + 10).await), Some(1));
        let all = bytes(3, PIECE as usize);
        write(&disk, PIECE, &all).await.expect("nothing of the damage stays");
        assert!(read(&disk, PIECE, PIECE).await.expect("it is whole") == all);
        disk.sync(OBJECT).await.expect("a refused write lost nothing");
    });
}

#[test]
fn an_object_that_is_gone_is_told() {
    // Proves: an object whose file is missing counts as damaged, not as a hole, until it is
    // removed; one that was never durable is a hole after a session has ended.
    for direct in [false, true] {
        let place = written(&contents());
        std::fs::remove_file(data_file(&place)).expect("it is there");
        with_disk(&place, DiskOptions { direct, ..BUFFERED }, |disk| async move {
            let start = 3 * PIECE;
            let missing = Some((start, 1, Damage::Missing));
            assert_eq!(damage_of(read(&disk, start, 1).await), missing);
            assert_eq!(damage_of(write(&disk, start, b"x").await), missing);
            disk.remove(OBJECT).await.expect("it can be removed");
            assert_eq!(read(&disk, 0, 2).await.expect("there is none"), b"\0\0");
            write(&disk, 0, b"x").await.expect("it is a new one");
        });
    }
    for session_ends in [false, true] {
        let place = Place::new();
        with_disk(&place, BUFFERED, |disk| async move {
            write(&disk, 0, b"x").await.expect("there is room");
        });
        std::fs::remove_file(data_file(&place)).expect("it is there");
        if session_ends {
            end_session_of_log(&place);
        }
        with_disk(&place, BUFFERED, |disk| async move {
            match session_ends {
                true => assert_eq!(read(&disk, 0, 2).await.expect("it is a hole"), b"\0\0"),
                false => {
                    let missing = Some((0, 2, Damage::Missing));
                    assert_eq!(damage_of(read(&disk, 0, 2).await), missing);
                }
            }
        });
    }
}

#[test]
fn an_older_copy_of_an_object_is_told() {
    // Proves: an object that was changed after a later start, and is then replaced by a copy from
    // before, is damage, whether a sync has covered the change or not; one that nobody changed is
    // not. After a crash of the machine, what the device has is accepted.
    for (is_changed, is_synced, is_copy) in
        [(true, true, true), (true, false, true), (true, true, false), (false, true, true)]
    {
        let place = written_in(3, &contents());
        let copies = [data_file(&place), sums_file(&place)].map(|file| {
            let copy = std::fs::read(&file).expect("it is there");
            (file, copy)
        });
        in_generation(4, &place, |disk| async move {
            if is_changed {
                write(&disk, PIECE + 5, b"new").await.expect("there is room");
            }
            read(&disk, 0, 1).await.expect("it is there");
            if is_synced {
                disk.sync(OBJECT).await.expect("it is stored");
            }
        });
        if is_copy {
            copies.into_iter().for_each(|(file, copy)| {
                std::fs::write(file, copy).expect("a test may write");
            });
        }
        in_generation(5, &place, |disk| async move {
            let told = (is_changed && is_copy).then_some((2 * PIECE, 9, Damage::Older));
            assert_eq!(damage_of(read(&disk, 2 * PIECE, 9).await), told);
        });
        end_session_of_log(&place);
        in_generation(6, &place, |disk| async move {
            let told = (is_changed && is_copy).then_some((0, 1, Damage::Older));
            assert_eq!(damage_of(read(&disk, 0, 1).await), told);
        });
    }
}

#[test]
fn damaged_checksums_are_told() {
    // Proves: a flipped or a missing checksum damages its own piece, a damaged header the whole
    // object, until the object is removed.
    let contents = contents();
    let place = written(&contents);
    flip(&sums_file(&place), HEADER + 4 * 2 + 3);
    with_disk(&place, BUFFERED, |disk| async move {
        assert_eq!(damaged(read(&disk, 0, 5 * PIECE).await), Some(2));
        read(&disk, 3 * PIECE, PIECE).await.expect("it is whole");
    });
    let place = written(&contents);
    cut(&sums_file(&place), HEADER + 4 * 3);
    with_disk(&place, BUFFERED, |disk| async move {
        assert_eq!(damaged(read(&disk, 0, 5 * PIECE).await), Some(3));
        read(&disk, 0, 3 * PIECE).await.expect("it is whole");
    });
    for length in [1, 8, HEADER - 1] {
        let place = written(&contents);
        cut(&sums_file(&place), length);
        with_disk(&place, BUFFERED, |disk| async move {
            let outcome = read(&disk, 0, 1).await;
            assert!(matches!(outcome, Err(DiskError::Corrupt { offset: 0, .. })), "{outcome:?}");
            assert!(matches!(write(&disk, 0, b"x").await, Err(DiskError::Corrupt { .. })));
            disk.remove(OBJECT).await.expect("it can be removed");
            write(&disk, 0, b"x").await.expect("it is a new one");
            assert_eq!(read(&disk, 0, 2).await.expect("it is whole"), b"x\0");
        });
    }
    for byte in [0, 8, 12, 28, 63] {
        let place = written(&contents);
        flip(&sums_file(&place), byte);
        with_disk(&place, BUFFERED, |disk| async move {
            assert!(matches!(read(&disk, 0, 1).await, Err(DiskError::Corrupt { .. })), "{byte}");
        });
    }
}

#[test]
fn bytes_that_nobody_wrote_are_damage() {
    // Proves: a cut file, and bytes in a hole, are reported.
    let place = written(&contents());
    cut(&data_file(&place), 3 * PIECE + 1);
    with_disk(&place, BUFFERED, |disk| async move {
        assert_eq!(damaged(read(&disk, 0, 5 * PIECE).await), Some(3));
        assert_eq!(damaged(read(&disk, 4 * PIECE, 1).await), Some(4));
    });
    let place = Place::new();
    with_disk(&place, BUFFERED, |disk| async move {
        write(&disk, 9 * PIECE, b"far").await.expect("there is room");
        assert!(read(&disk, 0, 9 * PIECE).await.expect("a hole").iter().all(|byte| *byte == 0));
    });
    flip(&data_file(&place), 2 * PIECE + 9);
    with_disk(&place, BUFFERED, |disk| async move {
        assert_eq!(damaged(read(&disk, 0, 9 * PIECE).await), Some(2));
        assert_eq!(damaged(write(&disk, 2 * PIECE, b"near").await), Some(2));
    });
}

#[test]
fn an_object_without_checksums_gets_them() {
    // Proves: an object without checksums, or whose checksum file never reached the device, reads
    // as it is; from then on damage is reported, after a read as after a write.
    for (reads_first, has_file) in [(true, true), (true, false), (false, true), (false, false)] {
        let place = Place::new();
        with_disk(&place, UNCHECKED, |disk| async move {
            write(&disk, 0, &contents()).await.expect("there is room");
            disk.sync(OBJECT).await.expect("it is stored");
        });
        if has_file {
            std::fs::write(sums_file(&place), b"").expect("a test may write");
        }
        with_disk(&place, BUFFERED, |disk| async move {
            if reads_first {
                let length = contents().len() as u64;
                assert!(read(&disk, 0, length).await.expect("it is there") == contents());
            } else {
                write(&disk, 2 * PIECE + 7, b"x").await.expect("there is room");
            }
        });
        flip(&data_file(&place), 2 * PIECE + 99);
        with_disk(&place, BUFFERED, |disk| async move {
            assert_eq!(damaged(read(&disk, 2 * PIECE, 1).await), Some(2));
        });
    }
}

#[test]
fn checksums_that_are_gone_are_told() {
    // Proves: of a durable object with checksums nothing is returned after its checksum file is
    // emptied or lost, alone or with the rest, also after another write, until the object is
    // removed. The files of an object that is not durable may be lost in a crash of the machine.
    let lose: [fn(&Place); 4] = [
        |place| cut(&sums_file(place), 0),
        |place| std::fs::remove_file(sums_file(place)).expect("it is there"),
        |place| {
            std::fs::remove_file(sums_file(place)).expect("it is there");
            std::fs::remove_file(data_file(place)).expect("it is there");
        },
        |place| {
            let objects = place.path().join("objects");
            std::fs::remove_dir_all(objects).expect("it is there");
        },
    ];
    for (lose, was_stored) in lose.into_iter().flat_map(|lose| [(lose, true), (lose, false)]) {
        let place = Place::new();
        with_disk(&place, BUFFERED, |disk| async move {
            write(&disk, 0, &contents()).await.expect("there is room");
            if was_stored {
                disk.sync(OBJECT).await.expect("it is stored");
                write(&disk, PIECE, b"later").await.expect("there is room");
            }
        });
        lose(&place);
        end_session_of_log(&place);
        with_disk(&place, BUFFERED, |disk| async move {
            let outcomes = [read(&disk, 0, 1).await.err(), write(&disk, 0, b"x").await.err()];
            for outcome in outcomes {
                let is_told = matches!(outcome, Some(DiskError::Corrupt { offset: 0, .. }));
                assert_eq!(is_told, was_stored, "{outcome:?}");
            }
            disk.remove(OBJECT).await.expect("it can be removed");
            write(&disk, 0, b"x").await.expect("it is a new one");
            assert_eq!(read(&disk, 0, 2).await.expect("it is whole"), b"x\0");
        });
    }
}

#[test]
fn a_disk_without_checksums_leaves_no_wrong_ones() {
    // Proves: bytes written without checksums are readable with them later, and the reverse.
    let place = written(&contents());
    with_disk(&place, UNCHECKED, |disk| async move {
        write(&disk, 100, b"changed").await.expect("there is room");
    });
    with_disk(&place, BUFFERED, |disk| async move {
        assert_eq!(read(&disk, 100, 7).await.expect("it is there"), b"changed");
    });
    flip(&data_file(&place), 3);
    with_disk(&place, UNCHECKED, |disk| async move {
        read(&disk, 0, 10).await.expect("nobody compares");
    });
    with_disk(&place, BUFFERED, |disk| async move {
        assert_eq!(damaged(read(&disk, 0, 10).await), Some(0));
    });
}

#[test]
fn torn_pages_after_a_machine_crash_are_accepted_once() {
    // Proves: after a boot that ended without a sync, any mixture of old and new pages is accepted,
    // in bytes and in checksums; after a sync it is damage. Accepted bytes have checksums again.
    for was_synced in [false, true] {
        let place = written(&contents());
        let (data, sums) = (data_file(&place), sums_file(&place));
        let old_sums = std::fs::read(&sums).expect("it is there");
        with_disk(&place, BUFFERED, |disk| async move {
            write(&disk, 0, &bytes(2, contents().len())).await.expect("there is room");
            write(&disk, 7 * PIECE, &bytes(3, 10)).await.expect("there is room");
            if was_synced {
                disk.sync(OBJECT).await.expect("it is stored");
            }
        });
        // The device has pieces 0 and 3 torn, and old checksums of pieces 1 and 7.
        flip(&data, 5);
        flip(&data, 3 * PIECE + 5);
        let file = std::fs::File::options().write(true).open(&sums).expect("it is there");
        file.write_all_at(&old_sums[68..72], 68).expect("a test may write");
        file.write_all_at(&[0; 4], HEADER + 4 * 7).expect("a test may write");
        end_boot(&sums);
        with_disk(&place, BUFFERED, |disk| async move {
            let outcomes = [0, 1, 2, 3, 7].map(|piece| read(&disk, piece * PIECE, 10));
            for (piece, outcome) in [0, 1, 2, 3, 7].into_iter().zip(outcomes) {
                let expected = (was_synced && piece != 2).then_some(piece);
                assert_eq!(damaged(outcome.await), expected, "synced {was_synced}");
            }
        });
        if !was_synced {
            flip(&data, PIECE + 5);
            with_disk(&place, BUFFERED, |disk| async move {
                assert_eq!(damaged(read(&disk, PIECE, 10).await), Some(1), "it was settled");
            });
        }
    }
}

#[test]
fn a_crash_of_the_machine_spares_the_sums_of_what_nobody_wrote() {
    // Proves: after a boot that ended without a sync, damage is reported in pieces without writes
    // since the last sync, except close behind written ones; torn pieces are accepted.
    let contents = bytes(1, 200 * PIECE as usize);
    for written in [&[100][..], &[100, 50, 101], &[199], &[0]] {
        let place = self::written(&contents);
        let (data, sums) = (data_file(&place), sums_file(&place));
        with_disk(&place, BUFFERED, |disk| async move {
            for piece in written {
                write(&disk, piece * PIECE, &bytes(2, 10)).await.expect("there is room");
            }
        });
        let (first, last) = (written.iter().min().unwrap(), written.iter().max().unwrap());
        let told: Vec<u64> = [0, 20, 170, 198]
            .into_iter()
            .filter(|piece| !(first.saturating_sub(40)..last + 40).contains(piece))
            .collect();
        assert!(told.len() >= 2, "some lie apart from {written:?}");
        for piece in told.iter().chain(written) {
            flip(&data, piece * PIECE + 5);
        }
        end_boot(&sums);
        with_disk(&place, BUFFERED, |disk| async move {
            for piece in told {
                assert_eq!(damaged(read(&disk, piece * PIECE, 10).await), Some(piece));
            }
            for piece in written {
                assert_eq!(damaged(read(&disk, piece * PIECE, 10).await), None, "it is torn");
            }
        });
    }
}

#[test]
fn a_file_that_was_cut_before_a_crash_of_the_machine_has_what_the_device_has() {
    // Proves: truncated bytes that reappear or not, with or without their checksums, are no damage.
    for (is_back, sums_are_back) in [(true, true), (true, false), (false, true), (false, false)] {
        let contents = bytes(1, 40 * PIECE as usize);
        let place = written(&contents);
        let (data, sums) = (data_file(&place), sums_file(&place));
        let before = std::fs::read(&sums).expect("it is there");
        with_disk(&place, BUFFERED, |disk| async move {
            disk.truncate(OBJECT, 20 * PIECE + 7).await.expect("it is cut");
        });
        let open = |path: &Path| std::fs::File::options().write(true).open(path).expect("is there");
        if is_back {
            open(&data).write_all_at(&contents, 0).expect("a test may write");
        }
        if sums_are_back {
            open(&sums).write_all_at(&before[HEADER as usize..], HEADER).expect("a test may write");
        }
        end_boot(&sums);
        with_disk(&place, BUFFERED, |disk| async move {
            for piece in 0..40 {
                let found = read(&disk, piece * PIECE, 10).await;
                assert_eq!(damaged(found), None, "{is_back} {sums_are_back}: piece {piece}");
            }
        });
    }
}

#[test]
fn an_object_that_ends_elsewhere_by_itself_is_told() {
    // Proves: zeros appended to an object are reported, also within its last piece; so is the loss
    // of zeros at its end.
    let whole = PIECE + PIECE / 2;
    for (now, at) in [(whole + 10, whole), (3 * PIECE, whole), (whole - 10, 0)] {
        let mut contents = bytes(1, whole as usize);
        contents[whole as usize - 10..].fill(0);
        let place = written(&contents);
        cut(&data_file(&place), now);
        with_disk(&place, BUFFERED, |disk| async move {
            let other = read(&disk, at, 1).await;
            assert!(matches!(other, Err(DiskError::Corrupt { .. })), "{now} bytes");
        });
    }
}

#[test]
fn headers_of_earlier_versions_are_read() {
    for named_bytes in [56, 40, 32] {
        let place = written(&contents());
        let (data, sums) = (data_file(&place), sums_file(&place));
        change_header(&sums, named_bytes, |header| header[named_bytes..].fill(0));
        with_disk(&place, BUFFERED, |disk| async move {
            assert_eq!(damaged(read(&disk, 0, 10).await), None);
        });
        flip(&data, 5);
        with_disk(&place, BUFFERED, |disk| async move {
            assert_eq!(damaged(read(&disk, 0, 10).await), Some(0));
        });
    }
}

#[test]
fn sums_are_those_of_their_object() {
    // Proves: two objects that were exchanged, with their checksums, are damaged.
    let place = written(&contents());
    const OTHER: FileId = FileId(0x2b);
    with_disk(&place, BUFFERED, |disk| async move {
        disk.write(OTHER, 0, contents().into()).await.expect("there is room");
        disk.sync(OTHER).await.expect("it is stored");
    });
    let files = [data_file(&place), sums_file(&place)];
    for own in files {
        let name = own.file_name().expect("it has one").to_string_lossy();
        let other = own.with_file_name(name.replace("2a", "2b"));
        let aside = own.with_file_name("aside");
        std::fs::rename(&own, &aside).expect("a test may rename");
        std::fs::rename(&other, &own).expect("a test may rename");
        std::fs::rename(&aside, &other).expect("a test may rename");
    }
    with_disk(&place, BUFFERED, |disk| async move {
        assert!(matches!(read(&disk, 0, 1).await, Err(DiskError::Corrupt { .. })));
        assert!(matches!(disk.read(OTHER, 0, 1).await, Err(DiskError::Corrupt { .. })));
    });
}

#[test]
fn sums_are_those_of_their_disk() {
    // Proves: an object that comes with its checksums from another disk is damaged, with or without
    // its bytes, for reads and for writes.
    for is_whole in [true, false] {
        let place = written(&contents());
        // Another disk has none of these objects in its log.
        std::fs::remove_file(place.path().join("stored")).expect("a test may remove");
        if !is_whole {
            std::fs::remove_file(data_file(&place)).expect("a test may remove");
        }
        let directory = place.path().to_owned();
        world_real::run(async {
            let world =
                node_of(DiskConfig { identity: 8, options: BUFFERED, ..DiskConfig::at(directory) });
            let disk = &world.disks()[0];
            assert!(matches!(read(disk, 0, 1).await, Err(DiskError::Corrupt { .. })));
            assert!(matches!(write(disk, 0, b"x").await, Err(DiskError::Corrupt { .. })));
        });
    }
}

#[test]
fn a_disk_that_does_not_know_which_it_is_takes_all_objects() {
    // Proves: after a disk loses its identity and regains it, bytes written before and meanwhile
    // are readable, and damage is reported.
    let place = written(&contents());
    let at = |identity: u64, expected: Option<u64>| {
        let directory = place.path().to_owned();
        world_real::run(async {
            let world =
                node_of(DiskConfig { identity, options: BUFFERED, ..DiskConfig::at(directory) });
            let disk = &world.disks()[0];
            assert_eq!(damaged(read(disk, PIECE, 1).await), expected, "identity {identity}");
            if expected.is_none() {
                write(disk, 0, b"x").await.expect("it can be written");
                disk.sync(OBJECT).await.expect("it is stored");
            }
        });
    };
    for identity in [0, 7, 0] {
        at(identity, None);
    }
    flip(&data_file(&place), PIECE + 5);
    at(0, Some(1));
    at(7, Some(1));
}

/// Makes a checksum file one that an earlier boot left.
fn end_boot(sums: &Path) {
    change_header(sums, 64, |header| header[12] ^= 1);
}

/// Makes the log of the disk look as if written in an earlier session.
fn end_session_of_log(place: &Place) {
    const SESSION: u32 = 6;
    let mut record = [0; 16];
    record[8..12].copy_from_slice(&SESSION.to_le_bytes());
    let crc = crc32c::crc32c(&record[..12]);
    record[12..].copy_from_slice(&crc.to_le_bytes());
    let log = std::fs::File::options().append(true).open(place.path().join(STORED_LOG));
    log.expect("it is there").write_all(&record).expect("a test may write");
}

/// Returns what an outcome says of damage: first byte, length and kind.
fn damage_of<T>(outcome: Result<T, DiskError>) -> Option<(u64, u64, Damage)> {
    match outcome {
        Err(DiskError::Corrupt { offset, length, damage, .. }) => Some((offset, length, damage)),
        _ => None,
    }
}

/// Calls `program` with a disk of its own in a generation.
fn in_generation<F: Future>(
    generation: u32,
    place: &Place,
    program: impl FnOnce(RealDisk) -> F,
) -> F::Output {
    let directory = place.path().to_owned();
    world_real::run(async {
        let disk =
            DiskConfig { identity: 7, generation, options: BUFFERED, ..DiskConfig::at(directory) };
        program(node_of(disk).disks()[0].clone()).await
    })
}

/// Changes the header of a checksum file, of which `sealed_bytes` bytes have a checksum.
fn change_header(sums: &Path, sealed_bytes: usize, change: impl FnOnce(&mut [u8; 64])) {
    let file = std::fs::File::options().read(true).write(true).open(sums).expect("it is there");
    let mut header = [0; HEADER as usize];
    file.read_exact_at(&mut header, 0).expect("it has a header");
    change(&mut header);
    let crc = crc32c::crc32c_append(crc32c::crc32c(&header[..28]), &header[32..sealed_bytes]);
    header[28..32].copy_from_slice(&crc.to_le_bytes());
    file.write_all_at(&header, 0).expect("a test may write");
}
