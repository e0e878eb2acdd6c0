//! The part of one client: which blocks hold a byte of it, and which servers must hear of it.
//!
//! Invariants: every block that holds a byte of the part comes once, ascending; walking to the next
//! one costs a few steps, however many blocks without a byte lie between.

use crate::access::Access;
use crate::footprint::Footprint;
use crate::list::{self, ListEntry};
use crate::own_part::OwnPart;
use crate::stripe::Stripe;
use std::collections::BTreeSet;
use units::{ByteRange, ClientId, DiskId, ServerId};

/// Blocks that are looked at to find out which servers have some of a part: a part that meets
/// fewer servers than there are, this far, is told to all of them.
const BLOCKS_LOOKED_AT_MAX: usize = 4096;

impl Access {
    /// What `client` owns as an access of its own, and which client of that it is. An access that
    /// lists its clients is cut down to the one; a rule says all of them in the same few words.
    pub fn part_of(&self, client: ClientId) -> (Self, ClientId) {
        let own = client.0 as usize;
        let alone = ClientId(0);
        match self {
            Self::All { bytes, clients } if client.0 < *clients => {
                (Self::All { bytes: *bytes, clients: 1 }, alone)
            }
            Self::Nested(nested) if own < nested.len() => {
                (Self::Nested(vec![nested[own].clone()]), alone)
            }
            Self::List(lists) if own < lists.len() => (Self::List(vec![lists[own].clone()]), alone),
            Self::Parts(parts) if own < parts.len() => {
                (Self::Parts(vec![parts[own].clone()]), alone)
            }
            whole => (whole.clone(), client),
        }
    }

    /// The smallest range of the file that holds every byte of `client`; empty without any.
    pub fn extent_of(&self, client: ClientId) -> ByteRange {
        let owned = Owned::by(self, client);
        match (owned.first_from(0), owned.end()) {
            (Some(start), Some(end)) => ByteRange::new(start, end),
            _ => ByteRange::new(0, 0),
        }
    }

    /// The blocks that hold a byte of `client`, ascending: all of them, or those on one disk. A
    /// block elsewhere is stepped over with all that follows it up to the next block on that disk,
    /// so a walk takes at most two steps for each block of the disk, and one for each of the part.
    pub fn blocks_of<'a>(
        &'a self,
        client: ClientId,
        stripe: &Stripe,
        on: Option<(ServerId, DiskId)>,
    ) -> impl Iterator<Item = u64> + Clone + use<'a> {
        BlocksOf { owned: Owned::by(self, client), stripe: stripe.clone(), on, position: 0 }
    }

    /// The servers that have a block of `client`, ascending. A part that is spread thinly over
    /// [`BLOCKS_LOOKED_AT_MAX`] blocks and more may name some that have none.
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

/// What one client owns, to ask for the next byte of it.
#[derive(Clone, Debug)]
enum Owned<'a> {
    Footprint(Footprint),
    List(&'a [ListEntry]),
    Part(Option<&'a OwnPart>),
}

impl<'a> Owned<'a> {
    fn by(access: &'a Access, client: ClientId) -> Self {
        match access {
            Access::List(lists) => {
                Self::List(lists.get(client.0 as usize).map_or(&[][..], Vec::as_slice))
            }
            Access::Parts(parts) => Self::Part(parts.get(client.0 as usize)),
            _ => Self::Footprint(access.footprint(client)),
        }
    }

    /// The first byte at or behind `position`.
    fn first_from(&self, position: u64) -> Option<u64> {
        match self {
            Self::Footprint(footprint) => footprint.first_from(position),
            Self::List(entries) => list::first_from(entries, position),
            Self::Part(part) => part.and_then(|part| part.first_from(position)),
        }
    }

    /// One past the last byte.
    fn end(&self) -> Option<u64> {
        match self {
            Self::Footprint(footprint) => footprint.end(),
            Self::List(entries) => list::file_extent(entries).map(|extent| extent.end),
            Self::Part(part) => part.and_then(|part| part.end()),
        }
    }
}

/// The blocks of one client. See [`Access::blocks_of`].
#[derive(Clone, Debug)]
struct BlocksOf<'a> {
    owned: Owned<'a>,
    stripe: Stripe,
    on: Option<(ServerId, DiskId)>,
    /// Where to look next, in bytes of the file.
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
