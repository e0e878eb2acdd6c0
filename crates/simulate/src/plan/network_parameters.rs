//! The keys of `[parameters]` that the networks declare.

use super::key::{Field, Key, Meaning, Owner, Table};
use super::value::Kind;
use std::sync::LazyLock;
use world_simulated::models::Unit;
use world_simulated::{NETWORKS, Parameter};

/// Keys of the parameters of all networks, each once, in the order of the networks.
pub(super) static NETWORK_PARAMETERS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys: Vec<Key> = Vec::new();
    for parameter in NETWORKS.iter().flat_map(|network| network.parameters) {
        if keys.iter().all(|key| key.name != parameter.name) {
            keys.push(key_of(parameter));
        }
    }
    keys
});

/// Returns the key of a parameter.
fn key_of(parameter: &'static Parameter) -> Key {
    let Parameter { name, unit, least, most, meaning, source, .. } = *parameter;
    let unit = match unit {
        Unit::Count => "",
        Unit::Bytes => " of bytes",
        Unit::BytesPerSecond => " of bytes a second",
        Unit::Time => " of nanoseconds",
    };
    Key {
        name,
        option: "",
        table: Table::Parameters,
        owner: Owner::Machine,
        kind: Kind::Number { least, most, unit },
        meaning: Meaning::Text(meaning),
        source,
        field: Field::Network(parameter),
    }
}
