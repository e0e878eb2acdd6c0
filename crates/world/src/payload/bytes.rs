//! Real bytes in safe code, for simulations that must produce the actual contents.

use super::Kind;
use super::phantom::measure;
use crate::{Memory, Payload, crc_of_xor};
use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;
use units::Run;

/// Shared, immutable bytes.
#[derive(Clone, Debug)]
pub struct Bytes {
    all: Rc<Vec<u8>>,
    offset: usize,
    length: usize,
}

impl From<Vec<u8>> for Bytes {
    fn from(all: Vec<u8>) -> Self {
        let length = all.len();
        Self { all: Rc::new(all), offset: 0, length }
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.all[self.offset..self.offset + self.length]
    }
}

impl Payload for Bytes {
    fn length(&self) -> u64 {
        self.length as u64
    }

    fn slice(&self, offset: u64, length: u64) -> Self {
        assert!(offset + length <= self.length as u64, "a slice must lie in its payload");
        let offset = self.offset + offset as usize;
        Self { all: Rc::clone(&self.all), offset, length: length as usize }
    }

    fn gather(&self, runs: &[Run]) -> Self {
        match runs {
            [run] if run.is_contiguous() => self.slice(run.offset, run.bytes()),
            _ => packed(self, runs),
        }
    }

    fn look_inside(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn digest(&self) -> u32 {
        crc32c::crc32c(&self.all[self.offset..self.offset + self.length])
    }

    fn xor(&self, other: &Self) -> Self {
        assert!(self.length == other.length, "both payloads must have the same length");
        self.iter().zip(other.iter()).map(|(one, other)| one ^ other).collect::<Vec<u8>>().into()
    }

    fn digest_of_xor(digests: &[u32], length: u64) -> Option<u32> {
        Some(crc_of_xor(digests, length))
    }
}

/// Copies the pieces of some bytes. Panics when a run leaves them.
fn packed(bytes: &[u8], runs: &[Run]) -> Bytes {
    let mut packed = Vec::with_capacity(measure(runs, bytes.len() as u64) as usize);
    for run in runs {
        for offset in run.offsets() {
            packed.extend_from_slice(&bytes[offset as usize..(offset + run.length) as usize]);
        }
    }
    packed.into()
}

/// Real memory.
#[derive(Clone, Debug)]
pub struct BytesMemory(Rc<RefCell<Vec<u8>>>);

impl BytesMemory {
    /// Returns a copy of the contents.
    pub fn to_vec(&self) -> Vec<u8> {
        self.0.borrow().clone()
    }
}

impl Memory for BytesMemory {
    type Payload = Bytes;

    fn length(&self) -> u64 {
        self.0.borrow().len() as u64
    }

    fn gather(&self, runs: &[Run]) -> Bytes {
        packed(&self.0.borrow(), runs)
    }

    fn scatter(&self, runs: &[Run], payload: &Bytes) {
        let mut bytes = self.0.borrow_mut();
        let total = measure(runs, bytes.len() as u64);
        assert!(total == payload.length(), "a scatter must place every byte of its payload");
        let mut rest: &[u8] = payload;
        for run in runs {
            for offset in run.offsets() {
                let (piece, after) = rest.split_at(run.length as usize);
                bytes[offset as usize..(offset + run.length) as usize].copy_from_slice(piece);
                rest = after;
            }
        }
    }

    fn freeze(self) -> Bytes {
        match Rc::try_unwrap(self.0) {
            Ok(own) => own.into_inner().into(),
            Err(shared) => shared.borrow().clone().into(),
        }
    }
}

impl Kind for Bytes {
    type Memory = BytesMemory;
    const REMEMBERED: bool = true;

    fn memory(length: u64) -> BytesMemory {
        BytesMemory(Rc::new(RefCell::new(vec![0; length as usize])))
    }

    fn thaw(self) -> BytesMemory {
        BytesMemory(Rc::new(RefCell::new(self.to_vec())))
    }

    fn unwritten(_disk: u32, _object: u64, _offset: u64, length: u64) -> Self {
        vec![0; length as usize].into()
    }
}
