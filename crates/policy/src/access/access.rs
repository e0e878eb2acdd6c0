//! Access: a rule that maps bytes of a file to offsets in the memories of clients.
//!
//! Invariants of a valid access:
//! - All bytes lie inside the file.
//! - The bytes of one client do not overlap, neither in the file nor in its memory, but in a union
//!   of nests ([`OwnPart`]).
//! - No answer costs more time than its length. Exception: to find the owners of a range, an
//!   [`Access::Parts`] looks at every client once.

use super::chunks::{Chunk, Chunks};
use super::coalesce::Coalesce;
use super::coordinates::ClientsIn;
use super::distribution::Distribution;
use super::error::AccessError;
use super::footprint::Footprint;
use super::limits::{BYTES_MAX, CLIENTS_MAX};
use super::list::ListEntry;
use super::nested::Nested;
use super::own_part::{OwnPart, OwnPieces};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use units::{ByteRange, ClientId, PieceRun};

/// Mapping from bytes of a file to offsets in the memories of clients.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Access {
    /// Every client has the whole file, at offset 0 of its memory.
    All {
        /// Bytes of the file, from its start.
        bytes: u64,
        /// Number of clients.
        clients: u32,
    },
    /// Array distributed over a grid of clients.
    Distribution(Distribution),
    /// Parts that the clients describe by themselves, by rank.
    Parts(Vec<OwnPart>),
}

impl Access {
    /// Returns the access in which each client, by rank, has the pieces of one nest.
    pub fn nested(nests: Vec<Nested>) -> Self {
        Self::Parts(nests.into_iter().map(|nest| OwnPart::Nested(vec![nest])).collect())
    }

    /// Returns the access in which each client, by rank, has the pieces of a list.
    pub fn lists(lists: Vec<Vec<ListEntry>>) -> Self {
        Self::Parts(lists.into_iter().map(OwnPart::List).collect())
    }

    /// Refuses an access that exceeds a file of `file_bytes`, has no meaning, or exceeds a limit.
    ///
    /// Nested levels and list entries must ascend in the file without overlap, even for reads,
    /// because servers walk the file once, forwards.
    pub fn validate(&self, file_bytes: u64) -> Result<(), AccessError> {
        if file_bytes > BYTES_MAX {
            return Err(AccessError::FileTooLarge { file_bytes });
        }
        let clients = match self {
            Self::All { clients, .. } => *clients as usize,
            Self::Distribution(distribution) => distribution.clients as usize,
            Self::Parts(parts) => parts.len(),
        };
        if clients == 0 || clients > CLIENTS_MAX as usize {
            return Err(AccessError::Clients { clients });
        }
        match self {
            Self::All { bytes, .. } if *bytes > file_bytes => {
                Err(AccessError::AllTooLarge { bytes: *bytes, file_bytes })
            }
            Self::All { .. } => Ok(()),
            Self::Distribution(distribution) => distribution.validate(file_bytes),
            Self::Parts(parts) => {
                let mut parts = (0..).map(ClientId).zip(parts);
                parts.try_for_each(|(client, part)| part.validate(client, file_bytes))
            }
        }
    }

    /// Validates as [`Access::validate`], and refuses that several clients write the same bytes by
    /// an [`Access::All`].
    ///
    /// Parts that overlap are no error, as in MPI: the data of either client is written. To find
    /// them can cost as much as the transfer.
    pub fn validate_write(&self, file_bytes: u64) -> Result<(), AccessError> {
        self.validate(file_bytes)?;
        match self {
            Self::All { bytes, clients } if *bytes > 0 && *clients > 1 => {
                let (first, second) = (ClientId(0), ClientId(1));
                Err(AccessError::SharedByte { first, second, offset: 0 })
            }
            Self::All { .. } | Self::Distribution(_) | Self::Parts(_) => Ok(()),
        }
    }

