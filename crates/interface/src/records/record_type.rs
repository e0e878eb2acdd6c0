//! Types of records: names, places and kinds of their fields.
//!
//! A type is written in one of three ways:
//!
//! | form | example |
//! |---|---|
//! | fields | `id:u8, energy:f4, position:3f8, tag:S16, :x4` |
//! | list of NumPy (`dtype.descr`) | `[('id', '<u8'), ('position', '<f8', (3,))]` |
//! | one scalar, whose field is named `value` | `f8`, `'>i4'` |

use crate::{UserError, nearest};
use policy::{FieldAt, Number, NumberKind, RECORD_BYTES_MAX};
use std::fmt;

/// Largest number of fields of a record.
const FIELDS_MAX: usize = 4_096;

/// Field of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordField {
    /// Name; those of nested records are joined by dots.
    pub name: String,
    /// First byte in the record.
    pub offset: u32,
    /// Kind of each element.
    pub kind: FieldKind,
    /// Number of elements along each dimension, in C order. Empty for one element.
    pub shape: Vec<u32>,
}

/// Kind of the elements of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// Number, which conditions can use.
    Number(Number),
    /// Text of one byte a letter, with zeros behind it, which is only carried.
    Text {
        /// Bytes of each element.
        bytes: u32,
    },
    /// Text of four bytes a letter (UTF-32, little-endian), with zeros behind it.
    WideText {
        /// Bytes of each element.
        bytes: u32,
    },
    /// Complex number, date or other bytes, which are only carried.
    Other {
        /// Bytes of each element.
        bytes: u32,
    },
}

/// Type of the records of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordType {
    fields: Vec<RecordField>,
    record_bytes: u32,
    /// True for a scalar, which is no record with a field.
    is_scalar: bool,
}

impl FieldKind {
    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Number(number) => number.kind.bytes(),
            Self::Text { bytes } | Self::WideText { bytes } | Self::Other { bytes } => bytes,
        }
    }

    /// Reads a kind as NumPy writes it, such as `<f8`; without a sign the byte order is that of
    /// this machine, little-endian.
    pub fn of_word(word: &str) -> Option<Self> {
        let (is_big_endian, rest) = match word.as_bytes().first()? {
            b'>' => (true, &word[1..]),
            b'<' | b'=' | b'|' => (false, &word[1..]),
            _ => (false, word),
        };
        let number = |kind: NumberKind| {
            let is_big_endian = is_big_endian && kind.bytes() > 1;
            Some(Self::Number(Number { kind, is_big_endian }))
        };
        match rest {
            "?" | "b1" | "bool" => return number(NumberKind::Bool),
            "i1" | "int8" => return number(NumberKind::I8),
            "i2" | "int16" => return number(NumberKind::I16),
            "i4" | "int32" => return number(NumberKind::I32),
            "i8" | "int64" => return number(NumberKind::I64),
            "u1" | "uint8" => return number(NumberKind::U8),
            "u2" | "uint16" => return number(NumberKind::U16),
            "u4" | "uint32" => return number(NumberKind::U32),
            "u8" | "uint64" => return number(NumberKind::U64),
            "f4" | "float32" => return number(NumberKind::F32),
            "f8" | "float64" => return number(NumberKind::F64),
            _ => {}
        }
        let letter = rest.chars().next()?;
        let bytes: u32 = rest.get(letter.len_utf8()..)?.parse().ok()?;
        let made = match letter {
            'S' | 'a' => |bytes| Self::Text { bytes },
            'U' if !is_big_endian => |bytes| Self::WideText { bytes },
            'U' | 'V' | 'x' | 'c' | 'f' => |bytes| Self::Other { bytes },
            _ => return None,
        };
        let bytes = if letter == 'U' { bytes.checked_mul(4)? } else { bytes };
        (bytes > 0).then(|| made(bytes))
    }
}

impl fmt::Display for FieldKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(Number { kind: NumberKind::Bool, .. }) => out.write_str("|b1"),
            Self::Number(Number { kind, is_big_endian }) => {
                let order = match (kind.bytes(), is_big_endian) {
                    (1, _) => '|',
                    (_, true) => '>',
                    (_, false) => '<',
                };
                write!(out, "{order}{kind}")
            }
            Self::Text { bytes } => write!(out, "|S{bytes}"),
            Self::WideText { bytes } => write!(out, "<U{}", bytes / 4),
            Self::Other { bytes } => write!(out, "|V{bytes}"),
        }
    }
}

