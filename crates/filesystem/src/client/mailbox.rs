//! Messages from the members of groups, until this client reads them.
//!
//! A connection identifies a member: every message over it belongs to the group for which it was
//! made. Members may be early, so their messages are kept before this client joins itself.
//!
//! Invariants:
//! - Every member of a broken group that is, or later becomes, connected to this client gets one
//!   [`FailureNotice`].
//! - Members are connected to few others, so a fault spreads from member to member only.

use crate::signal::Signal;
use crate::small_map::SmallMap;
use crate::table::Table;
use litemap::LiteMap;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use units::{ClientId, PeerId};
use wire::{Fault, GroupMessage, PARTICIPANTS_MAX};

/// Messages of groups until they are read, and who is still there.
#[derive(Default)]
pub(crate) struct Mailbox {
    state: RefCell<State>,
    changed: Signal,
}

/// (There are few of each, and in a simulation of thousands of clients a tree is a few more misses
/// of the caches for each message.)
#[derive(Default)]
struct State {
    groups: SmallMap<u64, Members>,
    /// Which member of which group is at the other end of a connection.
    peers: Table<PeerId, (u64, ClientId)>,
    /// Groups that were broken when this client left them, or that it has not joined and whose
    /// members have left, with the reason: for those who come late. The latest are kept.
    ended: VecDeque<(u64, Fault)>,
    /// Collectives that this client takes part in, and why they failed.
    collectives: BTreeMap<u64, Option<Fault>>,
}

/// What is known of a group.
#[derive(Default)]
struct Members {
    /// Whether this client has joined it.
    is_open: bool,
    /// Those who have said that they are members.
    joined: LiteMap<ClientId, PeerId>,
    tokens: SmallMap<TokenKey, Token>,
    /// Those who are no longer there, and what is known of why.
    gone: BTreeMap<ClientId, String>,
    /// Who of them was the first: others may have gone for that reason.
    first_gone: Option<ClientId>,
    /// Why there can be no agreement any more: the first reason that was heard.
    broken: Option<Fault>,
    /// How many [`FailureNotice`] of that are on their way.
    notices_in_flight: usize,
}

/// Why a group is broken, for those who have to be told.
pub(crate) struct FailureNotice {
    pub(crate) group: u64,
    pub(crate) fault: Fault,
    pub(crate) peers: Vec<PeerId>,
}

/// Which agreement, which round of it, from whom.
type TokenKey = (u64, u32, ClientId);

/// What one member knew in one round of an agreement.
pub(crate) struct Token {
    pub(crate) values: Vec<(ClientId, u64)>,
    pub(crate) fault: Option<Fault>,
}

/// The most groups that others may ask for before this client has joined them; further ones are
/// ignored, so that their members' patience ends.
const EARLY_GROUPS_MAX: usize = 64;

/// The most groups whose end is remembered.
const ENDED_MAX: usize = 64;

/// The most unread tokens of a group. There is one for each round of an agreement, of which the
/// largest group has 16, and nobody is more than one agreement ahead; more are an attack, and the
/// group is broken.
const TOKENS_MAX: usize = 64;

impl Mailbox {
    /// This client is about to join `group`.
    pub(crate) fn open(&self, group: u64) -> Result<(), Fault> {
        let state = &mut *self.state.borrow_mut();
        let members = state.groups.or_default(group);
        if let Some(at) = state.ended.iter().position(|ended| ended.0 == group) {
            members.broken = state.ended.remove(at).map(|ended| ended.1);
        }
        if std::mem::replace(&mut members.is_open, true) {
            let cause = format!("this client is in group {group} already");
            return Err(Fault::BadRequest { cause });
        }
        Ok(())
    }

    /// This client has left `group`. Returns the connections to its members.
    pub(crate) fn close(&self, group: u64) -> Vec<PeerId> {
        let state = &mut *self.state.borrow_mut();
        state.end(group);
        let peers = state.peers_of(group);
        for peer in &peers {
            state.peers.remove(*peer);
        }
        peers
    }

    /// This client has connected to a member.
    pub(crate) fn add_member(&self, group: u64, client: ClientId, peer: PeerId) {
        self.state.borrow_mut().peers.insert(peer, (group, client));
    }

    /// Takes a message in; ignores those of strangers. Returns what it has others told.
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

    /// This client cannot go on in `group`. Returns whom to tell, unless they are told already.
    #[must_use]
    pub(crate) fn give_up(&self, group: u64, fault: &Fault) -> Option<FailureNotice> {
        let notice = self.state.borrow_mut().break_off(group, fault.clone());
        self.changed.notify();
        notice
    }

