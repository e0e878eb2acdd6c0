//! Records as comma-separated values (RFC 4180), with a line of names.

use interface::{FieldKind, Number, NumberKind, RecordField, RecordType};
use std::fmt::Write;

/// Scalar of a record.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Scalar {
    Truth(bool),
    Signed(i64),
    Unsigned(u64),
    Single(f32),
    Double(f64),
}

/// Column of a table of records: an element of a field.
pub(super) struct Column<'a> {
    pub(super) name: String,
    pub(super) field: &'a RecordField,
    /// First byte in the record.
    pub(super) offset: usize,
}

/// Returns the columns of records. A field with several elements has one for each.
pub(super) fn columns(records: &RecordType) -> Vec<Column<'_>> {
    let mut columns = Vec::new();
    for field in records.fields() {
        let elements: u32 = field.shape.iter().product();
        for element in 0..elements {
            let mut name = field.name.clone();
            let mut left = elements;
            for length in &field.shape {
                left /= (*length).max(1);
                let _ = write!(name, "[{}]", element / left.max(1) % (*length).max(1));
            }
            let offset = (field.offset + element * field.kind.bytes()) as usize;
            columns.push(Column { name, field, offset });
        }
    }
    columns
}

impl Column<'_> {
    /// Returns the bytes of the column in a record.
    pub(super) fn bytes<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[self.offset..self.offset + self.field.kind.bytes() as usize]
    }

    /// Returns the text of a field of letters, without the zeros behind it.
    pub(super) fn text(&self, record: &[u8]) -> Option<String> {
        let bytes = self.bytes(record);
        match self.field.kind {
            FieldKind::Text { .. } => {
                let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
            }
            FieldKind::WideText { .. } => {
                let letters = bytes
                    .chunks_exact(4)
                    .map(|letter| u32::from_le_bytes([letter[0], letter[1], letter[2], letter[3]]));
                let letters: Vec<u32> = letters.collect();
                let length = letters.iter().rposition(|letter| *letter != 0).map_or(0, |at| at + 1);
                let letter = |letter: &u32| char::from_u32(*letter).unwrap_or('\u{fffd}');
                Some(letters[..length].iter().map(letter).collect())
            }
            FieldKind::Number(_) | FieldKind::Other { .. } => None,
        }
    }
}

/// Reads a number.
pub(super) fn scalar(number: Number, bytes: &[u8]) -> Scalar {
    let mut ordered = [0; 8];
    let length = bytes.len().min(8);
    ordered[..length].copy_from_slice(&bytes[..length]);
    if number.is_big_endian {
        ordered[..length].reverse();
    }
    let all = u64::from_le_bytes(ordered);
    match number.kind {
        NumberKind::Bool => Scalar::Truth(all != 0),
        NumberKind::I8 => Scalar::Signed((all as i8).into()),
        NumberKind::I16 => Scalar::Signed((all as i16).into()),
        NumberKind::I32 => Scalar::Signed((all as i32).into()),
        NumberKind::I64 => Scalar::Signed(all as i64),
        NumberKind::U8 | NumberKind::U16 | NumberKind::U32 | NumberKind::U64 => {
            Scalar::Unsigned(all)
        }
        NumberKind::F32 => Scalar::Single(f32::from_bits(all as u32)),
        NumberKind::F64 => Scalar::Double(f64::from_bits(all)),
    }
}

/// Writes a float so that it is read as the same one.
pub(super) fn float(value: f64) -> String {
    match value {
        value if value.is_nan() => "nan".to_owned(),
        value => format!("{value:?}"),
    }
}

/// Returns the line of names.
pub(super) fn header(records: &RecordType) -> String {
    let names: Vec<String> = columns(records).iter().map(|column| quoted(&column.name)).collect();
    names.join(",") + "\n"
}

/// Returns a line for each record.
pub(super) fn lines(records: &RecordType, bytes: &[u8]) -> String {
    let columns = columns(records);
    let mut text = String::with_capacity(bytes.len() * 2);
    for record in bytes.chunks_exact(records.record_bytes() as usize) {
        for (number, column) in columns.iter().enumerate() {
            if number > 0 {
                text.push(',');
            }
            add(&mut text, column, record);
        }
        text.push('\n');
    }
    text
}

fn add(text: &mut String, column: &Column<'_>, record: &[u8]) {
    let bytes = column.bytes(record);
    let FieldKind::Number(number) = column.field.kind else {
        match column.text(record) {
            Some(word) => text.push_str(&quoted(&word)),
            None => bytes.iter().for_each(|byte| _ = write!(text, "{byte:02x}")),
        }
        return;
    };
    // Writing to a text does not fail.
    let _ = match scalar(number, bytes) {
        Scalar::Truth(value) => write!(text, "{value}"),
        Scalar::Signed(value) => write!(text, "{value}"),
        Scalar::Unsigned(value) => write!(text, "{value}"),
        Scalar::Single(value) if value.is_nan() => write!(text, "nan"),
        Scalar::Single(value) => write!(text, "{value:?}"),
        Scalar::Double(value) => write!(text, "{}", float(value)),
    };
}

fn quoted(word: &str) -> String {
    match word.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", word.replace('"', "\"\"")),
        false => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    //! Proves: each element has a column, and each value the text from which it is read.
    use super::*;

    #[test]
    fn records_are_lines() {
        let text = "id:>i2, at:2f4, on:b1, tag:S4, name:U2, raw:V2, big:u8, x:f8";
        let records = RecordType::parse(text).unwrap();
        let mut bytes = (-7_i16).to_be_bytes().to_vec();
        bytes.extend(0.1_f32.to_le_bytes());
        bytes.extend(f32::NAN.to_le_bytes());
        bytes.extend([1, b'a', b',', b'"', 0]);
        bytes.extend([0xE4, 0, 0, 0, 0, 0, 0, 0, 0xAB, 0x01]);
        bytes.extend(u64::MAX.to_le_bytes());
        bytes.extend(1e300_f64.to_le_bytes());
        assert_eq!(header(&records), "id,at[0],at[1],on,tag,name,raw,big,x\n");
        let expected = "-7,0.1,nan,true,\"a,\"\"\",ä,ab01,18446744073709551615,1e300\n";
        assert_eq!(lines(&records, &bytes), expected);
        let matrix = RecordType::parse("[('m', '<i2', (2, 3))]").unwrap();
        assert_eq!(header(&matrix), "m[0][0],m[0][1],m[0][2],m[1][0],m[1][1],m[1][2]\n");
    }
}
