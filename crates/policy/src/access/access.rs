//! Access: a rule that maps bytes of a file to offsets in the memories of clients.
//!
//! Invariants of a valid access:
//! - All bytes lie inside the file.
//! - The bytes of one client never overlap, neither in the file nor in its memory.
//! - No answer costs more time than its length. Exception: to find the owners of a range, an
//!   [`Access::Nested`], [`Access::List`] or [`Access::Parts`] looks at every client once.

use super::chunks::{Chunk, Chunks};
use super::coalesce::Coalesce;
use super::coordinates::ClientsIn;
use super::distribution::Distribution;
use super::error::AccessError;
use super::footprint::{Footprint, FootprintPieces};
use super::limits::{BYTES_MAX, CLIENTS_MAX, LIST_ENTRIES_MAX};
use super::list::{self, ListEntry, ListPieces};
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
    /// Nested strides, one nest for each client.
    Nested(Vec<Nested>),
    /// List of pieces for each client.
    List(Vec<Vec<ListEntry>>),
    /// Parts that the clients describe by themselves, by rank.
    Parts(Vec<OwnPart>),
}

impl Access {
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
            Self::Nested(nested) => nested.len(),
            Self::List(lists) => lists.len(),
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
            Self::Nested(nested) => {
                each_client(nested, |client, nested| nested.validate(client, file_bytes))
            }
            Self::List(lists) => {
                let entries = lists.iter().map(Vec::len).sum();
                if entries > LIST_ENTRIES_MAX {
                    return Err(AccessError::Entries { entries });
                }
                each_client(lists, |client, list| list::validate(client, list, file_bytes))
            }
            Self::Parts(parts) => {
                each_client(parts, |client, part| part.validate(client, file_bytes))
            }
        }
    }

    /// Validates as [`Access::validate`], and refuses an access in which two clients own the same
    /// byte.
    ///
    /// Overlaps between clients of an [`Access::Nested`] or an [`Access::Parts`] are not found,
    /// since an exact check can cost as much as the transfer. The data of either client may then be
    /// written.
    pub fn validate_write(&self, file_bytes: u64) -> Result<(), AccessError> {
        self.validate(file_bytes)?;
        match self {
            Self::All { bytes, clients } if *bytes > 0 && *clients > 1 => {
                let (first, second) = (ClientId(0), ClientId(1));
                Err(AccessError::SharedByte { first, second, offset: 0 })
            }
            Self::All { .. } | Self::Distribution(_) | Self::Nested(_) | Self::Parts(_) => Ok(()),
            Self::List(lists) => list::validate_disjoint(lists),
        }
    }

    /// Returns the access in which each client, by rank, has the part that it describes. If the
    /// parts amount to one rule for all clients, the access is that rule.
    pub fn of_parts(parts: Vec<OwnPart>) -> Self {
        let is_nest = |part: &OwnPart| matches!(part, OwnPart::Nested(nests) if nests.len() <= 1);
        if let Some(distribution) = one_distribution(&parts) {
            return Self::Distribution(distribution.clone());
        }
        if parts.iter().all(is_nest) {
            let nothing =
                Nested { file_offset: 0, memory_offset: 0, length: 0, levels: Vec::new() };
            let nest_of = |part| match part {
                OwnPart::Nested(nests) => nests.into_iter().next(),
                OwnPart::Dealt { .. } | OwnPart::List(_) => None,
            };
            let nests = parts.into_iter().map(|part| nest_of(part).unwrap_or(nothing.clone()));
            return Self::Nested(nests.collect());
        }
        Self::Parts(parts)
    }

    /// Returns the part of `client`, as the client describes it by itself.
    pub fn own_part(&self, client: ClientId) -> OwnPart {
        match self {
            Self::All { bytes, clients } if client.0 < *clients => OwnPart::contiguous(0, *bytes),
            Self::All { .. } => OwnPart::NOTHING,
            Self::Distribution(distribution) => {
                OwnPart::Dealt { distribution: distribution.clone(), client, file_offset: 0 }
            }
            Self::Nested(nests) => {
                OwnPart::Nested(of(nests, client).cloned().into_iter().collect())
            }
            Self::List(lists) => OwnPart::List(of(lists, client).cloned().unwrap_or_default()),
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
            Self::Nested(nested) => nested.len() as u32,
            Self::List(lists) => lists.len() as u32,
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
            Self::Nested(nested) => {
                nested.iter().map(|nested| nested.levels.len() as u32).max().unwrap_or(0)
            }
            Self::List(_) => 1,
            Self::Parts(parts) => parts.iter().map(OwnPart::depth).max().unwrap_or(0),
        }
    }

    /// Required size of the memory of `client`, in bytes; 0 for a client that owns nothing.
    pub fn memory_bytes(&self, client: ClientId) -> u64 {
        match self {
            Self::All { .. } | Self::Distribution(_) => self.footprint(client).bytes(),
            Self::Nested(nested) => of(nested, client).map_or(0, Nested::memory_bytes),
            Self::List(lists) => of(lists, client).map_or(0, |list| list::memory_bytes(list)),
            Self::Parts(parts) => of(parts, client).map_or(0, OwnPart::memory_bytes),
        }
    }

    /// Smallest range of the file that has every byte of the access; empty if there are none.
    pub fn file_extent(&self) -> ByteRange {
        match self {
            Self::All { bytes, .. } => ByteRange::new(0, *bytes),
            Self::Distribution(distribution) => ByteRange::new(0, distribution.bytes()),
            Self::Nested(nested) => hull(nested.iter().filter_map(Nested::file_extent)),
            Self::List(lists) => hull(lists.iter().filter_map(|list| list::file_extent(list))),
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
            Self::Nested(_) | Self::List(_) | Self::Parts(_) => {
                ClientsOf::Searched { access: self, range, left: 0..self.clients() }
            }
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
            Self::List(lists) => {
                let entries = of(lists, client).map_or(&[][..], Vec::as_slice);
                list::pieces(entries, range).map(|piece| piece.length).sum()
            }
            Self::Parts(parts) => of(parts, client).map_or(0, |part| part.count_bytes(range)),
            _ => self.footprint(client).count_bytes(range),
        }
    }

    /// Largest contiguous pieces of `client` in the whole file, in file order. A piece is
    /// contiguous in the file and in memory. An ordinary program requests these pieces one by one.
    pub fn chunks(&self, client: ClientId) -> impl Iterator<Item = Chunk> + Clone + '_ {
        Chunks::new(self.pieces(client, ByteRange::new(0, BYTES_MAX)))
    }

    fn raw_pieces(&self, client: ClientId, range: ByteRange) -> RawPieces<'_> {
        match self {
            Self::List(lists) => {
                let entries = of(lists, client).map_or(&[][..], Vec::as_slice);
                RawPieces::List(list::pieces(entries, range))
            }
            Self::Parts(parts) => {
                let own = of(parts, client).map(|part| part.pieces(range));
                RawPieces::Own(own.unwrap_or(OwnPieces::Nests(Vec::new())))
            }
            _ => RawPieces::Footprint(self.footprint(client).pieces(range)),
        }
    }

    /// Footprint of `client`. Lists and parts have none.
    pub(crate) fn footprint(&self, client: ClientId) -> Footprint {
        match self {
            Self::All { bytes, clients } if client.0 < *clients => {
                Footprint::contiguous(0, 0, *bytes)
            }
            Self::Distribution(distribution) => distribution.footprint(client),
            Self::Nested(nested) => {
                of(nested, client).map_or_else(Footprint::nothing, Nested::footprint)
            }
            Self::All { .. } | Self::List(_) | Self::Parts(_) => Footprint::nothing(),
        }
    }
}

