//! Costs of a machine that are not published and are fitted to published throughputs.

use crate::machine::Machine;
use units::Duration;

/// Processor time of the reference processor, in nanoseconds, for the kinds of work whose costs are
/// fitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FittedCosts {
    /// A caching client's work for a request to read.
    pub client_read_ns: u64,
    /// A caching client's work for a request to write.
    pub client_write_ns: u64,
    /// A server's work to look up a block that is read.
    pub cache_read_ns: u64,
    /// Work to find the place of a piece, for each dimension that is distributed.
    pub piece_per_dimension_ns: u64,
    /// Work to receive the data that a memget brings back.
    pub get_answer_ns: u64,
}

impl FittedCosts {
    /// Returns the fitted costs of a machine.
    pub fn of(machine: &Machine) -> Self {
        let Machine { costs, messages, .. } = machine;
        Self {
            client_read_ns: costs.client_read.as_ns(),
            client_write_ns: costs.client_write.as_ns(),
            cache_read_ns: costs.cache_read.as_ns(),
            piece_per_dimension_ns: costs.piece_per_dimension.as_ns(),
            get_answer_ns: messages.get_answer.as_ns(),
        }
    }

    /// Returns the machine with its fitted costs replaced by these.
    pub fn on(self, mut machine: Machine) -> Machine {
        let Machine { costs, messages, .. } = &mut machine;
        costs.client_read = Duration::from_ns(self.client_read_ns);
        costs.client_write = Duration::from_ns(self.client_write_ns);
        costs.cache_read = Duration::from_ns(self.cache_read_ns);
        costs.piece_per_dimension = Duration::from_ns(self.piece_per_dimension_ns);
        messages.get_answer = Duration::from_ns(self.get_answer_ns);
        machine
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a machine's own fitted costs change nothing, and others take their places.
    use super::*;
    use crate::names::MachineName;

    #[test]
    fn costs_take_their_places() {
        let tr94 = Machine::of(MachineName::Tr94);
        let own = FittedCosts::of(&tr94);
        assert_eq!(own.on(tr94.clone()), tr94);
        let other = FittedCosts {
            client_read_ns: 1,
            client_write_ns: 2,
            cache_read_ns: 3,
            piece_per_dimension_ns: 4,
            get_answer_ns: 5,
        };
        let changed = other.on(tr94.clone());
        assert_eq!(FittedCosts::of(&changed), other);
        assert_eq!(own.on(changed), tr94, "nothing else was changed");
    }
}
