//! Buffering of a file: the declarations of its users, and the choices that follow from them.

use super::replacement::Replacement;
use crate::choice::{self, Choice, help_text};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Declared access of the users of a file (Tower of Pizzas, section 2.1.4).
// Stored and sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Declared {
    /// Nothing is known.
    #[default]
    Unknown = 0,
    /// Once from the start to the end, each client by itself.
    Sequential = 1,
    /// From the start to the end, repeatedly.
    LoopingSequential = 2,
    /// In random order, the same places repeatedly.
    LoopingRandom = 3,
    /// In random order.
    Random = 4,
    /// Once, all clients together, each taking some of the blocks (section 2.2).
    GlobalSequential = 5,
}

/// Read-ahead policy: the blocks that a server reads before a client requests them.
// Stored and sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Prefetch {
    /// None.
    Nothing,
    /// After each read, the next block on the same disk (TOCS 1997, section 4).
    Next,
    /// All blocks of the disk from the last one read up to the one requested, and this many after
    /// it (Tower of Pizzas, section 2.2).
    Window(u32),
}

/// Buffering of one file at each of its servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Buffering {
    /// Access that the users have declared.
    pub declared: Declared,
    /// Replacement policy; by default it follows from `declared`.
    pub replacement: Option<Replacement>,
    /// Read-ahead policy; by default it follows from `declared`.
    pub prefetch: Option<Prefetch>,
    /// Number of its blocks in a server's cache that blocks of other files cannot evict.
    pub blocks_min: u32,
    /// Largest number of its blocks in a server's cache; 0 for no limit.
    pub blocks_max: u32,
}

/// Number of blocks read after the requested one in a declared global sequential access. This is
/// the paper's k, "some arbitrary constant"; its clients request as many at a time (section 3).
pub const WINDOW_BLOCKS: u32 = 16;

/// Error for limits that contradict each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("at least {blocks_min} blocks and at most {blocks_max} blocks contradict each other")]
pub struct BufferingError {
    /// Number of blocks reserved.
    pub blocks_min: u32,
    /// Largest number of blocks.
    pub blocks_max: u32,
}

impl Buffering {
    /// Refuses limits that contradict each other.
    pub fn validate(&self) -> Result<(), BufferingError> {
        let Self { blocks_min, blocks_max, .. } = *self;
        match blocks_max == 0 || blocks_min <= blocks_max {
            true => Ok(()),
            false => Err(BufferingError { blocks_min, blocks_max }),
        }
    }

    /// Replacement policy, explicit or as `declared` suggests.
    pub fn replacement(&self) -> Replacement {
        self.replacement.unwrap_or(match self.declared {
            Declared::Unknown | Declared::GlobalSequential | Declared::LoopingRandom => {
                Replacement::Lru
            }
            Declared::Sequential => Replacement::TossImmediate,
            Declared::LoopingSequential => Replacement::LoopAware,
            Declared::Random => Replacement::Random,
        })
    }

    /// Read-ahead policy, explicit or as `declared` suggests.
    pub fn prefetch(&self) -> Prefetch {
        self.prefetch.unwrap_or(match self.declared {
            Declared::Unknown | Declared::Sequential | Declared::LoopingSequential => {
                Prefetch::Next
            }
            Declared::Random | Declared::LoopingRandom => Prefetch::Nothing,
            Declared::GlobalSequential => Prefetch::Window(WINDOW_BLOCKS),
        })
    }

    /// True if its blocks are evicted in the common order, without limits of their own.
    pub fn is_common(&self) -> bool {
        let (min, max) = (self.blocks_min, self.blocks_max);
        self.replacement() == Replacement::Lru && min == 0 && max == 0
    }
}

/// Declared accesses by name, in the order in which users see them.
const DECLARED: [Choice<Declared>; 6] = [
    Choice { value: Declared::Unknown, name: "unknown", help: "the access is not known" },
    Choice {
        value: Declared::Sequential,
        name: "sequential",
        help: "each client reads or writes the file once, from start to end",
    },
    Choice {
        value: Declared::LoopingSequential,
        name: "looping-sequential",
        help: "each client reads the file repeatedly, from start to end",
    },
    Choice {
        value: Declared::LoopingRandom,
        name: "looping-random",
        help: "each client reads the same places repeatedly, in random order",
    },
    Choice {
        value: Declared::Random,
        name: "random",
        help: "each client reads or writes in random order",
    },
    Choice {
        value: Declared::GlobalSequential,
        name: "global-sequential",
        help: "all clients together read or write the file once, each a share of the blocks",
    },
];

impl Declared {
    /// Names of the declared accesses.
    pub const WORDS: &[&str] = &choice::names(&DECLARED);

    /// Help text: the declared accesses with an explanation of each.
    pub const HELP: &str = help_text!(
        "Declared access of the clients. It selects the replacement policy and the prefetching of \
         the file's blocks (caching and two-phase). ",
        DECLARED,
        "."
    );
}

impl FromStr for Declared {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        choice::parse(word, &DECLARED, "declared access")
    }
}

impl fmt::Display for Declared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(choice::name_of(self, &DECLARED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_they_show() {
        for Choice { value, name, .. } in DECLARED {
            assert_eq!((name.parse(), value.to_string()), (Ok(value), name.to_owned()));
        }
        assert!("often".parse::<Declared>().is_err_and(|error| error.contains("sequential")));
    }

    #[test]
    fn what_is_declared_chooses_the_rest() {
        let of = |declared| Buffering { declared, ..Buffering::default() };
        assert!(of(Declared::Unknown).is_common());
        assert_eq!(of(Declared::Sequential).replacement(), Replacement::TossImmediate);
        let window = Prefetch::Window(WINDOW_BLOCKS);
        assert_eq!(of(Declared::GlobalSequential).prefetch(), window);
        let own = Buffering { replacement: Some(Replacement::Mru), ..of(Declared::Sequential) };
        assert_eq!(own.replacement(), Replacement::Mru);
        let limited = |blocks_min, blocks_max| Buffering { blocks_min, blocks_max, ..own };
        assert!(limited(3, 2).validate().is_err());
        assert!(limited(3, 0).validate().is_ok() && limited(3, 3).validate().is_ok());
    }
}
