//! Eviction order of a block cache, when files are buffered differently.
//!
//! Blocks of all files are evicted in the order of their last use: the common order. When it is the
//! turn of a file with a policy of its own, that policy chooses the block. A file can also reserve
//! blocks and limit their number.
//!
//! Invariants:
//! - Every block that was inserted and not removed is in the common order.
//! - If its file is not buffered in the common way, the block is also among those of the file.

use super::buffering::Buffering;
use super::lru::Lru;
use super::replacement::{ReplacementPolicies, ReplacementPolicy};
use std::collections::{BTreeMap, BTreeSet};
use units::FileId;

/// Block of a file.
pub type BlockKey = (FileId, u64);

/// Blocks in a cache, ranked for eviction.
#[derive(Debug, Default)]
pub struct EvictionOrder {
    policies: ReplacementPolicies,
    order: Lru<BlockKey>,
    /// Files that are not buffered in the common way.
    special: BTreeMap<FileId, FileBlocks>,
}

/// Blocks of one file that is not buffered in the common way.
#[derive(Debug)]
struct FileBlocks {
    buffering: Buffering,
    policy: Box<dyn ReplacementPolicy>,
    blocks: BTreeSet<u64>,
}

impl EvictionOrder {
    /// Empty order. Files can be buffered by the built-in policies and by `policies`.
    pub fn new(policies: ReplacementPolicies) -> Self {
        Self { policies, ..Self::default() }
    }

    /// Sets the buffering of a file from now on. LRU replaces a policy that is not in `policies`.
    pub fn declare(&mut self, file: FileId, buffering: Buffering) {
        if self.special.get(&file).is_some_and(|held| held.buffering == buffering) {
            return;
        }
        if buffering.is_common() {
            self.special.remove(&file);
            return;
        }
        let mut policy = self.policies.make(buffering.replacement());
        let of_file = self.order.iter().filter(|(other, _)| *other == file);
        let blocks: Vec<u64> = of_file.map(|(_, block)| block).collect();
        blocks.iter().for_each(|block| policy.used(*block, false));
        let blocks = blocks.into_iter().collect();
        self.special.insert(file, FileBlocks { buffering, policy, blocks });
    }

    /// Forgets the buffering of a file that no client uses any more.
    pub fn forget(&mut self, file: FileId) {
        self.special.remove(&file);
    }

    /// Adds a block. Returns its place, which [`EvictionOrder::touch`] takes until it is removed.
    pub fn insert(&mut self, key: BlockKey) -> usize {
        self.order.insert(key);
        let place = self.order.place(key).expect("it has just been inserted");
        if let Some(held) = self.special.get_mut(&key.0) {
            held.blocks.insert(key.1);
            held.policy.used(key.1, false);
        }
        place
    }

    /// Records a use of the block at this place.
    pub fn touch(&mut self, key: BlockKey, place: usize) {
        self.order.touch_at(place);
        self.used(key, false);
    }

    /// Records that a block was read up to its last byte.
    pub fn read_to_its_end(&mut self, key: BlockKey) {
        self.used(key, true);
    }

    fn used(&mut self, key: BlockKey, to_its_end: bool) {
        if !self.special.is_empty()
            && let Some(held) = self.special.get_mut(&key.0)
            && held.blocks.contains(&key.1)
        {
            held.policy.used(key.1, to_its_end);
        }
    }

    /// Removes a block.
    pub fn remove(&mut self, key: BlockKey) {
        self.order.remove(key);
        if let Some(held) = self.special.get_mut(&key.0) {
            held.blocks.remove(&key.1);
            held.policy.left(key.1);
        }
    }

    /// True if a file has as many blocks as it may have. One of them must then be evicted before
    /// another block of the file is inserted.
    pub fn is_at_limit(&self, file: FileId) -> bool {
        self.special.get(&file).is_some_and(|held| {
            let max = held.buffering.blocks_max as usize;
            max > 0 && held.blocks.len() >= max
        })
    }

