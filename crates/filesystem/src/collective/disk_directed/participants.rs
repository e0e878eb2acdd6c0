//! Connections to the participants of a collective.

use crate::scale::{Table, rare};
use crate::server::{Roster, Server};
use futures_util::future::{Either, select};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;
use units::{ClientId, Duration, PeerId, RegionId};
use wire::{Fault, MemberRun};
use world::World;

/// Participants of one collective, as one server knows them. It looks for a participant when it has
/// data for it: most of thousands have none here.
pub(super) struct Participants<W: World> {
    server: Rc<Server<W>>,
    members: Members<W::Memory>,
    /// Connections that were looked for.
    peers: RefCell<Table<ClientId, PeerId>>,
    /// Time to wait for a member that another client has registered, and that connects now.
    timeout: Duration,
}

/// Members of a collective call.
pub(crate) struct Members<M> {
    pub(crate) roster: Rc<Roster>,
    /// All members of the group, ascending, with their regions.
    pub(crate) runs: Vec<MemberRun>,
    /// Memories at this server, of members whose bytes go with the messages of the call.
    pub(crate) staged: BTreeMap<ClientId, M>,
}

/// Where the memory of a participant is.
pub(super) enum Place<M> {
    /// In its own process, in a region that it has exposed.
    Exposed(PeerId, RegionId),
    /// At this server: its bytes go with the messages of the call.
    Staged(M),
}

impl<W: World> Participants<W> {
    pub(super) fn new(
        server: &Rc<Server<W>>,
        members: Members<W::Memory>,
        timeout: Duration,
    ) -> Self {
        Self { server: Rc::clone(server), members, peers: RefCell::default(), timeout }
    }

    /// Returns the memory of a participant.
    ///
    /// # Errors
    /// [`Fault::ClientLeft`] when it is not connected.
    pub(super) async fn place_of(&self, client: ClientId) -> Result<Place<W::Memory>, Fault> {
        if let Some(memory) = self.members.staged.get(&client) {
            return Ok(Place::Staged(memory.clone()));
        }
        let known = self.peers.borrow().get(client).copied();
        let peer = match known.or_else(|| self.find(client)) {
            Some(peer) => peer,
            None => rare(self.wait_for(client)).await?,
        };
        let run = self.members.runs.partition_point(|run| run.end() <= u64::from(client.0));
        let region =
            self.members.runs.get(run).filter(|run| run.first <= client).map(|run| run.region);
        let not_named = || format!("{client} does not take part in the collective");
        let region = region.ok_or_else(|| Fault::BadRequest { cause: not_named() })?;
        Ok(Place::Exposed(peer, region))
    }

    fn find(&self, client: ClientId) -> Option<PeerId> {
        let peer = self.server.clients().peer_of(self.members.roster.key_of(client)?)?;
        self.peers.borrow_mut().insert(client, peer);
        Some(peer)
    }

    /// Waits for the greeting of a participant. It may be on its way when the call begins.
    async fn wait_for(&self, client: ClientId) -> Result<PeerId, Fault> {
        let left = || {
            let cause = "it is not connected to this server".to_owned();
            Fault::ClientLeft { client, cause }
        };
        let key = self.members.roster.key_of(client).ok_or_else(left)?;
        if self.server.clients().has_departed(key) {
            return Err(left());
        }
        let greeted = pin!(self.server.clients().until_greeted(|| self.find(client)));
        match select(greeted, pin!(self.server.world().sleep(self.timeout))).await {
            Either::Left((peer, _)) => Ok(peer),
            Either::Right(_) => Err(left()),
        }
    }

    /// Returns a participant whose connection has ended.
    pub(super) fn first_gone(&self) -> Option<ClientId> {
        let peers = self.peers.borrow();
        let gone = peers.iter().find(|(_, peer)| !self.server.clients().is_here(**peer));
        gone.map(|(client, _)| client)
    }
}
