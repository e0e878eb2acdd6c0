//! The members of a group for strategies in which they exchange data with one another: each
//! listens, and tells the others its address at the servers.

use crate::instance::{Instance, Member};
use crate::session::connect_from;
use filesystem::{Fault, Group, PeerCall, PeerMesh, PeerTurn};
use interface::UserError;
use policy::OwnPart;
use std::rc::Rc;
use units::{ClientId, Duration, MIB};
use wire::FileRecord;
use world::{Address, Network};
use world_real::{RealMemory, RealWorld};

/// Bytes of a read by members up to which its data goes through memory of the library. Nobody but
/// the I/O thread writes memory of the program (docs/decisions/0030), and what members send one
/// another would go through sockets. To memory of the library they write by themselves, and one
/// copy at the end costs less.
const STAGED_BYTES_MAX: u64 = 64 * MIB;

/// The members of a group, connected or not.
pub(super) struct Peers {
    instance: Instance,
    /// As in the options of the connection.
    host: Option<String>,
    /// Number by which the sockets of the members are named.
    number: u64,
    calls: filesystem::Peers<RealWorld>,
}

impl Peers {
    /// None of them is connected yet.
    pub(super) fn new(instance: Instance, host: Option<String>, number: u64) -> Self {
        Self { instance, host, number, calls: filesystem::Peers::new(STAGED_BYTES_MAX) }
    }

    /// Takes the turn of a call that begins now.
    pub(super) fn take_turn(&self) -> PeerTurn {
        self.calls.take_turn()
    }

    /// Transfers this member's part, together with all members. The call has a number among those
    /// of the group, and a turn.
    pub(super) async fn transfer(
        &self,
        group: &Group<RealWorld>,
        (number, turn): (u64, PeerTurn),
        file: &FileRecord,
        call: PeerCall,
        part: Result<OwnPart, Fault>,
        memory: &RealMemory,
    ) -> Result<u64, Fault> {
        let join = async || self.join(group, number).await;
        self.calls.transfer((group, number, turn), file, call, part, memory, join).await
    }

    async fn join(
        &self,
        group: &Group<RealWorld>,
        number: u64,
    ) -> Result<PeerMesh<RealWorld>, Fault> {
        let failed = |error: UserError| Fault::TransferFailed { cause: error.cause };
        let file = self.instance.read().map_err(failed)?;
        let ClientId(rank) = group.rank();
        let member = Member { group: self.number, rank, host: self.host.as_deref() };
        let world = member.listen(&self.instance, &file).map_err(failed)?;
        let own = world.address().0.into_bytes();
        let met = group.all_gather_as(&format!("call {number} addresses"), own).await?;
        let addresses: Rc<[Address]> = met
            .into_iter()
            .map(|address| Address(String::from_utf8_lossy(&address).into()))
            .collect();
        // A server that stops now is found before other members miss this one.
        let timeout = group.timeout();
        let limit = Duration::from_ns(timeout.as_ns() / 4 * 3);
        let client = connect_from(world, &file.servers, (limit, timeout)).await?;
        PeerMesh::join(client, self.number, group.rank(), addresses, group.timeout()).await
    }
}
