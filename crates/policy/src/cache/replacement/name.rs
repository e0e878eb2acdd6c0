//! Names of replacement policies that a program adds.
//!
//! Invariant: a name is stored and sent as its text.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Largest number of letters of a [`PolicyName`].
const NAME_LETTERS_MAX: usize = 15;

/// Name of a replacement policy that a program adds: 1 to 15 small letters, digits and hyphens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PolicyName {
    /// Name, padded with zeros.
    letters: [u8; NAME_LETTERS_MAX],
}

/// Error for a word that is not a policy name.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0:?} is not a policy name: use 1 to {NAME_LETTERS_MAX} of a to z, 0 to 9 and hyphens")]
pub struct PolicyNameError(String);

impl PolicyName {
    fn as_str(&self) -> &str {
        let end = self.letters.iter().position(|letter| *letter == 0);
        let letters = &self.letters[..end.unwrap_or(NAME_LETTERS_MAX)];
        std::str::from_utf8(letters).expect("a name is made of ASCII letters only")
    }
}

impl FromStr for PolicyName {
    type Err = PolicyNameError;

    fn from_str(word: &str) -> Result<Self, PolicyNameError> {
        let is_letter = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if word.is_empty() || word.len() > NAME_LETTERS_MAX || !word.bytes().all(is_letter) {
            return Err(PolicyNameError(word.to_owned()));
        }
        let mut letters = [0; NAME_LETTERS_MAX];
        letters[..word.len()].copy_from_slice(word.as_bytes());
        Ok(Self { letters })
    }
}

impl TryFrom<String> for PolicyName {
    type Error = PolicyNameError;
    fn try_from(word: String) -> Result<Self, PolicyNameError> {
        word.parse()
    }
}

impl From<PolicyName> for String {
    fn from(name: PolicyName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for PolicyName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), out)
    }
}
