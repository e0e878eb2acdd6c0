//! Rules by which the blocks of one file leave a cache: the usual ones, and those that a program
//! brings along.
//!
//! A rule is told what happens to the blocks of its file and says which leaves first. It sees
//! neither clock nor disk, so the same rule serves real and simulated caches.

use crate::buffering::Replacement;
use crate::lru::Lru;
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use units::SplitMix64;

/// A replacement policy of one file: told what happens to its blocks, it says which leave first.
pub trait ReplacementPolicy: std::fmt::Debug {
    /// A block was brought in or used; `to_its_end` when it was read up to its last byte.
    fn used(&mut self, block: u64, to_its_end: bool);

    /// A block has left.
    fn left(&mut self, block: u64);

    /// The blocks that are in, the one that is to leave first in front. May leave out those that
    /// have no reason to go; the common order then decides about them. Asked at each eviction, and
    /// seldom for more than the first.
    fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_>;

    /// Number of candidates.
    fn count(&self) -> usize;

    /// Whether a block that is in is a candidate.
    fn is_candidate(&self, _block: u64) -> bool {
        true
    }
}

/// The most letters of a [`PolicyName`].
const NAME_LETTERS_MAX: usize = 15;

/// The name of a rule that a program brings along: 1 to 15 small letters, digits and hyphens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PolicyName {
    /// Behind the name, zeros.
    letters: [u8; NAME_LETTERS_MAX],
}

/// It is no name of a rule.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0:?} is no name of a rule: use 1 to {NAME_LETTERS_MAX} of a to z, 0 to 9 and hyphens")]
pub struct PolicyNameError(String);

impl PolicyName {
    fn as_str(&self) -> &str {
        let end = self.letters.iter().position(|letter| *letter == 0);
        let letters = &self.letters[..end.unwrap_or(NAME_LETTERS_MAX)];
        std::str::from_utf8(letters).expect("a name is made of ASCII letters only")
    }
}

impl FromStr for PolicyName {
    type Err = PolicyNameError;

    fn from_str(word: &str) -> Result<Self, PolicyNameError> {
        let is_letter = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if word.is_empty() || word.len() > NAME_LETTERS_MAX || !word.bytes().all(is_letter) {
            return Err(PolicyNameError(word.to_owned()));
        }
        let mut letters = [0; NAME_LETTERS_MAX];
        letters[..word.len()].copy_from_slice(word.as_bytes());
        Ok(Self { letters })
    }
}

impl TryFrom<String> for PolicyName {
    type Error = PolicyNameError;
    fn try_from(word: String) -> Result<Self, PolicyNameError> {
        word.parse()
    }
}

impl From<PolicyName> for String {
    fn from(name: PolicyName) -> Self {
        name.as_str().to_owned()
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for PolicyName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), out)
    }
}

/// A rule does not do what a [`Rule`] must.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("the rule {name} is broken: {cause}")]
pub struct BrokenPolicy {
    /// Its name.
    pub name: PolicyName,
    /// What it did.
    pub cause: String,
}

/// Makes a rule for a file that has no blocks yet.
pub type MakePolicy = fn() -> Box<dyn ReplacementPolicy>;

/// The rules that there are: the usual ones, and those that were added.
#[derive(Clone, Default)]
pub struct ReplacementPolicies {
    added: BTreeMap<PolicyName, MakePolicy>,
}

impl ReplacementPolicies {
    /// With one more, in place of one of the same name. Files are buffered by it when their
    /// [`Replacement`] is [`Replacement::Custom`] with this name; commands say `custom:` and the
    /// name.
    ///
    /// # Errors
    /// The rule is tried with some thousand events first, and refused when it does not name the
    /// blocks that are in, each once: a server would have nothing to let go.
    pub fn with(mut self, name: PolicyName, make: MakePolicy) -> Result<Self, BrokenPolicy> {
        try_policy(make).map_err(|cause| BrokenPolicy { name, cause })?;
        self.added.insert(name, make);
        Ok(self)
    }

