//! Client side of disk-directed I/O: CollectiveReadCP of Figure 2c (TOCS 1997).

use super::super::call_servers::call_to_the_end;
use super::super::transfer::Transfer;
use crate::client::{PeerMesh, SharedMemory};
use units::{ClientId, ServerId};
use wire::{CollectiveCall, CollectiveRequest, Fault, JoinRequest, MemberRun, TransferName};
use world::World;

/// Carries out a collective. Every member has shared its memory, so the servers can reach it.
pub(crate) async fn transfer<W: World>(
    mesh: &PeerMesh<W>,
    transfer: &Transfer,
    memory: &SharedMemory<W>,
    collective: u64,
) -> Result<(), Fault> {
    let directed = match mesh.rank() {
        ClientId(0) => join_for_all(mesh, transfer, memory, collective).await,
        _ => Ok(()),
    };
    mesh.agree(directed).await
}

/// Joins the call for all members at each server, and waits for all servers.
async fn join_for_all<W: World>(
    mesh: &PeerMesh<W>,
    transfer: &Transfer,
    memory: &SharedMemory<W>,
    collective: u64,
) -> Result<(), Fault> {
    let id = mesh.call_id(collective);
    let Transfer { direction, order, sync, .. } = *transfer;
    let members = (0..).map(ClientId).zip(memory.at_servers.iter().copied());
    let request = CollectiveRequest::Join(Box::new(JoinRequest {
        call: id,
        parameters: CollectiveCall { direction, file: transfer.file.file, order, sync },
        members: MemberRun::of(members),
        access: Ok(transfer.access.clone()),
        timeout_ms: mesh.timeout().as_ms(),
    }));
    let servers: Vec<ServerId> = transfer.file.servers().collect();
    let name = TransferName::Call(id);
    call_to_the_end(mesh.client(), &servers, request, name).await.map(|_| ())
}
