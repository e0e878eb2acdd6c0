//! Parts: the bytes of a file that one client owns, and their places in its memory.

use crate::arguments::{Array, Bytes, Out};
use crate::border::{Failure, exported};
use crate::handles::{FileHandle, PartHandle, make};
use client::{Dimension, Direction, Distribution, Level, ListEntry, Nested, OwnPart};
use policy::{BYTES_MAX, DIMENSIONS_MAX, LEVELS_MAX, LIST_ENTRIES_MAX, NESTS_MAX};
use std::ffi::c_int;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use units::ClientId;

/// `unisono_level_t`.
#[repr(C)]
pub(crate) struct LevelView {
    count: u64,
    file_stride: u64,
    memory_stride: u64,
}

/// `unisono_piece_t`.
#[repr(C)]
pub(crate) struct PieceView {
    file_offset: u64,
    memory_offset: u64,
    bytes: u64,
}

/// `unisono_dimension_t`.
#[repr(C)]
pub(crate) struct DimensionView {
    extent: u64,
    chunk: u64,
    rule: u32,
    clients: u32,
}

/// Rules of `unisono_dimension_t`.
const WHOLE: u32 = 0;
const BLOCK: u32 = 1;
const CYCLIC: u32 = 2;

impl DimensionView {
    fn rule(&self) -> Result<Dimension, Failure> {
        let chunk = self.chunk;
        match (self.rule, chunk) {
            (WHOLE, 0) => Ok(Dimension::None),
            (BLOCK, 0) => Ok(Dimension::Block),
            (CYCLIC, chunk) => Ok(Dimension::Cyclic(chunk)),
            (rule, _) => {
                let cause =
                    format!("has rule {rule} with chunk {chunk}, which is not a valid rule");
                Err(Failure::argument("dimensions", cause))
            }
        }
    }
}

/// A part that was checked: every sum and product of its numbers fits.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) own: OwnPart,
    /// Bytes in all pieces.
    pub(crate) bytes: u64,
}

impl Part {
    /// Refuses a part that is not valid.
    fn new(own: OwnPart) -> Result<Self, Failure> {
        let checked = own.validate(ClientId(0), BYTES_MAX);
        checked.map_err(|error| Failure::argument("part", format!("is not possible: {error}")))?;
        let bytes = own.bytes();
        Ok(Self { own, bytes })
    }

    /// Adds a nested stride to a union of them.
    fn add(&mut self, nest: Nested) -> Result<(), Failure> {
        let added = Self::new(OwnPart::Nested(vec![nest.clone()]))?.bytes;
        let bytes = self.bytes.checked_add(added).filter(|bytes| *bytes <= BYTES_MAX);
        match (&mut self.own, bytes) {
            (OwnPart::Nested(nests), Some(bytes)) if nests.len() < NESTS_MAX => {
                nests.push(nest);
                self.bytes = bytes;
                Ok(())
            }
            (OwnPart::Nested(_), _) => {
                let cause = format!("is full: it may have {NESTS_MAX} members and 2^62 bytes");
                Err(Failure::argument("part", cause))
            }
            (OwnPart::Dealt { .. } | OwnPart::List(_), _) => {
                let cause = "is a distribution or a list, to which no stride can be added";
                Err(Failure::argument("part", cause))
            }
        }
    }
}

/// The part as it is now.
pub(crate) fn current(part: &PartHandle) -> Result<RwLockReadGuard<'_, Part>, Failure> {
    Ok(part.anywhere("part")?.read().unwrap_or_else(PoisonError::into_inner))
}

/// A copy of the part as it is now.
pub(crate) fn copy(part: &PartHandle) -> Result<Part, Failure> {
    Ok(current(part)?.clone())
}

fn make_part(
    out: &Out<PartHandle>,
    own: impl FnOnce() -> Result<OwnPart, Failure>,
) -> Result<(), Failure> {
    make(out, "part", || Ok(RwLock::new(Part::new(own()?)?)))
}

fn nested(
    (file_offset, memory_offset, length): (u64, u64, u64),
    levels: &Array<LevelView>,
    level_count: usize,
) -> Result<Nested, Failure> {
    let levels = levels.values(level_count, LEVELS_MAX, "levels")?;
    let level = |level: &LevelView| Level {
        count: level.count,
        file_stride: level.file_stride,
        memory_stride: level.memory_stride,
    };
    let levels = levels.iter().map(level).collect();
    Ok(Nested { file_offset, memory_offset, length, levels })
}

