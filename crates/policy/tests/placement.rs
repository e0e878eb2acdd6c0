//! Striping, prefetching, the conforming distribution and the order of blocks on a disk.

use policy::{BLOCK_BYTES_MAX, DiskOrder, Location, PAGE_MAP_MAX, PageMap, PageMapError};
use policy::{SORT_WINDOW_BLOCKS, Stripe, StripeError};
use policy::{conforming_segment, disk_order, next_on_disk};
use units::{ByteRange, ClientId, DiskId, ServerId};

fn stripes() -> impl Iterator<Item = Stripe> {
    (1..=4).flat_map(|servers| {
        (1..=3).flat_map(move |disks_per_server| {
            let stripe =
                move |block_bytes| Stripe::round_robin(block_bytes, servers, disks_per_server);
            (1..=3).map(stripe)
        })
    })
}

/// Stripes whose blocks a map deals: all on one server, uneven, with a server that has none.
fn mapped() -> impl Iterator<Item = Stripe> {
    let maps =
        [vec![0], vec![1, 0], vec![0, 1, 1, 2], vec![3, 3, 0, 3, 0], vec![2, 1, 0, 2, 2, 2, 1]];
    maps.into_iter().flat_map(|map| {
        let map = PageMap::try_from(map).expect("valid");
        [(1, 1), (3, 2), (2, 3)].map(|(block_bytes, disks)| {
            let map = Some(map.clone());
            Stripe { placement: map.into(), ..Stripe::round_robin(block_bytes, 4, disks) }
        })
    })
}

#[test]
fn a_map_says_which_server_holds_a_block() {
    // Proves: the server is that of the block's turn; its blocks go round its disks, each disk's
    // in slots without a hole; places and blocks are one to one, also far away.
    for stripe in mapped() {
        stripe.validate().expect("valid");
        let map = stripe.map().cloned().expect("it has one");
        let mut counts = [0_u64; 4];
        for block in 0..60 {
            let at = stripe.locate(block);
            assert_eq!(at.server.0, map.servers()[block as usize % map.servers().len()]);
            let count = &mut counts[at.server.0 as usize];
            let disks = u64::from(stripe.disks_per_server);
            assert_eq!((u64::from(at.disk.0), at.slot), (*count % disks, *count / disks));
            *count += 1;
        }
        for block in (0..60).chain([1 << 40, u64::MAX / 2, u64::MAX - 1]) {
            assert_eq!(stripe.block_of(stripe.locate(block)), block);
        }
    }
}

#[test]
fn maps_that_cannot_be_are_refused() {
    for turns in [0, PAGE_MAP_MAX + 1] {
        let refused = PageMap::try_from(vec![0; turns]);
        assert_eq!(refused, Err(PageMapError::Turns { turns }));
    }
    let map = PageMap::try_from(vec![0, 4]).expect("a map by itself");
    let stripe = Stripe { placement: Some(map).into(), ..Stripe::round_robin(1, 4, 1) };
    assert_eq!(stripe.validate(), Err(StripeError::Map { server: 4, servers: 4 }));
}

#[test]
fn blocks_of_a_file_in_place_lie_where_they_are_in_it() {
    // Proves: each block has one server, in turn, and its own place in the file; what is kept of
    // the file at each server is the file, of which any object shows the size.
    for servers in 1..=4 {
        let stripe = Stripe::in_place(10, servers, 7);
        stripe.validate().expect("valid");
        for block in 0..60 {
            let at = stripe.locate(block);
            let turn = (block % u64::from(servers)) as u32;
            assert_eq!((at.server.0, at.disk.0, at.slot), (turn, 0, block));
            assert_eq!(stripe.block_of(at), block);
        }
        for server in (0..servers).map(ServerId) {
            let own: Vec<u64> = stripe.blocks_on(server, DiskId(0), 3..20).collect();
            let all = (3..20).filter(|block| stripe.locate(*block).server == server);
            assert_eq!(own, all.collect::<Vec<_>>());
            for bytes in 0..40 {
                assert_eq!(stripe.object_bytes(server, DiskId(0), bytes), bytes);
                assert_eq!(stripe.file_bytes(server, DiskId(0), bytes), Some(bytes));
            }
        }
        let several = Stripe { disks_per_server: 2, ..stripe };
        assert_eq!(several.validate(), Err(StripeError::InPlace { disks_per_server: 2 }));
    }
}

