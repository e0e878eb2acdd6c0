//! Cases for disks: sparse objects that return the bytes written to them.

use super::support::{Numbers, abandon, expect_bytes, list_cases, pattern};
use super::{Fixture, PayloadOf};
use crate::{Clock, Disk, DiskError, Disks, Memory, Payload, Payloads};
use futures_util::future::{join, join_all};
use units::{FileId, GIB, MIB, Run, Timestamp};

list_cases![
    unwritten_bytes_read_as_zeros,
    writes_at_odd_offsets_read_back,
    holes_read_as_zeros,
    later_writes_cover_earlier_ones,
    objects_are_sparse_beyond_4_gib,
    reading_and_writing_nothing_succeeds,
    objects_do_not_mix,
    disks_of_nodes_do_not_mix,
    a_removed_object_is_empty_again,
    removing_nothing_succeeds,
    a_truncated_object_reads_as_zeros_beyond_its_end,
    truncating_changes_nothing_of_what_stays,
    truncating_nothing_succeeds,
    an_object_ends_after_its_last_byte,
    the_time_of_an_object_is_that_of_its_last_write_or_as_set,
    sync_succeeds,
    requests_are_served_in_the_order_of_their_calls,
    long_reads_find_what_was_there_when_they_were_called,
    many_requests_at_once_end,
    an_abandoned_request_holds_nobody_up,
    a_write_takes_what_its_payload_holds_now,
    addresses_are_stable,
    space_is_reported,
];

const OBJECT: FileId = FileId(7);

type Outcome<T> = Result<T, DiskError>;

fn done<T>(outcome: Outcome<T>) -> T {
    outcome.expect("the disk must do as asked")
}

/// Reads and compares.
async fn expect<F: Fixture>(
    disk: &impl Disk<Payload = PayloadOf<F>>,
    object: FileId,
    offset: u64,
    expected: &[u8],
) {
    let payload = done(disk.read(object, offset, expected.len() as u64).await);
    expect_bytes::<F>(&payload, expected, &format!("{object} from byte {offset}"));
}

fn unwritten_bytes_read_as_zeros<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        for (offset, length) in [(0, 1), (0, 8192), (12_345, 10_001), (MIB, 65_536)] {
            expect::<F>(disk, OBJECT, offset, &vec![0; length]).await;
        }
    });
}

fn writes_at_odd_offsets_read_back<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        let shapes = [(0, 1), (1, 511), (513, 4095), (8191, 2), (10_007, 100_003), (MIB + 1, 8192)];
        for (seed, (offset, length)) in (0..).zip(shapes) {
            let bytes = pattern(seed, length);
            done(disk.write(OBJECT, offset, F::payload(&bytes)).await);
            expect::<F>(disk, OBJECT, offset, &bytes).await;
        }
        for (seed, (offset, length)) in (0..).zip(shapes).skip(1) {
            let bytes = pattern(seed, length);
            let inner = 1 + length / 3;
            expect::<F>(disk, OBJECT, offset + inner as u64, &bytes[inner..]).await;
        }
    });
}

fn holes_read_as_zeros<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        let mut model = vec![0; 40_000];
        for (seed, offset) in (0..).zip([30_001_usize, 9_999, 20_000]) {
            let bytes = pattern(seed, 100);
            done(disk.write(OBJECT, offset as u64, F::payload(&bytes)).await);
            model[offset..offset + 100].copy_from_slice(&bytes);
        }
        expect::<F>(disk, OBJECT, 0, &model).await;
        expect::<F>(disk, OBJECT, 9_950, &model[9_950..20_050]).await;
    });
}

fn later_writes_cover_earlier_ones<F: Fixture>(fixture: &mut F) {
    const MODEL_BYTES: u64 = 50_000;
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        let mut model = vec![0; MODEL_BYTES as usize];
        let mut numbers = Numbers::new(8);
        for seed in 0..60 {
            let length = 1 + numbers.below(9_000);
            let offset = numbers.below(MODEL_BYTES - length);
            let bytes = pattern(seed, length as usize);
            done(disk.write(OBJECT, offset, F::payload(&bytes)).await);
            model[offset as usize..][..length as usize].copy_from_slice(&bytes);
            let from = numbers.below(MODEL_BYTES);
            expect::<F>(disk, OBJECT, from, &model[from as usize..]).await;
        }
    });
}