fn distribution(
    dimensions: &[DimensionView],
    record_bytes: u64,
    clients: u32,
) -> Result<Distribution, Failure> {
    let rules: Result<Vec<_>, _> = dimensions.iter().map(DimensionView::rule).collect();
    Ok(Distribution {
        shape: dimensions.iter().map(|dimension| dimension.extent).collect(),
        record_bytes,
        dimensions: rules?,
        grid: dimensions.iter().map(|dimension| dimension.clients).collect(),
        clients,
    })
}

exported! {
    /// A contiguous part.
    fn unisono_part_contiguous(file_offset: u64, bytes: u64, part: Out<PartHandle>) -> c_int {
        make_part(&part, || Ok(OwnPart::contiguous(file_offset, bytes)))
    }

    /// A nested stride.
    fn unisono_part_nested(
        file_offset: u64,
        memory_offset: u64,
        bytes: u64,
        levels: Array<LevelView>,
        level_count: usize,
        part: Out<PartHandle>,
    ) -> c_int {
        make_part(&part, || {
            let nest = nested((file_offset, memory_offset, bytes), &levels, level_count)?;
            Ok(OwnPart::Nested(vec![nest]))
        })
    }

    /// Adds a nested stride to a union.
    fn unisono_part_add(
        part: PartHandle,
        file_offset: u64,
        memory_offset: u64,
        bytes: u64,
        levels: Array<LevelView>,
        level_count: usize,
    ) -> c_int {
        let nest = nested((file_offset, memory_offset, bytes), &levels, level_count)?;
        let part = part.anywhere("part")?;
        part.write().unwrap_or_else(PoisonError::into_inner).add(nest)
    }

    /// A part of a distributed array.
    fn unisono_part_distribution(
        dimensions: Array<DimensionView>,
        dimension_count: usize,
        record_bytes: u64,
        clients: u32,
        client: u32,
        file_offset: u64,
        part: Out<PartHandle>,
    ) -> c_int {
        make_part(&part, || {
            let dimensions = dimensions.values(dimension_count, DIMENSIONS_MAX, "dimensions")?;
            let distribution = distribution(dimensions, record_bytes, clients)?;
            if client >= clients {
                let cause = format!("is {client}, but there are {clients} clients");
                return Err(Failure::argument("client", cause));
            }
            Ok(OwnPart::Dealt { distribution, client: ClientId(client), file_offset })
        })
    }

    /// A list of pieces.
    fn unisono_part_list(
        pieces: Array<PieceView>,
        count: usize,
        part: Out<PartHandle>,
    ) -> c_int {
        make_part(&part, || {
            let pieces = pieces.values(count, LIST_ENTRIES_MAX, "pieces")?;
            let entry = |piece: &PieceView| ListEntry {
                file_offset: piece.file_offset,
                memory_offset: piece.memory_offset,
                length: piece.bytes,
            };
            Ok(OwnPart::List(pieces.iter().map(entry).collect()))
        })
    }

    /// Bytes in all pieces.
    fn unisono_part_bytes(part: PartHandle, bytes: Out<u64>) -> c_int {
        let slot = bytes.slot("bytes")?;
        slot.set(current(&part)?.bytes);
        Ok(())
    }

    /// Bytes of memory that a transfer needs.
    fn unisono_part_memory_bytes(part: PartHandle, bytes: Out<u64>) -> c_int {
        let slot = bytes.slot("bytes")?;
        slot.set(current(&part)?.own.memory_bytes());
        Ok(())
    }

    /// Frees a part.
    fn unisono_part_free(part: PartHandle) {
        part.take_anywhere("part").map(drop)
    }

    /// Reads a part.
    fn unisono_read_part(
        file: FileHandle,
        part: PartHandle,
        memory: Bytes,
        memory_bytes: u64,
    ) -> i64 {
        let (file, Part { own, bytes }) = (file.get("file")?, copy(&part)?);
        let memory = memory.memory(memory_bytes, "memory")?;
        file.start_part(Direction::Read, own, memory, false).wait()?;
        Ok(bytes)
    }

    /// Writes a part.
    fn unisono_write_part(
        file: FileHandle,
        part: PartHandle,
        memory: Bytes,
        memory_bytes: u64,
        sync: c_int,
    ) -> i64 {
        let (file, Part { own, bytes }) = (file.get("file")?, copy(&part)?);
        let memory = memory.memory(memory_bytes, "memory")?;
        file.start_part(Direction::Write, own, memory, sync != 0).wait()?;
        Ok(bytes)
    }
}
