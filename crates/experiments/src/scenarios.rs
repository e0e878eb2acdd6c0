//! Scenario of a point of an experiment and a method. No other file knows the names that `simulate`
//! gives to machines and options.

use crate::catalogue::{Axis, Experiment, Paper, Point, Processors};
use crate::method::Method;
use interface::{DiskOrder, Strategy, UserError};
use simulate::{Machine, MachineName, Scenario};

/// Seed of the first trial of every case, so that all cases have the same layouts ("We used the
/// same set of five layouts (one for each trial) for all random-blocks experiments": TOCS 1997,
/// section 5).
pub(crate) const FIRST_SEED: u64 = 1;

/// Bytes of a record if the pattern does not depend on it.
const ANY_RECORD_BYTES: u64 = 8192;

impl Paper {
    /// Returns the machine on which the experiments of a paper are simulated.
    pub(crate) fn machine(self) -> MachineName {
        match self {
            Self::Tr94 | Self::Cai94 => MachineName::Tr94,
            Self::Tocs97 => MachineName::Tocs97,
        }
    }
}

/// Returns the scenario of a point and a method.
///
/// # Errors
/// If the pattern has no such name.
pub(crate) fn scenario(
    experiment: &Experiment,
    point: &Point,
    method: Method,
    trials: u32,
) -> Result<Scenario, UserError> {
    let (strategy, order) = match method {
        Method::Caching => (Strategy::Caching, DiskOrder::Sorted),
        Method::TwoPhase => (Strategy::TwoPhase, DiskOrder::Sorted),
        Method::DiskDirected => (Strategy::DiskDirected, DiskOrder::Sorted),
        Method::DiskDirectedUnsorted => (Strategy::DiskDirected, DiskOrder::AsAsked),
    };
    let pattern = point.pattern.parse().map_err(
        |error: <interface::Pattern as std::str::FromStr>::Err| {
            UserError::usage(
                format!("{:?} cannot be simulated", point.pattern),
                error.to_string(),
                "see: unisono reproduce --help",
            )
        },
    )?;
    let mut scenario = Scenario {
        machine: Machine::of(experiment.paper.machine()),
        layout: point.layout,
        pattern,
        record_bytes: point.record_bytes.unwrap_or(ANY_RECORD_BYTES),
        strategy,
        order,
        trials,
        seed: FIRST_SEED,
        availability: experiment.processors != Processors::Ignored,
        ..Scenario::default()
    };
    let disks = scenario.servers * scenario.disks_per_server;
    match (experiment.axis, point.value) {
        (Axis::Clients, Some(clients)) => scenario.clients = clients,
        (Axis::Servers, Some(servers)) => {
            scenario.servers = servers;
            scenario.disks_per_server = disks / servers;
        }
        (Axis::Disks, Some(disks)) => {
            scenario.servers = 1;
            scenario.disks_per_server = disks;
        }
        (Axis::FileMib, Some(mib)) => scenario.file_bytes = u64::from(mib) << 20,
        _ => {}
    }
    Ok(scenario)
}
