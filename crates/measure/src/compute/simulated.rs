//! The load of a case on the simulated machine of 1994.

use crate::ranks::CaseSpec;
use interface::{Availability, DiskOrder, UserError};
use policy::Pattern;
use simulate::{LayoutName, Machine, MachineName, Scenario, simulate};

/// Simulates a pattern and a strategy on 16 servers and 16 clients of TR94-232, with a file of 10
/// MB in contiguous layout (sections 3.2 and 3.3). Returns the shares of the servers' processors.
///
/// # Errors
/// Those of the simulation.
pub(super) fn simulated(case: &CaseSpec) -> Result<Option<Availability>, UserError> {
    let (strategy, pattern): (_, Pattern) = case.parse()?;
    let scenario = Scenario {
        machine: Machine::of(MachineName::Tr94),
        layout: LayoutName::CONTIGUOUS,
        pattern,
        record_bytes: case.record_bytes,
        strategy,
        node_group_size: case.node_group_size,
        order: DiskOrder::Sorted,
        trials: 1,
        availability: true,
        ..Scenario::default()
    };
    Ok(simulate(&scenario)?.results.pop().and_then(|row| row.availability))
}
