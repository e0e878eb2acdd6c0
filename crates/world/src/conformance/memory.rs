//! Cases for payloads and memories: the laws of gather, scatter, slice, freeze and thaw.

use super::Fixture;
use super::support::{Numbers, expect_bytes, list_cases, pattern};
use crate::{Memory, Payload, Payloads};
use std::panic::{AssertUnwindSafe, catch_unwind};
use units::Run;

list_cases![
    a_payload_keeps_its_bytes,
    slices_are_ranges_of_bytes,
    pieces_of_a_payload_are_packed,
    nothing_is_a_payload,
    exclusive_or_is_its_own_inverse,
    thaw_and_freeze_are_inverse,
    gather_packs_strided_pieces,
    scatter_places_strided_pieces,
    gather_undoes_scatter,
    cyclic_pieces_of_many_clients_make_the_whole,
    clones_of_a_memory_are_the_same_memory,
    a_payload_never_changes,
    a_run_outside_its_memory_panics,
];

const MEMORY_BYTES: u64 = 4096;

/// Returns runs without overlap inside `MEMORY_BYTES`, in any order of their starts.
fn random_runs(numbers: &mut Numbers) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut start = 0;
    while runs.len() < 8 {
        let length = numbers.below(20);
        let stride = length + numbers.below(10);
        let count = numbers.below(12);
        let offset = start + numbers.below(30);
        let run = Run { offset, length, stride, count };
        match run.checked_end() {
            Some(end) if end <= MEMORY_BYTES => {
                start = end;
                runs.push(run);
            }
            _ => break,
        }
    }
    if numbers.below(2) == 0 {
        runs.reverse();
    }
    runs
}

/// Returns the bytes of `runs`, by the definition of a run.
fn pick(bytes: &[u8], runs: &[Run]) -> Vec<u8> {
    let places = runs.iter().flat_map(|run| {
        let length = run.length;
        run.offsets().flat_map(move |offset| offset..offset + length)
    });
    places.map(|place| bytes[place as usize]).collect()
}

/// Writes `packed` to `runs`, by the definition of a run.
fn place(bytes: &mut [u8], runs: &[Run], packed: &[u8]) {
    let places = runs.iter().flat_map(|run| {
        let length = run.length;
        run.offsets().flat_map(move |offset| offset..offset + length)
    });
    for (place, byte) in places.zip(packed) {
        bytes[place as usize] = *byte;
    }
}

fn a_payload_keeps_its_bytes<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |_worlds| async move {
        for length in [1, 7, 4096, 100_003] {
            let bytes = pattern(length as u64, length);
            let payload = F::payload(&bytes);
            expect_bytes::<F>(&payload, &bytes, "a payload");
            expect_bytes::<F>(&payload.clone(), &bytes, "a clone");
        }
    });
}

fn slices_are_ranges_of_bytes<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |_worlds| async move {
        let bytes = pattern(1, 1000);
        let payload = F::payload(&bytes);
        for (offset, length) in [(0, 1000), (0, 1), (999, 1), (1, 998), (500, 0), (1000, 0)] {
            let slice = payload.slice(offset as u64, length as u64);
            expect_bytes::<F>(&slice, &bytes[offset..offset + length], "a slice");
        }
        let middle = payload.slice(100, 800).slice(50, 700);
        drop(payload);
        expect_bytes::<F>(&middle, &bytes[150..850], "a slice of a slice");
    });
}

fn pieces_of_a_payload_are_packed<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |_worlds| async move {
        let bytes = pattern(5, MEMORY_BYTES as usize);
        let payload = F::payload(&bytes).slice(0, MEMORY_BYTES);
        let mut numbers = Numbers::new(5);
        for round in 0..100 {
            let runs = random_runs(&mut numbers);
            let packed = payload.gather(&runs);
            let what = format!("pieces {round} of {runs:?}");
            expect_bytes::<F>(&packed, &pick(&bytes, &runs), &what);
            if let Some(inside) = packed.look_inside() {
                assert_eq!(inside, pick(&bytes, &runs), "{what}");
            }
        }
    });
}

