//! Cases for memput and memget that succeed: every byte lands once, in its place.
//!
//! The owner of a memory never receives here: transfers must work while its program merely waits.

use super::Fixture;
use super::support::{expect_bytes, expect_message, header, list_cases, meet, pattern, two};
use crate::{Memory, Message, Network, OneSided, Payloads, World};
use futures_util::future::{join, join_all};
use units::{KIB, MIB, PeerId, PieceRun, RegionId, Run};

list_cases![
    put_moves_a_contiguous_range,
    get_moves_a_contiguous_range,
    pieces_may_be_strided_on_both_sides,
    one_transfer_moves_many_runs,
    a_cyclic_block_goes_to_many_clients_and_back,
    transfers_of_every_size_arrive,
    several_gets_fill_one_memory,
    several_peers_share_one_region,
    an_open_region_is_for_peers_that_come_later_too,
    both_sides_transfer_at_once,
    messages_and_transfers_share_a_connection,
    a_transfer_of_nothing_succeeds,
    one_memory_can_be_exposed_twice,
];

/// Returns one contiguous piece: at `offset` of the local block, at `memory_offset` of the region.
pub(super) fn piece(offset: u64, memory_offset: u64, length: u64) -> PieceRun {
    PieceRun { offset, stride: length, memory_offset, memory_stride: length, length, count: 1 }
}

/// Returns the contents of a memory.
pub(super) fn contents<M: Memory>(memory: &M) -> M::Payload {
    memory.gather(&[Run::contiguous(0, memory.length())])
}

/// Exposes to one peer.
pub(super) async fn expose<W: World>(owner: &W, memory: &W::Memory, peer: PeerId) -> RegionId {
    owner.expose(memory, &[peer]).await.expect("a memory must be exposable")
}

/// Puts and expects success.
async fn put<W: World>(
    world: &W,
    (peer, region): (PeerId, RegionId),
    pieces: &[PieceRun],
    source: &W::Payload,
) {
    world.put(peer, region, pieces, source).await.expect("a memput must succeed");
}

/// Gets and expects success.
async fn get<W: World>(
    world: &W,
    (peer, region): (PeerId, RegionId),
    pieces: &[PieceRun],
    target: &W::Memory,
) {
    world.get(peer, region, pieces, target).await.expect("a memget must succeed");
}

/// Copies pieces by their definition: from the file side of `file` to the memory side of `memory`.
fn copy_to_memory(pieces: &[PieceRun], file: &[u8], memory: &mut [u8]) {
    for_each_piece(pieces, |file_at, memory_at, length| {
        memory[memory_at..][..length].copy_from_slice(&file[file_at..][..length]);
    });
}

/// Copies pieces by their definition, from the memory side of `memory` to the file side of `file`.
fn copy_to_file(pieces: &[PieceRun], file: &mut [u8], memory: &[u8]) {
    for_each_piece(pieces, |file_at, memory_at, length| {
        file[file_at..][..length].copy_from_slice(&memory[memory_at..][..length]);
    });
}

fn for_each_piece(pieces: &[PieceRun], mut each: impl FnMut(usize, usize, usize)) {
    for run in pieces {
        for (file_at, memory_at) in run.file_side().offsets().zip(run.memory_side().offsets()) {
            each(file_at as usize, memory_at as usize, run.length as usize);
        }
    }
}

/// Puts `pieces` of a block into a region, gets them back into another, and compares every byte,
/// including those between the pieces.
fn check_both_ways<F: Fixture>(
    fixture: &mut F,
    block_bytes: usize,
    region_bytes: usize,
    pieces: Vec<PieceRun>,
) {
    fixture.run(2, move |worlds| async move {
        let (server, client) = two(worlds);
        let (client_of_server, server_of_client) = meet(&server, &client).await;
        let block = pattern(1, block_bytes);
        let mut model = pattern(2, region_bytes);
        let memory = client.thaw(F::payload(&model));
        let region = expose(&client, &memory, server_of_client).await;
        let remote = (client_of_server, region);

        put(&server, remote, &pieces, &F::payload(&block)).await;
        copy_to_memory(&pieces, &block, &mut model);
        expect_bytes::<F>(&contents(&memory), &model, "a region after a memput");

        let mut fetched = pattern(3, block_bytes);
        let target = server.thaw(F::payload(&fetched));
        get(&server, remote, &pieces, &target).await;
        copy_to_file(&pieces, &mut fetched, &model);
        expect_bytes::<F>(&contents(&target), &fetched, "a block after a memget");
        expect_bytes::<F>(&contents(&memory), &model, "a region after a memget");
        client.withdraw(region).await;
        expect_bytes::<F>(&memory.freeze(), &model, "a memory after its region was withdrawn");
    });
}

