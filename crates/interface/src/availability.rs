//! What a transfer leaves of the servers' processors, as reports show it.

use serde::{Deserialize, Serialize};

/// What a computation gets of the servers' processors while a transfer goes on, in percent of that
/// time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Availability {
    /// Without synchronisation: the mean over servers.
    pub cpu_available_percent: f64,
    /// When all processes meet at a barrier every 5 ms of computing.
    pub cpu_usable_with_barriers_percent: f64,
    /// In which the processors worked for the file system: the mean over servers. What is neither
    /// this nor available went into switching.
    pub cpu_busy_percent: f64,
    /// How often each server was interrupted: the mean over servers.
    pub cpu_interruptions: f64,
}

impl Availability {
    /// The mean of several trials'; nothing if there are none.
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
