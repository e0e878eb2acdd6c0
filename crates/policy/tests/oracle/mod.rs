//! The judge of every access test: compares an access with a list of its bytes made one by one.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part of the oracle")]

use policy::{Access, Chunk, Dimension, Distribution};
use units::{ByteRange, ClientId, PieceRun};

/// The bytes of one client in file order: (offset in the file, offset in memory).
pub type Owned = Vec<(u64, u64)>;

/// Owner of index `index` among `extent` dealt to `clients`, by the words of HPF 1.0, section 3.2.
pub fn owner(rule: Dimension, extent: u64, clients: u64, index: u64) -> u64 {
    match rule {
        Dimension::None => 0,
        Dimension::Block => index / extent.div_ceil(clients),
        Dimension::Cyclic(block) => (index / block) % clients,
    }
}

/// Every byte of a distribution, element by element: a list for each client.
pub fn distribution_bytes(distribution: &Distribution) -> Vec<Owned> {
    let Distribution { shape, record_bytes, dimensions, grid, clients } = distribution;
    let owner_along = |d: usize, index| owner(dimensions[d], shape[d], u64::from(grid[d]), index);
    // Local index and local extent by counting, not by a formula.
    let count_before = |d: usize, end: u64, who: u64| {
        (0..end).filter(|index| owner_along(d, *index) == who).count() as u64
    };
    let mut bytes = vec![Vec::new(); *clients as usize];
    let records: u64 = shape.iter().product();
    for record in 0..records {
        let (mut rest, mut client, mut clients_inside) = (record, 0, 1);
        let (mut local, mut local_inside) = (0, 1);
        for d in (0..shape.len()).rev() {
            let index = rest % shape[d];
            rest /= shape[d];
            let who = owner_along(d, index);
            client += who * clients_inside;
            clients_inside *= u64::from(grid[d]);
            local += count_before(d, index, who) * local_inside;
            local_inside *= count_before(d, shape[d], who);
        }
        for byte in 0..*record_bytes {
            let place = (record * record_bytes + byte, local * record_bytes + byte);
            bytes[client as usize].push(place);
        }
    }
    bytes
}

/// The bytes of runs, one by one, in the order in which the runs say them.
pub fn bytes_of(runs: impl Iterator<Item = PieceRun>) -> Owned {
    let mut bytes = Vec::new();
    for run in runs {
        assert!(run.count > 0 && run.length > 0, "no empty runs: {run:?}");
        for (file, memory) in run.file_side().offsets().zip(run.memory_side().offsets()) {
            bytes.extend((0..run.length).map(|byte| (file + byte, memory + byte)));
        }
    }
    bytes
}

/// The longest stretches of `bytes` that are contiguous on both sides.
pub fn chunks_of(bytes: &Owned) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for (file, memory) in bytes {
        match chunks.last_mut() {
            Some(last)
                if last.file_offset + last.length == *file
                    && last.memory_offset + last.length == *memory =>
            {
                last.length += 1;
            }
            _ => chunks.push(Chunk { file_offset: *file, memory_offset: *memory, length: 1 }),
        }
    }
    chunks
}

/// Proves that `access` to a file of `file_bytes` says exactly `owned`, in every range of the file.
pub fn check(access: &Access, owned: &[Owned], file_bytes: u64) {
    access.validate(file_bytes).expect("the access must be valid");
    assert_eq!(access.clients() as usize, owned.len());
    let offsets = || owned.iter().flatten().map(|byte| byte.0);
    let extent = access.file_extent();
    let hull = (offsets().min().unwrap_or(0), offsets().max().map_or(0, |last| last + 1));
    assert_eq!((extent.start, extent.end), hull, "{access:?}");
    for (client, owned) in (0..).map(ClientId).zip(owned) {
        let memory_bytes = owned.iter().map(|byte| byte.1 + 1).max().unwrap_or(0);
        assert_eq!(access.memory_bytes(client), memory_bytes, "{client} of {access:?}");
        let chunks: Vec<Chunk> = access.chunks(client).collect();
        assert_eq!(chunks, chunks_of(owned), "{client} of {access:?}");
    }
    for start in 0..=file_bytes {
        for end in start..=file_bytes {
            check_range(access, owned, ByteRange::new(start, end));
        }
    }
    let nobody = ClientId(access.clients());
    assert_eq!(access.memory_bytes(nobody), 0);
    assert_eq!(access.pieces(nobody, ByteRange::new(0, file_bytes)).count(), 0);
}

/// Proves that `access` says exactly those of the bytes `owned` that lie in `range`.
pub fn check_range(access: &Access, owned: &[Owned], range: ByteRange) {
    let mut owners = Vec::new();
    for (client, owned) in (0..).map(ClientId).zip(owned) {
        let first = owned.partition_point(|byte| byte.0 < range.start);
        let behind = owned.partition_point(|byte| byte.0 < range.end);
        let expected = &owned[first..behind];
        let said = bytes_of(access.pieces(client, range));
        assert_eq!(said, expected, "{client} in {range:?} of {access:?}");
        assert_eq!(access.count_bytes(client, range), expected.len() as u64);
        if !expected.is_empty() {
            owners.push(client);
        }
    }
    let listed: Vec<ClientId> = access.clients_in(range).collect();
    assert!(listed.is_sorted_by(|a, b| a < b), "{listed:?} in {range:?} of {access:?}");
    assert!(listed.iter().all(|client| client.0 < access.clients()));
    let missed = owners.iter().find(|client| !listed.contains(client));
    assert_eq!(missed, None, "not listed in {range:?} of {access:?}");
    if !matches!(access, Access::Distribution(_)) {
        assert_eq!(listed, owners, "in {range:?} of {access:?}");
    }
}
