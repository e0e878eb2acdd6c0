//! The name of a network: a built-in one, or one that the program adds.

use crate::own_models::{CUSTOM, ModelName, OwnModels};
use interface::UserError;
use std::fmt;
use std::str::FromStr;
use world_simulated::models::ModelInfo;
use world_simulated::{NETWORKS, NetworkDeclaration, NetworkKind, ParameterValues};

/// Network between the nodes of a machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NetworkName {
    /// A built-in network.
    BuiltIn(&'static NetworkDeclaration),
    /// A network that the program adds.
    Own(ModelName),
}

impl NetworkName {
    /// Names of the built-in networks.
    pub const WORDS: &[&str] = &{
        let mut words = [""; NETWORKS.len()];
        let mut index = 0;
        while index < words.len() {
            words[index] = NETWORKS[index].info.name;
            index += 1;
        }
        words
    };

    /// Help text: the networks with an explanation of each.
    pub(crate) fn help() -> String {
        let networks = ModelInfo::help_of(NETWORKS.iter().map(|network| network.info));
        format!(
            "Network between the nodes. {networks}. {CUSTOM}NAME: a network that the program adds."
        )
    }

    /// Returns the network of this name with these parameters. An own network has none.
    pub(crate) fn kind(
        &self,
        parameters: &ParameterValues,
        own: &OwnModels,
    ) -> Result<NetworkKind, UserError> {
        match self {
            Self::BuiltIn(network) => Ok((network.make)(parameters)),
            Self::Own(name) => own.network(name),
        }
    }
}

impl FromStr for NetworkName {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        if let Some(name) = word.strip_prefix(CUSTOM) {
            return name.parse().map(Self::Own);
        }
        let found = NETWORKS.iter().find(|network| network.info.name == word);
        found.map(Self::BuiltIn).ok_or_else(|| {
            format!("{word:?} is not a known network; use one of {}", Self::WORDS.join(", "))
        })
    }
}

impl fmt::Display for NetworkName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(network) => out.pad(network.info.name),
            Self::Own(name) => out.pad(&format!("{CUSTOM}{name}")),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: every name is parsed as it is shown, and explained.
    use super::*;

    #[test]
    fn names() {
        for word in NetworkName::WORDS.iter().copied().chain(["custom:ring"]) {
            let name: NetworkName = word.parse().expect(word);
            assert_eq!(name.to_string(), word);
        }
        for word in NetworkName::WORDS {
            assert!(NetworkName::help().contains(&format!("{word}: ")), "{word}");
        }
        for wrong in ["", "ring", "custom:", "custom:Ring", "custom:sixteen-letters-"] {
            assert!(wrong.parse::<NetworkName>().is_err(), "{wrong}");
        }
    }
}
