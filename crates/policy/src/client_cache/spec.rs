//! Parameters of a client's cache, and the kinds of cooperation, with their names.

use crate::choice::{self, Choice, help_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Largest number of lines of one client's cache.
pub const LINES_MAX: u32 = 1 << 24;

/// Placement of lines in a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Organisation {
    /// Each line has one place.
    DirectMapped,
    /// Each line has this many places.
    Ways(u32),
    /// A line may have any place.
    #[default]
    FullyAssociative,
}

/// Handling of a write of bytes that the cache holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WritePolicy {
    /// The server gets the bytes at once.
    #[default]
    Through,
    /// The server gets the bytes when the line is evicted, flushed, or needed by another client.
    Back,
}

/// Handling of a write of bytes that the cache does not hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WriteMiss {
    /// The line comes into the cache.
    Allocate,
    /// The bytes go to the server only.
    #[default]
    Around,
}

/// Cooperation of the caches of all clients and servers.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Cooperation {
    /// None.
    #[default]
    Base,
    /// A server forwards a request to a client that holds the line.
    GreedyForwarding,
    /// Servers manage a part of each client's cache, without duplicates.
    CentrallyCoordinated,
    /// A line has one copy, which moves to its last reader (PIOSIM 1997).
    GloballyManaged,
    /// The last copy of a line goes to a random client at its eviction, a limited number of times
    /// (Dahlin, Wang, Anderson and Patterson, OSDI 1994).
    NChance,
}

/// Parameters of a client's cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientCacheSpec {
    /// Number of lines.
    pub lines: u32,
    /// Number of bytes of a line; 0 for those of a block of the file.
    pub line_bytes: u64,
    /// Placement of lines.
    pub organisation: Organisation,
    /// Writes of bytes that the cache holds.
    pub write: WritePolicy,
    /// Writes of other bytes.
    pub write_miss: WriteMiss,
    /// Cooperation with other caches.
    pub cooperation: Cooperation,
    /// Share of the cache that servers manage under [`Cooperation::CentrallyCoordinated`], in
    /// percent.
    pub global_percent: u32,
    /// Number of times that an unused last copy moves under [`Cooperation::NChance`].
    pub chances: u32,
}

/// Error of parameters that make no cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ClientCacheSpecError {
    /// The number of lines is none or too large.
    #[error("a client's cache of {0} blocks is not possible: use 1 to {LINES_MAX}")]
    Lines(u32),
    /// The lines cannot be divided into sets.
    #[error("{lines} blocks cannot be divided into sets of {ways}")]
    Ways {
        /// Number of lines that the client manages itself.
        lines: u32,
        /// Number of places of each line.
        ways: u32,
    },
    /// The servers' share leaves the client nothing, or is over 100 %.
    #[error(
        "a global share of {percent} % of {lines} blocks leaves the client no block of its own"
    )]
    GlobalShare {
        /// Share in percent.
        percent: u32,
        /// Number of lines.
        lines: u32,
    },
}

impl Default for ClientCacheSpec {
    /// Fully associative cache of 128 blocks that writes through and around, without cooperation.
    /// 80 % of a coordinated cache is global and a last copy moves twice, as in OSDI 1994.
    fn default() -> Self {
        Self {
            lines: 128,
            line_bytes: 0,
            organisation: Organisation::default(),
            write: WritePolicy::default(),
            write_miss: WriteMiss::default(),
            cooperation: Cooperation::default(),
            global_percent: 80,
            chances: 2,
        }
    }
}

impl ClientCacheSpec {
    /// Checks that the parameters make a cache.
    ///
    /// # Errors
    /// If they do not.
    pub fn validate(&self) -> Result<(), ClientCacheSpecError> {
        let lines = self.lines;
        if lines == 0 || lines > LINES_MAX {
            return Err(ClientCacheSpecError::Lines(lines));
        }
        let percent = self.global_percent;
        if percent > 100 || self.local_lines() == 0 {
            return Err(ClientCacheSpecError::GlobalShare { percent, lines });
        }
        let (lines, ways) = (self.local_lines(), self.ways());
        match ways > 0 && lines.is_multiple_of(ways) {
            true => Ok(()),
            false => Err(ClientCacheSpecError::Ways { lines, ways }),
        }
    }

    /// Number of lines that servers manage.
    pub fn global_lines(&self) -> u32 {
        match self.cooperation {
            Cooperation::CentrallyCoordinated => {
                (u64::from(self.lines) * u64::from(self.global_percent.min(100)) / 100) as u32
            }
            Cooperation::Base
            | Cooperation::GreedyForwarding
            | Cooperation::GloballyManaged
            | Cooperation::NChance => 0,
        }
    }

    /// Number of lines that the client manages.
    pub fn local_lines(&self) -> u32 {
        self.lines - self.global_lines()
    }

    /// Number of places of each line in the client's own part.
    pub fn ways(&self) -> u32 {
        match self.organisation {
            Organisation::DirectMapped => 1,
            Organisation::Ways(ways) => ways,
            Organisation::FullyAssociative => self.local_lines(),
        }
    }
}