impl RecordField {
    /// Number of elements.
    fn elements(&self) -> Option<u32> {
        self.shape.iter().try_fold(1_u32, |all, one| all.checked_mul(*one))
    }
}

impl RecordType {
    /// Makes a type of fields and a size, as NumPy has them.
    ///
    /// # Errors
    /// A field that is not in a record, a name that occurs twice, or a size beyond the limit.
    pub fn new(fields: Vec<RecordField>, record_bytes: u32) -> Result<Self, UserError> {
        let bad = |cause: String| {
            let help = "write it as name:kind fields, for example \"id:u8, energy:f4, at:3f8\"";
            UserError::usage("cannot use the type of the records", cause, help)
        };
        if record_bytes == 0 || record_bytes > RECORD_BYTES_MAX {
            return Err(bad(format!(
                "a record has {record_bytes} bytes; it must have 1 to {RECORD_BYTES_MAX}"
            )));
        }
        if fields.len() > FIELDS_MAX {
            return Err(bad(format!("it has more than {FIELDS_MAX} fields")));
        }
        for (number, field) in fields.iter().enumerate() {
            let bytes = field.elements().and_then(|all| all.checked_mul(field.kind.bytes()));
            let end = bytes.and_then(|bytes| bytes.checked_add(field.offset));
            if end.is_none_or(|end| end > record_bytes) {
                let name = &field.name;
                return Err(bad(format!(
                    "the field {name:?} ends beyond a record, which has {record_bytes} bytes"
                )));
            }
            if fields[..number].iter().any(|other| other.name == field.name) {
                return Err(bad(format!("there are two fields {:?}", field.name)));
            }
        }
        Ok(Self { fields, record_bytes, is_scalar: false })
    }

    /// Reads a type that a user has written.
    ///
    /// # Errors
    /// A text that is none of the forms.
    pub fn parse(text: &str) -> Result<Self, UserError> {
        let text = text.trim();
        let fields = match text.starts_with('[') {
            true => Descr::new(text).fields(),
            false if text.contains(':') => text.split(',').map(written_field).collect(),
            false => written_field(&format!("value:{}", text.trim_matches(['\'', '"'])))
                .map(|field| vec![field]),
        };
        let fields = fields.map_err(|cause| {
            UserError::usage(
                format!("cannot read the type {text:?}"),
                cause,
                "write it as name:kind fields, for example \"id:u8, energy:f4, at:3f8\", with the \
                 kinds of NumPy",
            )
        })?;
        let (mut offset, mut named) = (0_u32, Vec::new());
        for (name, kind, shape) in fields {
            let field = RecordField { name, offset, kind, shape };
            let bytes = field.elements().and_then(|all| all.checked_mul(kind.bytes()));
            offset = bytes.and_then(|bytes| bytes.checked_add(offset)).unwrap_or(u32::MAX);
            if !field.name.is_empty() {
                named.push(field);
            }
        }
        let is_scalar = !text.starts_with('[') && !text.contains(':');
        Ok(Self { is_scalar, ..Self::new(named, offset)? })
    }

    /// The type as NumPy describes it in files.
    pub(super) fn described(&self) -> String {
        if let ([field], true) = (&self.fields[..], self.is_scalar) {
            return format!("'{}'", field.kind);
        }
        let mut fields: Vec<&RecordField> = self.fields.iter().collect();
        fields.sort_by_key(|field| field.offset);
        let (mut parts, mut at) = (Vec::new(), 0);
        let gap = |from: u32, to: u32| (to > from).then(|| format!("('', '|V{}')", to - from));
        for field in fields {
            parts.extend(gap(at, field.offset));
            let shape: Vec<String> = field.shape.iter().map(u32::to_string).collect();
            let quote = if field.name.contains('\'') { '"' } else { '\'' };
            let RecordField { name, kind, .. } = field;
            parts.push(match &shape[..] {
                [] => format!("({quote}{name}{quote}, '{kind}')"),
                [one] => format!("({quote}{name}{quote}, '{kind}', ({one},))"),
                all => format!("({quote}{name}{quote}, '{kind}', ({}))", all.join(", ")),
            });
            at = field.offset + field.elements().unwrap_or(0) * kind.bytes();
        }
        parts.extend(gap(at, self.record_bytes));
        format!("[{}]", parts.join(", "))
    }

