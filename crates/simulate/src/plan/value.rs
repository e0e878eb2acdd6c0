//! Values of scenario files, and the values that each kind of key accepts.

use crate::disk::DiskName;
use crate::names::{LayoutName, MachineName, PayloadName, ReadAhead};
use crate::network_name::NetworkName;
use filesystem::collective::Strategy;
use interface::{parse_size, size_word};
use policy::{
    BYTES_MAX, Cooperation, Declared, DiskOrder, Pattern, Protection, Replacement, WriteMiss,
    WritePolicy,
};
use std::fmt::Display;
use units::Duration;
use world_simulated::{QueueKind, StartAngle};

/// A value from a scenario file or an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Value {
    Number(u64),
    Flag(bool),
    Word(String),
    List(Vec<Value>),
    /// A value that no key accepts: a negative number, a fraction, a date, a table.
    Other,
}

/// The strategies by name.
pub(super) const STRATEGIES: &[&str] =
    &["caching", "two-phase", "disk-directed", "noncollective", "global-barrier", "node-grouping"];

/// Kind of value that a key accepts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A whole number from `least` to `most`, of this unit, which may be empty.
    Number { least: u64, most: u64, unit: &'static str },
    /// A number of bytes, or a word with a unit.
    Size,
    /// One of these words, or another that [`ConvertValue::from_value`] accepts.
    Word(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A list of values of another kind, or one such value alone.
    List { of: &'static Kind, may_be_empty: bool },
}

impl Kind {
    /// Describes the accepted values, as the end of a sentence.
    pub(super) fn expected(self) -> String {
        match self {
            Self::Number { most: u64::MAX, unit, .. } => format!("a whole number{unit}"),
            Self::Number { least, most, unit } => {
                format!("a whole number{unit} from {least} to {most}")
            }
            Self::Size => {
                "a number of bytes, or a word with a unit such as \"8KiB\" or \"10MiB\"".to_owned()
            }
            Self::Word(words) => format!("one of {}", words.join(", ")),
            Self::Flag => "true or false".to_owned(),
            Self::List { of, .. } => format!("{}; or a list of such values", of.expected()),
        }
    }

    /// Returns the accepted words, to find the nearest.
    pub(super) fn words(self) -> &'static [&'static str] {
        match self {
            Self::Word(words) => words,
            Self::List { of, .. } => of.words(),
            Self::Number { .. } | Self::Size | Self::Flag => &[],
        }
    }

    /// True if a value is of this kind and in its range. Words are not checked here;
    /// [`ConvertValue::from_value`] refuses unknown ones.
    pub(super) fn permits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Number { least, most, .. }, Value::Number(number)) => {
                (least..=most).contains(number)
            }
            (Self::Size, Value::Number(bytes)) => *bytes <= BYTES_MAX,
            (Self::Size, Value::Word(word)) => parse_size(word).is_ok(),
            (Self::Word(_), Value::Word(_)) | (Self::Flag, Value::Flag(_)) => true,
            (Self::List { of, may_be_empty }, Value::List(values)) => {
                (may_be_empty || !values.is_empty()) && values.iter().all(|it| of.permits(it))
            }
            (Self::List { of, .. }, alone) => of.permits(alone),
            _ => false,
        }
    }

    /// Parses a word of the command line as a value of this kind.
    pub(super) fn of_text(self, text: &str) -> Value {
        let word = || Value::Word(text.to_owned());
        match self {
            Self::Number { .. } => text.parse().map_or_else(|_| word(), Value::Number),
            Self::Flag => text.parse().map_or_else(|_| word(), Value::Flag),
            Self::Size | Self::Word(_) => word(),
            Self::List { of, .. } => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                Value::List(parts.map(|part| of.of_text(part)).collect())
            }
        }
    }

    /// Formats a value as in a TOML file.
    pub(super) fn in_toml(self, value: &Value) -> String {
        match (self, value) {
            (Self::Size, Value::Number(bytes)) => match size_word(*bytes) {
                word if word.parse::<u64>().is_ok() => word,
                word => quoted(&word),
            },
            (Self::List { of, .. }, Value::List(values)) => match values.as_slice() {
                [alone] => of.in_toml(alone),
                _ => {
                    let values: Vec<String> = values.iter().map(|it| of.in_toml(it)).collect();
                    format!("[{}]", values.join(", "))
                }
            },
            _ => value.in_toml(),
        }
    }
}