/// Pieces of one client before neighbours are joined.
#[derive(Clone, Debug)]
enum RawPieces<'a> {
    Footprint(FootprintPieces),
    List(ListPieces<'a>),
    Own(OwnPieces<'a>),
}

impl Iterator for RawPieces<'_> {
    type Item = PieceRun;

    fn next(&mut self) -> Option<PieceRun> {
        match self {
            Self::Footprint(pieces) => pieces.next(),
            Self::List(pieces) => pieces.next(),
            Self::Own(pieces) => pieces.next(),
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
fn of<T>(parts: &[T], client: ClientId) -> Option<&T> {
    parts.get(client.0 as usize)
}

/// Checks the part of every client until one fails.
fn each_client<T>(
    parts: &[T],
    check: impl Fn(ClientId, &T) -> Result<(), AccessError>,
) -> Result<(), AccessError> {
    (0..).map(ClientId).zip(parts).try_for_each(|(client, part)| check(client, part))
}

/// Smallest range that has all of `ranges`; empty when there are none.
fn hull(ranges: impl Iterator<Item = ByteRange>) -> ByteRange {
    let join = |a: ByteRange, b: ByteRange| ByteRange::new(a.start.min(b.start), a.end.max(b.end));
    ranges.reduce(join).unwrap_or(ByteRange::new(0, 0))
}
