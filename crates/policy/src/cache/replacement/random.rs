//! Random: evicts a block that is drawn at random.

use super::built_in::BuiltIn;
use super::kind::Replacement;
use super::policy::ReplacementPolicy;
use crate::choice::Choice;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use units::SplitMix64;

pub(super) const POLICY: BuiltIn = BuiltIn {
    choice: Choice { value: Replacement::Random, name: "random", help: "a random block" },
    make: || Box::<Random>::default(),
};

/// Blocks in no order. The first candidate is drawn anew after each block that is inserted.
#[derive(Debug, Default)]
struct Random {
    blocks: Vec<u64>,
    /// Index of each block in `blocks`.
    places: BTreeMap<u64, usize>,
    /// Number of blocks inserted so far: the seed of the draw.
    arrivals: u64,
}

impl ReplacementPolicy for Random {
    fn used(&mut self, block: u64, _: bool) {
        if let Entry::Vacant(place) = self.places.entry(block) {
            place.insert(self.blocks.len());
            self.blocks.push(block);
            self.arrivals += 1;
        }
    }
    fn left(&mut self, block: u64) {
        let Some(place) = self.places.remove(&block) else { return };
        self.blocks.swap_remove(place);
        if let Some(moved) = self.blocks.get(place) {
            self.places.insert(*moved, place);
        }
    }
    fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        let count = self.blocks.len().max(1) as u64;
        let first = SplitMix64::new(self.arrivals).below(count);
        let (behind, ahead) = self.blocks.split_at(first as usize);
        Box::new(ahead.iter().chain(behind).copied())
    }
    fn count(&self) -> usize {
        self.blocks.len()
    }
}