impl Value {
    /// Value of a scenario that a program has made.
    pub(super) fn of_json(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Bool(flag) => Self::Flag(*flag),
            serde_json::Value::Number(number) => number.as_u64().map_or(Self::Other, Self::Number),
            serde_json::Value::String(word) => Self::Word(word.clone()),
            serde_json::Value::Array(values) => {
                Self::List(values.iter().map(Self::of_json).collect())
            }
            serde_json::Value::Null | serde_json::Value::Object(_) => Self::Other,
        }
    }

    pub(super) fn in_toml(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
            Self::Word(word) => quoted(word),
            Self::List(values) => {
                let values: Vec<String> = values.iter().map(Self::in_toml).collect();
                format!("[{}]", values.join(", "))
            }
            Self::Other => String::new(),
        }
    }

    /// Formats the value as [`Kind::of_text`] reads it.
    pub(super) fn in_text(&self) -> String {
        match self {
            Self::Word(word) => word.clone(),
            Self::List(values) => {
                let values: Vec<String> = values.iter().map(Self::in_text).collect();
                values.join(",")
            }
            _ => self.in_toml(),
        }
    }

    pub(super) fn in_json(&self) -> serde_json::Value {
        match self {
            Self::Number(number) => (*number).into(),
            Self::Flag(flag) => (*flag).into(),
            Self::Word(word) => word.as_str().into(),
            Self::List(values) => values.iter().map(Self::in_json).collect(),
            Self::Other => serde_json::Value::Null,
        }
    }
}

/// Quotes a string for TOML. JSON strings are the same, except for one character that TOML requires
/// to be escaped.
fn quoted(word: &str) -> String {
    serde_json::Value::from(word).to_string().replace('\u{7f}', "\\u007f")
}

/// Conversion between a type and the value of a key.
pub(super) trait ConvertValue: Sized {
    /// Returns the value.
    fn to_value(&self) -> Value;

    /// Converts from a value that the kind of the key permits. The error says why the value is
    /// unknown.
    fn from_value(value: &Value) -> Result<Self, String>;
}

fn wrong_kind<T>(value: &Value) -> Result<T, String> {
    Err(format!("{} is a value of the wrong type", value.in_toml()))
}

impl ConvertValue for u64 {
    fn to_value(&self) -> Value {
        Value::Number(*self)
    }

    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Number(number) => Ok(*number),
            Value::Word(size) => parse_size(size),
            _ => wrong_kind(value),
        }
    }
}

impl ConvertValue for u32 {
    fn to_value(&self) -> Value {
        Value::Number((*self).into())
    }

    fn from_value(value: &Value) -> Result<Self, String> {
        Self::try_from(u64::from_value(value)?).map_err(|error| error.to_string())
    }
}

/// In nanoseconds.
impl ConvertValue for Duration {
    fn to_value(&self) -> Value {
        Value::Number(self.as_ns())
    }

    fn from_value(value: &Value) -> Result<Self, String> {
        u64::from_value(value).map(Self::from_ns)
    }
}

impl ConvertValue for bool {
    fn to_value(&self) -> Value {
        Value::Flag(*self)
    }

    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Flag(flag) => Ok(*flag),
            _ => wrong_kind(value),
        }
    }
}

impl<T: ConvertValue> ConvertValue for Vec<T> {
    fn to_value(&self) -> Value {
        Value::List(self.iter().map(T::to_value).collect())
    }

    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::List(values) => values.iter().map(T::from_value).collect(),
            alone => Ok(vec![T::from_value(alone)?]),
        }
    }
}