fn put_moves_a_contiguous_range<F: Fixture>(fixture: &mut F) {
    check_both_ways(fixture, 8192, 10_000, vec![piece(0, 1000, 8192)]);
    check_both_ways(fixture, 10_000, 8192, vec![piece(1808, 0, 8192)]);
}

fn get_moves_a_contiguous_range<F: Fixture>(fixture: &mut F) {
    check_both_ways(fixture, 100, 100, vec![piece(99, 0, 1)]);
    check_both_ways(fixture, 1000, 1000, vec![piece(1, 998, 2)]);
}

fn pieces_may_be_strided_on_both_sides<F: Fixture>(fixture: &mut F) {
    let strided = PieceRun {
        offset: 3,
        stride: 24,
        memory_offset: 5,
        memory_stride: 11,
        length: 7,
        count: 90,
    };
    check_both_ways(fixture, 4000, 4000, vec![strided]);
    check_both_ways(fixture, 4000, 4000, vec![PieceRun { stride: 7, ..strided }]);
    check_both_ways(fixture, 4000, 4000, vec![PieceRun { memory_stride: 7, ..strided }]);
    check_both_ways(fixture, 4000, 4000, vec![PieceRun { count: 1, ..strided }]);
}

fn one_transfer_moves_many_runs<F: Fixture>(fixture: &mut F) {
    let runs = (0..100).map(|index| PieceRun {
        offset: index * 64,
        stride: 20,
        memory_offset: (99 - index) * 50,
        memory_stride: 13,
        length: 1 + index % 12,
        count: 1 + index % 3,
    });
    check_both_ways(fixture, 6400, 5000, runs.collect());
    let many = (0..3000).map(|index| piece(index * 2, index * 3, 1));
    check_both_ways(fixture, 6000, 9000, many.collect());
}

fn a_cyclic_block_goes_to_many_clients_and_back<F: Fixture>(fixture: &mut F) {
    const CLIENTS: usize = 4;
    const PIECE: u64 = 8;
    const BLOCK: u64 = 256 * KIB;
    const SHARE: u64 = BLOCK / CLIENTS as u64;
    fixture.run(CLIENTS + 1, |worlds| async move {
        let (server, clients) = worlds.split_last().expect("the fixture must make nodes");
        let bytes = pattern(1, BLOCK as usize);
        let block = F::payload(&bytes);
        let mut remotes = Vec::new();
        for client in clients {
            let (server_of_client, client_of_server) = meet(client, server).await;
            let memory = client.memory(SHARE);
            let region = expose(client, &memory, server_of_client).await;
            remotes.push(((client_of_server, region), memory));
        }
        let share = |client: usize| PieceRun {
            offset: client as u64 * PIECE,
            stride: CLIENTS as u64 * PIECE,
            memory_offset: 0,
            memory_stride: PIECE,
            length: PIECE,
            count: SHARE / PIECE,
        };
        let shares: Vec<PieceRun> = (0..CLIENTS).map(share).collect();
        let puts = remotes
            .iter()
            .zip(&shares)
            .map(|((remote, _), share)| put(server, *remote, std::slice::from_ref(share), &block));
        join_all(puts).await;
        for ((_, memory), share) in remotes.iter().zip(&shares) {
            let mut model = vec![0; SHARE as usize];
            copy_to_memory(&[*share], &bytes, &mut model);
            expect_bytes::<F>(&contents(memory), &model, "the share of one client");
        }
        let target = server.memory(BLOCK);
        let gets = remotes
            .iter()
            .zip(&shares)
            .map(|((remote, _), share)| get(server, *remote, std::slice::from_ref(share), &target));
        join_all(gets).await;
        expect_bytes::<F>(&target.freeze(), &bytes, "the block gathered from every client");
    });
}