    /// Those whom some [`FailureNotice`] of `group` were for have been told.
    pub(crate) fn notified(&self, group: u64) {
        if let Some(members) = self.state.borrow_mut().groups.get_mut(&group) {
            // A group that this client joins after its end starts with none on their way.
            members.notices_in_flight = members.notices_in_flight.saturating_sub(1);
        }
        self.changed.notify();
    }

    /// Waits until nobody has to be told any more why `group` is broken, if it is.
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

    /// A connection that is not to a server has ended.
    pub(crate) fn peer_left(&self, peer: PeerId, cause: &str) {
        let mut state = self.state.borrow_mut();
        if let Some((group, client)) = state.peers.remove(peer) {
            state.member_left(group, client, cause);
        }
        drop(state);
        self.changed.notify();
    }

    /// Something outside the mailbox has changed that a waiting task may be interested in.
    pub(crate) fn wake(&self) {
        self.changed.notify();
    }

    /// Waits until one of `clients` has joined, of several the first. Fails when `outside` says why
    /// that is in vain.
    pub(crate) async fn one_joined(
        &self,
        group: u64,
        clients: &[ClientId],
        outside: impl Fn() -> Option<Fault>,
    ) -> Result<(ClientId, PeerId), Fault> {
        let look = || {
            let state = self.state.borrow();
            let joined = &state.groups.get(&group)?.joined;
            clients.iter().find_map(|client| Some((*client, *joined.get(client)?)))
        };
        let ask = || look().map(Ok).or_else(|| outside().map(Err));
        self.changed.until(ask).await
    }

    /// Why a group is broken, if it is.
    pub(crate) fn broken(&self, group: u64) -> Option<Fault> {
        self.state.borrow().groups.get(&group)?.broken.clone()
    }

    /// Why no agreement can begin: the group is broken, or a member is gone. (In an agreement that
    /// has begun, one that is gone may have done its part.)
    pub(crate) fn why_broken(&self, group: u64) -> Option<Fault> {
        let state = self.state.borrow();
        let members = state.groups.get(&group)?;
        members
            .broken
            .clone()
            .or_else(|| members.first_gone.and_then(|client| members.why_gone(client)))
    }

    /// Waits until it is known why no agreement can begin, which must be about to be told.
    pub(crate) async fn until_broken(&self, group: u64) -> Fault {
        self.changed.until(|| self.why_broken(group)).await
    }

    /// Waits for a token. Fails when it can no longer come, or `outside` says why it is in vain.
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
        self.changed.until(ask).await
    }

    /// Keeps what servers tell of a collective, as long as the returned value lives.
    pub(crate) fn expect_collective(&self, number: u64) -> Expected<'_> {
        self.state.borrow_mut().collectives.insert(number, None);
        Expected { mailbox: self, number }
    }

    /// A server tells that a collective has failed.
    pub(crate) fn collective_failed(&self, number: u64, fault: Fault) {
        if let Some(failure) = self.state.borrow_mut().collectives.get_mut(&number) {
            failure.get_or_insert(fault);
        }
        self.changed.notify();
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

    /// From now on there is no agreement in `group`, for the first reason that was given. All who
    /// are connected have to be told, since some of them know nobody who knows; whoever told this
    /// client is told too, and that costs less than to know who did.
    fn break_off(&mut self, group: u64, fault: Fault) -> Option<FailureNotice> {
        let members = self.groups.get_mut(&group)?;
        if members.broken.is_some() {
            return None;
        }
        members.broken = Some(fault.clone());
        members.notices_in_flight += 1;
        Some(FailureNotice { group, fault, peers: self.peers_of(group) })
    }

    /// The connections to members of a group.
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

    /// Forgets a group but for the reason why it is broken.
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
    /// A member is no longer there. The first cause that is known of counts.
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

/// A collective of which failures are kept.
pub(crate) struct Expected<'a> {
    mailbox: &'a Mailbox,
    number: u64,
}

impl Expected<'_> {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Waits until a server tells that the collective has failed, which may be never.
    pub(crate) async fn failure(&self) -> Fault {
        let mailbox = self.mailbox;
        let failure = || mailbox.state.borrow().collectives.get(&self.number).cloned().flatten();
        mailbox.changed.until(failure).await
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.mailbox.state.borrow_mut().collectives.remove(&self.number);
    }
}
