//! Cases for memput and memget that must be refused without side effects.

use super::one_sided::{contents, expose, piece};
use super::support::{expect_bytes, expect_departure, list_cases, meet, pattern, two};
use super::{Fixture, PayloadOf};
use crate::{Memory, Network, OneSided, Payloads, TransferError};
use units::{PeerId, PieceRun, RegionId, Run};

list_cases![
    pieces_outside_the_region_are_refused,
    an_unknown_region_is_refused,
    a_withdrawn_region_is_refused,
    a_region_is_open_only_to_its_peers,
    transfers_with_who_left_fail,
    withdrawing_is_possible_after_the_peer_left,
    exposing_to_who_left_fails,
];

const REGION_BYTES: usize = 1000;

/// A peer and one of its regions, as the transferring node names them.
type Remote = (PeerId, RegionId);

/// Panics unless both a memput and a memget of these pieces are out of the region.
async fn expect_out_of_region<F: Fixture>(
    world: &F::World,
    remote: Remote,
    pieces: &[PieceRun],
    what: &str,
) {
    for outcome in attempt::<F>(world, remote, pieces).await {
        match outcome {
            Err(TransferError::OutOfRegion { peer, region, .. }) => {
                assert_eq!((peer, region), remote, "the error must say whose region, and which");
            }
            other => panic!("{what} must be OutOfRegion, not {other:?}"),
        }
    }
}

/// Returns the results of a memput and a memget of these pieces; the local block holds 4000 bytes.
async fn attempt<F: Fixture>(
    world: &F::World,
    (peer, region): Remote,
    pieces: &[PieceRun],
) -> [Result<(), TransferError>; 2] {
    let source: PayloadOf<F> = F::payload(&pattern(9, 4000));
    let target = world.memory(4000);
    let put = world.put(peer, region, pieces, &source).await;
    let get = world.get(peer, region, pieces, &target).await;
    [put, get]
}

/// Panics unless a transfer of the whole region succeeds.
async fn expect_open<F: Fixture>(world: &F::World, remote: Remote) {
    let whole = [piece(0, 0, REGION_BYTES as u64)];
    let outcomes = attempt::<F>(world, remote, &whole).await;
    assert_eq!(outcomes, [Ok(()), Ok(())], "an open region must take transfers");
}

fn pieces_outside_the_region_are_refused<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (server, client) = two(worlds);
        let (client_of_server, server_of_client) = meet(&server, &client).await;
        let bytes = pattern(1, REGION_BYTES);
        let memory = client.thaw(F::payload(&bytes));
        let region = expose(&client, &memory, server_of_client).await;
        let remote = (client_of_server, region);
        let end = REGION_BYTES as u64;
        let far = PieceRun {
            offset: 0,
            stride: 1,
            memory_offset: 0,
            memory_stride: u64::MAX / 2,
            length: 1,
            count: 4,
        };
        let shapes: [(&str, &[PieceRun]); 6] = [
            ("one byte past the end", &[piece(0, end - 9, 10)]),
            ("a piece that starts at the end", &[piece(0, end, 1)]),
            ("a piece at the end of 64 bits", &[piece(0, u64::MAX - 5, 4)]),
            ("a piece that ends past 2^64", &[piece(0, u64::MAX - 5, 10)]),
            ("strides that wrap around 2^64", &[far]),
            ("the last of several runs", &[piece(0, 0, 8), piece(8, 8, 8), piece(16, end - 7, 8)]),
        ];
        for (what, pieces) in shapes {
            expect_out_of_region::<F>(&server, remote, pieces, what).await;
        }
        // A failed memput may have moved any bytes of its valid pieces, but none outside them.
        let rest = memory.gather(&[Run::contiguous(16, end - 16 - 9)]);
        expect_bytes::<F>(&rest, &bytes[16..REGION_BYTES - 9], "a region after refused memputs");
        expect_open::<F>(&server, remote).await;
    });
}