fn transfers_of_every_size_arrive<F: Fixture>(fixture: &mut F) {
    for length in [1, 4095, 4096, 65_537, 4 * MIB + 1] {
        check_both_ways(fixture, length as usize, length as usize, vec![piece(0, 0, length)]);
    }
}

fn several_gets_fill_one_memory<F: Fixture>(fixture: &mut F) {
    const PARTS: u64 = 16;
    const PART: u64 = 10_000;
    fixture.run(2, |worlds| async move {
        let (server, client) = two(worlds);
        let (client_of_server, server_of_client) = meet(&server, &client).await;
        let bytes = pattern(1, (PARTS * PART) as usize);
        let memory = client.thaw(F::payload(&bytes));
        let region = expose(&client, &memory, server_of_client).await;
        let target = server.memory(PARTS * PART);
        let pieces: Vec<_> =
            (0..PARTS).map(|part| [piece(part * PART, part * PART, PART)]).collect();
        let remote = (client_of_server, region);
        join_all(pieces.iter().map(|pieces| get(&server, remote, pieces, &target))).await;
        expect_bytes::<F>(&target.freeze(), &bytes, "a memory filled by several memgets");
    });
}

fn several_peers_share_one_region<F: Fixture>(fixture: &mut F) {
    fixture.run(3, |worlds| async move {
        let [owner, first, second] = &worlds[..] else { panic!("three nodes were asked for") };
        let (owner_of_first, first_of_owner) = meet(first, owner).await;
        let (owner_of_second, second_of_owner) = meet(second, owner).await;
        let memory = owner.memory(20_000);
        let region = owner.expose(&memory, &[first_of_owner, second_of_owner]).await;
        let region = region.expect("a memory must be exposable to several peers");
        let (left, right) = (pattern(1, 10_000), pattern(2, 10_000));
        let (left_payload, right_payload) = (F::payload(&left), F::payload(&right));
        let left_piece = [piece(0, 0, 10_000)];
        let right_piece = [piece(0, 10_000, 10_000)];
        join(
            put(first, (owner_of_first, region), &left_piece, &left_payload),
            put(second, (owner_of_second, region), &right_piece, &right_payload),
        )
        .await;
        expect_bytes::<F>(&contents(&memory), &[left, right].concat(), "a shared region");
        // Data that one peer wrote must be visible to another.
        let target = second.memory(10_000);
        get(second, (owner_of_second, region), &left_piece, &target).await;
        expect_bytes::<F>(&target.freeze(), &pattern(1, 10_000), "the part of the other peer");
    });
}

fn an_open_region_is_for_peers_that_come_later_too<F: Fixture>(fixture: &mut F) {
    fixture.run(4, |worlds| async move {
        let [owner, early, late, caller] = &worlds[..] else { panic!("four nodes were asked for") };
        let (owner_of_early, early_of_owner) = meet(early, owner).await;
        let memory = owner.memory(30);
        let closed = expose(owner, &owner.memory(30), early_of_owner).await;
        let open = owner.expose_to_all(&memory).await;
        assert_ne!(open, closed);
        let bytes = F::payload(b"0123456789");
        put(early, (owner_of_early, open), &[piece(0, 20, 10)], &bytes).await;
        // The first transfer over a new connection, begun from either side.
        let owner_of_late = late.connect(&owner.address()).await.expect("it listens");
        put(late, (owner_of_late, open), &[piece(0, 10, 10)], &bytes).await;
        let refused = late.put(owner_of_late, closed, &[piece(0, 0, 10)], &bytes).await;
        assert!(refused.is_err(), "what is exposed to one is not open");
        let (_, owner_of_caller) = meet(owner, caller).await;
        put(caller, (owner_of_caller, open), &[piece(0, 0, 10)], &bytes).await;
        let again = late.connect(&owner.address()).await.expect("it listens");
        let fetched = late.memory(10);
        get(late, (again, open), &[piece(0, 20, 10)], &fetched).await;
        expect_bytes::<F>(&contents(&fetched), b"0123456789", "what is got first");
        expect_bytes::<F>(&contents(&memory), &b"0123456789".repeat(3), "an open region");
        owner.withdraw(open).await;
        let peers = [(early, owner_of_early), (late, owner_of_late), (caller, owner_of_caller)];
        for (world, peer) in peers {
            let refused = world.put(peer, open, &[piece(0, 0, 10)], &bytes).await;
            assert!(refused.is_err(), "it is withdrawn from all");
        }
        let after = early.connect(&owner.address()).await.expect("it listens");
        let refused = early.put(after, open, &[piece(0, 0, 10)], &bytes).await;
        assert!(refused.is_err(), "what was withdrawn stays so");
    });
}