    /// Whether there is such a rule.
    pub fn has(&self, replacement: Replacement) -> bool {
        match replacement {
            Replacement::Custom(name) => self.added.contains_key(&name),
            _ => true,
        }
    }

    /// The names of those that were added, in their order.
    pub fn added(&self) -> impl Iterator<Item = PolicyName> + '_ {
        self.added.keys().copied()
    }

    /// A new rule; in place of one that there is not, that of the least recently used block.
    pub(crate) fn policy(&self, replacement: Replacement) -> Box<dyn ReplacementPolicy> {
        match replacement {
            Replacement::Lru => Box::<LeastRecent>::default(),
            Replacement::Mru => Box::<MostRecent>::default(),
            Replacement::TossImmediate => Box::<Toss>::default(),
            Replacement::LoopAware => Box::<LoopAware>::default(),
            Replacement::Random => Box::<AtRandom>::default(),
            Replacement::Custom(name) => match self.added.get(&name) {
                Some(make) => make(),
                None => Box::<LeastRecent>::default(),
            },
        }
    }
}

/// Tells a rule of blocks that come, are used and leave, and says what is wrong with its answers.
fn try_policy(make: MakePolicy) -> Result<(), String> {
    const EVENTS: u64 = 4000;
    let mut policy = make();
    let mut there = BTreeSet::new();
    for event in 0..EVENTS {
        let random = scramble(event);
        // Few blocks first, which come and go often; then more and more, with any numbers.
        let block = match event < EVENTS / 2 {
            true => random % 24,
            false => scramble(random % (event - EVENTS / 2 + 1)),
        };
        match random >> 32 & 3 {
            0 if there.remove(&block) => policy.left(block),
            _ => {
                there.insert(block);
                policy.used(block, random >> 34 & 1 == 1);
            }
        }
        if event > EVENTS / 2 && !event.is_multiple_of(64) {
            continue;
        }
        // One more than there can be, should it name blocks without end.
        let named: Vec<u64> = policy.candidates().take(there.len() + 1).collect();
        let expected = there.iter().filter(|block| policy.is_candidate(**block)).count();
        let distinct: BTreeSet<u64> = named.iter().copied().collect();
        let is_right = |block: &u64| there.contains(block) && policy.is_candidate(*block);
        if named.len() != expected || distinct.len() != expected || !named.iter().all(is_right) {
            return Err(format!("it names the blocks {named:?} when those in are {there:?}"));
        }
        if policy.count() != expected {
            return Err(format!("it counts {} blocks and names {expected}", policy.count()));
        }
    }
    Ok(())
}

impl fmt::Debug for ReplacementPolicies {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.added.keys()).finish()
    }
}

impl Eq for ReplacementPolicies {}

impl PartialEq for ReplacementPolicies {
    /// Whether the names are the same: what makes rules cannot be compared.
    fn eq(&self, other: &Self) -> bool {
        self.added.keys().eq(other.added.keys())
    }
}

#[derive(Debug, Default)]
struct LeastRecent(Lru<u64>);

impl ReplacementPolicy for LeastRecent {
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

#[derive(Debug, Default)]
struct MostRecent(Lru<u64>);

impl ReplacementPolicy for MostRecent {
    fn used(&mut self, block: u64, _: bool) {
        self.0.insert(block);
    }
    fn left(&mut self, block: u64) {
        self.0.remove(block);
    }
    fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        Box::new(self.0.iter().rev())
    }
    fn count(&self) -> usize {
        self.0.len()
    }
}

/// Blocks that were read to their end, in that order; others have no reason to go.
#[derive(Debug, Default)]
struct Toss(Lru<u64>);

impl ReplacementPolicy for Toss {
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
}

