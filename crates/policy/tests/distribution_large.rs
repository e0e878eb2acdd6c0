//! Distributions too large to list: against closed forms, in random windows, and at the limits.

mod oracle;

use oracle::{bytes_of, owner};
use policy::{Access, AccessError, BYTES_MAX, CLIENTS_MAX, Dimension, Distribution, Pattern};
use proptest::prelude::*;
use units::{ByteRange, ClientId, GIB, MIB};

fn rule() -> impl Strategy<Value = Dimension> {
    prop_oneof![
        Just(Dimension::None),
        Just(Dimension::Block),
        (1..40_u64).prop_map(Dimension::Cyclic),
        any::<u64>().prop_map(|chunk| Dimension::Cyclic(chunk.max(1))),
    ]
}

/// Up to three dimensions, up to about 2^40 bytes, up to 12^3 clients.
fn distribution() -> impl Strategy<Value = Distribution> {
    let dimension = || (rule(), 1..12_u32, prop_oneof![1..9_u64, 1..3000_u64, 1..8200_u64]);
    (prop::collection::vec(dimension(), 1..=3), prop_oneof![1..9_u64, Just(8), 1..3000_u64])
        .prop_map(|(dimensions, record_bytes)| {
            let mut made = Distribution {
                shape: Vec::new(),
                record_bytes,
                dimensions: Vec::new(),
                grid: Vec::new(),
                clients: 1,
            };
            for (rule, clients, extent) in dimensions {
                let clients = if rule == Dimension::None { 1 } else { clients };
                made.shape.push(extent);
                made.dimensions.push(rule);
                made.grid.push(clients);
                made.clients *= clients;
            }
            made
        })
}

/// Indices before `end` that belong to `who`: NUMROC of ScaLAPACK, on the rule as CYCLIC(block).
fn owned_before(rule: Dimension, extent: u64, clients: u64, who: u64, end: u64) -> u128 {
    let block = match rule {
        Dimension::None => extent,
        Dimension::Block => extent.div_ceil(clients),
        Dimension::Cyclic(block) => block,
    };
    let (block, clients) = (u128::from(block), u128::from(clients));
    let (rounds, rest) = (u128::from(end) / (block * clients), u128::from(end) % (block * clients));
    rounds * block + rest.saturating_sub(block * u128::from(who)).min(block)
}

/// The owner of byte `byte` and its place in the owner's memory, by closed forms.
fn place_of(distribution: &Distribution, byte: u64) -> (u64, u64) {
    let Distribution { shape, record_bytes, dimensions, grid, .. } = distribution;
    let (mut rest, mut client, mut clients_inside) = (byte / record_bytes, 0, 1);
    let (mut local, mut local_inside) = (0, 1);
    for d in (0..shape.len()).rev() {
        let (index, clients) = (rest % shape[d], u64::from(grid[d]));
        rest /= shape[d];
        let who = owner(dimensions[d], shape[d], clients, index);
        client += who * clients_inside;
        clients_inside *= clients;
        local += owned_before(dimensions[d], shape[d], clients, who, index) * local_inside;
        local_inside *= owned_before(dimensions[d], shape[d], clients, who, shape[d]);
    }
    let record = u64::try_from(local).expect("a place below 2^64");
    (client, record * record_bytes + byte % record_bytes)
}

fn bytes(distribution: &Distribution) -> u64 {
    distribution.shape.iter().product::<u64>() * distribution.record_bytes
}

