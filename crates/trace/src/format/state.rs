//! State of a stream that writer and reader both have, and from which they predict.

use super::recent::Recent;
use super::varint::{signed, zigzag};
use crate::event::Direction;

/// State that both sides keep.
pub(crate) struct State {
    /// Recent messages: communicator, peer, tag as 32 bits, bytes.
    pub(crate) messages: Recent,
    /// Recent collective operations: kind, communicator, root, bytes.
    pub(crate) collectives: Recent,
    /// File of the last transfer.
    pub(crate) last_file: u32,
    /// End of the last byte of each part in the file, in bytes.
    pub(crate) ends: Vec<u64>,
    /// Transfers of each file, that of reads first.
    courses: Vec<[Course; 2]>,
}

/// Last transfer of a file in one direction.
#[derive(Clone, Copy, Default)]
pub(crate) struct Course {
    /// Its part.
    pub(crate) part: u32,
    /// Bytes by which it was shifted.
    shift: u64,
    /// Bytes between it and the one before.
    stride: u64,
    /// End of its last byte.
    end: u64,
}

/// Place of a transfer relative to a [`Course`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// End of the last one.
    End,
    /// As far from the last one as that from the one before.
    Stride,
    /// At a coded distance from the end of the last one.
    Distance(u64),
}

impl State {
    /// State at the begin of a stream.
    pub(crate) fn new() -> Self {
        Self {
            messages: Recent::new(),
            collectives: Recent::new(),
            last_file: 0,
            ends: Vec::new(),
            courses: Vec::new(),
        }
    }

    /// Introduces a file.
    pub(crate) fn add_file(&mut self) {
        self.courses.push([Course::default(); 2]);
    }

    /// Number of files.
    pub(crate) fn files(&self) -> usize {
        self.courses.len()
    }

    /// Course of a known file.
    #[inline]
    pub(crate) fn course(&mut self, file: u32, direction: Direction) -> &mut Course {
        &mut self.courses[file as usize][usize::from(direction == Direction::Write)]
    }
}

impl Course {
    /// Place of a transfer that is shifted by `shift`, of a part of `unit` bytes.
    #[inline]
    pub(crate) fn place(&self, shift: u64, unit: u64) -> Place {
        if shift == self.end {
            return Place::End;
        }
        if shift == self.shift.wrapping_add(self.stride) {
            return Place::Stride;
        }
        let distance = shift.wrapping_sub(self.end) as i64;
        // Shifts and ends are below 2^62, so that one more bit fits.
        match distance % unit as i64 {
            0 => Place::Distance(zigzag(distance / unit as i64) << 1 | 1),
            _ => Place::Distance(zigzag(distance) << 1),
        }
    }

    /// Shift of a transfer at a place, if it is a number.
    #[inline]
    pub(crate) fn shift(&self, place: Place, unit: u64) -> Option<u64> {
        match place {
            Place::End => Some(self.end),
            Place::Stride => Some(self.shift.wrapping_add(self.stride)),
            Place::Distance(code) => {
                let distance = signed(code >> 1);
                let distance = match code & 1 {
                    0 => distance,
                    _ => distance.checked_mul(i64::try_from(unit).ok()?)?,
                };
                self.end.checked_add_signed(distance)
            }
        }
    }

    /// Notes a transfer of a part whose last byte ends at `end` before it is shifted.
    #[inline]
    pub(crate) fn note(&mut self, part: u32, shift: u64, end: u64) {
        self.stride = shift.wrapping_sub(self.shift);
        *self = Self { part, shift, stride: self.stride, end: shift + end };
    }
}