fn objects_are_sparse_beyond_4_gib<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        let offsets = [4 * GIB - 50, 5 * GIB + 7, 3, 8 * GIB - 200];
        for (seed, offset) in (0..).zip(offsets) {
            done(disk.write(OBJECT, offset, F::payload(&pattern(seed, 100))).await);
        }
        for (seed, offset) in (0..).zip(offsets) {
            expect::<F>(disk, OBJECT, offset, &pattern(seed, 100)).await;
        }
        // Offsets must not be cut to 32 bits: 5 GiB + 7 is not 1 GiB + 7.
        expect::<F>(disk, OBJECT, GIB, &[0; 200]).await;
    });
}

fn reading_and_writing_nothing_succeeds<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        expect::<F>(disk, OBJECT, 100, &[]).await;
        done(disk.write(OBJECT, 100, F::payload(&[])).await);
        expect::<F>(disk, OBJECT, 0, &[0; 200]).await;
    });
}

fn objects_do_not_mix<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        let objects = [0, 1, 10, 11, 1 << 32, u64::MAX].map(FileId);
        for object in objects {
            done(disk.write(object, 5, F::payload(&pattern(object.0, 3000))).await);
        }
        for object in objects {
            expect::<F>(disk, object, 5, &pattern(object.0, 3000)).await;
        }
        done(disk.remove(objects[1]).await);
        expect::<F>(disk, objects[1], 5, &[0; 3000]).await;
        expect::<F>(disk, objects[2], 5, &pattern(10, 3000)).await;
    });
}

fn disks_of_nodes_do_not_mix<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        done(worlds[0].disks()[0].write(OBJECT, 0, F::payload(b"mine")).await);
        expect::<F>(&worlds[1].disks()[0], OBJECT, 0, &[0; 4]).await;
    });
}

fn a_removed_object_is_empty_again<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        done(disk.write(OBJECT, 0, F::payload(&pattern(1, 20_000))).await);
        done(disk.remove(OBJECT).await);
        expect::<F>(disk, OBJECT, 0, &[0; 20_000]).await;
        done(disk.write(OBJECT, 100, F::payload(b"again")).await);
        expect::<F>(disk, OBJECT, 98, b"\0\0again\0\0").await;
    });
}

fn removing_nothing_succeeds<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        done(disk.remove(OBJECT).await);
        done(disk.remove(OBJECT).await);
    });
}

fn a_truncated_object_reads_as_zeros_beyond_its_end<F: Fixture>(fixture: &mut F) {
    const BYTES: usize = 300_000;
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        let bytes = pattern(1, BYTES);
        for length in [0, 1, 4096, 65_535, 65_536, 65_537, 200_001, BYTES, 2 * BYTES] {
            done(disk.write(OBJECT, 0, F::payload(&bytes)).await);
            done(disk.truncate(OBJECT, length as u64).await);
            let mut model = bytes.clone();
            model[length.min(BYTES)..].fill(0);
            expect::<F>(disk, OBJECT, 0, &model).await;
            // A write beyond the end restores nothing.
            done(disk.write(OBJECT, BYTES as u64 - 1, F::payload(b"x")).await);
            model[BYTES - 1] = b'x';
            expect::<F>(disk, OBJECT, 0, &model).await;
        }
    });
}

