//! Registry of the replacement policies that a program has: built-in ones and those it adds.
//!
//! Invariant: each policy that was added has passed a test of the trait's invariants.

use super::kind::Replacement;
use super::name::PolicyName;
use super::policy::{MakePolicy, ReplacementPolicy};
use super::table::{FALLBACK, make_built_in};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use thiserror::Error;
use units::SplitMix64;

/// Error for a policy that violates the invariants of [`ReplacementPolicy`].
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("the replacement policy {name} is broken: {cause}")]
pub struct BrokenPolicy {
    /// Name of the policy.
    pub name: PolicyName,
    /// Answer that was wrong.
    pub cause: String,
}

/// Replacement policies of a program: the built-in ones and those that the program added.
#[derive(Clone, Default)]
pub struct ReplacementPolicies {
    added: BTreeMap<PolicyName, MakePolicy>,
}

impl ReplacementPolicies {
    /// Adds a policy, in place of one with the same name. Files use it when their [`Replacement`]
    /// is [`Replacement::Custom`] with this name; commands write `custom:` and the name.
    ///
    /// # Errors
    /// The policy is first tested with some thousand events. It is refused unless it names the
    /// cached blocks, each once: otherwise a server would find no block to evict.
    pub fn with(mut self, name: PolicyName, make: MakePolicy) -> Result<Self, BrokenPolicy> {
        try_policy(make).map_err(|cause| BrokenPolicy { name, cause })?;
        self.added.insert(name, make);
        Ok(self)
    }

    /// True if the program has this policy.
    pub fn has(&self, replacement: Replacement) -> bool {
        match replacement {
            Replacement::Custom(name) => self.added.contains_key(&name),
            _ => true,
        }
    }

    /// Names of the policies that were added, in ascending order.
    pub fn added(&self) -> impl Iterator<Item = PolicyName> + '_ {
        self.added.keys().copied()
    }

    /// Makes a policy for one file: LRU in place of a policy that the program does not have.
    pub(crate) fn make(&self, replacement: Replacement) -> Box<dyn ReplacementPolicy> {
        let make = match replacement {
            Replacement::Custom(name) => self.added.get(&name).copied(),
            built_in => make_built_in(built_in),
        };
        make.unwrap_or(FALLBACK)()
    }
}

/// Tests a policy with blocks that are inserted, used and removed. Returns its first wrong answer.
fn try_policy(make: MakePolicy) -> Result<(), String> {
    const EVENTS: u64 = 4000;
    let mut policy = make();
    let mut there = BTreeSet::new();
    for event in 0..EVENTS {
        let random = SplitMix64::new(event).next_u64();
        // Few blocks first, which are often inserted and removed. Then more and more blocks, with
        // any numbers.
        let block = match event < EVENTS / 2 {
            true => random % 24,
            false => SplitMix64::new(random % (event - EVENTS / 2 + 1)).next_u64(),
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
        // One more than there can be: a wrong policy may name blocks without end.
        let named: Vec<u64> = policy.candidates().take(there.len() + 1).collect();
        let expected = there.iter().filter(|block| policy.is_candidate(**block)).count();
        let distinct: BTreeSet<u64> = named.iter().copied().collect();
        let is_right = |block: &u64| there.contains(block) && policy.is_candidate(*block);
        if named.len() != expected || distinct.len() != expected || !named.iter().all(is_right) {
            return Err(format!(
                "it returned the blocks {named:?}, and the cached blocks are \
                                {there:?}"
            ));
        }
        if policy.count() != expected {
            return Err(format!("it counts {} blocks and returns {expected}", policy.count()));
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
    /// Compares the names: constructors cannot be compared.
    fn eq(&self, other: &Self) -> bool {
        self.added.keys().eq(other.added.keys())
    }
}

#[cfg(test)]
mod tests {
    //! Proves: built-in policies keep the invariants, and wrong policies are refused.
    use super::*;

    #[test]
    fn built_in_policies_keep_the_invariants() {
        for word in Replacement::WORDS {
            let replacement = word.parse().expect("the table has it");
            let make = make_built_in(replacement).expect("the table has it");
            assert_eq!(try_policy(make), Ok(()), "{word}");
        }
    }

    /// Wrong policy: names blocks that are no longer cached.
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

    /// Wrong policy: names no block, so that none could be evicted.
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

    /// Wrong policy: has room for 64 blocks only.
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

    /// Correct policy: first in, first out.
    #[derive(Debug, Default)]
    struct Fifo(Vec<u64>);

    impl ReplacementPolicy for Fifo {
        fn used(&mut self, block: u64, _: bool) {
            if !self.0.contains(&block) {
                self.0.push(block);
            }
        }
        fn left(&mut self, block: u64) {
            self.0.retain(|other| *other != block);
        }
        fn candidates(&self) -> Box<dyn Iterator<Item = u64> + '_> {
            Box::new(self.0.iter().copied())
        }
        fn count(&self) -> usize {
            self.0.len()
        }
    }

    #[test]
    fn broken_policies_are_refused() {
        let name = |word: &str| word.parse::<PolicyName>().expect("it is a name");
        let refused =
            ReplacementPolicies::default().with(name("forgetful"), || Box::<Forgetful>::default());
        let refused = refused.expect_err("it names what has left");
        assert!(
            refused
                .to_string()
                .starts_with("the replacement policy forgetful is broken: it returned")
        );
        ReplacementPolicies::default()
            .with(name("stubborn"), || Box::new(Stubborn))
            .expect_err("it names nothing");
        let narrow =
            ReplacementPolicies::default().with(name("narrow"), || Box::<Narrow>::default());
        narrow.expect_err("it names some of many only");
        let policies = ReplacementPolicies::default().with(name("fifo"), || Box::<Fifo>::default());
        let policies = policies.expect("it keeps the invariants");
        assert!(policies.has(Replacement::Custom(name("fifo"))) && policies.has(Replacement::Lru));
        assert!(!policies.has(Replacement::Custom(name("lifo"))));
        assert_eq!(format!("{policies:?}"), "{\"fifo\"}");
    }
}
