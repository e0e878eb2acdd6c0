//! What members of groups have told this client.
//!
//! A member is known by its connection: whatever comes over it belongs to the group for which it
//! was made. Members may be early, so their messages are kept before this client joins itself.

use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::BTreeMap;
use units::{ClientId, PeerId};
use wire::{ClientKey, Fault, GroupMessage, PARTICIPANTS_MAX};

/// Messages of groups until they are read, and who is still there.
#[derive(Default)]
pub(crate) struct Mailbox {
    state: RefCell<State>,
    changed: Signal,
}

#[derive(Default)]
struct State {
    groups: BTreeMap<u64, Members>,
    /// Which member of which group is at the other end of a connection.
    peers: BTreeMap<PeerId, (u64, ClientId)>,
    /// Collectives that this client takes part in, and why they failed.
    collectives: BTreeMap<u64, Option<Fault>>,
}

/// What is known of a group.
#[derive(Default)]
struct Members {
    /// Whether this client has joined it.
    is_open: bool,
    joined: BTreeMap<ClientId, (PeerId, ClientKey)>,
    tokens: BTreeMap<TokenKey, Token>,
    /// Those who are no longer there, and what is known of why.
    gone: BTreeMap<ClientId, String>,
    /// Why there can be no agreement any more: the first reason that was heard.
    broken: Option<Fault>,
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

/// The most unread tokens of a group. A member is at most one agreement ahead, so that more are
/// an attack, and the group is broken.
const TOKENS_MAX: usize = 64 * PARTICIPANTS_MAX;

impl Mailbox {
    /// This client is about to join `group`.
    pub(crate) fn open(&self, group: u64) -> Result<(), Fault> {
        let mut state = self.state.borrow_mut();
        let members = state.groups.entry(group).or_default();
        if std::mem::replace(&mut members.is_open, true) {
            let cause = format!("this client is in group {group} already");
            return Err(Fault::BadRequest { cause });
        }
        Ok(())
    }

    /// This client has left `group`. Returns the connections to its members.
    pub(crate) fn close(&self, group: u64) -> Vec<PeerId> {
        let state = &mut *self.state.borrow_mut();
        state.groups.remove(&group);
        let of_group = state.peers.iter().filter(|(_, member)| member.0 == group);
        let peers: Vec<PeerId> = of_group.map(|(peer, _)| *peer).collect();
        for peer in &peers {
            state.peers.remove(peer);
        }
        peers
    }

    /// This client has connected to a member.
    pub(crate) fn add_member(&self, group: u64, client: ClientId, peer: PeerId) {
        self.state.borrow_mut().peers.insert(peer, (group, client));
    }

    /// Takes a message in; ignores those of strangers.
    pub(crate) fn accept(&self, from: PeerId, message: GroupMessage) {
        let mut state = self.state.borrow_mut();
        match (message, state.peers.get(&from).copied()) {
            (GroupMessage::Join { group, client, key }, None) => {
                state.join(group, client, from, key);
            }
            (GroupMessage::Join { .. }, Some(_)) | (_, None) => {}
            (message, Some((group, client))) => {
                if let Some(members) = state.groups.get_mut(&group) {
                    members.accept(client, message);
                }
            }
        }
        drop(state);
        self.changed.notify();
    }

    /// A connection that is not to a server has ended.
    pub(crate) fn peer_left(&self, peer: PeerId, cause: &str) {
        let mut state = self.state.borrow_mut();
        if let Some((group, client)) = state.peers.remove(&peer) {
            state.member_left(group, client, cause);
        }
        drop(state);
        self.changed.notify();
    }

    /// Something outside the mailbox has changed that a waiting task may be interested in.
    pub(crate) fn wake(&self) {
        self.changed.notify();
    }

    /// Waits until `client` has joined. Fails when `outside` says why that is in vain.
    pub(crate) async fn joined(
        &self,
        group: u64,
        client: ClientId,
        outside: impl Fn() -> Option<Fault>,
    ) -> Result<(PeerId, ClientKey), Fault> {
        let look = || self.state.borrow().groups.get(&group)?.joined.get(&client).copied();
        let ask = || look().map(Ok).or_else(|| outside().map(Err));
        self.changed.until(ask).await
    }

    /// Why no agreement can begin: the group is broken, or a member is gone. (In an agreement that
    /// has begun, one that is gone may have done its part.)
    pub(crate) fn why_broken(&self, group: u64) -> Option<Fault> {
        let state = self.state.borrow();
        let members = state.groups.get(&group)?;
        members.broken.clone().or_else(|| {
            let (&client, cause) = members.gone.first_key_value()?;
            Some(Fault::ClientLeft { client, cause: cause.clone() })
        })
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
    fn join(&mut self, group: u64, client: ClientId, from: PeerId, key: ClientKey) {
        let early = self.groups.values().filter(|members| !members.is_open).count();
        if early >= EARLY_GROUPS_MAX && !self.groups.contains_key(&group) {
            return;
        }
        let members = self.groups.entry(group).or_default();
        if members.joined.len() < PARTICIPANTS_MAX && !members.joined.contains_key(&client) {
            members.joined.insert(client, (from, key));
            self.peers.insert(from, (group, client));
        }
    }

    fn member_left(&mut self, group: u64, client: ClientId, cause: &str) {
        let Some(members) = self.groups.get_mut(&group) else { return };
        members.gone.entry(client).or_insert_with(|| cause.to_owned());
        members.joined.remove(&client);
        if !members.is_open && members.joined.is_empty() {
            self.groups.remove(&group);
        }
    }
}

impl Members {
    fn accept(&mut self, from: ClientId, message: GroupMessage) {
        match message {
            GroupMessage::Agree { .. } if self.tokens.len() >= TOKENS_MAX => {
                let cause = format!("{from} sent more tokens than a group can have");
                self.broken.get_or_insert(Fault::BadRequest { cause });
            }
            GroupMessage::Agree { number, round, values, fault } => {
                self.tokens.insert((number, round, from), Token { values, fault });
            }
            GroupMessage::Leave => {
                self.gone.insert(from, "it was done before the others".to_owned());
            }
            GroupMessage::Broken { fault } => {
                self.broken.get_or_insert(fault);
            }
            GroupMessage::Join { .. } => {}
        }
    }

    fn look_for(&mut self, token: TokenKey) -> Option<Result<Token, Fault>> {
        if let Some(token) = self.tokens.remove(&token) {
            return Some(Ok(token));
        }
        if let Some(fault) = &self.broken {
            return Some(Err(fault.clone()));
        }
        let client = token.2;
        let cause = self.gone.get(&client)?.clone();
        Some(Err(Fault::ClientLeft { client, cause }))
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
        let told = || mailbox.state.borrow().collectives.get(&self.number).cloned().flatten();
        mailbox.changed.until(told).await
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.mailbox.state.borrow_mut().collectives.remove(&self.number);
    }
}