fn an_unknown_region_is_refused<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (server, client) = two(worlds);
        let (client_of_server, server_of_client) = meet(&server, &client).await;
        let memory = client.memory(REGION_BYTES as u64);
        let pieces = [piece(0, 0, 1)];
        for region in [RegionId(0), RegionId(12_345), RegionId(u64::MAX)] {
            let remote = (client_of_server, region);
            expect_out_of_region::<F>(&server, remote, &pieces, "an unknown region").await;
        }
        let region = expose(&client, &memory, server_of_client).await;
        expect_open::<F>(&server, (client_of_server, region)).await;
    });
}

fn a_withdrawn_region_is_refused<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (server, client) = two(worlds);
        let (client_of_server, server_of_client) = meet(&server, &client).await;
        let bytes = pattern(1, REGION_BYTES);
        let memory = client.thaw(F::payload(&bytes));
        let region = expose(&client, &memory, server_of_client).await;
        client.withdraw(region).await;
        let remote = (client_of_server, region);
        let pieces = [piece(0, 0, 1)];
        expect_out_of_region::<F>(&server, remote, &pieces, "a withdrawn region").await;
        expect_bytes::<F>(&contents(&memory), &bytes, "a memory after its region was withdrawn");
        let again = expose(&client, &memory, server_of_client).await;
        expect_open::<F>(&server, (client_of_server, again)).await;
        expect_out_of_region::<F>(&server, remote, &pieces, "the old name of a region").await;
    });
}

fn a_region_is_open_only_to_its_peers<F: Fixture>(fixture: &mut F) {
    fixture.run(3, |worlds| async move {
        let [owner, friend, stranger] = &worlds[..] else { panic!("three nodes were asked for") };
        let (owner_of_friend, friend_of_owner) = meet(friend, owner).await;
        let (owner_of_stranger, _) = meet(stranger, owner).await;
        let memory = owner.memory(REGION_BYTES as u64);
        let region = expose(owner, &memory, friend_of_owner).await;
        let pieces = [piece(0, 0, 1)];
        let remote = (owner_of_stranger, region);
        expect_out_of_region::<F>(stranger, remote, &pieces, "the region of others").await;
        expect_open::<F>(friend, (owner_of_friend, region)).await;
    });
}

fn transfers_with_who_left_fail<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (server, client) = two(worlds);
        let (client_of_server, server_of_client) = meet(&server, &client).await;
        let memory = client.memory(REGION_BYTES as u64);
        let region = expose(&client, &memory, server_of_client).await;
        let remote = (client_of_server, region);
        expect_open::<F>(&server, remote).await;
        client.disconnect(server_of_client);
        assert_eq!(expect_departure(server.receive().await), client_of_server);
        for outcome in attempt::<F>(&server, remote, &[piece(0, 0, 1)]).await {
            match outcome {
                Err(TransferError::Departed { peer, .. }) => assert_eq!(peer, client_of_server),
                other => panic!("a transfer with a peer that left must be Departed, not {other:?}"),
            }
        }
    });
}

fn withdrawing_is_possible_after_the_peer_left<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (server, client) = two(worlds);
        let (client_of_server, server_of_client) = meet(&server, &client).await;
        let memory = client.thaw(F::payload(b"mine"));
        let region = expose(&client, &memory, server_of_client).await;
        server.disconnect(client_of_server);
        assert_eq!(expect_departure(client.receive().await), server_of_client);
        client.withdraw(region).await;
        client.withdraw(region).await;
        expect_bytes::<F>(&memory.freeze(), b"mine", "a memory whose peer left");
    });
}

fn exposing_to_who_left_fails<F: Fixture>(fixture: &mut F) {
    fixture.run(2, |worlds| async move {
        let (server, client) = two(worlds);
        let (client_of_server, server_of_client) = meet(&server, &client).await;
        server.disconnect(client_of_server);
        assert_eq!(expect_departure(client.receive().await), server_of_client);
        let memory = client.memory(REGION_BYTES as u64);
        let refused = client.expose(&memory, &[server_of_client]).await;
        assert!(refused.is_err(), "there is no peer that could know the region: {refused:?}");
    });
}
