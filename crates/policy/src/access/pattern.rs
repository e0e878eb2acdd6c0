//! Access patterns of the papers by name: "rbc" reads a matrix with rows BLOCK and columns CYCLIC.
//!
//! Invariant: the name of a pattern ([`Pattern`]'s `Display`) parses back to it.

use super::access::Access;
use super::dimension::Dimension;
use super::distribution::Distribution;
use super::error::AccessError;
use super::factor::balanced_factors;
use super::limits::DIMENSIONS_MAX;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Largest number of records for which a shape of several dimensions is computed. The computation
/// takes as many steps as the square root of the number.
pub const SHAPE_RECORDS_MAX: u64 = 1 << 50;

/// Short names of distributions (TOCS 1997, Figure 3 and Table II), without direction.
const SHORT_NAMES: [&str; 13] =
    ["a", "n", "b", "c", "nn", "nb", "nc", "bn", "bb", "bc", "cn", "cb", "cc"];

/// Direction of a transfer.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Direction {
    /// From the file to the clients.
    Read = 0,
    /// From the clients to the file.
    Write = 1,
}

/// Mapping of a pattern from the file to the clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PatternKind {
    /// Every client has the whole file.
    All,
    /// The file is an array with these distributed dimensions, the slowest first.
    Distributed(Vec<Dimension>),
}

/// Pattern: a direction and a distribution. The shape follows from the size of the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    /// Direction of a transfer.
    pub direction: Direction,
    /// Mapping from the file to the clients.
    pub kind: PatternKind,
}

/// Reason for which a pattern is refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PatternError {
    /// No pattern has this name.
    #[error("there is no pattern \"{name}\": did you mean \"{nearest}\"? {}", help())]
    Unknown {
        /// Name that was requested.
        name: String,
        /// Known name that is most similar.
        nearest: String,
    },
    /// The word is not a distribution of a dimension.
    #[error(
        "\"{word}\" is not a distribution: use none, block, cyclic or cyclic(k) with k at least 1, \
         or all alone"
    )]
    Word {
        /// Word that was requested.
        word: String,
    },
    /// Every client would write the whole file.
    #[error("pattern \"wa\" would let every client write every byte: writes must not overlap")]
    OverlappingWrites,
    /// The file is not a whole number of records.
    #[error(
        "a file of {file_bytes} bytes is not a whole number of records \
         of {record_bytes} bytes (at least one is needed)"
    )]
    Records {
        /// Bytes of the file.
        file_bytes: u64,
        /// Bytes of a record.
        record_bytes: u64,
    },
    /// The file has more than [`SHAPE_RECORDS_MAX`] records.
    #[error("an array of {records} records is too large: use at most {SHAPE_RECORDS_MAX}")]
    TooManyRecords {
        /// Records in the file.
        records: u64,
    },
    /// The pattern makes an access that is refused.
    #[error(transparent)]
    Access(#[from] AccessError),
}

impl Pattern {
    /// Makes a pattern of the words of High-Performance Fortran, one for each dimension, the
    /// slowest first: `none`, `block`, `cyclic` or `cyclic(k)` separated by commas, or `all` alone.
    pub fn from_distribution(direction: Direction, words: &str) -> Result<Self, PatternError> {
        let lower = words.trim().to_ascii_lowercase();
        let kind = if lower == "all" {
            PatternKind::All
        } else {
            let dimensions: Vec<_> = lower.split(',').map(str::parse).collect::<Result<_, _>>()?;
            if dimensions.len() > DIMENSIONS_MAX {
                let dimensions = dimensions.len();
                return Err(AccessError::Dimensions { dimensions }.into());
            }
            PatternKind::Distributed(dimensions)
        };
        if direction == Direction::Write && kind == PatternKind::All {
            return Err(PatternError::OverlappingWrites);
        }
        Ok(Self { direction, kind })
    }

    /// Access of `clients` clients to a file of `file_bytes` in records of `record_bytes`.
    ///
    /// The shape has nearly equal extents, the largest first (TOCS 1997, Table II: 1,310,720
    /// records are 1280 x 1024). The distributed dimensions share the clients as equally, the
    /// larger part first. If no dimension is distributed, client 0 has everything.
    ///
    /// # Errors
    /// The file is not a whole number of records, there are no or too many clients, or there are
    /// too many records for a shape.
    pub fn access(
        &self,
        clients: u32,
        record_bytes: u64,
        file_bytes: u64,
    ) -> Result<Access, PatternError> {
        if file_bytes == 0 || record_bytes == 0 || !file_bytes.is_multiple_of(record_bytes) {
            return Err(PatternError::Records { file_bytes, record_bytes });
        }
        let access = match &self.kind {
            PatternKind::All => Access::All { bytes: file_bytes, clients },
            PatternKind::Distributed(dimensions) => Access::Distribution(Distribution {
                shape: shape(file_bytes / record_bytes, dimensions.len())?,
                record_bytes,
                dimensions: dimensions.clone(),
                grid: grid(clients, dimensions)?,
                clients,
            }),
        };
        match self.direction {
            Direction::Read => access.validate(file_bytes)?,
            Direction::Write => access.validate_write(file_bytes)?,
        }
        Ok(access)
    }

