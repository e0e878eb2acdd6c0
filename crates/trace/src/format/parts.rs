//! Parts as a stream keeps them: moved to byte 0 of the file and of the memory, each once.

use policy::{BYTES_MAX, ListEntry, Nested, OwnPart};
use std::collections::HashMap;
use units::ClientId;

/// Bytes of encoded parts that a writer keeps to find equal ones. With more, a part that is not
/// among the last ones is written again.
const KEPT_BYTES_MAX: usize = 1 << 26;

/// Parts that are compared before the table is asked.
const LAST_PARTS: usize = 4;

/// Returns the part moved to byte 0 of the file and of the memory, and the bytes by which its file
/// offsets became smaller. A distributed array is moved so that the array begins there. `None` for
/// a part without bytes.
///
/// The part is valid.
pub(crate) fn normal(part: &OwnPart) -> Option<(OwnPart, u64)> {
    let start = start_of(part)?;
    let moved = match part {
        OwnPart::Nested(nests) => {
            let nests = nests.iter().filter(|nest| has_bytes(nest));
            let memory = nests.clone().map(|nest| nest.memory_offset).min().unwrap_or(0);
            let moved = |nest: &Nested| Nested {
                file_offset: nest.file_offset - start,
                memory_offset: nest.memory_offset - memory,
                length: nest.length,
                levels: nest.levels.iter().filter(|level| level.count != 1).copied().collect(),
            };
            OwnPart::Nested(nests.map(moved).collect())
        }
        OwnPart::Dealt { distribution, client, .. } => {
            OwnPart::Dealt { distribution: distribution.clone(), client: *client, file_offset: 0 }
        }
        OwnPart::List(entries) => {
            let memory = entries.iter().map(|entry| entry.memory_offset).min().unwrap_or(0);
            let moved = |entry: &ListEntry| ListEntry {
                file_offset: entry.file_offset - start,
                memory_offset: entry.memory_offset - memory,
                length: entry.length,
            };
            OwnPart::List(entries.iter().map(moved).collect())
        }
    };
    Some((moved, start))
}

/// Byte of the file at which a part begins, or its array; `None` for a part without bytes.
fn start_of(part: &OwnPart) -> Option<u64> {
    match part {
        OwnPart::Nested(nests) => {
            nests.iter().filter(|nest| has_bytes(nest)).map(|nest| nest.file_offset).min()
        }
        OwnPart::Dealt { file_offset, .. } => part.file_extent().map(|_| *file_offset),
        OwnPart::List(entries) => entries.first().map(|entry| entry.file_offset),
    }
}

fn has_bytes(nest: &Nested) -> bool {
    nest.length > 0 && nest.levels.iter().all(|level| level.count > 0)
}

/// Refuses a part that is not valid or not [`normal`]; returns the end of its last byte.
pub(crate) fn end_of_normal(part: &OwnPart) -> Result<u64, String> {
    if let OwnPart::Dealt { distribution, client, .. } = part
        && client.0 >= distribution.clients
    {
        return Err(format!("is that of client {client} of {}", distribution.clients));
    }
    part.validate(ClientId(0), BYTES_MAX).map_err(|error| format!("is not possible: {error}"))?;
    match (part.file_extent(), start_of(part)) {
        (Some(extent), Some(0)) => Ok(extent.end),
        (Some(_), _) => Err("does not begin at byte 0".to_owned()),
        (None, _) => Err("has no bytes".to_owned()),
    }
}

/// Parts of a writer, by content.
#[derive(Default)]
pub(crate) struct PartTable {
    numbers: HashMap<Box<[u8]>, u32>,
    kept_bytes: usize,
    /// Last parts that were used, with their numbers; a new one replaces the oldest.
    last: Vec<(OwnPart, u32)>,
    oldest: usize,
    /// Encoded form of the part that [`PartTable::find`] was asked for last.
    encoded: Vec<u8>,
}

/// Answer of [`PartTable::find`].
pub(crate) enum Found<'a> {
    /// The part has a number.
    Known(u32),
    /// It gets the next number; its encoded form and the end of its last byte are these.
    New(&'a [u8], u64),
}