/// A loop that goes through the blocks in their order comes last to the one it has just used, then
/// to those before it; and before them, from the largest down, to those it has yet to reach.
#[derive(Debug, Default)]
struct LoopAware {
    blocks: BTreeSet<u64>,
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

/// Any block, whatever its use; another after each that comes in.
#[derive(Debug, Default)]
struct AtRandom {
    blocks: Vec<u64>,
    /// Where each is in `blocks`.
    places: BTreeMap<u64, usize>,
    arrivals: u64,
}

impl ReplacementPolicy for AtRandom {
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
        let (behind, ahead) = self.blocks.split_at((scramble(self.arrivals) % count) as usize);
        Box::new(ahead.iter().chain(behind).copied())
    }
    fn count(&self) -> usize {
        self.blocks.len()
    }
}

/// First number of the pseudo-random sequence with this seed: mixes all bits, one to one.
fn scramble(seed: u64) -> u64 {
    SplitMix64::new(seed).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_rules_do_what_a_rule_must() {
        let makes: [MakePolicy; 5] = [
            || Box::<LeastRecent>::default(),
            || Box::<MostRecent>::default(),
            || Box::<Toss>::default(),
            || Box::<LoopAware>::default(),
            || Box::<AtRandom>::default(),
        ];
        for make in makes {
            assert_eq!(try_policy(make), Ok(()), "{:?}", make());
        }
    }

    /// Names blocks that have left, as long as nobody asks how many.
    #[derive(Debug, Default)]
    struct Forgetful(Vec<u64>);

    impl ReplacementPolicy for Forgetful {
        fn used(&mut self, block: u64, _: bool) {
            if !self.0.contains(&block) {
                self.0.push(block);
            }
        }
        fn left(&mut self, _: u64) {}
        fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_> {
            Box::new(self.0.iter().copied())
        }
        fn count(&self) -> usize {
            self.0.len()
        }
    }

    /// Names nothing, so that nothing could leave.
    #[derive(Debug)]
    struct Stubborn;

    impl ReplacementPolicy for Stubborn {
        fn used(&mut self, _: u64, _: bool) {}
        fn left(&mut self, _: u64) {}
        fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_> {
            Box::new(std::iter::empty())
        }
        fn count(&self) -> usize {
            0
        }
    }

    /// Has room for so many blocks only.
    #[derive(Debug, Default)]
    struct Narrow(BTreeSet<u64>);

    impl ReplacementPolicy for Narrow {
        fn used(&mut self, block: u64, _: bool) {
            if self.0.len() < 64 {
                self.0.insert(block);
            }
        }
        fn left(&mut self, block: u64) {
            self.0.remove(&block);
        }
        fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_> {
            Box::new(self.0.iter().copied())
        }
        fn count(&self) -> usize {
            self.0.len()
        }
    }

    #[test]
    fn broken_rules_are_refused() {
        let name = |word: &str| word.parse::<PolicyName>().expect("it is a name");
        let refused =
            ReplacementPolicies::default().with(name("forgetful"), || Box::<Forgetful>::default());
        let refused = refused.expect_err("it names what has left");
        assert!(
            refused.to_string().starts_with("the rule forgetful is broken: it names the blocks")
        );
        ReplacementPolicies::default()
            .with(name("stubborn"), || Box::new(Stubborn))
            .expect_err("it names nothing");
        let narrow =
            ReplacementPolicies::default().with(name("narrow"), || Box::<Narrow>::default());
        narrow.expect_err("it names some of many only");
        let policies = ReplacementPolicies::default()
            .with(name("lru-again"), || Box::<LeastRecent>::default());
        let policies = policies.expect("it does what a rule must");
        assert!(
            policies.has(Replacement::Custom(name("lru-again"))) && policies.has(Replacement::Lru)
        );
        assert!(!policies.has(Replacement::Custom(name("mru-again"))));
        assert_eq!(format!("{policies:?}"), "{\"lru-again\"}");
    }
}