fn truncating_changes_nothing_of_what_stays<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        let bytes = pattern(1, 100_000);
        for object in [OBJECT, FileId(8)] {
            done(disk.write(object, 5 * GIB, F::payload(&bytes)).await);
            done(disk.write(object, 7, F::payload(&bytes)).await);
        }
        done(disk.truncate(OBJECT, 5 * GIB + 50_000).await);
        expect::<F>(disk, OBJECT, 7, &bytes).await;
        expect::<F>(disk, OBJECT, 5 * GIB, &bytes[..50_000]).await;
        done(disk.truncate(OBJECT, GIB).await);
        expect::<F>(disk, OBJECT, 7, &bytes).await;
        expect::<F>(disk, OBJECT, 5 * GIB, &[0; 200]).await;
        expect::<F>(disk, FileId(8), 5 * GIB, &bytes).await;
    });
}

fn truncating_nothing_succeeds<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        done(disk.truncate(OBJECT, 0).await);
        done(disk.truncate(OBJECT, 100).await);
        expect::<F>(disk, OBJECT, 0, &[0; 200]).await;
    });
}

fn an_object_ends_after_its_last_byte<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        let length = async |object| done(disk.metadata(object).await).map_or(0, |it| it.length);
        let ends = async |expected: u64| assert_eq!(length(OBJECT).await, expected);
        ends(0).await;
        done(disk.write(OBJECT, 100, F::payload(&[])).await);
        ends(0).await;
        let mut end = 0;
        for (offset, length) in [(1, 1), (0, 1), (4096, 4096), (65_530, 7), (60_000, 5000)] {
            done(disk.write(OBJECT, offset, F::payload(&pattern(1, length))).await);
            end = (offset + length as u64).max(end);
            ends(end).await;
        }
        done(disk.write(OBJECT, 5 * GIB, F::payload(b"end")).await);
        ends(5 * GIB + 3).await;
        for (length, end) in [(u64::MAX, 5 * GIB + 3), (5 * GIB, 5 * GIB), (70_001, 70_001)] {
            done(disk.truncate(OBJECT, length).await);
            ends(end).await;
        }
        done(disk.write(OBJECT, 70_001, F::payload(b"more")).await);
        ends(70_005).await;
        done(disk.sync(OBJECT).await);
        done(disk.truncate(OBJECT, 3).await);
        ends(3).await;
        assert_eq!(done(disk.metadata(FileId(8)).await), None);
        done(disk.remove(OBJECT).await);
        ends(0).await;
    });
}

fn the_time_of_an_object_is_that_of_its_last_write_or_as_set<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        let time = async || done(disk.metadata(OBJECT).await).map(|it| it.modified);
        // The clock of a file system may lag behind by some milliseconds.
        let day = Timestamp::from_seconds(86_400).as_ns();
        let begun = worlds[0].timestamp().as_ns();
        done(disk.write(OBJECT, 0, F::payload(&[1; 100])).await);
        let written = time().await.expect("the object exists").as_ns();
        assert!(written.abs_diff(begun) < day, "{written} is not the time of day {begun}");
        let set = Timestamp::from_ns(1_000_000_000_123_456_789);
        disk.set_modified(OBJECT, set).await;
        assert_eq!(time().await, Some(set));
        for (offset, synced) in [(100, false), (5, true), (70_000, false)] {
            done(disk.write(OBJECT, offset, F::payload(&[2; 100])).await);
            if synced {
                done(disk.sync(OBJECT).await);
            }
            assert_eq!(time().await, Some(set), "a write of earlier data changes the time");
        }
        done(disk.truncate(OBJECT, 10).await);
        assert_eq!(time().await, Some(set));
        done(disk.remove(OBJECT).await);
        assert_eq!(time().await, None);
        done(disk.write(OBJECT, 0, F::payload(&[1; 100])).await);
        assert_ne!(time().await, Some(set), "a new object has the time of the removed one");
    });
}

fn sync_succeeds<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        done(disk.sync(OBJECT).await);
        done(disk.write(OBJECT, 1, F::payload(b"kept")).await);
        done(disk.sync(OBJECT).await);
        done(disk.sync(OBJECT).await);
        expect::<F>(disk, OBJECT, 1, b"kept").await;
    });
}

