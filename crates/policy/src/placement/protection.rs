//! Protection: what a file has against the loss of a server, and where.
//!
//! Invariants:
//! - The copy of what one server holds is on another server.
//! - A copy has the same slots on the same disk number as what it is a copy of.

use super::rows::Rows;
use super::stripe::Stripe;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use units::{FileId, ServerId};

/// Protection of the data of a file against the loss of a server.
// Stored and sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum Protection {
    /// Each byte is stored once.
    #[default]
    None,
    /// The next server of the file has a copy of what a server holds; the first one that of the
    /// last.
    Mirror,
    /// Each row of consecutive blocks has a parity block, the exclusive or of its blocks, on a
    /// further server ([`Rows`]).
    Parity {
        /// Number of blocks of a row; 0 for as many as the servers allow, at most
        /// [`ROW_BLOCKS_MAX`].
        blocks: u32,
    },
}

/// Number of blocks of a row unless more are asked for: with more, a row has more servers of which
/// two may be lost at once.
pub const ROW_BLOCKS_MAX: u32 = 8;

/// Reason for which a protection is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ProtectionError {
    /// The file lies on too few servers.
    #[error("a mirrored file needs 2 servers, and this one is on {servers}")]
    TooFewServers {
        /// Number of servers of the file.
        servers: u32,
    },
    /// A row, with its parity, is wider than the file.
    #[error(
        "rows of {blocks} blocks and a parity block need {} servers, not {servers}",
        u64::from(*blocks) + 1
    )]
    RowTooWide {
        /// Number of blocks of a row.
        blocks: u32,
        /// Number of servers of the file.
        servers: u32,
    },
    /// The blocks of the file do not go round-robin over its servers.
    #[error("parity needs a file whose blocks go round-robin over its servers")]
    NotRoundRobin,
}

/// Unknown word for a protection.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0:?} is no protection: use none, mirror, parity or parity:BLOCKS")]
pub struct UnknownProtection(String);

impl Protection {
    /// Refuses a protection that a file with this stripe cannot have.
    pub fn validate(self, stripe: &Stripe) -> Result<(), ProtectionError> {
        let servers = stripe.servers;
        match self {
            Self::Mirror if servers < 2 => Err(ProtectionError::TooFewServers { servers }),
            Self::None | Self::Mirror => Ok(()),
            Self::Parity { blocks } if servers <= blocks.max(1) => {
                Err(ProtectionError::RowTooWide { blocks: blocks.max(1), servers })
            }
            Self::Parity { .. } if stripe.map().is_some() || stripe.inode().is_some() => {
                Err(ProtectionError::NotRoundRobin)
            }
            Self::Parity { .. } => Ok(()),
        }
    }

    /// Refuses a protection that no file on this number of servers can have.
    pub fn validate_on(self, servers: u32) -> Result<(), ProtectionError> {
        self.validate(&Stripe::round_robin(1, servers, 1))
    }

    /// Rows of a file with this stripe, if it has parity.
    pub fn rows(self, stripe: &Stripe) -> Option<Rows> {
        match self {
            Self::None | Self::Mirror => None,
            Self::Parity { .. } if self.validate(stripe).is_err() => None,
            Self::Parity { blocks: 0 } => {
                Some(Rows::new(stripe, (stripe.servers - 1).min(ROW_BLOCKS_MAX)))
            }
            Self::Parity { blocks } => Some(Rows::new(stripe, blocks)),
        }
    }

    /// Least number of servers of a file.
    pub fn servers_min(self) -> u32 {
        match self {
            Self::None => 1,
            Self::Mirror => 2,
            Self::Parity { blocks } => blocks.max(1).saturating_add(1),
        }
    }

    /// True if each server of a file has an object with copies or parity of what others hold.
    pub fn is_redundant(self) -> bool {
        self != Self::None
    }

    /// Place, among the `servers` servers of a file, of the copy of what is at `place`.
    pub fn copy_of(self, place: ServerId, servers: u32) -> Option<ServerId> {
        match self {
            Self::None | Self::Parity { .. } => None,
            Self::Mirror => Some(ServerId((place.0 + 1) % servers.max(1))),
        }
    }