    /// True when two pieces of a checked write may own the same byte. Then the sum of their bytes
    /// does not show if a range is covered.
    pub fn may_overlap(&self) -> bool {
        match self {
            Self::All { .. } | Self::Distribution(_) => false,
            Self::Parts(parts) => parts.len() > 1 || parts.iter().any(OwnPart::may_overlap),
        }
    }

    /// Returns the access in which each client, by rank, has the part that it describes. If the
    /// parts amount to one rule for all clients, the access is that rule.
    pub fn of_parts(parts: Vec<OwnPart>) -> Self {
        match one_distribution(&parts) {
            Some(distribution) => Self::Distribution(distribution.clone()),
            None => Self::Parts(parts),
        }
    }

    /// Returns the part of `client`, as the client describes it by itself.
    pub fn own_part(&self, client: ClientId) -> OwnPart {
        match self {
            Self::All { bytes, clients } if client.0 < *clients => OwnPart::contiguous(0, *bytes),
            Self::All { .. } => OwnPart::NOTHING,
            Self::Distribution(distribution) => {
                OwnPart::Dealt { distribution: distribution.clone(), client, file_offset: 0 }
            }
            Self::Parts(parts) => of(parts, client).cloned().unwrap_or(OwnPart::NOTHING),
        }
    }

    /// Returns the part of every client, by rank, as the client describes it by itself.
    pub fn into_parts(self) -> Vec<OwnPart> {
        match self {
            Self::Parts(parts) => parts,
            rule => (0..rule.clients()).map(|client| rule.own_part(ClientId(client))).collect(),
        }
    }

    /// Number of clients, including clients that own nothing.
    pub fn clients(&self) -> u32 {
        match self {
            Self::All { clients, .. } => *clients,
            Self::Distribution(distribution) => distribution.clients,
            Self::Parts(parts) => parts.len() as u32,
        }
    }

    /// Number of dimensions that are distributed over several clients. It is the number of
    /// divisions that finding the place of a piece takes. For nested strides it is the number of
    /// levels of the deepest nest, and 1 for a list.
    pub fn dealt_dimensions(&self) -> u32 {
        match self {
            Self::All { .. } => 0,
            Self::Distribution(distribution) => {
                distribution.grid.iter().filter(|clients| **clients > 1).count() as u32
            }
            Self::Parts(parts) => parts.iter().map(OwnPart::depth).max().unwrap_or(0),
        }
    }

    /// Required size of the memory of `client`, in bytes; 0 for a client that owns nothing.
    pub fn memory_bytes(&self, client: ClientId) -> u64 {
        match self {
            Self::All { .. } | Self::Distribution(_) => self.footprint(client).bytes(),
            Self::Parts(parts) => of(parts, client).map_or(0, OwnPart::memory_bytes),
        }
    }

    /// Smallest range of the file that has every byte of the access; empty if there are none.
    pub fn file_extent(&self) -> ByteRange {
        match self {
            Self::All { bytes, .. } => ByteRange::new(0, *bytes),
            Self::Distribution(distribution) => ByteRange::new(0, distribution.bytes()),
            Self::Parts(parts) => hull(parts.iter().filter_map(OwnPart::file_extent)),
        }
    }

