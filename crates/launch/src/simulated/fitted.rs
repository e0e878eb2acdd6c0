//! The costs of a machine that nobody published and that are fitted to throughputs.

use super::machines;
use crate::scenario::MachineName;
use filesystem::Costs;
use units::Duration;
use world_simulated::MessageCosts;

/// Processor time of the reference processor, in nanoseconds, for the kinds of work whose costs are
/// fitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FittedCosts {
    /// A caching client's work for a request to read.
    pub client_read_ns: u64,
    /// The same for a request to write.
    pub client_write_ns: u64,
    /// A server's work to look up a block that is read.
    pub cache_read_ns: u64,
    /// To find the place of a piece, for each dimension that is dealt out.
    pub piece_per_dimension_ns: u64,
    /// To take up what a memget brings back.
    pub get_answer_ns: u64,
}

impl FittedCosts {
    /// Those of a machine as it is.
    pub fn of(machine: MachineName) -> Self {
        machines::fitted(machine)
    }

    pub(crate) fn from(costs: &Costs, messages: &MessageCosts) -> Self {
        Self {
            client_read_ns: costs.client_read.as_ns(),
            client_write_ns: costs.client_write.as_ns(),
            cache_read_ns: costs.cache_read.as_ns(),
            piece_per_dimension_ns: costs.piece_per_dimension.as_ns(),
            get_answer_ns: messages.get_answer.as_ns(),
        }
    }

    /// In the place of those among the costs of the file system's work.
    pub(crate) fn in_costs(self, costs: Costs) -> Costs {
        Costs {
            client_read: Duration::from_ns(self.client_read_ns),
            client_write: Duration::from_ns(self.client_write_ns),
            cache_read: Duration::from_ns(self.cache_read_ns),
            piece_per_dimension: Duration::from_ns(self.piece_per_dimension_ns),
            ..costs
        }
    }

    /// In the place of those among the costs of messages.
    pub(crate) fn in_messages(self, messages: MessageCosts) -> MessageCosts {
        MessageCosts { get_answer: Duration::from_ns(self.get_answer_ns), ..messages }
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a machine's own fitted costs change nothing, and others take their places.
    use super::*;
    use crate::scenario::Scenario;
    use world_simulated::Mechanism;

    #[test]
    fn costs_take_their_places() {
        let own = FittedCosts::of(MachineName::Tr94);
        let plain = Scenario::default();
        let with = |costs| Scenario { costs: Some(costs), ..plain.clone() };
        assert_eq!(machines::costs(&with(own)), machines::costs(&plain));
        let messages =
            |scenario: &Scenario| machines::machine(scenario, &Mechanism::Hp97560, 1).messages;
        assert_eq!(messages(&with(own)), messages(&plain));
        let other = FittedCosts {
            client_read_ns: 1,
            client_write_ns: 2,
            cache_read_ns: 3,
            piece_per_dimension_ns: 4,
            get_answer_ns: 5,
        };
        let scenario = with(other);
        assert_eq!(FittedCosts::from(&machines::costs(&scenario), &messages(&scenario)), other);
    }
}