    /// Letters of a pattern that has a short name.
    fn short_name(&self) -> Option<String> {
        let letter = |dimension: &Dimension| match dimension {
            Dimension::None => Some('n'),
            Dimension::Block => Some('b'),
            Dimension::Cyclic(1) => Some('c'),
            Dimension::Cyclic(_) => None,
        };
        match &self.kind {
            PatternKind::All => Some("a".to_string()),
            PatternKind::Distributed(dimensions) if dimensions.len() <= 2 => {
                dimensions.iter().map(letter).collect()
            }
            PatternKind::Distributed(_) => None,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Read => "r",
            Direction::Write => "w",
        };
        match (&self.kind, self.short_name()) {
            (_, Some(name)) => write!(out, "{direction}{name}"),
            (PatternKind::All, None) => write!(out, "{direction}:all"),
            (PatternKind::Distributed(dimensions), None) => {
                write!(out, "{direction}:")?;
                for (place, dimension) in dimensions.iter().enumerate() {
                    out.write_str(if place == 0 { "" } else { "," })?;
                    match dimension {
                        Dimension::None => out.write_str("none")?,
                        Dimension::Block => out.write_str("block")?,
                        Dimension::Cyclic(1) => out.write_str("cyclic")?,
                        Dimension::Cyclic(chunk) => write!(out, "cyclic({chunk})")?,
                    }
                }
                Ok(())
            }
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    /// Parses a short name ("rbc") or a direction and the words of [`Pattern::from_distribution`]
    /// ("r:block,cyclic(4)").
    fn from_str(name: &str) -> Result<Self, PatternError> {
        let unknown = || PatternError::Unknown { name: name.to_string(), nearest: nearest(name) };
        let (direction, rest) = match name.split_at_checked(1) {
            Some(("r", rest)) => (Direction::Read, rest),
            Some(("w", rest)) => (Direction::Write, rest),
            _ => return Err(unknown()),
        };
        if let Some(words) = rest.strip_prefix(':') {
            return Self::from_distribution(direction, words);
        }
        if !SHORT_NAMES.contains(&rest) {
            return Err(unknown());
        }
        let words: Vec<&str> = rest
            .chars()
            .map(|letter| match letter {
                'a' => "all",
                'n' => "none",
                'b' => "block",
                _ => "cyclic",
            })
            .collect();
        Self::from_distribution(direction, &words.join(","))
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(name: String) -> Result<Self, PatternError> {
        name.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

/// Extents of an array of `records` records, nearly equal, the largest first.
fn shape(records: u64, dimensions: usize) -> Result<Vec<u64>, PatternError> {
    if dimensions == 0 || dimensions > DIMENSIONS_MAX {
        return Err(AccessError::Dimensions { dimensions }.into());
    }
    if dimensions > 1 && records > SHAPE_RECORDS_MAX {
        return Err(PatternError::TooManyRecords { records });
    }
    Ok(balanced_factors(records, dimensions))
}

/// Clients along each dimension. The distributed dimensions share them, the larger part first.
fn grid(clients: u32, dimensions: &[Dimension]) -> Result<Vec<u32>, PatternError> {
    if clients == 0 {
        return Err(AccessError::Clients { clients: 0 }.into());
    }
    let distributed = dimensions.iter().filter(|rule| **rule != Dimension::None).count();
    if distributed == 0 {
        return Ok(vec![1; dimensions.len()]);
    }
    let mut parts = balanced_factors(u64::from(clients), distributed).into_iter();
    let mut part = |rule: &Dimension| match rule {
        Dimension::None => 1,
        _ => parts.next().and_then(|part| u32::try_from(part).ok()).unwrap_or(1),
    };
    Ok(dimensions.iter().map(&mut part).collect())
}

impl FromStr for Dimension {
    type Err = PatternError;

    /// Distribution that a word of High-Performance Fortran names, in small letters.
    fn from_str(word: &str) -> Result<Self, PatternError> {
        let word = word.trim();
        let refused = || PatternError::Word { word: word.to_string() };
        match word {
            "none" => return Ok(Self::None),
            "block" => return Ok(Self::Block),
            "cyclic" => return Ok(Self::Cyclic(1)),
            _ => {}
        }
        let inside = word.strip_prefix("cyclic(").and_then(|rest| rest.strip_suffix(')'));
        match inside.map(|number| number.trim().parse::<u64>()) {
            Some(Ok(chunk)) if chunk > 0 => Ok(Self::Cyclic(chunk)),
            _ => Err(refused()),
        }
    }
}

/// Valid short names, reads first.
fn known_names() -> impl Iterator<Item = String> {
    let reads = SHORT_NAMES.iter().map(|name| format!("r{name}"));
    let writes = SHORT_NAMES.iter().filter(|name| **name != "a").map(|name| format!("w{name}"));
    reads.chain(writes)
}

fn help() -> String {
    let names: Vec<String> = known_names().collect();
    format!("The patterns are {}, and for example r:block,cyclic(4).", names.join(" "))
}

/// Known name with the fewest edits from `name`; the first of several. Considers at most the first
/// eight letters.
fn nearest(name: &str) -> String {
    let name: Vec<char> = name.to_ascii_lowercase().chars().take(8).collect();
    known_names().min_by_key(|known| edits(&name, known)).unwrap_or_default()
}

/// Number of letters to insert, remove or change to turn `name` into `known` (Levenshtein 1966).
fn edits(name: &[char], known: &str) -> usize {
    let known: Vec<char> = known.chars().collect();
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (above, letter) in name.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (place, other) in known.iter().enumerate() {
            let change = diagonal + usize::from(letter != other);
            diagonal = row[place + 1];
            row[place + 1] = change.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[known.len()]
}
