//! Ranges of the parameters of disks that files describe. A declaration names one and the rest.

use crate::models::{Parameter, Unit};
use units::{GIB, MIB};

/// Number of things, at least one.
pub(super) const COUNT: Parameter = Parameter {
    name: "",
    unit: Unit::Count,
    least: 1,
    most: 4096,
    default: 1,
    meaning: "",
    source: "",
};

/// Capacity of a disk: up to a pebibyte.
pub(super) const CAPACITY: Parameter =
    Parameter { unit: Unit::Bytes, least: MIB, most: GIB << 20, default: MIB, ..COUNT };

/// Rate. (At a lower one the clock of a simulation could overflow.)
pub(super) const RATE: Parameter = Parameter {
    unit: Unit::BytesPerSecond,
    least: 1_000,
    most: 1_000_000_000_000,
    default: 1_000,
    ..COUNT
};

/// Time, up to a second.
pub(super) const TIME: Parameter =
    Parameter { unit: Unit::Time, least: 0, most: 1_000_000_000, default: 0, ..COUNT };