#[test]
fn objects_end_with_their_last_block() {
    // Proves: what is kept of each object is what the first bytes of the file have on its disk.
    for stripe in stripes().chain(mapped()) {
        for file_bytes in 0..40 {
            for (server, disk) in places(&stripe) {
                let blocks = stripe.blocks_on(server, disk, 0..40);
                let ends = blocks.filter_map(|block| {
                    let range = stripe.block_range(block, file_bytes);
                    let start = stripe.locate(block).slot * stripe.block_bytes;
                    (!range.is_empty()).then_some(start + range.length())
                });
                let end = ends.max().unwrap_or(0);
                assert_eq!(stripe.object_bytes(server, disk, file_bytes), end);
            }
        }
    }
}

#[test]
fn the_longest_object_says_how_long_the_file_is() {
    for stripe in stripes().chain(mapped()) {
        for file_bytes in 0..40 {
            let reached = places(&stripe).into_iter().map(|(server, disk)| {
                let object = stripe.object_bytes(server, disk, file_bytes);
                let reached = stripe.file_bytes(server, disk, object).unwrap();
                assert!(object == 0 || stripe.object_bytes(server, disk, reached) == object);
                reached
            });
            assert_eq!(reached.max(), Some(file_bytes));
        }
        let at = (ServerId(0), DiskId(0));
        assert_eq!(stripe.file_bytes(ServerId(stripe.servers), at.1, 1), None);
        if stripe.map().is_none() && stripe.disks() > 1 {
            assert_eq!(stripe.file_bytes(at.0, at.1, u64::MAX), None, "beyond what a file has");
        }
    }
}

fn places(stripe: &Stripe) -> Vec<(ServerId, DiskId)> {
    let disks = 0..stripe.disks_per_server;
    let servers = 0..stripe.servers;
    servers.flat_map(|server| disks.clone().map(move |it| (ServerId(server), DiskId(it)))).collect()
}

#[test]
fn stripe_and_inverse() {
    // Proves: blocks and places are one to one, slots have no holes, neighbours change server.
    for stripe in stripes() {
        stripe.validate().expect("valid");
        for block in (0..60).chain(u64::MAX - 20..u64::MAX) {
            let at = stripe.locate(block);
            assert_eq!(stripe.block_of(at), block);
            assert_eq!(u64::from(at.server.0), block % stripe.disks() % u64::from(stripe.servers));
        }
        for (slot, server, disk) in (0..4).flat_map(|slot| {
            let servers = 0..stripe.servers;
            let disks = stripe.disks_per_server;
            servers.flat_map(move |server| (0..disks).map(move |disk| (slot, server, disk)))
        }) {
            let at = Location { server: ServerId(server), disk: DiskId(disk), slot };
            assert_eq!(stripe.locate(stripe.block_of(at)), at);
        }
    }
}

#[test]
fn blocks_on_each_disk() {
    // Proves: for every range of blocks, a disk is given its own, ascending, and no other.
    for stripe in stripes().chain(mapped()) {
        for (start, end) in (0..15).flat_map(|start| (start..15).map(move |end| (start, end))) {
            for server in 0..=stripe.servers {
                for disk in 0..=stripe.disks_per_server {
                    let (server, disk) = (ServerId(server), DiskId(disk));
                    let expected = (start..end).filter(|block| {
                        let at = stripe.locate(*block);
                        (at.server, at.disk) == (server, disk)
                    });
                    let blocks = stripe.blocks_on(server, disk, start..end);
                    assert_eq!(
                        blocks.size_hint(),
                        (expected.clone().count(), blocks.size_hint().1)
                    );
                    assert!(blocks.eq(expected));
                }
            }
        }
    }
    let stripe = Stripe::round_robin(1, 3, 1);
    let far = u64::MAX - 1..u64::MAX;
    let owner = stripe.locate(u64::MAX - 1);
    assert_eq!(stripe.blocks_on(owner.server, owner.disk, far.clone()).count(), 1);
    let others = (0..3).map(|server| stripe.blocks_on(ServerId(server), DiskId(0), far.clone()));
    assert_eq!(others.map(Iterator::count).sum::<usize>(), 1);
}