/// Implements [`ConvertValue`] for types whose value is their name (`Display` and `FromStr`).
macro_rules! named {
    ($($name:ty),+) => {$(
        impl ConvertValue for $name {
            fn to_value(&self) -> Value {
                Value::Word(self.to_string())
            }

            fn from_value(value: &Value) -> Result<Self, String> {
                match value {
                    Value::Word(word) => word.parse().map_err(|error| cause(&error)),
                    _ => wrong_kind(value),
                }
            }
        }
    )+};
}

/// `None` means the replacement policy that suits the file's declared use.
impl ConvertValue for Option<Replacement> {
    fn to_value(&self) -> Value {
        Value::Word(self.map_or_else(|| AS_DECLARED.to_owned(), |it| it.to_string()))
    }

    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Word(word) if word == AS_DECLARED => Ok(None),
            Value::Word(word) => word.parse().map(Some),
            _ => wrong_kind(value),
        }
    }
}

/// Word for the choice that suits the declared use.
pub(super) const AS_DECLARED: &str = "declared";

named!(
    Cooperation,
    Declared,
    LayoutName,
    MachineName,
    NetworkName,
    DiskOrder,
    PayloadName,
    Pattern,
    ReadAhead,
    Strategy,
    WriteMiss,
    WritePolicy
);

fn cause(error: &impl Display) -> String {
    error.to_string()
}

impl ConvertValue for DiskName {
    fn to_value(&self) -> Value {
        Value::Word(self.to_string())
    }

    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Word(word) => word.parse().map_err(|error: interface::UserError| error.cause),
            _ => wrong_kind(value),
        }
    }
}

/// Implements [`ConvertValue`] for an enum whose words are listed here.
macro_rules! worded {
    ($name:ident, $what:literal, $words:ident { $($word:ident = $text:literal),+ }) => {
        pub(super) const $words: &[&str] = &[$($text),+];

        impl ConvertValue for $name {
            fn to_value(&self) -> Value {
                Value::Word(match self { $(Self::$word => $text),+ }.to_owned())
            }

            fn from_value(value: &Value) -> Result<Self, String> {
                match value {
                    $(Value::Word(word) if word == $text => Ok(Self::$word),)+
                    _ => Err(format!(
                        concat!("{} is not a known ", $what, "; use one of {}"),
                        value.in_toml(),
                        $words.join(", "),
                    )),
                }
            }
        }
    };
}

worded!(QueueKind, "queue order", QUEUES {
    Fcfs = "fcfs",
    Cscan = "cscan",
    CscanOfFile = "cscan-of-file"
});
worded!(StartAngle, "start angle", STARTS {
    Zero = "zero",
    Common = "common",
    Independent = "independent"
});

/// Words for protections. `parity:4` has rows of 4 blocks.
pub(super) const PROTECTIONS: &[&str] = &["none", "mirror", "parity"];

impl ConvertValue for Protection {
    fn to_value(&self) -> Value {
        Value::Word(self.to_string())
    }

    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Word(word) => word.parse().map_err(|error| cause(&error)),
            _ => Err("a protection is none, mirror, parity or parity:BLOCKS".to_owned()),
        }
    }
}

/// Converts named strategies, where `all` stands for each of them.
pub(super) fn strategies(value: &Value) -> Result<Vec<Strategy>, String> {
    let all = Value::Word("all".to_owned());
    match value {
        it if *it == all => Ok(Strategy::ALL.to_vec()),
        Value::List(values) => {
            let each: Result<Vec<_>, String> = values.iter().map(strategies).collect();
            Ok(each?.concat())
        }
        alone => Vec::from_value(alone),
    }
}

/// Returns the named strategies in their own order, each once.
pub(super) fn set_of_strategies(value: &Value) -> Result<Vec<Strategy>, String> {
    let named = strategies(value)?;
    Ok(Strategy::NAMED.into_iter().filter(|strategy| named.contains(strategy)).collect())
}
