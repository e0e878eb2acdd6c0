//! Origin of a value of a plan: a scenario file, or an option.

use std::fmt;

/// Origin of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    File { file: String, line: usize },
    Option(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line } => write!(out, "{file}, line {line}"),
            Self::Option(option) => write!(out, "option {option}"),
        }
    }
}
