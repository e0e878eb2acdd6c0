//! Messages from the members of groups, until this client reads them.
//!
//! A connection identifies a member: every message over it belongs to the group for which it was
//! made. Members may be early, so their messages are kept before this client joins itself.
//!
//! Invariants:
//! - Every member of a broken group that is, or later becomes, connected to this client gets one
//!   [`FailureNotice`].
//! - Members are connected to few others, so a fault spreads from member to member only.

use crate::scale::{LiteMap, SmallMap, Table};
use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use units::{ClientId, PeerId};
use wire::{Fault, GroupMessage, PARTICIPANTS_MAX};

/// Unread messages of groups, and the members that are connected.
#[derive(Default)]
pub(crate) struct Mailbox {
    state: RefCell<State>,
    changed: Signal,
}

#[derive(Default)]
struct State {
    groups: SmallMap<u64, Members>,
    /// Group and rank of the member at the other end of each connection.
    peers: Table<PeerId, (u64, ClientId)>,
    /// Latest groups that were broken when this client left them, or whose members left before this
    /// client joined, with the reason. Late members get it.
    ended: VecDeque<(u64, Fault)>,
}

/// State of one group.
#[derive(Default)]
struct Members {
    /// True when this client has joined the group.
    is_open: bool,
    /// Members that have greeted this client.
    joined: LiteMap<ClientId, PeerId>,
    tokens: SmallMap<TokenKey, Token>,
    /// Member whose token this client waits for.
    awaited: Option<ClientId>,
    /// Members that have left, with the cause.
    gone: BTreeMap<ClientId, String>,
    /// First member that left. Others may have left because of it.
    first_gone: Option<ClientId>,
    /// First reason why there can be no agreement any more.
    broken: Option<Fault>,
    /// Number of [`FailureNotice`]s that are being sent.
    notices_in_flight: usize,
}

/// Reason why a group is broken, and the connections that must get it.
pub(crate) struct FailureNotice {
    pub(crate) group: u64,
    pub(crate) fault: Fault,
    pub(crate) peers: Vec<PeerId>,
}

/// Number of the agreement, its round, and the sender of the token.
type TokenKey = (u64, u32, ClientId);

/// Knowledge of one member in one round of an agreement.
pub(crate) struct Token {
    pub(crate) values: Vec<(ClientId, u64)>,
    pub(crate) fault: Option<Fault>,
}

/// Maximum number of groups that other members may open here before this client joins them.
/// Greetings of further groups are ignored, so that their senders time out.
const EARLY_GROUPS_MAX: usize = 64;

/// Maximum number of ended groups that are remembered.
const ENDED_MAX: usize = 64;

/// Maximum number of unread tokens of a group. There is one for each round of an agreement, at most
/// 16 in the largest group, and no member is more than one agreement ahead. More tokens are an
/// attack, and break the group.
const TOKENS_MAX: usize = 64;

impl Mailbox {
    /// Opens `group`, which this client is about to join.
    pub(crate) fn open(&self, group: u64) -> Result<(), Fault> {
        let state = &mut *self.state.borrow_mut();
        let members = state.groups.or_default(group);
        if let Some(at) = state.ended.iter().position(|ended| ended.0 == group) {
            members.broken = state.ended.remove(at).map(|ended| ended.1);
        }
        if std::mem::replace(&mut members.is_open, true) {
            let cause = format!("this client is already in group {group}");
            return Err(Fault::BadRequest { cause });
        }
        Ok(())
    }

    /// Closes `group`, which this client has left. Returns the connections to its members.
    pub(crate) fn close(&self, group: u64) -> Vec<PeerId> {
        let state = &mut *self.state.borrow_mut();
        state.end(group);
        let peers = state.peers_of(group);
        for peer in &peers {
            state.peers.remove(*peer);
        }
        peers
    }

    /// Adds a connection that this client has made to a member.
    pub(crate) fn add_member(&self, group: u64, client: ClientId, peer: PeerId) {
        self.state.borrow_mut().peers.insert(peer, (group, client));
    }

    /// Accepts a message; ignores strangers. Returns the failure notice that it causes.
    #[must_use]
    pub(crate) fn accept(&self, from: PeerId, message: GroupMessage) -> Option<FailureNotice> {
        let mut state = self.state.borrow_mut();
        let notice = match (message, state.peers.get(from).copied()) {
            (GroupMessage::Join { group, client }, None) => state.join(group, client, from),
            (GroupMessage::Join { group, client }, Some(known)) => {
                if known == (group, client)
                    && let Some(members) = state.groups.get_mut(&group)
                {
                    members.joined.insert(client, from);
                }
                None
            }
            (_, None) => None,
            (message, Some((group, client))) => state.accept(group, client, message),
        };
        drop(state);
        self.changed.notify();
        notice
    }

