//! An access: which bytes of a file go to which offset of which client's memory, as a rule.
//!
//! Invariants of a valid access: everything lies inside the file; the bytes of one client never
//! overlap, in the file or in its memory; no answer costs more than its length, except that asking
//! a [`Access::Nested`] or [`Access::List`] who owns a range looks at every client once.

use crate::chunks::{Chunk, Chunks};
use crate::coalesce::Coalesce;
use crate::coordinates::ClientsIn;
use crate::distribution::{DIMENSIONS_MAX, Dimension, Distribution};
use crate::footprint::{Footprint, FootprintPieces};
use crate::list::{self, LIST_ENTRIES_MAX, ListEntry, ListPieces};
use crate::nested::{LEVELS_MAX, Nested};
use crate::own_part::{OwnPart, OwnPieces};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use thiserror::Error;
use units::{ByteRange, ClientId, PieceRun};

/// The largest number of clients of one access.
pub const CLIENTS_MAX: u32 = 1 << 20;

/// No file and no client's memory is larger than this, in bytes (4 EiB): sums and doubles of
/// offsets then fit in 64 bits.
pub const BYTES_MAX: u64 = 1 << 62;

/// Which bytes of the file go to which offset of which client's memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Access {
    /// Every client has the whole file, at offset 0 of its memory.
    All {
        /// Bytes of the file, from its start.
        bytes: u64,
        /// Number of clients.
        clients: u32,
    },
    /// An array dealt to a grid of clients.
    Distribution(Distribution),
    /// Nested strides, one for each client.
    Nested(Vec<Nested>),
    /// A list of pieces for each client.
    List(Vec<Vec<ListEntry>>),
    /// What each client says of itself.
    Parts(Vec<OwnPart>),
}

/// Why an access is refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AccessError {
    /// There are no clients, or more than [`CLIENTS_MAX`].
    #[error("an access by {clients} clients is not possible: use 1 to {CLIENTS_MAX}")]
    Clients {
        /// The number that was asked for.
        clients: usize,
    },
    /// The file is larger than [`BYTES_MAX`].
    #[error("a file of {file_bytes} bytes is not possible: the largest has {BYTES_MAX}")]
    FileTooLarge {
        /// Its size in bytes.
        file_bytes: u64,
    },
    /// A whole-file access is longer than the file.
    #[error("an access to {bytes} bytes leaves a file of {file_bytes} bytes")]
    AllTooLarge {
        /// Bytes of the access.
        bytes: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// An array has no dimension, or more than [`DIMENSIONS_MAX`].
    #[error("an array of {dimensions} dimensions is not possible: use 1 to {DIMENSIONS_MAX}")]
    Dimensions {
        /// The number that was asked for.
        dimensions: usize,
    },
    /// Shape, grid and dimensions do not speak of the same array.
    #[error(
        "{dimensions} dimensions are distributed, but the shape has {shape} and the grid {grid}"
    )]
    Ranks {
        /// Number of rules.
        dimensions: usize,
        /// Number of extents.
        shape: usize,
        /// Number of grid extents.
        grid: usize,
    },
    /// A record has no bytes.
    #[error("a record of 0 bytes is not possible: use at least 1")]
    EmptyRecord,
    /// An array has no record along a dimension.
    #[error("dimension {dimension} of the array has extent 0: use at least 1")]
    EmptyDimension {
        /// The dimension, counted from the slowest.
        dimension: usize,
    },
    /// A dimension is dealt in blocks of no index.
    #[error("dimension {dimension} is CYCLIC(0): use CYCLIC(1) or more")]
    CyclicZero {
        /// The dimension, counted from the slowest.
        dimension: usize,
    },
    /// A dimension has no client, or several where it is not distributed.
    #[error(
        "dimension {dimension} is {rule:?} over {clients} clients: \
         a grid needs at least 1, and exactly 1 for NONE"
    )]
    GridExtent {
        /// The dimension, counted from the slowest.
        dimension: usize,
        /// Its rule.
        rule: Dimension,
        /// Clients along it.
        clients: u32,
    },
    /// The grid has more places than there are clients, or there are more than [`CLIENTS_MAX`].
    #[error("a grid of {grid:?} does not fit {clients} clients (at most {CLIENTS_MAX})")]
    Grid {
        /// Clients along each dimension.
        grid: Vec<u32>,
        /// Clients in all.
        clients: u32,
    },
    /// The array is larger than the file.
    #[error(
        "an array of {shape:?} records of {record_bytes} bytes leaves a file of {file_bytes} bytes"
    )]
    ArrayTooLarge {
        /// Records along each dimension.
        shape: Vec<u64>,
        /// Bytes in a record.
        record_bytes: u64,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// A nested access is too deep.
    #[error("{client} has {levels} nested levels: use at most {LEVELS_MAX}")]
    Levels {
        /// Whose access it is.
        client: ClientId,
        /// The number of levels.
        levels: usize,
    },
    /// A list is too long.
    #[error("the lists have {entries} entries: use at most {LIST_ENTRIES_MAX}")]
    Entries {
        /// The number of entries of all clients.
        entries: usize,
    },
    /// A list entry has no bytes.
    #[error("entry {entry} of {client} has 0 bytes: leave it out")]
    EmptyEntry {
        /// Whose list it is.
        client: ClientId,
        /// The number of the entry.
        entry: usize,
    },
    /// An access reaches behind the end of the file.
    #[error("entry {entry} of {client} leaves a file of {file_bytes} bytes")]
    OutsideFile {
        /// Whose access it is.
        client: ClientId,
        /// The number of the entry or level.
        entry: usize,
        /// Bytes of the file.
        file_bytes: u64,
    },
    /// An entry or level starts before the one in front of it ends.
    #[error("entry {entry} of {client} runs back in the file: entries must ascend and not overlap")]
    FileOverlap {
        /// Whose access it is.
        client: ClientId,
        /// The number of the entry or level.
        entry: usize,
    },
    /// Two pieces have a byte of memory in common.
    #[error("entry {entry} of {client} overlaps another in memory")]
    MemoryOverlap {
        /// Whose access it is.
        client: ClientId,
        /// The number of the entry, or of the level in the order of strides in memory.
        entry: usize,
    },
    /// A client would need more memory than [`BYTES_MAX`].
    #[error("{client} would need more than {BYTES_MAX} bytes of memory")]
    MemoryTooLarge {
        /// The client.
        client: ClientId,
    },
    /// Two clients would write the same byte.
    #[error("{first} and {second} would both write byte {offset}: writes must not overlap")]
    SharedByte {
        /// One of them.
        first: ClientId,
        /// The other.
        second: ClientId,
        /// A byte of the file that both own.
        offset: u64,
    },
}