/// Every pattern whose chunk size the tests count pieces of: the name parsed, as an access.
fn access(name: &str, clients: u32, record_bytes: u64, file_bytes: u64) -> Access {
    let pattern: Pattern = name.parse().expect("a known name");
    pattern.access(clients, record_bytes, file_bytes).expect("a possible access")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn windows_of_large_files(made in distribution(), at in 0.0..1.0_f64, length in 1..3000_u64) {
        // Proves: anywhere in a large file each byte goes once, to the right place.
        let file_bytes = bytes(&made);
        let start = ((file_bytes as f64 * at) as u64).min(file_bytes - 1);
        let range = ByteRange::new(start, (start + length).min(file_bytes));
        let mut expected: Vec<(u64, u64, u64)> = (range.start..range.end)
            .map(|byte| {
                let (client, memory) = place_of(&made, byte);
                (client, byte, memory)
            })
            .collect();
        expected.sort_unstable();
        let access = Access::Distribution(made);
        prop_assert_eq!(access.validate_write(file_bytes), Ok(()));
        let mut said = Vec::new();
        for client in access.clients_in(range) {
            let bytes = bytes_of(access.pieces(client, range));
            prop_assert_eq!(access.count_bytes(client, range), bytes.len() as u64);
            said.extend(bytes.into_iter().map(|(file, to)| (u64::from(client.0), file, to)));
        }
        prop_assert_eq!(said, expected);
    }

    #[test]
    fn counts_of_large_files(made in distribution(), cut in 0.0..1.0_f64, pick in any::<u32>()) {
        // Proves: a client has as many bytes as the closed form says, and cuts lose none.
        let file_bytes = bytes(&made);
        let client = pick % made.clients;
        let (mut rest, mut expected) = (client, u128::from(made.record_bytes));
        for d in (0..made.shape.len()).rev() {
            let (extent, clients) = (made.shape[d], made.grid[d]);
            let who = u64::from(rest % clients);
            rest /= clients;
            expected *= owned_before(made.dimensions[d], extent, u64::from(clients), who, extent);
        }
        let access = Access::Distribution(made);
        let client = ClientId(client);
        prop_assert_eq!(u128::from(access.memory_bytes(client)), expected);
        let middle = ((file_bytes as f64 * cut) as u64).min(file_bytes);
        let (front, back) = (ByteRange::new(0, middle), ByteRange::new(middle, file_bytes));
        let counted = access.count_bytes(client, front) + access.count_bytes(client, back);
        prop_assert_eq!(u128::from(counted), expected);
        // The interval of memory: what lies behind the cut starts where the front ends.
        if let Some(first) = access.pieces(client, back).next() {
            prop_assert_eq!(first.memory_offset, access.count_bytes(client, front));
        }
    }
}

#[test]
fn runs_in_a_block_are_few() {
    // Proves: an 8-byte pattern says a 1 MiB block in one run where its rows are regular.
    for name in ["rb", "rc", "rnb", "rnc", "rbn", "rbb", "rbc", "rn", "rnn"] {
        let access = access(name, 16, 8, GIB);
        for block in [0, 511, 1023] {
            let range = ByteRange::at(block * MIB, MIB);
            for client in access.clients_in(range) {
                let runs = access.pieces(client, range).count();
                assert_eq!(runs, 1, "{name}, block {block}, {client}");
            }
        }
    }
    // Rows of 8192 records are 64 KiB: 16 in a block, of which a client has four.
    for (name, runs_max) in [("rcn", 1), ("rcb", 1), ("rcc", 4)] {
        let access = access(name, 16, 8, GIB);
        let range = ByteRange::at(77 * MIB, MIB);
        for client in access.clients_in(range) {
            assert!(access.pieces(client, range).count() <= runs_max, "{name}, {client}");
        }
    }
}

#[test]
fn a_terabyte_answers_at_once() {
    // Proves: in 2^37 records dealt one by one, a middle block is found without a walk to it.
    let access = access("rc", 16, 8, 1024 * GIB);
    let range = ByteRange::at(512 * GIB + 3 * MIB, MIB);
    for client in (0..16).map(ClientId) {
        let runs: Vec<_> = access.pieces(client, range).collect();
        assert_eq!(runs.len(), 1);
        assert_eq!((runs[0].length, runs[0].count, runs[0].stride), (8, 8192, 128));
        assert_eq!(runs[0].offset, range.start + 8 * u64::from(client.0));
        assert_eq!(runs[0].memory_offset, range.start / 16);
        assert_eq!(
            access.chunks(client).nth(1).map(|c| c.file_offset % 128),
            Some(u64::from(client.0) * 8)
        );
    }
}

#[test]
fn few_clients_of_many() {
    // Proves: of a million clients, a block names only those near it.
    let grid = vec![1 << 10, 1 << 10];
    let dimensions = vec![Dimension::Block, Dimension::Block];
    let shape = vec![1 << 16, 1 << 16];
    let made = Distribution { shape, record_bytes: 8, dimensions, grid, clients: CLIENTS_MAX };
    let access = Access::Distribution(made);
    assert_eq!(access.validate(32 * GIB), Ok(()));
    let range = ByteRange::at(5 * GIB + 64 * 8 * 3, 64 * 8 * 2);
    let listed: Vec<ClientId> = access.clients_in(range).collect();
    assert_eq!(listed, [ClientId(160 * 1024 + 3), ClientId(160 * 1024 + 4)]);
    // Across the end of a row: the last column of one row of clients and the first of the same.
    let range = ByteRange::at(5 * GIB + 8 * (1 << 16) - 8, 16);
    let listed: Vec<ClientId> = access.clients_in(range).collect();
    assert_eq!(listed, [ClientId(160 * 1024), ClientId(160 * 1024 + 1023)]);
}