    /// Breaks `group`. Returns the failure notice to send, unless the group was broken before.
    #[must_use]
    pub(crate) fn give_up(&self, group: u64, fault: &Fault) -> Option<FailureNotice> {
        let notice = self.state.borrow_mut().break_off(group, fault.clone());
        self.changed.notify();
        notice
    }

    /// Notes that one [`FailureNotice`] of `group` has been sent.
    pub(crate) fn notified(&self, group: u64) {
        if let Some(members) = self.state.borrow_mut().groups.get_mut(&group) {
            // A group that this client joins after its end starts with no notice in flight.
            members.notices_in_flight = members.notices_in_flight.saturating_sub(1);
        }
        self.changed.notify();
    }

    /// Waits until no failure notice of `group` is in flight.
    pub(crate) async fn until_notified(&self, group: u64) {
        let is_notified = || {
            let state = self.state.borrow();
            state
                .groups
                .get(&group)
                .is_none_or(|members| members.notices_in_flight == 0)
                .then_some(())
        };
        self.changed.until(is_notified).await;
    }

    /// Removes a connection that is not to a server and has ended.
    pub(crate) fn peer_left(&self, peer: PeerId, cause: &str) {
        let mut state = self.state.borrow_mut();
        if let Some((group, client)) = state.peers.remove(peer) {
            state.member_left(group, client, cause);
        }
        drop(state);
        self.changed.notify();
    }

    /// Wakes waiting tasks after a change outside the mailbox.
    pub(crate) fn wake(&self) {
        self.changed.notify();
    }

    /// Waits until `condition` returns a value after a change of this mailbox.
    pub(crate) async fn until<T>(&self, condition: impl FnMut() -> Option<T>) -> T {
        self.changed.until(condition).await
    }

    /// Waits until one of `clients` has joined, and returns the first of several. Fails when
    /// `outside` returns a fault.
    pub(crate) async fn one_joined(
        &self,
        group: u64,
        clients: &[ClientId],
        outside: impl Fn() -> Option<Fault>,
    ) -> Result<(ClientId, PeerId), Fault> {
        let find = || {
            let state = self.state.borrow();
            let joined = &state.groups.get(&group)?.joined;
            clients.iter().find_map(|client| Some((*client, *joined.get(client)?)))
        };
        let ask = || find().map(Ok).or_else(|| outside().map(Err));
        self.changed.until(ask).await
    }

    /// Returns the fault of a broken group.
    pub(crate) fn broken(&self, group: u64) -> Option<Fault> {
        self.state.borrow().groups.get(&group)?.broken.clone()
    }

    /// Returns the reason why no agreement can begin: the group is broken, or a member has left.
    /// (In an agreement that has begun, a member that left may have done its part.)
    pub(crate) fn why_broken(&self, group: u64) -> Option<Fault> {
        let state = self.state.borrow();
        let members = state.groups.get(&group)?;
        members
            .broken
            .clone()
            .or_else(|| members.first_gone.and_then(|client| members.why_gone(client)))
    }

    /// Waits for the reason why no agreement can begin. It must be about to arrive.
    pub(crate) async fn until_broken(&self, group: u64) -> Fault {
        self.changed.until(|| self.why_broken(group)).await
    }

    /// Waits for a token. Fails when the token can no longer come, or `outside` returns a fault.
    pub(crate) async fn token(
        &self,
        group: u64,
        token: TokenKey,
        outside: impl Fn() -> Option<Fault>,
    ) -> Result<Token, Fault> {
        let ask = || {
            let mut state = self.state.borrow_mut();
            let heard = state.groups.get_mut(&group).and_then(|members| members.look_for(token));
            heard.or_else(|| outside().map(Err))
        };
        if let Some(heard) = ask() {
            return heard;
        }
        let _awaited = Awaited::new(self, group, token.2);
        self.changed.until(ask).await
    }

    /// Returns the connections to members whose tokens this client waits for.
    pub(crate) fn owing_members(&self) -> Vec<PeerId> {
        let state = self.state.borrow();
        let owing = state.groups.values().filter_map(|members| {
            members.awaited.and_then(|client| members.joined.get(&client).copied())
        });
        owing.collect()
    }
}

