//! Source of a file's bytes, to write them and to compare the bytes that are read.

use super::case::SourceSpec;
use policy::Access;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use units::{ByteRange, ClientId, MIB, SplitMix64};

/// Source of the bytes of a file.
pub(crate) enum Source {
    /// Word `i` of the file is a mix of the seed, the repetition and `i`, in little-endian order.
    Generated {
        /// Seed of the case.
        seed: u64,
        /// Number of the transfer within the case.
        repetition: u32,
    },
    /// A local file, and zeros after its end.
    Local(File),
}

/// Bytes that are made or read at a time.
const WINDOW_BYTES: u64 = MIB;

impl Source {
    pub(crate) fn open(spec: &SourceSpec) -> io::Result<Self> {
        match spec {
            SourceSpec::Generated(seed) => Ok(Self::Generated { seed: *seed, repetition: 0 }),
            SourceSpec::File(path) => File::open(path).map(Self::Local),
        }
    }

    /// Changes the bytes to those of repetition `to`, if they are generated and not read from a
    /// file.
    pub(crate) fn vary(&mut self, to: u32) {
        if let Self::Generated { repetition, .. } = self {
            *repetition = to;
        }
    }

    /// Fills `memory` with the part that `client` owns of a file of `file_bytes` bytes.
    pub(crate) fn fill(
        &self,
        access: &Access,
        client: ClientId,
        file_bytes: u64,
        memory: &mut [u8],
    ) -> io::Result<()> {
        self.each_piece(access, client, file_bytes, |offset, bytes| {
            memory[offset..offset + bytes.len()].copy_from_slice(bytes);
        })
    }

    /// Returns the index of the first byte of `memory`, if any, that differs from the part that
    /// `client` owns of the file.
    pub(crate) fn first_difference(
        &self,
        access: &Access,
        client: ClientId,
        file_bytes: u64,
        memory: &[u8],
    ) -> io::Result<Option<usize>> {
        let mut wrong = None;
        self.each_piece(access, client, file_bytes, |offset, bytes| {
            if wrong.is_none() && memory[offset..offset + bytes.len()] != *bytes {
                let pairs = memory[offset..].iter().zip(bytes);
                wrong = pairs.enumerate().find(|(_, (a, b))| a != b).map(|(i, _)| offset + i);
            }
        })?;
        Ok(wrong)
    }

    /// Calls `visit` with the memory offset and the bytes of each piece of `client`.
    fn each_piece(
        &self,
        access: &Access,
        client: ClientId,
        file_bytes: u64,
        mut visit: impl FnMut(usize, &[u8]),
    ) -> io::Result<()> {
        let mut window = vec![0; WINDOW_BYTES as usize];
        for range in ByteRange::new(0, file_bytes).windows(WINDOW_BYTES) {
            let start = range.start;
            let mut pieces = access.pieces(client, range).peekable();
            if pieces.peek().is_none() {
                continue;
            }
            let bytes = &mut window[..range.length() as usize];
            self.read(start, bytes)?;
            for run in pieces {
                let offsets = run.file_side().offsets().zip(run.memory_side().offsets());
                for (offset, memory_offset) in offsets {
                    let at = (offset - start) as usize;
                    visit(memory_offset as usize, &bytes[at..at + run.length as usize]);
                }
            }
        }
        Ok(())
    }

    /// Reads the bytes of the file from `offset`, a multiple of eight.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Generated { seed, repetition } => {
                let seed = mix(*seed ^ u64::from(*repetition) << 32);
                for (word, chunk) in (offset / 8..).zip(bytes.chunks_mut(8)) {
                    chunk.copy_from_slice(&mix(seed ^ word).to_le_bytes()[..chunk.len()]);
                }
                Ok(())
            }
            Self::Local(file) => {
                let mut filled = 0;
                while filled < bytes.len() {
                    match file.read_at(&mut bytes[filled..], offset + filled as u64) {
                        Ok(0) => break,
                        Ok(read) => filled += read,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
                bytes[filled..].fill(0);
                Ok(())
            }
        }
    }
}

/// Returns number `index` of a pseudorandom sequence with random access.
fn mix(index: u64) -> u64 {
    SplitMix64::mix(index.wrapping_mul(SplitMix64::INCREMENT))
}
