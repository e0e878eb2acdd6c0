//! Names of models that a program adds.

use std::fmt;
use std::str::FromStr;

/// Largest number of letters of a [`ModelName`].
const NAME_LETTERS_MAX: usize = 15;

/// Prefix of the name of a model that is not built in.
pub(crate) const CUSTOM: &str = "custom:";

/// Name of a model that a program adds: 1 to 15 small letters, digits and hyphens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ModelName(String);

impl FromStr for ModelName {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let is_letter = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if word.is_empty() || word.len() > NAME_LETTERS_MAX || !word.bytes().all(is_letter) {
            return Err(format!(
                "{word:?} is not the name of a model: use 1 to {NAME_LETTERS_MAX} of a to z, 0 to \
                 9 and hyphens"
            ));
        }
        Ok(Self(word.to_owned()))
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.0)
    }
}