fn both_sides_transfer_at_once<F: Fixture>(fixture: &mut F) {
    const ROUNDS: u64 = 8;
    fixture.run(2, |worlds| async move {
        let (a, b) = two(worlds);
        let (b_of_a, a_of_b) = meet(&a, &b).await;
        let (of_a, of_b) = (a.memory(ROUNDS * MIB), b.memory(ROUNDS * MIB));
        let (region_a, region_b) = join(expose(&a, &of_a, b_of_a), expose(&b, &of_b, a_of_b)).await;
        let bytes = pattern(1, MIB as usize);
        let block = F::payload(&bytes);
        let pieces: Vec<_> = (0..ROUNDS).map(|round| [piece(0, round * MIB, MIB)]).collect();
        let there = pieces.iter().map(|pieces| put(&a, (b_of_a, region_b), pieces, &block));
        let back = pieces.iter().map(|pieces| put(&b, (a_of_b, region_a), pieces, &block));
        join(join_all(there), join_all(back)).await;
        let expected = bytes.repeat(ROUNDS as usize);
        expect_bytes::<F>(&of_a.freeze(), &expected, "what the second node put");
        expect_bytes::<F>(&of_b.freeze(), &expected, "what the first node put");
    });
}

fn messages_and_transfers_share_a_connection<F: Fixture>(fixture: &mut F) {
    const ROUNDS: u64 = 20;
    fixture.run(2, |worlds| async move {
        let (server, client) = two(worlds);
        let (client_of_server, server_of_client) = meet(&server, &client).await;
        let memory = client.memory(ROUNDS * 5000);
        let region = expose(&client, &memory, server_of_client).await;
        let talking = async {
            for round in 0..ROUNDS {
                let block = F::payload(&pattern(round, 5000));
                let pieces = [piece(0, round * 5000, 5000)];
                put(&server, (client_of_server, region), &pieces, &block).await;
                let done = Message::new(header(&round.to_be_bytes()));
                server.send(client_of_server, done).await.expect("a message must go through");
            }
        };
        let hearing = async {
            for round in 0..ROUNDS {
                let (_, done, _) = expect_message(client.receive().await);
                assert_eq!(done, header(&round.to_be_bytes()));
                let part = memory.gather(&[Run::contiguous(round * 5000, 5000)]);
                expect_bytes::<F>(&part, &pattern(round, 5000), "what was put before a message");
            }
        };
        join(talking, hearing).await;
    });
}

fn a_transfer_of_nothing_succeeds<F: Fixture>(fixture: &mut F) {
    check_both_ways(fixture, 100, 100, vec![]);
    check_both_ways(fixture, 100, 100, vec![piece(100, 100, 0)]);
    check_both_ways(fixture, 100, 100, vec![PieceRun { count: 0, ..piece(0, 0, 10) }]);
}

fn one_memory_can_be_exposed_twice<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (server, client) = two(worlds);
        let (client_of_server, server_of_client) = meet(&server, &client).await;
        let memory = client.thaw(F::payload(b"abcdef"));
        let first = expose(&client, &memory, server_of_client).await;
        let second = expose(&client, &memory, server_of_client).await;
        assert_ne!(first, second, "each exposure must have its own name");
        client.withdraw(first).await;
        let pieces = [piece(0, 2, 2)];
        put(&server, (client_of_server, second), &pieces, &F::payload(b"XY")).await;
        expect_bytes::<F>(&contents(&memory), b"abXYef", "a memory put by its second name");
    });
}
