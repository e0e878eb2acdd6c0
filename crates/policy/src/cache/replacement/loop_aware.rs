//! Loop aware: evicts the block that a loop over the file needs last.

use super::built_in::BuiltIn;
use super::kind::Replacement;
use super::policy::ReplacementPolicy;
use crate::choice::Choice;
use std::collections::BTreeSet;

pub(super) const POLICY: BuiltIn = BuiltIn {
    choice: Choice {
        value: Replacement::LoopAware,
        name: "loop-aware",
        help: "the block that a loop over the file needs last",
    },
    make: || Box::<LoopAware>::default(),
};

/// Blocks of a file that is read in a loop, in ascending order.
///
/// The loop next needs the blocks after `position`, ascending. In its next pass it needs those from
/// the start of the file up to `position`. Candidates are in the reverse of that order.
#[derive(Debug, Default)]
struct LoopAware {
    blocks: BTreeSet<u64>,
    /// Block that was used last.
    position: u64,
}

impl ReplacementPolicy for LoopAware {
    fn used(&mut self, block: u64, _: bool) {
        self.blocks.insert(block);
        self.position = block;
    }
    fn left(&mut self, block: u64) {
        self.blocks.remove(&block);
    }
    fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        let behind = self.blocks.range(..=self.position).rev();
        let ahead = self.blocks.range(self.position.saturating_add(1)..).rev();
        Box::new(behind.chain(ahead).copied())
    }
    fn count(&self) -> usize {
        self.blocks.len()
    }
}
