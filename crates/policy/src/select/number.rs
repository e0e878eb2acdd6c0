//! Scalars that a record can have, and columns of their values.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Kind of a scalar of a record.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum NumberKind {
    /// One byte: false is zero.
    Bool,
    /// Signed integer of 1 byte.
    I8,
    /// Signed integer of 2 bytes.
    I16,
    /// Signed integer of 4 bytes.
    I32,
    /// Signed integer of 8 bytes.
    I64,
    /// Unsigned integer of 1 byte.
    U8,
    /// Unsigned integer of 2 bytes.
    U16,
    /// Unsigned integer of 4 bytes.
    U32,
    /// Unsigned integer of 8 bytes.
    U64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

/// Scalar with its byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Number {
    /// Kind of the scalar.
    pub kind: NumberKind,
    /// True if the most significant byte comes first.
    pub is_big_endian: bool,
}

/// Scalar at its place in each record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FieldAt {
    /// Offset of its first byte in the record.
    pub offset: u32,
    /// Scalar itself.
    pub number: Number,
}

/// Values of a node for the records of a batch.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Column {
    Truth(Vec<bool>),
    Signed(Vec<i64>),
    Unsigned(Vec<u64>),
    Float(Vec<f64>),
}

impl NumberKind {
    /// Number of bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

impl fmt::Display for NumberKind {
    /// Writes the word of NumPy for it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Bool => "bool",
            Self::I8 => "i1",
            Self::I16 => "i2",
            Self::I32 => "i4",
            Self::I64 => "i8",
            Self::U8 => "u1",
            Self::U16 => "u2",
            Self::U32 => "u4",
            Self::U64 => "u8",
            Self::F32 => "f4",
            Self::F64 => "f8",
        })
    }
}

/// Returns the bytes of a scalar of each record, of which `records` is a whole number.
fn scalars<const N: usize>(
    records: &[u8],
    record_bytes: usize,
    offset: usize,
) -> impl Iterator<Item = [u8; N]> {
    records.chunks_exact(record_bytes).map(move |record| {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&record[offset..offset + N]);
        bytes
    })
}

impl FieldAt {
    /// Reads the values of a field from records that follow one another.
    pub(super) fn read(&self, records: &[u8], record_bytes: usize) -> Column {
        let at = self.offset as usize;
        // One loop for each kind: the compiler makes a column of it.
        macro_rules! column {
            ($column:ident, $number:ty, $value:ty) => {{
                let all = scalars::<{ size_of::<$number>() }>(records, record_bytes, at);
                Column::$column(match self.number.is_big_endian {
                    true => all.map(|it| <$value>::from(<$number>::from_be_bytes(it))).collect(),
                    false => all.map(|it| <$value>::from(<$number>::from_le_bytes(it))).collect(),
                })
            }};
        }
        match self.number.kind {
            NumberKind::Bool => Column::Truth(
                scalars::<1>(records, record_bytes, at).map(|it| it[0] != 0).collect(),
            ),
            NumberKind::I8 => column!(Signed, i8, i64),
            NumberKind::I16 => column!(Signed, i16, i64),
            NumberKind::I32 => column!(Signed, i32, i64),
            NumberKind::I64 => column!(Signed, i64, i64),
            NumberKind::U8 => column!(Unsigned, u8, u64),
            NumberKind::U16 => column!(Unsigned, u16, u64),
            NumberKind::U32 => column!(Unsigned, u32, u64),
            NumberKind::U64 => column!(Unsigned, u64, u64),
            NumberKind::F32 => column!(Float, f32, f64),
            NumberKind::F64 => column!(Float, f64, f64),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: scalars of every kind and byte order are read where they are, unaligned.
    use super::*;

    #[test]
    fn fields_of_all_kinds_are_read() {
        let record = |number: &[u8]| [&[0xAA][..], number, &[0xBB; 2]].concat();
        let read = |kind, is_big_endian, numbers: &[&[u8]]| {
            let records: Vec<u8> = numbers.iter().flat_map(|number| record(number)).collect();
            let number = Number { kind, is_big_endian };
            FieldAt { offset: 1, number }.read(&records, numbers[0].len() + 3)
        };
        use NumberKind::*;
        assert_eq!(read(Bool, false, &[&[0], &[2]]), Column::Truth(vec![false, true]));
        assert_eq!(read(I8, false, &[&[0xFF], &[1]]), Column::Signed(vec![-1, 1]));
        assert_eq!(read(I16, true, &[&(-2_i16).to_be_bytes()]), Column::Signed(vec![-2]));
        assert_eq!(read(I32, false, &[&(-3_i32).to_le_bytes()]), Column::Signed(vec![-3]));
        assert_eq!(read(I64, true, &[&i64::MIN.to_be_bytes()]), Column::Signed(vec![i64::MIN]));
        assert_eq!(read(U8, false, &[&[0xFF]]), Column::Unsigned(vec![255]));
        assert_eq!(read(U16, true, &[&[1, 2]]), Column::Unsigned(vec![258]));
        assert_eq!(read(U32, false, &[&[1, 2, 0, 0]]), Column::Unsigned(vec![513]));
        assert_eq!(read(U64, true, &[&u64::MAX.to_be_bytes()]), Column::Unsigned(vec![u64::MAX]));
        assert_eq!(read(F32, true, &[&1.5_f32.to_be_bytes()]), Column::Float(vec![1.5]));
        assert_eq!(read(F64, false, &[&(-0.1_f64).to_le_bytes()]), Column::Float(vec![-0.1]));
    }
}