    /// Bytes of a record.
    pub fn record_bytes(&self) -> u32 {
        self.record_bytes
    }

    /// Fields, in the order of the type.
    pub fn fields(&self) -> &[RecordField] {
        &self.fields
    }

    /// Number at an index of a field: `indices` has one for each dimension.
    ///
    /// # Errors
    /// The cause, for a field that is not there or is no number, and an index beyond it.
    pub fn number_at(&self, name: &str, indices: &[u64]) -> Result<FieldAt, String> {
        let field = self.fields.iter().find(|field| field.name == name).ok_or_else(|| {
            let names = || self.fields.iter().map(|field| field.name.as_str());
            match nearest(name, names()) {
                Some(near) => format!("there is no field {name:?}; did you mean {near:?}?"),
                None => {
                    let names: Vec<&str> = names().collect();
                    format!("there is no field {name:?}; the fields are: {}", names.join(", "))
                }
            }
        })?;
        let FieldKind::Number(number) = field.kind else {
            return Err(format!("the field {name:?} is no number, so no condition can use it"));
        };
        if indices.len() != field.shape.len() {
            let (needed, given) = (field.shape.len(), indices.len());
            return Err(format!("the field {name:?} has {needed} dimensions, not {given}"));
        }
        let mut element = 0_u64;
        for (index, length) in indices.iter().zip(&field.shape) {
            if *index >= u64::from(*length) {
                return Err(format!("index {index} is beyond the field {name:?}, of {length}"));
            }
            element = element * u64::from(*length) + index;
        }
        let offset = u64::from(field.offset) + element * u64::from(number.kind.bytes());
        let offset = u32::try_from(offset).map_err(|_| "it is outside a record".to_owned())?;
        Ok(FieldAt { offset, number })
    }
}

/// Name, kind and shape of a field.
type Written = (String, FieldKind, Vec<u32>);

/// Reads `name:3f8`.
fn written_field(text: &str) -> Result<Written, String> {
    let text = text.trim();
    let (name, kind) = text.split_once(':').ok_or_else(|| format!("{text:?} is no name:kind"))?;
    let (name, kind) = (name.trim().trim_matches(['\'', '"']), kind.trim());
    let digits = kind.bytes().take_while(u8::is_ascii_digit).count();
    let (count, word) = kind.split_at(digits);
    let found = FieldKind::of_word(word).ok_or_else(|| unknown_kind(word))?;
    let shape = match count {
        "" => Vec::new(),
        count => vec![count.parse().map_err(|_| format!("{count} elements are too many"))?],
    };
    Ok((name.to_owned(), found, shape))
}

fn unknown_kind(word: &str) -> String {
    format!("{word:?} is no kind: use i1 to i8, u1 to u8, f4, f8, b1, or S, U, V with a size")
}

/// Reader of a list of NumPy.
struct Descr<'a> {
    rest: &'a str,
    depth: u32,
}

/// Largest number of lists inside one another.
const DEPTH_MAX: u32 = 8;

impl<'a> Descr<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text, depth: 0 }
    }

    fn takes(&mut self, mark: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn needs(&mut self, mark: char) -> Result<(), String> {
        match self.takes(mark) {
            true => Ok(()),
            false => Err(format!("{mark:?} is missing before {:?}", shortened(self.rest))),
        }
    }

    fn word(&mut self) -> Result<String, String> {
        let quote = if self.takes('\'') { '\'' } else { '"' };
        if quote == '"' {
            self.needs('"')?;
        }
        let (word, rest) = self.rest.split_once(quote).ok_or("a quote is missing")?;
        self.rest = rest;
        Ok(word.to_owned())
    }

    fn fields(&mut self) -> Result<Vec<Written>, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} records are inside one another"));
        }
        self.needs('[')?;
        let mut fields = Vec::new();
        while !self.takes(']') {
            self.needs('(')?;
            let name = self.word()?;
            self.needs(',')?;
            self.rest = self.rest.trim_start();
            if self.rest.starts_with('[') {
                let inner = self.fields()?;
                if self.takes(',') && !self.rest.trim_start().starts_with(')') {
                    return Err(format!("the field {name:?} is an array of records"));
                }
                let nested = |(inner, kind, shape): Written| match inner.is_empty() {
                    true => (inner, kind, shape),
                    false => (format!("{name}.{inner}"), kind, shape),
                };
                fields.extend(inner.into_iter().map(nested));
            } else {
                let word = self.word()?;
                let kind = FieldKind::of_word(&word).ok_or_else(|| unknown_kind(&word))?;
                let shape = if self.takes(',') { self.shape()? } else { Vec::new() };
                fields.push((name, kind, shape));
            }
            self.needs(')')?;
            self.takes(',');
            if fields.len() > FIELDS_MAX {
                return Err(format!("it has more than {FIELDS_MAX} fields"));
            }
        }
        self.depth -= 1;
        Ok(fields)
    }

    fn shape(&mut self) -> Result<Vec<u32>, String> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with(')') {
            return Ok(Vec::new());
        }
        let is_tuple = self.takes('(');
        let mut shape = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                break;
            }
            let (number, rest) = self.rest.split_at(digits);
            shape.push(number.parse().map_err(|_| format!("{number} elements are too many"))?);
            self.rest = rest;
            if !is_tuple || !self.takes(',') {
                break;
            }
        }
        if is_tuple {
            self.needs(')')?;
        }
        Ok(shape)
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(20).collect()
}

