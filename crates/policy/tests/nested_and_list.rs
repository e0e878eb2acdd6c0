//! Nested-strided and list accesses, and whole files, against lists of bytes made one by one.

mod oracle;

use oracle::{Owned, check};
use policy::{Access, AccessError, BYTES_MAX, LEVELS_MAX, LIST_ENTRIES_MAX};
use policy::{Level, ListEntry, Nested, OwnPart};
use units::ClientId;

/// The bytes of a nested access by walking its levels.
fn nested_bytes(nested: &Nested) -> Owned {
    let mut starts = vec![(nested.file_offset, nested.memory_offset)];
    for level in nested.levels.iter().rev() {
        let copies = |(file, memory): (u64, u64)| {
            let copy = move |i| (file + i * level.file_stride, memory + i * level.memory_stride);
            (0..level.count).map(copy)
        };
        starts = starts.into_iter().flat_map(copies).collect();
    }
    let piece = |(file, memory)| (0..nested.length).map(move |byte| (file + byte, memory + byte));
    starts.into_iter().flat_map(piece).collect()
}

fn list_bytes(list: &[ListEntry]) -> Owned {
    let bytes = |entry: &ListEntry| {
        let (file, memory) = (entry.file_offset, entry.memory_offset);
        (0..entry.length).map(move |byte| (file + byte, memory + byte))
    };
    list.iter().flat_map(bytes).collect()
}

/// True if the pieces are valid by contract: ascending in the file, no byte of memory twice.
fn is_sound(bytes: &Owned, file_bytes: u64) -> bool {
    let mut memory: Vec<u64> = bytes.iter().map(|byte| byte.1).collect();
    memory.sort_unstable();
    bytes.is_sorted_by(|a, b| a.0 < b.0)
        && memory.is_sorted_by(|a, b| a < b)
        && bytes.iter().all(|byte| byte.0 < file_bytes)
}

#[test]
fn every_small_nested_access() {
    // Proves: what validates is sound and said exactly; what is unsound never validates.
    let strides = [0, 1, 2, 3, 5, 7];
    let mut valid = 0;
    for (length, inner, outer) in
        (0..=2).flat_map(|l| (0..=3).flat_map(move |i| (0..=3).map(move |o| (l, i, o))))
    {
        for code in 0..strides.len().pow(4) {
            let stride = |place: u32| strides[code / strides.len().pow(place) % strides.len()];
            let level =
                |count, at| Level { count, file_stride: stride(at), memory_stride: stride(at + 1) };
            let levels = vec![level(inner, 0), level(outer, 2)];
            let nested = Nested { file_offset: 1, memory_offset: 2, length, levels };
            let (bytes, access) = (nested_bytes(&nested), Access::nested(vec![nested]));
            let file_bytes = 24;
            match access.validate(file_bytes) {
                Ok(()) => {
                    assert!(is_sound(&bytes, file_bytes), "{access:?}");
                    check(&access, &[bytes], file_bytes);
                    valid += 1;
                }
                Err(AccessError::MemoryOverlap { .. }) => {}
                Err(error) => assert!(!is_sound(&bytes, file_bytes), "{error} for {access:?}"),
            }
        }
    }
    assert!(valid > 1000, "only {valid} accesses were valid");
}

#[test]
fn three_levels_and_several_clients() {
    // Proves: ragged nesting, a transposition in memory, and an idle client are said exactly.
    let level = |count, file_stride, memory_stride| Level { count, file_stride, memory_stride };
    let transposed = Nested {
        file_offset: 0,
        memory_offset: 0,
        length: 2,
        levels: vec![level(3, 4, 8), level(4, 12, 2)],
    };
    let deep = Nested {
        file_offset: 3,
        memory_offset: 5,
        length: 1,
        levels: vec![level(2, 3, 1), level(3, 9, 4), level(2, 27, 13)],
    };
    let idle = Nested { file_offset: 0, memory_offset: 0, length: 0, levels: Vec::new() };
    let all = vec![transposed, idle, deep];
    let bytes: Vec<Owned> = all.iter().map(nested_bytes).collect();
    check(&Access::nested(all), &bytes, 64);
}

#[test]
fn every_small_list() {
    // Proves: lists of up to three entries, with gaps, touches and any order in memory.
    for code in 0..3_u64.pow(6) {
        let digit = |place: u32| code / 3_u64.pow(place) % 3;
        let places = [[0, 4, 8], [8, 0, 4], [0, 2, 4]][digit(0) as usize];
        let (mut file, mut list) = (digit(1), Vec::new());
        for (entry, memory) in (0_u32..).zip(places) {
            let length = 1 + digit(2 + entry) % 2;
            list.push(ListEntry { file_offset: file, memory_offset: memory, length });
            file += length + digit(3 + entry);
        }
        let other = vec![ListEntry { file_offset: 2, memory_offset: 0, length: 5 }];
        let bytes = vec![list_bytes(&list), Vec::new(), list_bytes(&other)];
        check(&Access::lists(vec![list, Vec::new(), other]), &bytes, 14);
    }
}