fn nothing_is_a_payload<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        expect_bytes::<F>(&F::payload(&[]), &[], "an empty payload");
        expect_bytes::<F>(&world.memory(0).freeze(), &[], "an empty memory");
        let memory = world.thaw(F::payload(&[]));
        expect_bytes::<F>(&memory.gather(&[]), &[], "no runs");
        memory.scatter(&[], &F::payload(&[]));
        let memory = world.thaw(F::payload(b"abc"));
        let none = [Run { offset: 3, length: 0, stride: 0, count: 5 }];
        expect_bytes::<F>(&memory.gather(&none), &[], "empty pieces");
        memory.scatter(&none, &F::payload(&[]));
        expect_bytes::<F>(&memory.freeze(), b"abc", "a memory after scattering nothing");
    });
}

fn exclusive_or_is_its_own_inverse<F: Fixture>(_: &mut F) {
    for length in [0, 1, 7, 64, 1_001] {
        let (one, other) = (pattern(1, length), pattern(2, length));
        let [first, second] = [&one, &other].map(|bytes| F::payload(bytes));
        let both = first.xor(&second);
        assert_eq!(both.length(), length as u64);
        // Data without bytes has only a length.
        let (Some(_), Some(combined)) = (first.look_inside(), both.look_inside()) else { continue };
        let expected: Vec<u8> = one.iter().zip(&other).map(|(one, other)| one ^ other).collect();
        assert_eq!(combined, expected);
        expect_bytes::<F>(&both.xor(&second), &one, "what was combined twice");
    }
    let shorter = catch_unwind(AssertUnwindSafe(|| F::payload(b"abc").xor(&F::payload(b"ab"))));
    assert!(shorter.is_err(), "lengths differ");
}

fn thaw_and_freeze_are_inverse<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let bytes = pattern(2, 10_000);
        let memory = world.thaw(F::payload(&bytes));
        assert_eq!(memory.length(), 10_000);
        expect_bytes::<F>(&memory.freeze(), &bytes, "the only handle, frozen");
        let part = world.thaw(F::payload(&bytes).slice(10, 500));
        assert_eq!(part.length(), 500);
        expect_bytes::<F>(&part.freeze(), &bytes[10..510], "a thawed slice");
    });
}

fn gather_packs_strided_pieces<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let bytes = pattern(3, MEMORY_BYTES as usize);
        let memory = worlds[0].thaw(F::payload(&bytes));
        let mut numbers = Numbers::new(3);
        for round in 0..100 {
            let runs = random_runs(&mut numbers);
            let what = format!("gather {round} of {runs:?}");
            expect_bytes::<F>(&memory.gather(&runs), &pick(&bytes, &runs), &what);
        }
        // Pieces may overlap when they are read.
        let overlapping = [Run { offset: 0, length: 10, stride: 3, count: 20 }];
        let packed = memory.gather(&overlapping);
        expect_bytes::<F>(&packed, &pick(&bytes, &overlapping), "overlapping pieces");
    });
}

fn scatter_places_strided_pieces<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let mut bytes = pattern(4, MEMORY_BYTES as usize);
        let memory = worlds[0].thaw(F::payload(&bytes));
        let whole = [Run::contiguous(0, MEMORY_BYTES)];
        let mut numbers = Numbers::new(4);
        for round in 0..100 {
            let runs = random_runs(&mut numbers);
            let total: u64 = runs.iter().map(|run| run.bytes()).sum();
            let packed = pattern(round, total as usize);
            memory.scatter(&runs, &F::payload(&packed));
            place(&mut bytes, &runs, &packed);
            let what = format!("scatter {round} of {runs:?}");
            expect_bytes::<F>(&memory.gather(&whole), &bytes, &what);
        }
    });
}

