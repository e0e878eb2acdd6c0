//! Processor time that servers took for a program.

use client::{Instance, InstanceFile, ProcessorUse, ServerState, Session};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Processor times of servers so far, by their numbers.
pub(super) struct ProcessorTimes(BTreeMap<u32, ProcessorUse>);

impl ProcessorTimes {
    /// Asks the servers of an instance. One that does not answer is left out.
    pub(super) fn of(instance: &Instance) -> Self {
        Self::from(&Session::new(instance.clone()).status().unwrap_or_default()[..])
    }
}

impl From<&[ServerState]> for ProcessorTimes {
    fn from(states: &[ServerState]) -> Self {
        let known = states.iter().filter_map(|state| {
            state.status.as_ref().ok().map(|status| (state.entry.id, status.processor))
        });
        Self(known.collect())
    }
}

/// Processor time of all servers together, from the start of the program to its end.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct ServersUse {
    /// Seconds in the servers' own code.
    pub(super) user_seconds: f64,
    /// Seconds in the operating system.
    pub(super) system_seconds: f64,
    /// Number of cores of the servers; `None` unless every server is pinned.
    pub(super) cores: Option<usize>,
    /// Share of the time of these cores.
    pub(super) share: Option<f64>,
}

impl ServersUse {
    /// Returns what the servers of an instance used in `seconds` between two answers; `None` if not
    /// every server has told it.
    pub(super) fn between(
        file: &InstanceFile,
        before: &ProcessorTimes,
        after: &[ServerState],
        seconds: f64,
    ) -> Option<Self> {
        let after = ProcessorTimes::from(after);
        let (mut user_ns, mut system_ns) = (0, 0);
        for server in &file.servers {
            let (before, after) = (before.0.get(&server.id)?, after.0.get(&server.id)?);
            user_ns += after.user_ns.saturating_sub(before.user_ns);
            system_ns += after.system_ns.saturating_sub(before.system_ns);
        }
        let mut all = BTreeSet::new();
        for server in &file.servers {
            let cores = server.cores.as_ref().map(|cores| cores.cores()).unwrap_or_default();
            all.extend(cores.iter().map(|core| (&server.host, *core)));
        }
        let is_pinned = file.servers.iter().all(|server| server.cores.is_some());
        let (user_seconds, system_seconds) = (user_ns as f64 / 1e9, system_ns as f64 / 1e9);
        let cores = is_pinned.then_some(all.len());
        let time = cores.map(|cores| cores as f64 * seconds);
        let share = time.map(|time| (user_seconds + system_seconds) / time);
        Some(Self { user_seconds, system_seconds, cores, share })
    }
}