#[test]
fn hostile_distributions_are_refused() {
    // Proves: each broken rule has its own refusal, also with numbers near 2^64.
    let good = Distribution {
        shape: vec![4, 4],
        record_bytes: 2,
        dimensions: vec![Dimension::Block, Dimension::None],
        grid: vec![2, 1],
        clients: 2,
    };
    let refusal = |change: fn(&mut Distribution)| {
        let mut changed = good.clone();
        change(&mut changed);
        Access::Distribution(changed).validate(32).expect_err("must be refused")
    };
    assert_eq!(Access::Distribution(good.clone()).validate(32), Ok(()));
    assert!(matches!(refusal(|d| d.shape[0] = 0), AccessError::EmptyDimension { .. }));
    assert!(matches!(refusal(|d| d.record_bytes = 0), AccessError::EmptyRecord));
    assert!(matches!(refusal(|d| d.shape[0] = 5), AccessError::ArrayTooLarge { .. }));
    assert!(matches!(refusal(|d| d.shape = vec![1 << 63; 2]), AccessError::ArrayTooLarge { .. }));
    assert!(matches!(refusal(|d| d.grid[0] = 0), AccessError::GridExtent { .. }));
    assert!(matches!(refusal(|d| d.grid[1] = 2), AccessError::GridExtent { .. }));
    assert!(matches!(refusal(|d| d.grid[0] = 3), AccessError::Grid { .. }));
    assert!(matches!(refusal(|d| d.grid[0] = u32::MAX), AccessError::Grid { .. }));
    assert!(matches!(refusal(|d| d.clients = 0), AccessError::Clients { .. }));
    assert!(matches!(refusal(|d| d.clients = CLIENTS_MAX + 1), AccessError::Clients { .. }));
    assert!(matches!(
        refusal(|d| d.dimensions[0] = Dimension::Cyclic(0)),
        AccessError::CyclicZero { .. }
    ));
    assert!(matches!(refusal(|d| d.shape.push(1)), AccessError::Ranks { .. }));
    assert!(matches!(refusal(|d| d.grid.truncate(1)), AccessError::Ranks { .. }));
    assert!(matches!(refusal(|d| d.dimensions.clear()), AccessError::Dimensions { .. }));
    assert!(matches!(
        refusal(|d| d.dimensions = vec![Dimension::None; 17]),
        AccessError::Dimensions { .. }
    ));
    let huge = Access::All { bytes: 1, clients: 1 }.validate(BYTES_MAX + 1);
    assert!(matches!(huge, Err(AccessError::FileTooLarge { .. })));
}

#[test]
fn the_largest_valid_access() {
    // Proves: at the limits of size, clients and dimensions nothing overflows.
    let chunks = [1, 3, 1 << 40, 1 << 61, u64::MAX];
    for rule in chunks.map(Dimension::Cyclic).into_iter().chain([Dimension::Block]) {
        for (shape, record_bytes) in [(BYTES_MAX, 1), (1, BYTES_MAX), (1 << 31, 1 << 31)] {
            let (grid, clients) = (vec![CLIENTS_MAX], CLIENTS_MAX);
            let (shape, dimensions) = (vec![shape], vec![rule]);
            let made = Distribution { shape, record_bytes, dimensions, grid, clients };
            let access = Access::Distribution(made);
            assert_eq!(access.validate_write(BYTES_MAX), Ok(()));
            let end = ByteRange::new(BYTES_MAX - 100, BYTES_MAX);
            let owners = access.clients_in(end);
            let counted: u64 = owners.map(|client| access.count_bytes(client, end)).sum();
            assert_eq!(counted, 100, "{access:?}");
            for client in [0, 1, CLIENTS_MAX - 1].map(ClientId) {
                let bytes = access.count_bytes(client, ByteRange::new(0, u64::MAX));
                assert_eq!(bytes, access.memory_bytes(client));
                assert!(access.chunks(client).take(9).all(|chunk| chunk.length > 0));
                assert!(access.pieces(client, end).take(9).all(|run| run.bytes() > 0));
            }
        }
    }
}
