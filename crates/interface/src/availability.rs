//! Availability of the servers' processors during a transfer, as reports show it.

use serde::{Deserialize, Serialize};

/// Share of the servers' processors that a computation gets during a transfer, in percent of the
/// transfer's time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Availability {
    /// Share available without synchronisation: the mean over servers.
    pub cpu_available_percent: f64,
    /// Share usable if all processes meet at a barrier every 5 ms of computing.
    pub cpu_usable_with_barriers_percent: f64,
    /// Share in which the processors worked for the file system: the mean over servers. The rest,
    /// neither busy nor available, went into context switches.
    pub cpu_busy_percent: f64,
    /// Interruptions of each server: the mean over servers.
    pub cpu_interruptions: f64,
}

impl Availability {
    /// Returns the mean of several trials; nothing if there are none.
    pub fn mean(trials: impl Iterator<Item = Self>) -> Option<Self> {
        let trials: Vec<Self> = trials.collect();
        let mean = |of: fn(&Self) -> f64| trials.iter().map(of).sum::<f64>() / trials.len() as f64;
        (!trials.is_empty()).then(|| Self {
            cpu_available_percent: mean(|it| it.cpu_available_percent),
            cpu_usable_with_barriers_percent: mean(|it| it.cpu_usable_with_barriers_percent),
            cpu_busy_percent: mean(|it| it.cpu_busy_percent),
            cpu_interruptions: mean(|it| it.cpu_interruptions),
        })
    }
}
