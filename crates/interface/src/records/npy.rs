//! Headers of NumPy's .npy format, by which a file of records describes itself.

use super::record_type::RecordType;
use crate::UserError;
use policy::RecordGrid;

/// Start of such a file.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Longest header that is read, in bytes.
pub(super) const HEADER_BYTES_MAX: usize = 1 << 16;

/// A header that is written has a multiple of so many bytes.
const ALIGNMENT: usize = 64;

/// Records of a file, with their type.
#[derive(Clone, PartialEq, Debug)]
pub struct TypedRecords {
    /// Type of a record.
    pub records: RecordType,
    /// First byte of the first record.
    pub start: u64,
    /// Number of records.
    pub count: u64,
}

impl TypedRecords {
    /// Places of the records in the file.
    pub fn grid(&self) -> RecordGrid {
        let record_bytes = self.records.record_bytes();
        RecordGrid { start: self.start, record_bytes, count: self.count }
    }
}

/// Reads the header at the start of a file, of which `bytes` are the first 64 KiB.
///
/// # Errors
/// A file that has no such header, or one of another version or order.
pub fn read_npy_header(bytes: &[u8]) -> Result<TypedRecords, UserError> {
    header(bytes).map_err(|cause| {
        UserError::usage(
            "cannot tell the type of the records",
            cause,
            "give the type: --type \"id:u8, energy:f4\"",
        )
    })
}

fn header(bytes: &[u8]) -> Result<TypedRecords, String> {
    let none = || "the file does not begin with a header of NumPy's .npy format".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(none)?;
    let (major, length, start) = match rest {
        [1, 0, low, high, ..] => (1, u32::from(u16::from_le_bytes([*low, *high])), 10),
        [2, 0, a, b, c, d, ..] => (2, u32::from_le_bytes([*a, *b, *c, *d]), 12),
        [major, minor, ..] => return Err(format!("version {major}.{minor} of .npy is not known")),
        _ => return Err(none()),
    };
    let start = start + length as usize;
    let text = bytes.get(if major == 1 { 10 } else { 12 }..start);
    let text = text.filter(|text| text.len() <= HEADER_BYTES_MAX).ok_or("its header is cut off")?;
    let text = std::str::from_utf8(text).map_err(|_| "its header is no text")?;
    let value = |key: &str| {
        let (_, rest) = text.split_once(&format!("'{key}':")).ok_or(format!("it has no {key}"))?;
        Ok::<_, String>(rest.trim_start())
    };
    let shape = value("shape")?;
    let shape = shape.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let shape = shape.ok_or("its shape makes no sense")?.0;
    let extents = shape.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let (mut count, mut dimensions) = (1_u64, 0);
    for extent in extents {
        let extent: u64 = extent.parse().map_err(|_| format!("its shape has {extent:?}"))?;
        count = count.checked_mul(extent).ok_or("its shape is too large")?;
        dimensions += 1;
    }
    if value("fortran_order")?.starts_with("True") && dimensions > 1 {
        return Err("its elements are in Fortran order".to_owned());
    }
    let records = RecordType::parse(described(value("descr")?)?).map_err(|error| error.cause)?;
    Ok(TypedRecords { records, start: start as u64, count })
}

/// Returns the text of a type, at the start of `text`: a list or a word in quotes.
fn described(text: &str) -> Result<&str, String> {
    let mut depth = 0_u32;
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => continue,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[' | '(') => depth += 1,
            (None, ']' | ')') => depth = depth.saturating_sub(1),
            (None, _) => {}
        }
        if at > 0 && depth == 0 && quote.is_none() {
            return Ok(&text[..=at]);
        }
    }
    Err("its type is cut off".to_owned())
}

/// Makes a header for a file of `count` records.
pub fn npy_header(records: &RecordType, count: u64) -> Vec<u8> {
    let about = format!(
        "{{'descr': {}, 'fortran_order': False, 'shape': ({count},), }}",
        records.described()
    );
    let long = about.len() > usize::from(u16::MAX) - 2 * ALIGNMENT;
    let before = if long { 12 } else { 10 };
    let whole = (before + about.len() + 1).next_multiple_of(ALIGNMENT);
    let length = whole - before;
    let mut bytes = MAGIC.to_vec();
    match long {
        true => {
            bytes.extend([2, 0]);
            bytes.extend((length as u32).to_le_bytes());
        }
        false => {
            bytes.extend([1, 0]);
            bytes.extend((length as u16).to_le_bytes());
        }
    }
    bytes.extend(about.as_bytes());
    bytes.resize(whole - 1, b' ');
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    //! Proves: a header that is written is read, one of NumPy is too, and flaws are told.
    use super::*;

    #[test]
    fn headers_come_back() {
        for text in ["f8", "id:u8, at:3f4, tag:S6, :x2, w:U3, on:b1", "a:>i2, :x6, b:V4"] {
            let records = RecordType::parse(text).unwrap();
            let bytes = npy_header(&records, 77);
            assert_eq!(bytes.len() % 64, 0);
            let start = bytes.len() as u64;
            assert_eq!(read_npy_header(&bytes), Ok(TypedRecords { records, start, count: 77 }));
        }
    }

    #[test]
    fn headers_of_numpy_are_read() {
        let about = "{'descr': [('a', '<i4'), ('b)', '<f8', (2,))], 'fortran_order': False, \
                     'shape': (3, 4), }";
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{about:<117}\n").as_bytes());
        let header = read_npy_header(&bytes).unwrap();
        assert_eq!((header.start, header.count, header.records.record_bytes()), (128, 12, 20));
        let fortran = String::from_utf8_lossy(&bytes[10..]).replace("False", "True ");
        let fortran = [&bytes[..10], fortran.as_bytes()].concat();
        for (bytes, cause) in [
            (&bytes[..100], "cut off"),
            (b"\x93NUMPY\x03\x00\x00\x00", "version 3.0"),
            (b"PAR1", "does not begin"),
            (&fortran[..], "Fortran"),
        ] {
            let error = read_npy_header(bytes).unwrap_err();
            assert!(error.cause.contains(cause), "{error}");
        }
    }
}
