//! Lines of global parts whose places other lines take, until their clients have dropped them.
//!
//! Invariant: numbers of a client grow in the order of the commands that it gets.

use super::cache::LineKey;
use std::collections::{BTreeMap, BTreeSet};
use units::PeerId;

/// Copies that clients are told to drop, and may still have.
#[derive(Clone, Debug, Default)]
pub(super) struct FormerPlaces {
    /// Number of the last command that made a line leave.
    last: u64,
    /// The last such command, for each line and client.
    copies: BTreeMap<(LineKey, PeerId), u64>,
    /// The same, in the order of the commands of each client.
    commands: BTreeMap<PeerId, BTreeSet<(u64, LineKey)>>,
}

impl FormerPlaces {
    /// Number of the last command that made a line leave.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Notes that a client is told to drop a line.
    pub(super) fn add(&mut self, client: PeerId, key: LineKey) {
        self.last += 1;
        let commands = self.commands.entry(client).or_default();
        if let Some(before) = self.copies.insert((key, client), self.last) {
            commands.remove(&(before, key));
        }
        commands.insert((self.last, key));
    }

    /// Clients that may still have a line.
    pub(super) fn holders(&self, key: LineKey) -> impl Iterator<Item = PeerId> {
        let of_line = self.copies.range((key, PeerId(0))..=(key, PeerId(u32::MAX)));
        of_line.map(|((_, client), _)| *client)
    }

    /// Number of lines that a client may still have.
    pub(super) fn of_client(&self, client: PeerId) -> usize {
        self.commands.get(&client).map_or(0, BTreeSet::len)
    }

    /// Notes that a client has carried out its commands up to number `last`.
    pub(super) fn carried_out(&mut self, client: PeerId, last: u64) {
        let Some(commands) = self.commands.get_mut(&client) else { return };
        while let Some((number, key)) = commands.first().copied().filter(|it| it.0 <= last) {
            commands.remove(&(number, key));
            self.copies.remove(&(key, client));
        }
        if commands.is_empty() {
            self.commands.remove(&client);
        }
    }

    /// Removes a client that has left.
    pub(super) fn leave(&mut self, client: PeerId) {
        self.carried_out(client, u64::MAX);
    }
}
