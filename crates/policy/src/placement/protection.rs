//! Protection: what of a file is stored twice, and where.
//!
//! Invariants:
//! - The copy of what one server holds is on another server.
//! - A copy has the same slots on the same disk number as what it is a copy of.

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
}

/// Reason for which a protection is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ProtectionError {
    /// The file lies on too few servers.
    #[error("a mirrored file needs 2 servers, and this one is on {servers}")]
    TooFewServers {
        /// Number of servers of the file.
        servers: u32,
    },
}

/// Unknown word for a protection.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0:?} is no protection: use none or mirror")]
pub struct UnknownProtection(String);

impl Protection {
    /// Refuses a protection that a file on `servers` servers cannot have.
    pub fn validate(self, servers: u32) -> Result<(), ProtectionError> {
        match self {
            Self::Mirror if servers < 2 => Err(ProtectionError::TooFewServers { servers }),
            Self::None | Self::Mirror => Ok(()),
        }
    }

    /// Place, among the `servers` servers of a file, of the copy of what is at `place`.
    pub fn copy_of(self, place: ServerId, servers: u32) -> Option<ServerId> {
        match self {
            Self::None => None,
            Self::Mirror => Some(ServerId((place.0 + 1) % servers.max(1))),
        }
    }

    /// Place, among the `servers` servers of a file, of that of which the server at `place` has the
    /// copy: the inverse of [`copy_of`](Self::copy_of).
    pub fn copied_at(self, place: ServerId, servers: u32) -> Option<ServerId> {
        match self {
            Self::None => None,
            Self::Mirror => {
                let servers = servers.max(1);
                Some(ServerId((place.0 % servers + servers - 1) % servers))
            }
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::None => "none",
            Self::Mirror => "mirror",
        })
    }
}

impl FromStr for Protection {
    type Err = UnknownProtection;

    fn from_str(word: &str) -> Result<Self, UnknownProtection> {
        match word {
            "none" => Ok(Self::None),
            "mirror" => Ok(Self::Mirror),
            other => Err(UnknownProtection(other.to_owned())),
        }
    }
}

/// Bit of the number of an object that is a copy. No file has such a number.
const COPY: u64 = 1 << 63;

/// Number of the object with a copy of what another server holds of a file.
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
            assert_eq!(Protection::Mirror.validate(servers), Ok(()));
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
        assert!(Protection::Mirror.validate(1).is_err());
        assert_eq!(Protection::None.copy_of(ServerId(0), 1), None);
    }

    #[test]
    fn words_and_objects_are_inverse() {
        for protection in [Protection::None, Protection::Mirror] {
            assert_eq!(protection.to_string().parse(), Ok(protection));
        }
        assert!("parity".parse::<Protection>().is_err());
        let file = FileId(77);
        assert_eq!(copied_file(copy_object(file)), Some(file));
        assert_eq!(copied_file(file), None);
    }
}