#[cfg(test)]
mod tests {
    //! Proves: the three forms are read as NumPy reads them, and flaws are told.
    use super::*;

    fn places(text: &str) -> (Vec<(String, u32, u32)>, u32) {
        let found = RecordType::parse(text).unwrap();
        let place = |field: &RecordField| (field.name.clone(), field.offset, field.kind.bytes());
        (found.fields().iter().map(place).collect(), found.record_bytes())
    }

    #[test]
    fn types_are_read() {
        let field = |name: &str, offset, bytes| (name.to_owned(), offset, bytes);
        let expected = vec![field("id", 0, 8), field("at", 8, 4), field("tag", 20, 6)];
        assert_eq!(places("id:u8, at:3f4, tag:S6, :x2"), (expected.clone(), 28));
        let list = "[('id', '<u8'), (\"at\", '<f4', (3,)), ('tag', '|S6'), ('', '|V2')]";
        assert_eq!(places(list), (expected, 28));
        assert_eq!(places("f8"), (vec![field("value", 0, 8)], 8));
        assert_eq!(places("'>i2'"), (vec![field("value", 0, 2)], 2));
        let nested = "[('a', [('x', '<i4'), ('y', '<i4')]), ('b', '<U2')]";
        assert_eq!(
            places(nested),
            (vec![field("a.x", 0, 4), field("a.y", 4, 4), field("b", 8, 8)], 16)
        );
    }

    #[test]
    fn numbers_are_found_by_name_and_index() {
        let found = RecordType::parse("[('m', '>f8', (2, 3)), ('t', 'S4')]").unwrap();
        let at = found.number_at("m", &[1, 2]).unwrap();
        let number = Number { kind: NumberKind::F64, is_big_endian: true };
        assert_eq!(at, FieldAt { offset: 40, number });
        for (name, indices, cause) in [
            ("m", &[1][..], "has 2 dimensions, not 1"),
            ("m", &[2, 0], "index 2 is beyond the field \"m\", of 2"),
            ("t", &[], "is no number"),
            ("n", &[], "there is no field \"n\""),
        ] {
            let error = found.number_at(name, indices).unwrap_err();
            assert!(error.contains(cause), "{error}");
        }
    }

    #[test]
    fn flaws_are_told() {
        for (text, cause) in [
            ("a:f8, a:f8", "there are two fields \"a\""),
            ("a:f9x", "is no kind"),
            ("a:S0", "is no kind"),
            ("a", "is no kind"),
            (":x4000000000, b:f8", "a record has"),
            ("a:99999999999f8", "too many"),
            ("[('a', '<f8')", "is missing before"),
            ("[('a', '<f8'", "is missing before"),
            ("[('a', [('b', '<f8')], (3,))]", "is an array of records"),
            ("[]", "a record has 0 bytes"),
            ("a:f8, b", "is no name:kind"),
        ] {
            let error = RecordType::parse(text).unwrap_err();
            assert!(error.cause.contains(cause), "{text}: {error}");
        }
        let deep = format!("{}('a', '<f8'){}", "[('n', ".repeat(20) + "[", "]".repeat(21));
        assert!(RecordType::parse(&deep).unwrap_err().cause.contains("inside one another"));
    }
}