#[test]
fn blocks_on_a_disk_skip_ahead() {
    // Proves: skipping 2^40 blocks of a disk is a jump, not a walk (a walk would take minutes).
    let stripe = Stripe::round_robin(1, 3, 2);
    let at = Location { server: ServerId(2), disk: DiskId(1), slot: 1 << 40 };
    let mut blocks = stripe.blocks_on(at.server, at.disk, 0..u64::MAX);
    assert_eq!(blocks.nth(1 << 40), Some(stripe.block_of(at)));
}

#[test]
fn blocks_and_bytes() {
    // Proves: the ranges of blocks tile the file; blocks_in lists exactly the blocks a range meets.
    for stripe in stripes() {
        for file_bytes in 0..10 {
            let mut end = 0;
            for block in stripe.blocks_in(ByteRange::new(0, file_bytes)) {
                let range = stripe.block_range(block, file_bytes);
                assert!(range.start == end && !range.is_empty());
                end = range.end;
            }
            assert_eq!(end, file_bytes);
            for start in 0..=file_bytes {
                let asked = ByteRange::new(start, file_bytes);
                let meets =
                    |b: &u64| !stripe.block_range(*b, file_bytes).intersect(asked).is_empty();
                assert!(stripe.blocks_in(asked).eq((0..10).filter(meets)));
            }
        }
        assert!(stripe.block_range(u64::MAX, 100).is_empty());
        assert!(stripe.block_range(u64::MAX / 2, u64::MAX).length() <= stripe.block_bytes);
    }
}

#[test]
fn impossible_stripes_are_refused() {
    // Proves: no block size and no number of disks that would divide by zero is accepted.
    let stripe = |block_bytes, servers, disks_per_server| {
        Stripe::round_robin(block_bytes, servers, disks_per_server).validate()
    };
    for block_bytes in [0, BLOCK_BYTES_MAX + 1, u64::MAX] {
        assert_eq!(stripe(block_bytes, 1, 1), Err(StripeError::BlockBytes { block_bytes }));
    }
    assert!(stripe(1, 0, 1).is_err() && stripe(1, 1, 0).is_err());
    assert_eq!(stripe(BLOCK_BYTES_MAX, u32::MAX, u32::MAX), Ok(()));
}

#[test]
fn prefetch_stays_on_the_disk() {
    // Proves: the next block is the next slot of the same disk, and there is none behind the end.
    for stripe in stripes().chain(mapped()) {
        for (block, file_bytes) in (0..30).flat_map(|b| (0..40).map(move |bytes| (b, bytes))) {
            let mut at = stripe.locate(block);
            at.slot += 1;
            let next = stripe.block_of(at);
            let inside = next * stripe.block_bytes < file_bytes;
            assert_eq!(next_on_disk(&stripe, block, file_bytes), inside.then_some(next));
        }
        assert_eq!(next_on_disk(&stripe, u64::MAX, u64::MAX), None);
    }
}

