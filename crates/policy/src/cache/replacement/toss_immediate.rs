//! Toss immediate: evicts blocks that were read to their end, before any other block.

use super::built_in::BuiltIn;
use super::kind::Replacement;
use super::policy::ReplacementPolicy;
use crate::cache::lru::Lru;
use crate::choice::Choice;

pub(super) const POLICY: BuiltIn = BuiltIn {
    choice: Choice {
        value: Replacement::TossImmediate,
        name: "toss-immediate",
        help: "blocks that were read to their end, before blocks of other files",
    },
    make: || Box::<TossImmediate>::default(),
};

/// Blocks that were read to their end, the one read first in front. Other blocks are no candidates.
#[derive(Debug, Default)]
struct TossImmediate(Lru<u64>);

impl ReplacementPolicy for TossImmediate {
    fn used(&mut self, block: u64, to_its_end: bool) {
        if to_its_end {
            self.0.insert(block);
        }
    }
    fn left(&mut self, block: u64) {
        self.0.remove(block);
    }
    fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        Box::new(self.0.iter())
    }
    fn count(&self) -> usize {
        self.0.len()
    }
    fn is_candidate(&self, block: u64) -> bool {
        self.0.contains(block)
    }
    fn evicts_before_others(&self) -> bool {
        true
    }
}
