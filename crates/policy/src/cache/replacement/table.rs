//! Table of the built-in replacement policies. Names, help texts and constructors come from here.
//!
//! Invariant: the table has every variant of [`Replacement`] except [`Replacement::Custom`], once.

use super::built_in::BuiltIn;
use super::kind::Replacement;
use super::policy::MakePolicy;
use super::{loop_aware, lru, mru, random, toss_immediate};
use crate::choice::{self, Choice, help_text};
use std::fmt;
use std::str::FromStr;

/// Built-in policies, in the order in which users see them.
const BUILT_IN: [BuiltIn; 5] =
    [lru::POLICY, mru::POLICY, toss_immediate::POLICY, loop_aware::POLICY, random::POLICY];

const CHOICES: [Choice<Replacement>; BUILT_IN.len()] = {
    let mut choices = [BUILT_IN[0].choice; BUILT_IN.len()];
    let mut index = 0;
    while index < BUILT_IN.len() {
        choices[index] = BUILT_IN[index].choice;
        index += 1;
    }
    choices
};

/// Prefix of the name of a policy that is not built in.
const CUSTOM: &str = "custom:";

/// Policy in place of a custom one that the program does not have.
pub(super) const FALLBACK: MakePolicy = lru::POLICY.make;

/// Returns the constructor of a built-in policy.
pub(super) fn make_built_in(replacement: Replacement) -> Option<MakePolicy> {
    let built_in = BUILT_IN.into_iter().find(|policy| policy.choice.value == replacement);
    built_in.map(|policy| policy.make)
}

impl Replacement {
    /// Names of the built-in policies.
    pub const WORDS: &[&str] = &choice::names(&CHOICES);

    /// Help text: the policies with an explanation of each.
    pub const HELP: &str = help_text!(
        "Replacement policy, which selects the block of a file to evict first from a full cache. ",
        CHOICES,
        "; custom:NAME: a policy that the servers' program adds. The default suits the declared \
         access of the file."
    );
}

impl FromStr for Replacement {
    type Err = String;
    fn from_str(word: &str) -> Result<Self, String> {
        match word.strip_prefix(CUSTOM) {
            Some(name) => name.parse().map(Self::Custom).map_err(|error| error.to_string()),
            None => choice::parse(word, &CHOICES, "replacement policy"),
        }
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Custom(name) => write!(out, "{CUSTOM}{name}"),
            built_in => out.write_str(choice::name_of(built_in, &CHOICES)),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the table has every policy, and names parse back.
    use super::*;

    /// Returns the variant after `variant`. A new variant does not compile until it is listed.
    fn next(variant: Replacement) -> Option<Replacement> {
        match variant {
            Replacement::Lru => Some(Replacement::Mru),
            Replacement::Mru => Some(Replacement::TossImmediate),
            Replacement::TossImmediate => Some(Replacement::LoopAware),
            Replacement::LoopAware => Some(Replacement::Random),
            Replacement::Random | Replacement::Custom(_) => None,
        }
    }

    #[test]
    fn every_policy_is_in_the_table_once() {
        let variants = std::iter::successors(Some(Replacement::Lru), |variant| next(*variant));
        let mut count = 0;
        for variant in variants {
            assert!(make_built_in(variant).is_some(), "{variant:?} has no line in BUILT_IN");
            assert_eq!(CHOICES.iter().filter(|choice| choice.value == variant).count(), 1);
            assert_eq!(variant.to_string().parse(), Ok(variant));
            assert!(Replacement::HELP.contains(&format!("{variant}: ")), "{variant}");
            count += 1;
        }
        assert_eq!(count, BUILT_IN.len());
    }

    #[test]
    fn names_of_custom_policies_parse_back() {
        let custom = Replacement::Custom("fifo".parse().expect("it is a name"));
        assert_eq!(
            ("custom:fifo".parse(), custom.to_string().as_str()),
            (Ok(custom), "custom:fifo")
        );
        for wrong in ["custom:", "custom:Fifo", "custom:sixteen-letters-", "fifo"] {
            assert!(wrong.parse::<Replacement>().is_err(), "{wrong}");
        }
    }
}