    /// Blocks that can be evicted for a block of `file`, the one to be evicted first in front.
    /// Blocks that their files reserve come last, for when no other block can be evicted.
    pub fn victims(&self, file: FileId) -> Box<dyn Iterator<Item = BlockKey> + '_> {
        if self.special.is_empty() {
            return Box::new(self.order.iter());
        }
        if let Some(held) = self.special.get(&file).filter(|_| self.is_at_limit(file)) {
            return Box::new(held.in_order().map(move |block| (file, block)));
        }
        Box::new(self.mixed_victims())
    }

    /// Victims of all files: candidates that go before others, then each file's turn in the common
    /// order, then reserved blocks.
    fn mixed_victims(&self) -> impl Iterator<Item = BlockKey> + '_ {
        let of = |file: FileId| move |block| (file, block);
        let first = self.special.iter().flat_map(move |(file, held)| held.first().map(of(*file)));
        let mut turns: BTreeMap<FileId, Blocks<'_>> = BTreeMap::new();
        let by_turns = self.order.iter().filter_map(move |key| match self.special.get(&key.0) {
            None => Some(key),
            Some(held) => {
                let turns = turns.entry(key.0).or_insert_with(|| held.turns());
                turns.next().map(of(key.0))
            }
        });
        let reserved =
            self.special.iter().flat_map(move |(file, held)| held.reserved().map(of(*file)));
        first.chain(by_turns).chain(reserved)
    }
}

/// Blocks of one file.
type Blocks<'a> = Box<dyn Iterator<Item = u64> + 'a>;

