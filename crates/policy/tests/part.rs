//! Proves: the blocks, servers and extent of one client's part are those that a look at every byte
//! finds, for rules and lists; far apart, they are found without a walk.

use policy::{Access, Level, ListEntry, Nested, PageMap, Pattern, Stripe};
use units::{ByteRange, ClientId, DiskId, ServerId};

const FILE_BYTES: u64 = 240;

fn accesses() -> Vec<Access> {
    let names = ["ra", "rb", "rc", "rn", "rbc", "rcb", "rcc", "rbb", "rcn"];
    let pattern = |name: &str| {
        let pattern: Pattern = name.parse().expect("a pattern of the papers");
        pattern.access(3, 5, FILE_BYTES).expect("it covers the file")
    };
    let entry = |file_offset, length| ListEntry { file_offset, memory_offset: file_offset, length };
    let lists = vec![vec![entry(3, 4), entry(90, 60)], vec![], vec![entry(239, 1)]];
    let levels = vec![
        Level { count: 3, file_stride: 7, memory_stride: 4 },
        Level { count: 4, file_stride: 50, memory_stride: 20 },
    ];
    let strided = Nested { file_offset: 11, memory_offset: 0, length: 4, levels };
    let nothing = Nested { file_offset: 0, memory_offset: 0, length: 0, levels: vec![] };
    let others = [Access::lists(lists), Access::nested(vec![nothing.clone(), strided, nothing])];
    names.map(pattern).into_iter().chain(others).collect()
}

#[test]
fn blocks_servers_and_extent() {
    for access in accesses() {
        for client in (0..3).map(ClientId) {
            let owns = |range| access.count_bytes(client, range) > 0;
            let owned = (0..FILE_BYTES).filter(|&byte| owns(ByteRange::at(byte, 1)));
            let (first, last) = (owned.clone().min(), owned.max());
            let extent = match (first, last) {
                (Some(first), Some(last)) => ByteRange::new(first, last + 1),
                _ => ByteRange::new(0, 0),
            };
            assert_eq!(access.extent_of(client), extent, "{client} of {access:?}");
            let map = PageMap::try_from(vec![0, 2, 2]).expect("valid");
            let mapped = Stripe { placement: (Some(map)).into(), ..Stripe::round_robin(5, 3, 2) };
            let dealt = [(1, 2, 2), (7, 3, 1), (64, 1, 3)].map(|(block_bytes, servers, disks)| {
                Stripe::round_robin(block_bytes, servers, disks)
            });
            for stripe in dealt.into_iter().chain([mapped]) {
                let Stripe { block_bytes, servers, disks_per_server, .. } = stripe;
                let all = 0..FILE_BYTES.div_ceil(block_bytes);
                let all = all.filter(|block| owns(stripe.block_range(*block, FILE_BYTES)));
                assert!(access.blocks_of(client, &stripe, None).eq(all.clone()));
                let mut met: Vec<ServerId> =
                    all.clone().map(|it| stripe.locate(it).server).collect();
                met.sort_unstable();
                met.dedup();
                assert_eq!(access.servers_of(client, &stripe), met);
                for server in (0..servers).map(ServerId) {
                    for disk in (0..disks_per_server).map(DiskId) {
                        let here = all.clone().filter(|block| {
                            let at = stripe.locate(*block);
                            (at.server, at.disk) == (server, disk)
                        });
                        let blocks = access.blocks_of(client, &stripe, Some((server, disk)));
                        assert!(blocks.eq(here), "{client} on {server} {disk} of {access:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_part_alone_is_the_same_part() {
    for access in accesses() {
        for client in (0..3).map(ClientId) {
            let (alone, own) = access.part_of(client);
            let all = ByteRange::new(0, FILE_BYTES);
            assert!(alone.pieces(own, all).eq(access.pieces(client, all)), "{client} {access:?}");
            assert_eq!(alone.part_of(own), (alone.clone(), own));
        }
        assert_eq!(access.part_of(ClientId(3)), (access.clone(), ClientId(3)));
    }
}

#[test]
fn gaps_are_stepped_over() {
    // A byte in every 2^40, in blocks of one byte: a walk through the blocks would take years.
    let far = Level { count: 1000, file_stride: 1 << 40, memory_stride: 1 };
    let strided = Nested { file_offset: 5, memory_offset: 0, length: 1, levels: vec![far] };
    let access = Access::nested(vec![strided]);
    let stripe = Stripe::round_robin(1, 3, 1);
    let on = |server| access.blocks_of(ClientId(0), &stripe, Some((ServerId(server), DiskId(0))));
    assert_eq!((0..3).map(|server| on(server).count()).sum::<usize>(), 1000);
}
