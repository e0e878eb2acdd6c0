//! Data in motion (payloads) and at rest (memory).
//!
//! Programs can measure and cut data: a world may store real bytes, or only their number, or only
//! their origins. Nothing but a selection of records looks inside, where there are bytes.

use units::Run;

/// An immutable piece of data, passed by value; clones share the same bytes.
pub trait Payload: Clone + 'static {
    /// Number of bytes.
    fn length(&self) -> u64;

    /// Returns the bytes `offset .. offset + length`, without copying. Panics when out of range.
    fn slice(&self, offset: u64, length: u64) -> Self;

    /// Copies the pieces of `runs`, in order, into one packed payload. Panics when a run leaves the
    /// payload.
    fn gather(&self, runs: &[Run]) -> Self;

    /// The bytes, for a program whose work depends on them; `None` for data without bytes.
    fn look_inside(&self) -> Option<&[u8]>;

    /// Returns a number that equal data have in common, so that data can be compared at its place:
    /// the CRC32C of bytes. For data without bytes, each kind defines the number.
    fn digest(&self) -> u32;

    /// Returns the exclusive or of this and another payload of the same length. Panics when their
    /// lengths differ. Traced data becomes data of no origin.
    fn xor(&self, other: &Self) -> Self;

    /// Returns the digest of the exclusive or of payloads of `length` bytes that have these
    /// digests; `None` for data whose digests do not tell it.
    fn digest_of_xor(digests: &[u32], length: u64) -> Option<u32>;
}

/// Bytes of zeros whose CRC is computed at a time.
const ZEROS: [u8; 4096] = [0; 4096];

/// Returns the CRC32C of the exclusive or of data of `length` bytes each, which have these CRCs.
///
/// CRCs are linear, but for what that of zeros adds to each.
pub fn crc_of_xor(crcs: &[u32], length: u64) -> u32 {
    let (mut zeros, mut left) = (0, length);
    while left > 0 {
        let some = left.min(ZEROS.len() as u64);
        zeros = crc32c::crc32c_append(zeros, &ZEROS[..some as usize]);
        left -= some;
    }
    crcs.iter().fold(zeros, |sum, crc| sum ^ crc ^ zeros)
}

/// A mutable area of memory of fixed length; clones are handles to the same area.
///
/// Examples are the buffer of a client and a block that a server assembles.
pub trait Memory: Clone + 'static {
    /// Data that is cut from it.
    type Payload: Payload;

    /// Number of bytes.
    fn length(&self) -> u64;

    /// Copies the pieces of `runs`, in order, into one packed payload.
    /// Panics when a run leaves the memory.
    fn gather(&self, runs: &[Run]) -> Self::Payload;

    /// Copies `payload` piece by piece into `runs`, in order. Panics when a run leaves the memory
    /// or the runs hold another number of bytes than the payload.
    fn scatter(&self, runs: &[Run], payload: &Self::Payload);

    /// Returns the whole contents as a payload; without a copy when this is the only handle.
    fn freeze(self) -> Self::Payload;
}

/// The kinds of data and memory of a world, and the source of new memory.
pub trait Payloads: 'static {
    /// Data in motion.
    type Payload: Payload;
    /// Memory at rest.
    type Memory: Memory<Payload = Self::Payload>;

    /// Returns a memory of `length` bytes. **Its contents are unspecified** until they are
    /// overwritten: before it is sent or stored, every byte must have been written.
    fn memory(&self, length: u64) -> Self::Memory;

    /// Returns a memory with the contents of `payload`; without a copy when the payload is the only
    /// handle to the whole of its bytes.
    fn thaw(&self, payload: Self::Payload) -> Self::Memory;
}

#[cfg(test)]
mod tests {
    //! Proves: the CRC of an exclusive or follows from the CRCs, for any number of data.
    use super::*;

    #[test]
    fn the_crc_of_an_exclusive_or_follows_from_the_crcs() {
        for length in [0, 1, 7, 4096, 10_000_usize] {
            let data = |seed: usize| (0..length).map(move |at| (at * seed + seed * 7 + 3) as u8);
            for count in 1..5 {
                let all: Vec<Vec<u8>> = (0..count).map(|seed| data(seed + 1).collect()).collect();
                let crcs: Vec<u32> = all.iter().map(|one| crc32c::crc32c(one)).collect();
                let xor = |at: usize| all.iter().fold(0, |sum, one| sum ^ one[at]);
                let combined: Vec<u8> = (0..length).map(xor).collect();
                assert_eq!(crc_of_xor(&crcs, length as u64), crc32c::crc32c(&combined));
            }
        }
    }
}