    /// Clients that own a byte in `range`, ascending. For an [`Access::Distribution`], some
    /// neighbours that own none may be among them. Takes time for the clients listed.
    pub fn clients_in(&self, range: ByteRange) -> impl Iterator<Item = ClientId> + '_ {
        match self {
            Self::All { bytes, clients } => {
                let meets = !range.intersect(ByteRange::new(0, *bytes)).is_empty();
                ClientsOf::Counted(0..if meets { *clients } else { 0 })
            }
            Self::Distribution(distribution) => ClientsOf::Grid(distribution.clients_in(range)),
            Self::Parts(_) => ClientsOf::Searched { access: self, range, left: 0..self.clients() },
        }
    }

    /// Pieces of `client` in `range`, ascending: exactly its bytes there, each once.
    ///
    /// Offsets are absolute in the file. Neighbouring runs that continue each other are joined: an
    /// 8-byte cyclic row is one run. Finding the first run takes time for the dimensions, or for
    /// the logarithm of the length of a list, but not for the bytes before `range`.
    pub fn pieces(
        &self,
        client: ClientId,
        range: ByteRange,
    ) -> impl Iterator<Item = PieceRun> + Clone + '_ {
        Coalesce::new(self.raw_pieces(client, range))
    }

    /// Number of bytes that `client` owns in `range`.
    pub fn count_bytes(&self, client: ClientId, range: ByteRange) -> u64 {
        match self {
            Self::Parts(parts) => of(parts, client).map_or(0, |part| part.count_bytes(range)),
            Self::All { .. } | Self::Distribution(_) => self.footprint(client).count_bytes(range),
        }
    }

    /// Largest contiguous pieces of `client` in the whole file, in file order. A piece is
    /// contiguous in the file and in memory. An ordinary program requests these pieces one by one.
    pub fn chunks(&self, client: ClientId) -> impl Iterator<Item = Chunk> + Clone + '_ {
        Chunks::new(self.pieces(client, ByteRange::new(0, BYTES_MAX)))
    }

    fn raw_pieces(&self, client: ClientId, range: ByteRange) -> OwnPieces<'_> {
        match self {
            Self::Parts(parts) => match of(parts, client) {
                Some(part) => part.pieces(range),
                None => OwnPieces::Nests(Vec::new()),
            },
            Self::All { .. } | Self::Distribution(_) => {
                OwnPieces::Footprint(self.footprint(client).pieces(range))
            }
        }
    }

    /// Footprint of `client`. Parts have none here.
    pub(crate) fn footprint(&self, client: ClientId) -> Footprint {
        match self {
            Self::All { bytes, clients } if client.0 < *clients => {
                Footprint::contiguous(0, 0, *bytes)
            }
            Self::Distribution(distribution) => distribution.footprint(client),
            Self::All { .. } | Self::Parts(_) => Footprint::nothing(),
        }
    }
}

/// Clients of a range, found in the way that each kind of access allows.
#[derive(Clone, Debug)]
enum ClientsOf<'a> {
    Counted(Range<u32>),
    Grid(ClientsIn),
    Searched { access: &'a Access, range: ByteRange, left: Range<u32> },
}

impl Iterator for ClientsOf<'_> {
    type Item = ClientId;

    fn next(&mut self) -> Option<ClientId> {
        match self {
            Self::Counted(left) => left.next().map(ClientId),
            Self::Grid(clients) => clients.next(),
            Self::Searched { access, range, left } => left
                .map(ClientId)
                .find(|client| access.raw_pieces(*client, *range).next().is_some()),
        }
    }
}

/// Returns the array that all clients share, each with the part of its rank, if there is one.
fn one_distribution(parts: &[OwnPart]) -> Option<&Distribution> {
    let first = match parts.first()? {
        OwnPart::Dealt { distribution, .. } => distribution,
        OwnPart::Nested(_) | OwnPart::List(_) => return None,
    };
    let shares = |(rank, part): (u32, &OwnPart)| match part {
        OwnPart::Dealt { distribution, client, file_offset: 0 } => {
            distribution == first && *client == ClientId(rank)
        }
        _ => false,
    };
    let is_one = first.clients as usize == parts.len() && (0..).zip(parts).all(shares);
    is_one.then_some(first)
}

/// Returns the part of `client` in a list with one part for each client, if it has one.
fn of(parts: &[OwnPart], client: ClientId) -> Option<&OwnPart> {
    parts.get(client.0 as usize)
}

/// Smallest range that has all of `ranges`; empty when there are none.
fn hull(ranges: impl Iterator<Item = ByteRange>) -> ByteRange {
    let join = |a: ByteRange, b: ByteRange| ByteRange::new(a.start.min(b.start), a.end.max(b.end));
    ranges.reduce(join).unwrap_or(ByteRange::new(0, 0))
}
