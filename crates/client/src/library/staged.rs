//! Memory of the library that stands for memory of the program while other members write it.
//!
//! Nobody but the I/O thread writes memory of the program (docs/decisions/0030). Members have no
//! memory in common, so what they send one another would go through sockets. To memory of the
//! library they write by themselves, and one copy at the end costs less.

use policy::Access;
use units::{ClientId, MIB};
use world::{Memory, Payloads};
use world_real::{RealMemory, RealWorld};

/// Size above which a memory is not staged, in bytes: it would need too much memory, and the copy
/// would keep the I/O thread from other work for too long.
const STAGED_BYTES_MAX: u64 = 64 * MIB;

/// Target of a read.
pub(super) struct Staged<'a> {
    program: &'a RealMemory,
    own: Option<RealMemory>,
}

impl<'a> Staged<'a> {
    /// Stands for `program`, unless that is too large.
    pub(super) fn new(world: &RealWorld, program: &'a RealMemory) -> Self {
        let length = program.length();
        let own = (length > 0 && length <= STAGED_BYTES_MAX).then(|| world.memory(length));
        Self { program, own }
    }

    /// Memory to read to.
    pub(super) fn memory(&self) -> &RealMemory {
        self.own.as_ref().unwrap_or(self.program)
    }

    /// Copies the pieces of `rank`, which have come, to the memory of the program.
    pub(super) fn deliver(&self, access: &Access, rank: ClientId) {
        let Some(own) = &self.own else { return };
        let from = own.bytes();
        self.program.with_bytes_mut(|to| {
            let pieces = access.pieces(rank, access.extent_of(rank));
            for run in pieces.map(|piece| piece.memory_side()) {
                let (count, length) = match run.is_contiguous() {
                    true => (1, run.bytes()),
                    false => (run.count, run.length),
                };
                for index in 0..count {
                    let start = (run.offset + index * run.stride) as usize;
                    let end = start + length as usize;
                    to[start..end].copy_from_slice(&from[start..end]);
                }
            }
        });
    }
}