fn requests_are_served_in_the_order_of_their_calls<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        for round in 0..20 {
            let (old, new) = (pattern(2 * round, 5000), pattern(2 * round + 1, 5000));
            let writing = join(
                disk.write(OBJECT, 0, F::payload(&old)),
                disk.write(OBJECT, 0, F::payload(&new)),
            );
            let reading = expect::<F>(disk, OBJECT, 0, &new);
            let ((first, second), ()) = join(writing, reading).await;
            done(first);
            done(second);
        }
    });
}

fn long_reads_find_what_was_there_when_they_were_called<F: Fixture>(fixture: &mut F) {
    const LENGTH: usize = 600_000;
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        for round in 0..20 {
            let (old, new) = (pattern(2 * round, LENGTH), pattern(2 * round + 1, LENGTH));
            done(disk.write(OBJECT, 0, F::payload(&old)).await);
            let before = join_all((0..4).map(|_| expect::<F>(disk, OBJECT, 0, &old)));
            let writing = disk.write(OBJECT, 0, F::payload(&new));
            let after = join_all((0..4).map(|_| expect::<F>(disk, OBJECT, 0, &new)));
            let (_, (written, _)) = join(before, join(writing, after)).await;
            done(written);
        }
    });
}

fn many_requests_at_once_end<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        let place = |index: u64| (index * 37 % 64) * 5000;
        let writes = (0..64).map(|index| {
            disk.write(FileId(index % 3), place(index), F::payload(&pattern(index, 5000)))
        });
        join_all(writes).await.into_iter().for_each(done);
        let reads = (0..64).map(|index| async move {
            expect::<F>(disk, FileId(index % 3), place(index), &pattern(index, 5000)).await;
        });
        join_all(reads).await;
    });
}

fn an_abandoned_request_holds_nobody_up<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        done(disk.write(OBJECT, 0, F::payload(&pattern(1, 5000))).await);
        abandon(disk.read(OBJECT, 0, 5000)).await;
        abandon(disk.write(OBJECT, 10_000, F::payload(b"perhaps"))).await;
        abandon(disk.sync(OBJECT)).await;
        expect::<F>(disk, OBJECT, 0, &pattern(1, 5000)).await;
        done(disk.write(OBJECT, 10_000, F::payload(b"surely!")).await);
        expect::<F>(disk, OBJECT, 10_000, b"surely!").await;
    });
}

fn a_write_takes_what_its_payload_holds_now<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let disk = &world.disks()[0];
        let whole = [Run::contiguous(0, 8000)];
        let memory = world.thaw(F::payload(&pattern(1, 8000)));
        let frozen = memory.clone().freeze();
        let write = disk.write(OBJECT, 3, frozen.slice(1000, 5000));
        let overwrite = async { memory.scatter(&whole, &F::payload(&pattern(2, 8000))) };
        let (written, ()) = join(write, overwrite).await;
        done(written);
        expect::<F>(disk, OBJECT, 3, &pattern(1, 8000)[1000..6000]).await;
    });
}

fn addresses_are_stable<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let disk = &worlds[0].disks()[0];
        let offsets = [0, 1, 8192, MIB, 4 * GIB + 8192];
        let before = offsets.map(|offset| disk.address(OBJECT, offset));
        done(disk.write(FileId(8), 0, F::payload(&pattern(1, 100))).await);
        let after = offsets.map(|offset| disk.clone().address(OBJECT, offset));
        assert_eq!(before, after, "a byte must keep its address");
        done(disk.write(OBJECT, MIB, F::payload(&pattern(2, 100))).await);
        disk.locate(OBJECT).await;
        disk.locate(FileId(9)).await;
        let located = offsets.map(|offset| disk.address(OBJECT, offset));
        disk.locate(OBJECT).await;
        assert_eq!(located, offsets.map(|offset| disk.address(OBJECT, offset)));
        expect::<F>(disk, OBJECT, MIB, &pattern(2, 100)).await;
    });
}

fn space_is_reported<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let space = done(worlds[0].disks()[0].space().await);
        assert!(space.capacity_bytes > 0, "a disk must have room: {space:?}");
        assert!(space.free_bytes <= space.capacity_bytes, "free is part of all: {space:?}");
    });
}
