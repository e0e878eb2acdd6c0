//! LRU: evicts the least recently used block (TOCS 1997, Table I).

use super::built_in::BuiltIn;
use super::kind::Replacement;
use super::policy::ReplacementPolicy;
use crate::cache::lru::Lru;
use crate::choice::Choice;

pub(super) const POLICY: BuiltIn = BuiltIn {
    choice: Choice { value: Replacement::Lru, name: "lru", help: "the least recently used block" },
    make: || Box::<LeastRecentlyUsed>::default(),
};

/// Blocks in the order of their last use.
#[derive(Debug, Default)]
struct LeastRecentlyUsed(Lru<u64>);

impl ReplacementPolicy for LeastRecentlyUsed {
    fn used(&mut self, block: u64, _: bool) {
        self.0.insert(block);
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
}