impl PartTable {
    /// Looks for a part; if it is new, gives it the number `next`. Returns also the bytes by which
    /// the part is shifted; `None` for a part without bytes.
    ///
    /// # Errors
    /// Refuses a part that is not valid.
    pub(crate) fn find(
        &mut self,
        part: &OwnPart,
        next: u32,
    ) -> Result<Option<(Found<'_>, u64)>, String> {
        if let Some((number, shift)) = self
            .last
            .iter()
            .find_map(|(normal, number)| Some((*number, shift_between(normal, part)?)))
        {
            return Ok(Some((Found::Known(number), shift)));
        }
        let valid = part.validate(ClientId(0), BYTES_MAX);
        valid.map_err(|error| format!("is not possible: {error}"))?;
        let Some((normal, shift)) = normal(part) else { return Ok(None) };
        self.encoded.clear();
        self.encoded = postcard::to_extend(&normal, std::mem::take(&mut self.encoded))
            .map_err(|error| format!("cannot be encoded: {error}"))?;
        let known = self.numbers.get(self.encoded.as_slice()).copied();
        let end = end_of_normal(&normal)?;
        self.remember(normal, known.unwrap_or(next));
        if let Some(number) = known {
            return Ok(Some((Found::Known(number), shift)));
        }
        if self.kept_bytes + self.encoded.len() <= KEPT_BYTES_MAX {
            self.kept_bytes += self.encoded.len();
            self.numbers.insert(self.encoded.as_slice().into(), next);
        }
        Ok(Some((Found::New(&self.encoded, end), shift)))
    }

    fn remember(&mut self, part: OwnPart, number: u32) {
        if self.last.len() < LAST_PARTS {
            self.last.push((part, number));
        } else {
            self.last[self.oldest] = (part, number);
            self.oldest = (self.oldest + 1) % LAST_PARTS;
        }
    }
}

/// Bytes by which `part` is shifted from a normal part; `None` if that is not certain at a glance.
fn shift_between(normal: &OwnPart, part: &OwnPart) -> Option<u64> {
    let (file, memory) = match (normal, part) {
        (OwnPart::Nested(normal), OwnPart::Nested(nests)) if normal.len() == nests.len() => {
            let (first, other) = (normal.first()?, nests.first()?);
            let file = other.file_offset.checked_sub(first.file_offset)?;
            let memory = other.memory_offset.checked_sub(first.memory_offset)?;
            let is_shifted = |(normal, nest): (&Nested, &Nested)| {
                nest.length == normal.length
                    && nest.file_offset.checked_sub(file) == Some(normal.file_offset)
                    && nest.memory_offset.checked_sub(memory) == Some(normal.memory_offset)
                    && nest.levels == normal.levels
            };
            normal.iter().zip(nests).all(is_shifted).then_some((file, memory))?
        }
        (
            OwnPart::Dealt { distribution: normal, client: of_normal, .. },
            OwnPart::Dealt { distribution, client, file_offset },
        ) if normal == distribution && of_normal == client => (*file_offset, 0),
        (OwnPart::List(normal), OwnPart::List(entries)) if normal.len() == entries.len() => {
            let (first, other) = (normal.first()?, entries.first()?);
            let file = other.file_offset.checked_sub(first.file_offset)?;
            let memory = other.memory_offset.checked_sub(first.memory_offset)?;
            let is_shifted = |(normal, entry): (&ListEntry, &ListEntry)| {
                entry.length == normal.length
                    && entry.file_offset.checked_sub(file) == Some(normal.file_offset)
                    && entry.memory_offset.checked_sub(memory) == Some(normal.memory_offset)
            };
            normal.iter().zip(entries).all(is_shifted).then_some((file, memory))?
        }
        _ => return None,
    };
    // Where the shifted part still fits is checked with the transfer; here in memory.
    normal.memory_bytes().checked_add(memory).filter(|end| *end <= BYTES_MAX).map(|_| file)
}