impl State {
    fn join(&mut self, group: u64, client: ClientId, from: PeerId) -> Option<FailureNotice> {
        if let Some((_, fault)) = self.ended.iter().find(|ended| ended.0 == group) {
            return Some(FailureNotice { group, fault: fault.clone(), peers: vec![from] });
        }
        let early = self.groups.values().filter(|members| !members.is_open).count();
        if early >= EARLY_GROUPS_MAX && self.groups.get(&group).is_none() {
            return None;
        }
        let members = self.groups.or_default(group);
        if members.joined.len() < PARTICIPANTS_MAX && !members.joined.contains_key(&client) {
            members.joined.insert(client, from);
            self.peers.insert(from, (group, client));
        }
        let fault = members.broken.clone()?;
        members.notices_in_flight += 1;
        Some(FailureNotice { group, fault, peers: vec![from] })
    }

    fn accept(
        &mut self,
        group: u64,
        from: ClientId,
        message: GroupMessage,
    ) -> Option<FailureNotice> {
        let members = self.groups.get_mut(&group)?;
        match message {
            GroupMessage::Agree { .. } if members.tokens.len() >= TOKENS_MAX => {
                let cause = format!("{from} sent more tokens than a group can have");
                return self.break_off(group, Fault::BadRequest { cause });
            }
            GroupMessage::Agree { number, round, values, fault } => {
                members.tokens.insert((number, round, from), Token { values, fault });
            }
            GroupMessage::Leave => {
                members.goes(from, "it was done before the others");
            }
            GroupMessage::Broken { fault } => return self.break_off(group, fault),
            GroupMessage::Join { .. } => {}
        }
        None
    }

    /// Breaks `group` for the first reason that was given. Every connected member needs a notice,
    /// because some are connected to no other that knows. The member that sent the reason gets one
    /// too: that is cheaper than remembering the sender.
    fn break_off(&mut self, group: u64, fault: Fault) -> Option<FailureNotice> {
        let members = self.groups.get_mut(&group)?;
        if members.broken.is_some() {
            return None;
        }
        members.broken = Some(fault.clone());
        members.notices_in_flight += 1;
        Some(FailureNotice { group, fault, peers: self.peers_of(group) })
    }

    /// Returns the connections to members of a group.
    fn peers_of(&self, group: u64) -> Vec<PeerId> {
        let of_group = self.peers.iter().filter(|(_, member)| member.0 == group);
        of_group.map(|(peer, _)| peer).collect()
    }

    fn member_left(&mut self, group: u64, client: ClientId, cause: &str) {
        let Some(members) = self.groups.get_mut(&group) else { return };
        members.goes(client, cause);
        members.joined.remove(&client);
        if !members.is_open && members.joined.is_empty() {
            self.end(group);
        }
    }

    /// Forgets a group except for the fault that broke it.
    fn end(&mut self, group: u64) {
        let broken = self.groups.remove(&group).and_then(|members| members.broken);
        if let Some(fault) = broken {
            if self.ended.len() >= ENDED_MAX {
                self.ended.pop_front();
            }
            self.ended.push_back((group, fault));
        }
    }
}

impl Members {
    /// Notes that a member has left. The first known cause counts.
    fn goes(&mut self, client: ClientId, cause: &str) {
        self.gone.entry(client).or_insert_with(|| cause.to_owned());
        self.first_gone.get_or_insert(client);
    }

    fn why_gone(&self, client: ClientId) -> Option<Fault> {
        let cause = self.gone.get(&client)?.clone();
        Some(Fault::ClientLeft { client, cause })
    }

    fn look_for(&mut self, token: TokenKey) -> Option<Result<Token, Fault>> {
        if let Some(token) = self.tokens.remove(&token) {
            return Some(Ok(token));
        }
        if let Some(fault) = &self.broken {
            return Some(Err(fault.clone()));
        }
        self.why_gone(token.2).map(Err)
    }
}

/// Guard of a wait for the token of a member.
struct Awaited<'a> {
    mailbox: &'a Mailbox,
    group: u64,
}

impl<'a> Awaited<'a> {
    fn new(mailbox: &'a Mailbox, group: u64, member: ClientId) -> Self {
        let awaited = Self { mailbox, group };
        awaited.set(Some(member));
        awaited
    }

    fn set(&self, member: Option<ClientId>) {
        if let Some(members) = self.mailbox.state.borrow_mut().groups.get_mut(&self.group) {
            members.awaited = member;
        }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.set(None);
    }
}