fn gather_undoes_scatter<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let memory = worlds[0].memory(MEMORY_BYTES);
        let mut numbers = Numbers::new(5);
        for round in 0..100 {
            let runs = random_runs(&mut numbers);
            let total: u64 = runs.iter().map(|run| run.bytes()).sum();
            let packed = pattern(round, total as usize);
            memory.scatter(&runs, &F::payload(&packed));
            let what = format!("what was scattered to {runs:?}");
            expect_bytes::<F>(&memory.gather(&runs), &packed, &what);
        }
    });
}

fn cyclic_pieces_of_many_clients_make_the_whole<F: Fixture>(fixture: &mut F) {
    const PIECE: u64 = 8;
    const CLIENTS: u64 = 4;
    const BLOCK: u64 = 64 << 10;
    fixture.run(1, |worlds| async move {
        let bytes = pattern(6, BLOCK as usize);
        let source = worlds[0].thaw(F::payload(&bytes));
        let target = worlds[0].memory(BLOCK);
        for client in 0..CLIENTS {
            let run = Run {
                offset: client * PIECE,
                length: PIECE,
                stride: CLIENTS * PIECE,
                count: BLOCK / CLIENTS / PIECE,
            };
            target.scatter(&[run], &source.gather(&[run]));
        }
        expect_bytes::<F>(&target.freeze(), &bytes, "a block put together from cyclic pieces");
    });
}

fn clones_of_a_memory_are_the_same_memory<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let memory = worlds[0].thaw(F::payload(b"abcdef"));
        memory.clone().scatter(&[Run::contiguous(2, 2)], &F::payload(b"XY"));
        let whole = [Run::contiguous(0, 6)];
        expect_bytes::<F>(&memory.gather(&whole), b"abXYef", "a memory written through a clone");
    });
}

fn a_payload_never_changes<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let world = &worlds[0];
        let whole = [Run::contiguous(0, 6)];
        let original = F::payload(b"abcdef");
        let part = original.slice(1, 4);
        let memory = world.thaw(original.clone());
        let gathered = memory.gather(&whole);
        let frozen = memory.clone().freeze();
        memory.scatter(&whole, &F::payload(b"UVWXYZ"));
        expect_bytes::<F>(&original, b"abcdef", "a payload after its thawed copy was written");
        expect_bytes::<F>(&part, b"bcde", "a slice after its thawed whole was written");
        expect_bytes::<F>(&gathered, b"abcdef", "what was gathered before the write");
        expect_bytes::<F>(&frozen, b"abcdef", "what was frozen before the write");
        expect_bytes::<F>(&memory.freeze(), b"UVWXYZ", "the memory that was written");

        // The slice keeps the whole alive: its thawed form must still be its own.
        let original = F::payload(b"abcdef");
        let part = original.slice(0, 6);
        drop(original);
        let memory = world.thaw(part.clone());
        memory.scatter(&whole, &F::payload(b"UVWXYZ"));
        expect_bytes::<F>(&part, b"abcdef", "a full slice after its thawed copy was written");
    });
}

fn a_run_outside_its_memory_panics<F: Fixture>(fixture: &mut F) {
    fixture.run(1, |worlds| async move {
        let payload = F::payload(b"abcdef");
        let memory = worlds[0].thaw(F::payload(b"abcdef"));
        let outside = [Run { offset: 1, length: 2, stride: 2, count: 3 }];
        let wrapping = [Run { offset: 0, length: 1, stride: u64::MAX / 2, count: 4 }];
        expect_panic("a slice past the end", || drop(payload.slice(5, 2)));
        expect_panic("gather past the end", || drop(memory.gather(&outside)));
        expect_panic("gather past 2^64", || drop(memory.gather(&wrapping)));
        expect_panic("scatter past the end", || memory.scatter(&outside, &payload));
        let inside = [Run::contiguous(0, 4)];
        expect_panic("scatter of too many bytes", || memory.scatter(&inside, &payload));
        let few = payload.slice(0, 3);
        expect_panic("scatter of too few bytes", || memory.scatter(&inside, &few));
    });
}

fn expect_panic(what: &str, action: impl FnOnce()) {
    let outcome = catch_unwind(AssertUnwindSafe(action));
    assert!(outcome.is_err(), "this must panic: {what}");
}
