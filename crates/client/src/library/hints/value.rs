//! Values of hints, checked against their form.

use super::table::Form;
use interface::{parse_size, size_word};

/// A value in the form of its hint.
pub(super) enum Value {
    Word(&'static str),
    Number(u64),
    Size(u64),
    Bool(bool),
    Text(String),
}

impl Value {
    /// Reads a value, or says what it is not.
    pub(super) fn parse(form: Form, word: &str) -> Result<Self, String> {
        match form {
            Form::Choice(words) => {
                let known = words.iter().find(|known| **known == word).copied();
                known.map(Self::Word).ok_or_else(|| format!("not one of {}", words.join(", ")))
            }
            Form::Number => match word.parse() {
                Ok(number) => Ok(Self::Number(number)),
                Err(_) => Err("not a number".to_owned()),
            },
            Form::Size => match parse_size(word) {
                Ok(bytes) => Ok(Self::Size(bytes)),
                Err(_) => Err("not a size".to_owned()),
            },
            Form::Bool => match word.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" | "enable" => Ok(Self::Bool(true)),
                "false" | "0" | "no" | "off" | "disable" => Ok(Self::Bool(false)),
                _ => Err("not true or false".to_owned()),
            },
            Form::Text => Ok(Self::Text(word.to_owned())),
        }
    }

    /// The value as it is shown when it is in force. Sizes are plain numbers, which programs can
    /// read.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Word(word) => (*word).to_owned(),
            Self::Number(number) => number.to_string(),
            Self::Size(bytes) => bytes.to_string(),
            Self::Bool(is_true) => is_true.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

/// Refuses a unit of striping that no file can have.
pub(super) fn check_unit(bytes: u64) -> Result<(), String> {
    let most = policy::BLOCK_BYTES_MAX;
    match bytes {
        0 => Err("at least 1 byte".to_owned()),
        bytes if bytes > most => Err(format!("at most {}", size_word(most))),
        _ => Ok(()),
    }
}