#[test]
fn conforming_segments_cover_a_range() {
    // Proves: segments follow one another, cover every byte, cut only between blocks, and are even.
    for stripe in stripes() {
        let ranges = (0..40).flat_map(|end| (0..=end).map(move |start| ByteRange::new(start, end)));
        for (clients, range) in (1..8).flat_map(|n| ranges.clone().map(move |range| (n, range))) {
            let segments = (0..clients).map(ClientId);
            let segments =
                segments.map(|client| conforming_segment(client, clients, range, &stripe));
            let (mut end, mut lengths) = (range.start, Vec::new());
            for segment in segments {
                assert_eq!(segment.start, end);
                let is_last = segment.end == range.end;
                // Empty segments before the first block end where the range begins.
                let is_before = segment.end == range.start;
                assert!(is_last || is_before || segment.end % stripe.block_bytes == 0);
                end = segment.end;
                lengths.push(match segment.is_empty() {
                    true => 0,
                    false => {
                        let blocks = segment.end.div_ceil(stripe.block_bytes);
                        blocks - segment.start / stripe.block_bytes
                    }
                });
            }
            assert_eq!(end, range.end);
            let (least, most) = (lengths.iter().min(), lengths.iter().max());
            assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1));
        }
    }
    let stripe = Stripe::round_robin(1 << 30, 1, 1);
    let (some, most) = (ByteRange::new(0, 100), ByteRange::new(0, u64::MAX));
    assert!(conforming_segment(ClientId(5), 5, some, &stripe).is_empty());
    assert!(conforming_segment(ClientId(0), 0, some, &stripe).is_empty());
    assert_eq!(conforming_segment(ClientId(0), 1, most, &stripe), most);
}

/// A fixed scatter: a different address for every block below a million.
fn scattered(block: u64) -> u64 {
    block * 611_953 % 1_000_003
}

fn ordered(order: DiskOrder, total: u64, share: (u32, u32)) -> Vec<u64> {
    disk_order(order, 0..total, total, share, scattered).collect()
}

#[test]
fn orders_within_a_window() {
    // Proves: as asked keeps the order, sorted sorts, staggered is sorted and turned to its share.
    for total in 0..40 {
        assert!(ordered(DiskOrder::AsAsked, total, (1, 2)).into_iter().eq(0..total));
        let mut sorted: Vec<u64> = (0..total).collect();
        sorted.sort_by_key(|block| scattered(*block));
        assert_eq!(ordered(DiskOrder::Sorted, total, (1, 2)), sorted);
        for (part, parts) in (1..5).flat_map(|parts| (0..parts).map(move |part| (part, parts))) {
            let mut turned = sorted.clone();
            turned.rotate_left((total * u64::from(part) / u64::from(parts)) as usize);
            assert_eq!(ordered(DiskOrder::Staggered, total, (part, parts)), turned);
        }
        assert_eq!(ordered(DiskOrder::Staggered, total, (3, 0)), sorted);
        assert_eq!(ordered(DiskOrder::Staggered, total, (3, 3)), sorted);
    }
}

#[test]
fn orders_beyond_a_window() {
    // Proves: long lists come out whole, sorted window by window, turned to their share.
    let window = SORT_WINDOW_BLOCKS as u64;
    for total in [window - 1, window, window + 1, 3 * window + 5] {
        let mut expected = Vec::new();
        for start in (0..total).step_by(SORT_WINDOW_BLOCKS) {
            let mut part: Vec<u64> = (start..total.min(start + window)).collect();
            part.sort_by_key(|block| scattered(*block));
            expected.extend(part);
        }
        assert_eq!(ordered(DiskOrder::Sorted, total, (0, 1)), expected);
        for (part, parts) in [(0, 3), (1, 3), (2, 3), (6, 7)] {
            let mut turned = expected.clone();
            turned.rotate_left((total * u64::from(part) / u64::from(parts)) as usize);
            assert_eq!(ordered(DiskOrder::Staggered, total, (part, parts)), turned);
        }
    }
}

#[test]
fn orders_are_lazy_and_forgiving() {
    // Proves: an endless list starts at once; a wrong total loses no block.
    let sorted = disk_order(DiskOrder::Sorted, 0..u64::MAX, u64::MAX, (0, 1), |block| block);
    assert!(sorted.take(100_000).eq(0..100_000));
    let far = disk_order(DiskOrder::Staggered, 0..1 << 50, 1 << 50, (1, 2), |block| block);
    assert!(far.take(3).eq((1 << 49)..(1 << 49) + 3));
    for told in [0, 5, 1000, u64::MAX] {
        let order = disk_order(DiskOrder::Staggered, 0..10, told, (2, 3), scattered);
        let mut blocks: Vec<u64> = order.collect();
        blocks.sort_unstable();
        assert!(blocks.into_iter().eq(0..10), "told {told}");
    }
}
