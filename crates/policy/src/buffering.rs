//! How a file is buffered: what its users declare, and what a server makes of it.

use crate::replacement::PolicyName;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// How the users of a file will go through it (Tower of Pizzas, section 2.1.4).
// Stored and sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Declared {
    /// Nothing is known.
    #[default]
    Unknown = 0,
    /// Once, from the beginning to the end, each by itself.
    Sequential = 1,
    /// From the beginning to the end, again and again.
    LoopingSequential = 2,
    /// Here and there, the same places again and again.
    LoopingRandom = 3,
    /// Here and there.
    Random = 4,
    /// Once, all users together, each taking some of it (section 2.2).
    GlobalSequential = 5,
}

/// Which block of a file leaves a full cache first.
// Stored and sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Replacement {
    /// The one used longest ago.
    Lru,
    /// The one used last.
    Mru,
    /// One that was read to its end.
    TossImmediate,
    /// The one that is farthest ahead in a loop over the file.
    LoopAware,
    /// Any.
    Random,
    /// As a rule says that the servers' program has brought along ([`crate::ReplacementPolicies::with`]).
    Custom(PolicyName),
}

/// Which blocks a server reads before anyone asks for them.
// Stored and sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Prefetch {
    /// None.
    Nothing,
    /// After each read, the next block on the same disk (TOCS 1997, section 4).
    Next,
    /// All blocks of the disk between the last one that was read and the one that is asked for, and
    /// so many behind it (Tower of Pizzas, section 2.2).
    Window(u32),
}

/// How one file is buffered at each of its servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Buffering {
    /// What its users have said.
    pub declared: Declared,
    /// What leaves first; by default as `declared` suggests.
    pub replacement: Option<Replacement>,
    /// What is read ahead; by default as `declared` suggests.
    pub prefetch: Option<Prefetch>,
    /// Blocks of it that other files cannot drive out of a server's cache.
    pub blocks_min: u32,
    /// Blocks of it that a server holds at most; 0 for as many as there is room for.
    pub blocks_max: u32,
}

/// Blocks behind the one asked for that a declared global sequential read brings in: the paper's k,
/// "some arbitrary constant"; as many as its clients ask for at a time (section 3).
pub const WINDOW_BLOCKS: u32 = 16;

/// The limits contradict one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("at least {blocks_min} blocks and at most {blocks_max} is not possible")]
pub struct BufferingError {
    /// The least.
    pub blocks_min: u32,
    /// The most.
    pub blocks_max: u32,
}

impl Buffering {
    /// Refuses limits that contradict one another.
    pub fn validate(&self) -> Result<(), BufferingError> {
        let Self { blocks_min, blocks_max, .. } = *self;
        match blocks_max == 0 || blocks_min <= blocks_max {
            true => Ok(()),
            false => Err(BufferingError { blocks_min, blocks_max }),
        }
    }

    /// What leaves first.
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

    /// What is read ahead.
    pub fn prefetch(&self) -> Prefetch {
        self.prefetch.unwrap_or(match self.declared {
            Declared::Unknown | Declared::Sequential | Declared::LoopingSequential => {
                Prefetch::Next
            }
            Declared::Random | Declared::LoopingRandom => Prefetch::Nothing,
            Declared::GlobalSequential => Prefetch::Window(WINDOW_BLOCKS),
        })
    }

    /// Whether its blocks leave in the common order, without limits of their own.
    pub fn is_common(&self) -> bool {
        let (min, max) = (self.blocks_min, self.blocks_max);
        self.replacement() == Replacement::Lru && min == 0 && max == 0
    }
}

/// The words for declared accesses and replacements, as commands write them.
const DECLARED: [(&str, Declared); 6] = [
    ("unknown", Declared::Unknown),
    ("sequential", Declared::Sequential),
    ("looping-sequential", Declared::LoopingSequential),
    ("looping-random", Declared::LoopingRandom),
    ("random", Declared::Random),
    ("global-sequential", Declared::GlobalSequential),
];

const REPLACEMENTS: [(&str, Replacement); 5] = [
    ("lru", Replacement::Lru),
    ("mru", Replacement::Mru),
    ("toss-immediate", Replacement::TossImmediate),
    ("loop-aware", Replacement::LoopAware),
    ("random", Replacement::Random),
];

/// What comes before the name of a rule that is not one of the usual ones.
const CUSTOM: &str = "custom:";

impl Declared {
    /// Every word that can be said.
    pub const WORDS: &[&str] =
        &[DECLARED[0].0, DECLARED[1].0, DECLARED[2].0, DECLARED[3].0, DECLARED[4].0, DECLARED[5].0];
}

fn parse<T: Copy>(word: &str, words: &[(&str, T)], what: &str) -> Result<T, String> {
    let found = words.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
        format!("{word:?} is no {what}; there are {}", names.join(", "))
    })
}

fn name<T: PartialEq>(value: &T, words: &[(&'static str, T)]) -> &'static str {
    words.iter().find(|(_, other)| other == value).map_or("", |(name, _)| name)
}

impl FromStr for Declared {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        parse(word, &DECLARED, "declared access")
    }
}

impl FromStr for Replacement {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        match word.strip_prefix(CUSTOM) {
            Some(name) => name.parse().map(Self::Custom).map_err(|error| error.to_string()),
            None => parse(word, &REPLACEMENTS, "replacement policy"),
        }
    }
}

impl fmt::Display for Declared {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(name(self, &DECLARED))
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Custom(name) => write!(out, "{CUSTOM}{name}"),
            usual => out.write_str(name(usual, &REPLACEMENTS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_they_show() {
        for (word, declared) in DECLARED {
            assert_eq!((word.parse(), declared.to_string()), (Ok(declared), word.to_owned()));
        }
        for (word, replacement) in REPLACEMENTS {
            assert_eq!((word.parse(), replacement.to_string()), (Ok(replacement), word.to_owned()));
        }
        let custom = Replacement::Custom("fifo".parse().expect("it is a name"));
        assert_eq!(
            ("custom:fifo".parse(), custom.to_string().as_str()),
            (Ok(custom), "custom:fifo")
        );
        for wrong in ["custom:", "custom:Fifo", "custom:sixteen-letters-", "fifo"] {
            assert!(wrong.parse::<Replacement>().is_err(), "{wrong}");
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