#[test]
fn whole_file() {
    // Proves: with ALL every client has every byte; nobody may write so, except alone.
    for (bytes, clients) in [(0, 1), (1, 3), (7, 2)] {
        let access = Access::All { bytes, clients };
        let owned: Owned = (0..bytes).map(|byte| (byte, byte)).collect();
        check(&access, &vec![owned; clients as usize], bytes + 2 * u64::from(bytes > 0));
        assert_eq!(access.validate_write(bytes).is_ok(), clients == 1 || bytes == 0);
    }
}

#[test]
fn a_strided_list_becomes_one_run() {
    // Proves: entries that continue one another are said as one run, touching ones as one piece.
    let entry = |i: u64, gap| ListEntry { file_offset: i * gap, memory_offset: i * 8, length: 8 };
    let runs = |gap| {
        let access = Access::lists(vec![(0..1000).map(|i| entry(i, gap)).collect()]);
        access.pieces(ClientId(0), access.file_extent()).collect::<Vec<_>>()
    };
    assert_eq!(runs(24).len(), 1);
    assert_eq!((runs(24)[0].count, runs(24)[0].length), (1000, 8));
    assert_eq!((runs(8)[0].count, runs(8)[0].length), (1, 8000));
}

#[test]
fn unsound_lists_are_refused() {
    // Proves: each broken rule of a list has its own refusal.
    let piece =
        |file_offset, memory_offset, length| ListEntry { file_offset, memory_offset, length };
    let refusal = |list| Access::lists(vec![list]).validate(100).expect_err("must be refused");
    assert!(matches!(refusal(vec![piece(0, 0, 0)]), AccessError::EmptyEntry { .. }));
    assert!(matches!(refusal(vec![piece(99, 0, 2)]), AccessError::OutsideFile { .. }));
    assert!(matches!(refusal(vec![piece(u64::MAX, 0, 2)]), AccessError::OutsideFile { .. }));
    assert!(matches!(refusal(vec![piece(0, u64::MAX, 2)]), AccessError::MemoryTooLarge { .. }));
    let backwards = vec![piece(10, 0, 2), piece(0, 2, 2)];
    assert!(matches!(refusal(backwards), AccessError::FileOverlap { entry: 1, .. }));
    let twice = vec![piece(0, 1, 2), piece(10, 0, 2)];
    assert!(matches!(refusal(twice), AccessError::MemoryOverlap { .. }));
    let long = (0..=LIST_ENTRIES_MAX as u64).map(|i| piece(i, i, 1)).collect();
    assert!(matches!(refusal(long), AccessError::Entries { .. }));
    assert!(matches!(Access::lists(Vec::new()).validate(1), Err(AccessError::Clients { .. })));
}

#[test]
fn clients_that_write_the_same_bytes() {
    // Proves: all clients together cannot write a whole file, one can; parts of clients may
    // overlap, as in MPI, and that is told, also where they only might.
    let list = |file_offset| vec![ListEntry { file_offset, memory_offset: 0, length: 10 }];
    let (apart, shared) = (vec![list(0), list(10)], vec![list(0), list(9)]);
    for lists in [apart, shared] {
        let access = Access::lists(lists);
        assert_eq!(access.validate_write(100), Ok(()));
        assert!(access.may_overlap());
        assert!(!access.part_of(ClientId(1)).0.may_overlap());
    }
    let nest = Nested { file_offset: 0, memory_offset: 0, length: 9, levels: Vec::new() };
    assert!(!Access::nested(vec![nest.clone()]).may_overlap());
    assert!(Access::Parts(vec![OwnPart::Nested(vec![nest.clone(), nest])]).may_overlap());
    let whole = |clients| Access::All { bytes: 9, clients };
    let error = AccessError::SharedByte { first: ClientId(0), second: ClientId(1), offset: 0 };
    assert_eq!(whole(2).validate_write(100), Err(error));
    assert_eq!((whole(1).validate_write(100), whole(2).validate(100)), (Ok(()), Ok(())));
}

#[test]
fn hostile_nested_accesses_are_refused() {
    // Proves: numbers near 2^64 are refused, not added up, and depth has a limit.
    let huge = [1, 2, 1 << 32, 1 << 61, BYTES_MAX, 1 << 63, u64::MAX - 1, u64::MAX];
    for code in 0..huge.len().pow(3) {
        let digit = |place: u32| huge[code / huge.len().pow(place) % huge.len()];
        let (a, b, c) = (digit(0), digit(1), digit(2));
        let level = Level { count: a, file_stride: b, memory_stride: c };
        let nested = |length| {
            let levels = vec![level, level];
            Access::nested(vec![Nested { file_offset: a, memory_offset: c, length, levels }])
        };
        for length in [1, b] {
            let access = nested(length);
            if access.validate(BYTES_MAX).is_ok() {
                let client = ClientId(0);
                let extent = access.file_extent();
                assert_eq!(
                    access.count_bytes(client, extent),
                    length * if a == 1 { 1 } else { a * a }
                );
                assert!(access.memory_bytes(client) <= BYTES_MAX);
                assert!(access.pieces(client, extent).take(10).count() > 0);
                assert!(access.chunks(client).take(10).count() > 0);
            }
        }
    }
    let levels = vec![Level { count: 1, file_stride: 1, memory_stride: 1 }; LEVELS_MAX + 1];
    let deep = Nested { file_offset: 0, memory_offset: 0, length: 1, levels };
    let refused = Access::nested(vec![deep]).validate(10);
    assert!(matches!(refused, Err(AccessError::Levels { .. })));
}