impl FileBlocks {
    /// All blocks, the one to be evicted first in front.
    fn in_order(&self) -> impl Iterator<Item = u64> + '_ {
        let others = self.blocks.iter().filter(|block| !self.policy.is_candidate(**block));
        self.policy.candidates().chain(others.copied())
    }

    /// Blocks that are not reserved.
    fn evictable(&self) -> impl Iterator<Item = u64> + '_ {
        self.in_order().take(self.evictable_count())
    }

    /// Evictable blocks that go before the blocks of other files.
    fn first(&self) -> impl Iterator<Item = u64> + '_ {
        self.evictable().take(self.first_count())
    }

    /// Evictable blocks that wait for the turn of their file in the common order.
    fn turns(&self) -> Blocks<'_> {
        Box::new(self.evictable().skip(self.first_count()))
    }

    /// Blocks that the file reserves: `blocks_min` of them.
    fn reserved(&self) -> impl Iterator<Item = u64> + '_ {
        self.in_order().skip(self.evictable_count())
    }

    fn evictable_count(&self) -> usize {
        self.blocks.len().saturating_sub(self.buffering.blocks_min as usize)
    }

    fn first_count(&self) -> usize {
        if self.policy.evicts_before_others() { self.policy.count() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the order follows policies, reservations and limits, and names every block once.
    use super::*;
    use crate::cache::{Declared, Replacement};
    use proptest::prelude::*;

    const F: FileId = FileId(1);
    const G: FileId = FileId(2);

    fn special(replacement: Replacement) -> Buffering {
        Buffering { replacement: Some(replacement), ..Buffering::default() }
    }

    fn touch(order: &mut EvictionOrder, key: BlockKey) {
        let place = order.order.place(key).expect("it is there");
        order.touch(key, place);
    }

    /// Number of hits of `loops` passes over `blocks` blocks of one file with room for `room`.
    fn loop_hits(buffering: Buffering, blocks: u64, loops: u64, room: usize) -> u64 {
        let mut order = EvictionOrder::default();
        order.declare(F, buffering);
        let (mut held, mut hits) = (BTreeSet::new(), 0);
        for block in (0..loops).flat_map(|_| 0..blocks) {
            if held.contains(&block) {
                hits += 1;
            } else {
                if held.len() == room {
                    let victim = order.victims(F).next().expect("there is one");
                    order.remove(victim);
                    held.remove(&victim.1);
                }
                order.insert((F, block));
                held.insert(block);
            }
            order.read_to_its_end((F, block));
        }
        hits
    }

    #[test]
    fn a_loop_hits_as_often_as_it_can() {
        // Ten blocks, room for six, ten times: the least recently used one is always the next that
        // is needed. Belady's policy hits (room - 1) / (blocks - 1) of the time from the second
        // pass on.
        assert_eq!(loop_hits(Buffering::default(), 10, 10, 6), 0);
        let best = 9 * 10 * 5 / 9;
        for replacement in [Replacement::Mru, Replacement::LoopAware] {
            let hits = loop_hits(special(replacement), 10, 10, 6);
            assert!(hits >= best - 2 && hits <= best + 5, "{replacement}: {hits} of {best}");
        }
        let declared = Declared::LoopingSequential;
        let by_declaration = Buffering { declared, ..Buffering::default() };
        let explicit = loop_hits(special(Replacement::LoopAware), 10, 10, 6);
        assert_eq!(loop_hits(by_declaration, 10, 10, 6), explicit);
        let random = loop_hits(special(Replacement::Random), 10, 100, 6);
        assert!(random > 200 && random < 600, "{random} hits by chance");
    }

    #[test]
    fn what_was_read_to_its_end_is_tossed_before_others_leave() {
        let mut order = EvictionOrder::default();
        order.declare(F, special(Replacement::TossImmediate));
        for block in 0..3 {
            order.insert((G, block));
            order.insert((F, block));
        }
        order.read_to_its_end((F, 2));
        touch(&mut order, (F, 1));
        let victims: Vec<BlockKey> = order.victims(G).collect();
        assert_eq!(victims[..2], [(F, 2), (G, 0)]);
        assert_eq!(victims.len(), 6);
    }

    #[test]
    fn limits_are_kept() {
        let mut order = EvictionOrder::default();
        order.declare(F, Buffering { blocks_min: 2, ..Buffering::default() });
        order.declare(G, Buffering { blocks_max: 2, ..Buffering::default() });
        for block in 0..3 {
            order.insert((F, block));
        }
        for block in 0..2 {
            order.insert((G, block));
        }
        assert!(order.is_at_limit(G) && !order.is_at_limit(F));
        assert!(order.victims(G).eq([(G, 0), (G, 1)]), "one of its own must leave");
        let victims = order.victims(F);
        assert!(victims.eq([(F, 0), (G, 0), (G, 1), (F, 1), (F, 2)]), "two of F leave last");
        order.forget(F);
        assert!(order.victims(F).eq([(F, 0), (F, 1), (F, 2), (G, 0), (G, 1)]));
    }

    /// Policy that evicts the block with the greatest number first.
    #[derive(Debug, Default)]
    struct Greatest(BTreeSet<u64>);

    impl ReplacementPolicy for Greatest {
        fn used(&mut self, block: u64, _: bool) {
            self.0.insert(block);
        }
        fn left(&mut self, block: u64) {
            self.0.remove(&block);
        }
        fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_> {
            Box::new(self.0.iter().rev().copied())
        }
        fn count(&self) -> usize {
            self.0.len()
        }
    }

    #[test]
    fn a_policy_that_was_added_decides() {
        let name = "greatest".parse().expect("it is a name");
        let policies = ReplacementPolicies::default().with(name, || Box::<Greatest>::default());
        let mut order = EvictionOrder::new(policies.expect("it keeps the invariants"));
        order.declare(F, special(Replacement::Custom(name)));
        order.declare(G, special(Replacement::Custom("unknown".parse().expect("a name"))));
        for block in [3, 5, 1] {
            order.insert((F, block));
            order.insert((G, block));
        }
        let victims = order.victims(F);
        assert!(
            victims.eq([(F, 5), (G, 3), (F, 3), (G, 5), (F, 1), (G, 1)]),
            "G has the default policy"
        );
    }

    proptest! {
        /// Every block is named once, after any sequence of events.
        #[test]
        fn victims_are_the_blocks_that_are_there(
            replacement in prop::sample::select(vec![
                Replacement::Lru,
                Replacement::Mru,
                Replacement::TossImmediate,
                Replacement::LoopAware,
                Replacement::Random,
            ]),
            blocks_min in 0_u32..3,
            events in prop::collection::vec((0_u64..2, 0_u64..8, 0_u8..4), 0..60),
        ) {
            let mut order = EvictionOrder::default();
            let mut there = BTreeSet::new();
            order.declare(F, Buffering { blocks_min, ..special(replacement) });
            for (file, block, event) in events {
                let key = (FileId(1 + file), block);
                match event {
                    0 | 1 if there.insert(key) => drop(order.insert(key)),
                    2 if there.remove(&key) => order.remove(key),
                    3 if there.contains(&key) => order.read_to_its_end(key),
                    _ if there.contains(&key) => touch(&mut order, key),
                    _ => {}
                }
            }
            let victims: Vec<BlockKey> = order.victims(G).collect();
            let named: BTreeSet<BlockKey> = victims.iter().copied().collect();
            prop_assert_eq!(named.len(), victims.len());
            prop_assert_eq!(&named, &there);
            let of_f = there.iter().filter(|(file, _)| *file == F).count();
            let kept = of_f.min(blocks_min as usize);
            let last = &victims[victims.len() - kept..];
            prop_assert!(last.iter().all(|(file, _)| *file == F), "{:?} come last", last);
        }
    }
}