const COOPERATIONS: [Choice<Cooperation>; 5] = [
    Choice { value: Cooperation::Base, name: "base", help: "none" },
    Choice {
        value: Cooperation::GreedyForwarding,
        name: "greedy-forwarding",
        help: "a server whose cache lacks a block forwards the request to a client that holds it",
    },
    Choice {
        value: Cooperation::CentrallyCoordinated,
        name: "centrally-coordinated",
        help: "as a second level of the servers' caches, servers manage a share of each client's \
               cache, where no block is twice",
    },
    Choice {
        value: Cooperation::GloballyManaged,
        name: "globally-managed",
        help: "a block has one copy, which moves to its last reader and returns to its server's \
               cache when it is evicted (PIOSIM, 1997)",
    },
    Choice {
        value: Cooperation::NChance,
        name: "n-chance",
        help: "as greedy-forwarding, and an evicted last copy goes to another client (Dahlin and \
               others, OSDI 1994)",
    },
];

const WRITE_POLICIES: [Choice<WritePolicy>; 2] = [
    Choice {
        value: WritePolicy::Through,
        name: "through",
        help: "the server gets written bytes at once",
    },
    Choice {
        value: WritePolicy::Back,
        name: "back",
        help: "the server gets the bytes of a cached block when it is evicted or needed elsewhere",
    },
];

const WRITE_MISSES: [Choice<WriteMiss>; 2] = [
    Choice {
        value: WriteMiss::Allocate,
        name: "allocate",
        help: "a written block comes into the cache",
    },
    Choice {
        value: WriteMiss::Around,
        name: "around",
        help: "bytes of a block that is not cached go to the server only",
    },
];

/// Gives a choice its names, its help text and its conversions.
macro_rules! named {
    ($choice:ty, $table:ident, $noun:literal, $first:literal) => {
        impl $choice {
            /// Names, in the order of their listing.
            pub const WORDS: &'static [&'static str] = &choice::names(&$table);

            /// Help text that explains each name.
            pub const HELP: &'static str = help_text!($first, $table, ".");
        }

        impl fmt::Display for $choice {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.pad(choice::name_of(self, &$table))
            }
        }

        impl FromStr for $choice {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                choice::parse(word, &$table, $noun)
            }
        }
    };
}

named!(
    Cooperation,
    COOPERATIONS,
    "cooperation of caches",
    "Cooperation of the clients' caches with one another and with the servers' caches. "
);
named!(
    WritePolicy,
    WRITE_POLICIES,
    "write policy",
    "Writes of bytes of a block that the client's cache holds. "
);
named!(
    WriteMiss,
    WRITE_MISSES,
    "policy of write misses",
    "Writes of bytes of a block that the client's cache does not hold. "
);

impl fmt::Display for Organisation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DirectMapped => out.pad("1"),
            Self::Ways(ways) => out.pad(&ways.to_string()),
            Self::FullyAssociative => out.pad("full"),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: parameters that make no cache are refused, and names are read back.
    use super::*;

    #[test]
    fn impossible_caches_are_refused() {
        let spec = ClientCacheSpec::default();
        assert_eq!(spec.validate(), Ok(()));
        let none = ClientCacheSpec { lines: 0, ..spec };
        assert_eq!(none.validate(), Err(ClientCacheSpecError::Lines(0)));
        let huge = ClientCacheSpec { lines: LINES_MAX + 1, ..spec };
        assert_eq!(huge.validate(), Err(ClientCacheSpecError::Lines(LINES_MAX + 1)));
        let odd = ClientCacheSpec { organisation: Organisation::Ways(3), ..spec };
        assert_eq!(odd.validate(), Err(ClientCacheSpecError::Ways { lines: 128, ways: 3 }));
        let no_place = ClientCacheSpec { organisation: Organisation::Ways(0), ..spec };
        assert!(no_place.validate().is_err());
        let coordinated = Cooperation::CentrallyCoordinated;
        for percent in [100, 101, u32::MAX] {
            let all = ClientCacheSpec { cooperation: coordinated, global_percent: percent, ..spec };
            let expected = ClientCacheSpecError::GlobalShare { percent, lines: 128 };
            assert_eq!(all.validate(), Err(expected));
        }
        let share = ClientCacheSpec { cooperation: coordinated, ..spec };
        assert_eq!((share.global_lines(), share.local_lines()), (102, 26));
    }

    #[test]
    fn names_are_read_back() {
        for word in Cooperation::WORDS {
            assert_eq!(word.parse::<Cooperation>().unwrap().to_string(), *word);
        }
        for word in WritePolicy::WORDS {
            assert_eq!(word.parse::<WritePolicy>().unwrap().to_string(), *word);
        }
        for word in WriteMiss::WORDS {
            assert_eq!(word.parse::<WriteMiss>().unwrap().to_string(), *word);
        }
        assert!("greedy".parse::<Cooperation>().is_err());
    }
}