impl Access {
    /// Refuses an access that leaves a file of `file_bytes`, has no meaning, or breaks a limit.
    ///
    /// Nested levels and list entries must ascend in the file without overlap, for reads too:
    /// servers walk the file once, forwards.
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

    /// [`Access::validate`], and refuses an access in which two clients own the same byte.
    ///
    /// Not checked: whether different clients of a [`Access::Nested`] or of [`Access::Parts`] overlap
    /// (an exact answer can cost as much as the transfer). Which of them wins is then undefined.
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

    /// The access in which each client, by rank, has the part that it says: as one rule for all of
    /// them where their parts amount to one.
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

    /// Number of clients, with those that own nothing.
    pub fn clients(&self) -> u32 {
        match self {
            Self::All { clients, .. } => *clients,
            Self::Distribution(distribution) => distribution.clients,
            Self::Nested(nested) => nested.len() as u32,
            Self::List(lists) => lists.len() as u32,
            Self::Parts(parts) => parts.len() as u32,
        }
    }

    /// Number of dimensions in which the file is dealt to several clients: how many divisions it
    /// takes to find the place of a piece. For an access without dimensions, the levels of its
    /// deepest nest, or 1 for a list.
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

    /// The size the memory of `client` must have, in bytes; 0 for a client that owns nothing.
    pub fn memory_bytes(&self, client: ClientId) -> u64 {
        match self {
            Self::All { .. } | Self::Distribution(_) => self.footprint(client).bytes(),
            Self::Nested(nested) => of(nested, client).map_or(0, Nested::memory_bytes),
            Self::List(lists) => of(lists, client).map_or(0, |list| list::memory_bytes(list)),
            Self::Parts(parts) => of(parts, client).map_or(0, OwnPart::memory_bytes),
        }
    }

    /// The smallest range of the file that holds every byte of the access; empty without any.
    pub fn file_extent(&self) -> ByteRange {
        match self {
            Self::All { bytes, .. } => ByteRange::new(0, *bytes),
            Self::Distribution(distribution) => ByteRange::new(0, distribution.bytes()),
            Self::Nested(nested) => hull(nested.iter().filter_map(Nested::file_extent)),
            Self::List(lists) => hull(lists.iter().filter_map(|list| list::file_extent(list))),
            Self::Parts(parts) => hull(parts.iter().filter_map(OwnPart::file_extent)),
        }
    }

    /// Every client that owns a byte in `range`, ascending. For a [`Access::Distribution`] some
    /// neighbours that own none may be among them; the cost is that of the clients listed.
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

    /// The pieces of `client` in `range`, ascending: exactly its bytes there, each once.
    ///
    /// Offsets are absolute in the file. Neighbouring runs that continue one another are joined: an
    /// 8-byte cyclic row is one run. Finding the first takes time for the dimensions (a list: for
    /// the logarithm of its length), not for what lies before `range`.
    pub fn pieces(
        &self,
        client: ClientId,
        range: ByteRange,
    ) -> impl Iterator<Item = PieceRun> + Clone + '_ {
        Coalesce::new(self.raw_pieces(client, range))
    }

    /// How many bytes `client` owns in `range`.
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

    /// The pieces of `client` in the whole file that are contiguous in the file and in memory, as
    /// long as they can be, in file order: what an ordinary program would ask for one by one.
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

    /// What `client` owns, folded. Lists and parts have no footprint.
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

/// The pieces of one client before neighbours are joined.
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

/// The clients of a range, found in the way each kind of access allows.
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

/// The array that all clients share, each with the part of its rank, if there is one.
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

/// The part of `client` in a vector with one part a client, if it has one.
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

/// The smallest range that holds all of `ranges`; empty when there are none.
fn hull(ranges: impl Iterator<Item = ByteRange>) -> ByteRange {
    let join = |a: ByteRange, b: ByteRange| ByteRange::new(a.start.min(b.start), a.end.max(b.end));
    ranges.reduce(join).unwrap_or(ByteRange::new(0, 0))
}