    /// Place, among the `servers` servers of a file, of that of which the server at `place` has the
    /// copy: the inverse of [`copy_of`](Self::copy_of).
    pub fn copied_at(self, place: ServerId, servers: u32) -> Option<ServerId> {
        match self {
            Self::None | Self::Parity { .. } => None,
            Self::Mirror => {
                let servers = servers.max(1);
                Some(ServerId((place.0 % servers + servers - 1) % servers))
            }
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => out.write_str("none"),
            Self::Mirror => out.write_str("mirror"),
            Self::Parity { blocks: 0 } => out.write_str("parity"),
            Self::Parity { blocks } => write!(out, "parity:{blocks}"),
        }
    }
}

impl FromStr for Protection {
    type Err = UnknownProtection;

    fn from_str(word: &str) -> Result<Self, UnknownProtection> {
        let unknown = || UnknownProtection(word.to_owned());
        match word {
            "none" => Ok(Self::None),
            "mirror" => Ok(Self::Mirror),
            "parity" => Ok(Self::Parity { blocks: 0 }),
            other => {
                let blocks = other.strip_prefix("parity:").ok_or_else(unknown)?;
                match blocks.parse().map_err(|_| unknown())? {
                    0 => Err(unknown()),
                    blocks => Ok(Self::Parity { blocks }),
                }
            }
        }
    }
}

/// Bit of the number of an object with copies or parity. No file has such a number.
const COPY: u64 = 1 << 63;

/// Number of the object with a copy of what another server holds of a file, or with parity of it.
pub const fn copy_object(file: FileId) -> FileId {
    FileId(file.0 | COPY)
}

/// The file of whose object this one is a copy, if it is one.
pub const fn copied_file(object: FileId) -> Option<FileId> {
    if object.0 & COPY == 0 { None } else { Some(FileId(object.0 & !COPY)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_copy_is_on_another_server() {
        for servers in 2..7 {
            let stripe = Stripe::round_robin(8, servers, 1);
            assert_eq!(Protection::Mirror.validate(&stripe), Ok(()));
            let copies: Vec<u32> = (0..servers)
                .map(|place| Protection::Mirror.copy_of(ServerId(place), servers).unwrap().0)
                .collect();
            assert!((0..servers).all(|place| copies[place as usize] != place), "{copies:?}");
            for (place, copy) in (0..servers).zip(&copies) {
                let copied = Protection::Mirror.copied_at(ServerId(*copy), servers);
                assert_eq!(copied, Some(ServerId(place)));
            }
            let mut sorted = copies.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..servers).collect::<Vec<_>>(), "each has one copy");
        }
        assert!(Protection::Mirror.validate(&Stripe::round_robin(8, 1, 1)).is_err());
        assert_eq!(Protection::None.copy_of(ServerId(0), 1), None);
    }

    #[test]
    fn a_row_is_no_wider_than_the_file() {
        let on = |servers| Stripe::round_robin(8, servers, 1);
        let (all, four) = (Protection::Parity { blocks: 0 }, Protection::Parity { blocks: 4 });
        assert_eq!(all.validate(&on(2)), Ok(()));
        let wide = |blocks, servers| Err(ProtectionError::RowTooWide { blocks, servers });
        assert_eq!(all.validate(&on(1)), wide(1, 1));
        assert_eq!(four.validate(&on(4)), wide(4, 4));
        assert_eq!((all.servers_min(), four.servers_min()), (2, 5));
        let blocks = |of: Protection, servers| of.rows(&on(servers)).map(|rows| rows.blocks(0).end);
        assert_eq!((blocks(all, 2), blocks(all, 5), blocks(all, 40)), (Some(1), Some(4), Some(8)));
        assert_eq!((blocks(four, 5), blocks(four, 40), blocks(four, 4)), (Some(4), Some(4), None));
        assert_eq!(all.validate(&Stripe::in_place(8, 3, 1)), Err(ProtectionError::NotRoundRobin));
    }

    #[test]
    fn words_and_objects_are_inverse() {
        let parities = [0, 1, 9].map(|blocks| Protection::Parity { blocks });
        for protection in [Protection::None, Protection::Mirror].into_iter().chain(parities) {
            assert_eq!(protection.to_string().parse(), Ok(protection));
        }
        for wrong in ["copies", "parity:", "parity:0", "parity:-1", "parity:two"] {
            assert!(wrong.parse::<Protection>().is_err(), "{wrong}");
        }
        let file = FileId(77);
        assert_eq!(copied_file(copy_object(file)), Some(file));
        assert_eq!(copied_file(file), None);
    }
}
