//! Client side of node grouping.

use super::super::transfer::Transfer;
use super::super::{caching, global_barrier};
use crate::client::{PeerMesh, SharedMemory};
use policy::NodeGroups;
use wire::Fault;
use world::World;

/// Carries out a collective by node grouping. The agreement after each turn is also the barrier
/// before the next one. A fault in a turn ends the transfer, without the turns that remain.
pub(crate) async fn transfer<W: World>(
    mesh: &PeerMesh<W>,
    transfer: &Transfer,
    memory: &SharedMemory<W>,
) -> Result<(), Fault> {
    let groups = NodeGroups::new(mesh.size(), transfer.node_group_size, &transfer.file.stripe);
    let own_turn = groups.turn_of(mesh.rank());
    for _ in 0..own_turn {
        mesh.barrier().await?;
    }
    let moved = global_barrier::client::move_chunks(mesh, transfer, memory).await;
    let turns_after = groups.turns() - 1 - own_turn;
    if turns_after == 0 {
        return caching::client::finish_without_prefetches(mesh, transfer, moved).await;
    }
    mesh.agree(moved).await?;
    for _ in 1..turns_after {
        mesh.barrier().await?;
    }
    caching::client::finish_without_prefetches(mesh, transfer, Ok(())).await
}
