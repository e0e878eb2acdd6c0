//! Part of one client: the blocks that have a byte of it, and the servers of those blocks.
//!
//! Invariants:
//! - Each block that has a byte of the part comes once, ascending.
//! - The walk to the next block takes a few steps, for any number of blocks between.

use super::access::Access;
use super::footprint::Footprint;
use super::own_part::OwnPart;
use crate::placement::Stripe;
use std::collections::BTreeSet;
use units::{ByteRange, ClientId, DiskId, ServerId};

/// Largest number of blocks that the search for the servers of a part examines. If the search ends
/// before all servers are found, all servers count as having a block.
const BLOCKS_LOOKED_AT_MAX: usize = 4096;

impl Access {
    /// Returns the part of `client` as an access of its own, and the client's number in it. An
    /// access with an entry for each client is reduced to one entry. A distribution stays as it is,
    /// since it is short for any number of clients.
    pub fn part_of(&self, client: ClientId) -> (Self, ClientId) {
        let own = client.0 as usize;
        let alone = ClientId(0);
        match self {
            Self::All { bytes, clients } if client.0 < *clients => {
                (Self::All { bytes: *bytes, clients: 1 }, alone)
            }
            Self::Parts(parts) if own < parts.len() => {
                (Self::Parts(vec![parts[own].clone()]), alone)
            }
            whole => (whole.clone(), client),
        }
    }

    /// Smallest range of the file that has every byte of `client`; empty if there are none.
    pub fn extent_of(&self, client: ClientId) -> ByteRange {
        let owned = Owned::by(self, client);
        match (owned.first_from(0), owned.end()) {
            (Some(start), Some(end)) => ByteRange::new(start, end),
            _ => ByteRange::new(0, 0),
        }
    }

    /// Blocks that have a byte of `client`, ascending: all of them, or those on one disk. From a
    /// block on another disk, the walk jumps to the next block on this disk. So it takes at most
    /// two steps for each block of the disk, and one step for each block of the part.
    pub fn blocks_of<'a>(
        &'a self,
        client: ClientId,
        stripe: &Stripe,
        on: Option<(ServerId, DiskId)>,
    ) -> impl Iterator<Item = u64> + Clone + use<'a> {
        BlocksOf { owned: Owned::by(self, client), stripe: stripe.clone(), on, position: 0 }
    }

    /// Servers that have a block of `client`, ascending. For a part of more than
    /// [`BLOCKS_LOOKED_AT_MAX`] blocks, some servers without a block may be among them.
    pub fn servers_of(&self, client: ClientId, stripe: &Stripe) -> Vec<ServerId> {
        let all = stripe.servers as usize;
        let mut blocks = self.blocks_of(client, stripe, None);
        let mut met = BTreeSet::new();
        for block in blocks.by_ref().take(BLOCKS_LOOKED_AT_MAX) {
            met.insert(stripe.locate(block).server);
            if met.len() == all {
                break;
            }
        }
        if met.len() < all && blocks.next().is_some() {
            return (0..stripe.servers).map(ServerId).collect();
        }
        met.into_iter().collect()
    }
}

/// Bytes of one client, in a form that finds the next byte.
#[derive(Clone, Debug)]
enum Owned<'a> {
    Footprint(Footprint),
    Part(&'a OwnPart),
}

impl<'a> Owned<'a> {
    fn by(access: &'a Access, client: ClientId) -> Self {
        match access {
            Access::Parts(parts) => match parts.get(client.0 as usize) {
                Some(part) => part.footprint().map_or(Self::Part(part), Self::Footprint),
                None => Self::Footprint(Footprint::nothing()),
            },
            Access::All { .. } | Access::Distribution(_) => {
                Self::Footprint(access.footprint(client))
            }
        }
    }

    /// First byte at or after `position`.
    fn first_from(&self, position: u64) -> Option<u64> {
        match self {
            Self::Footprint(footprint) => footprint.first_from(position),
            Self::Part(part) => part.first_from(position),
        }
    }

    /// One past the last byte.
    fn end(&self) -> Option<u64> {
        match self {
            Self::Footprint(footprint) => footprint.end(),
            Self::Part(part) => part.end(),
        }
    }
}

/// Blocks of one client. See [`Access::blocks_of`].
#[derive(Clone, Debug)]
struct BlocksOf<'a> {
    owned: Owned<'a>,
    stripe: Stripe,
    on: Option<(ServerId, DiskId)>,
    /// Offset in the file at which the search continues, in bytes.
    position: u64,
}

impl Iterator for BlocksOf<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let block = self.owned.first_from(self.position)? / self.stripe.block_bytes;
            let here = match self.on {
                None => block,
                Some((server, disk)) => {
                    self.stripe.blocks_on(server, disk, block..u64::MAX).next()?
                }
            };
            let next = if here == block { block + 1 } else { here };
            self.position = next.checked_mul(self.stripe.block_bytes)?;
            if here == block {
                return Some(block);
            }
        }
    }
}
