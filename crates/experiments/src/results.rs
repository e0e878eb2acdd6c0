//! Rows of a comparison: simulated throughput beside the published one, cell by cell.

use crate::catalogue::{Experiment, Point, RaUnit};
use crate::method::Method;
use crate::plan::Done;
use crate::published::Throughputs;
use crate::scenarios::scenario;
use crate::stats::{Ratio, Sample};
use interface::{Availability, UserError};
use serde::Serialize;
use simulate::Trial;

/// One row: a pattern with all fixed parameters.
#[derive(Clone, Debug, Serialize)]
pub struct RowResult {
    /// Pattern.
    pub pattern: String,
    /// Bytes of a record; `None` if the pattern does not depend on it.
    pub record_bytes: Option<u64>,
    /// Layout of blocks on the disks.
    pub layout: String,
    /// Value of the variable.
    pub value: Option<u32>,
    /// Number of clients.
    pub clients: u32,
    /// Cells, one for each method.
    pub cells: Vec<Cell>,
    /// Ratio of two methods.
    pub ratio: Option<RatioCell>,
}

/// Result of a method in a row. Throughputs are in 2^20 bytes a second.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Method.
    pub method: Method,
    /// Published throughput.
    pub published: Option<f64>,
    /// Simulated result.
    pub simulated: Option<Simulated>,
    /// Error of the simulated mean, in percent of the published value.
    pub error_percent: Option<f64>,
    /// Published share of the servers' processor time that is left for a computation, in percent.
    pub published_available_percent: Option<f64>,
}

/// All trials of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Simulated {
    /// Mean and standard deviation of the throughput.
    #[serde(flatten)]
    pub sample: Sample,
    /// Standard deviation over the mean.
    pub coefficient_of_variation: f64,
    /// Processor time left on the servers, if the experiment is about it.
    #[serde(flatten)]
    pub availability: Option<Availability>,
    /// Trials.
    pub trials: Vec<TrialResult>,
}

/// One trial.
#[derive(Clone, Debug, Serialize)]
pub struct TrialResult {
    /// Seed.
    pub seed: u64,
    /// Simulated duration of the transfer, in seconds.
    pub seconds: f64,
    /// Throughput, in 2^20 bytes a second.
    pub mib_s: f64,
    /// Digest of the simulation, in hexadecimal: equal for equal simulations.
    pub digest: String,
    /// Number of events of the engine.
    pub events: u64,
    /// Real computing time, in seconds.
    pub host_seconds: f64,
    /// Processor time left on the servers, if the experiment is about it.
    #[serde(flatten)]
    pub availability: Option<Availability>,
}

/// Ratio of two methods in a row.
#[derive(Clone, Debug, Serialize)]
pub struct RatioCell {
    /// Published ratio.
    pub published: Option<f64>,
    /// Ratio of the simulated means.
    pub simulated: Option<Ratio>,
}

impl RowResult {
    /// Returns the row of `point`, from its published values and its trials.
    pub(crate) fn new(
        experiment: &Experiment,
        point: &Point,
        published: &Throughputs,
        done: &Done,
    ) -> Result<Self, UserError> {
        let mut cells = Vec::new();
        let mut clients = 0;
        for &method in &experiment.methods {
            let scenario = scenario(experiment, point, method, done.count)?;
            clients = scenario.clients;
            let simulated = Simulated::of(done.of(&scenario), experiment.ra);
            let published_available_percent = published.available(point, method);
            let published = published.value(point, method);
            let error_percent = published
                .zip(simulated.as_ref())
                .map(|(published, simulated)| (simulated.sample.mean / published - 1.0) * 100.0);
            cells.push(Cell {
                method,
                published,
                simulated,
                error_percent,
                published_available_percent,
            });
        }
        let mut row = Self {
            pattern: point.pattern.clone(),
            record_bytes: point.record_bytes,
            layout: point.layout.to_string(),
            value: point.value,
            clients,
            cells,
            ratio: None,
        };
        row.ratio = experiment.ratio.map(|(one, other)| {
            let both = row.sample(one).zip(row.sample(other));
            let simulated = both.map(|(one, other)| Ratio::of(&one, &other));
            RatioCell { published: published.ratio(point), simulated }
        });
        Ok(row)
    }

    /// Returns the cell of a method, if the experiment compares it.
    pub(crate) fn cell(&self, method: Method) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.method == method)
    }

    /// Returns the simulated throughput of a method, if any.
    pub(crate) fn sample(&self, method: Method) -> Option<Sample> {
        Some(self.cell(method)?.simulated.as_ref()?.sample)
    }

    /// Returns the simulated mean throughput of a method, in 2^20 bytes a second.
    pub(crate) fn simulated(&self, method: Method) -> Option<f64> {
        self.sample(method).map(|sample| sample.mean)
    }

    /// Returns the simulated throughput of a method over that of another.
    pub(crate) fn ratio_of(&self, method: Method, over: Method) -> Option<f64> {
        self.simulated(method).zip(self.simulated(over)).map(|(one, other)| one / other)
    }

    /// Returns the processor time that a method leaves on the servers, if it was simulated.
    pub(crate) fn availability(&self, method: Method) -> Option<Availability> {
        self.cell(method)?.simulated.as_ref()?.availability
    }

    /// Returns a label that is unique among the rows of the experiment.
    pub(crate) fn label(&self) -> String {
        let mut label = self.pattern.clone();
        if let Some(bytes) = self.record_bytes {
            label.push_str(&format!(" {bytes}"));
        }
        if let Some(value) = self.value {
            label.push_str(&format!(" at {value}"));
        }
        label
    }
}

impl Simulated {
    fn of(trials: &[Trial], ra: RaUnit) -> Option<Self> {
        let result = |trial: &Trial| TrialResult {
            seed: trial.seed,
            seconds: trial.seconds,
            mib_s: match ra {
                RaUnit::Each => trial.mib_s,
                RaUnit::Together => trial.moved_mib_s,
            },
            digest: format!("{:016x}", trial.digest),
            events: trial.events,
            host_seconds: trial.host_seconds,
            availability: trial.availability,
        };
        let availability = Availability::mean(trials.iter().filter_map(|trial| trial.availability));
        let trials: Vec<TrialResult> = trials.iter().map(result).collect();
        let rates: Vec<f64> = trials.iter().map(|trial| trial.mib_s).collect();
        let sample = Sample::of(&rates)?;
        let coefficient_of_variation = sample.coefficient_of_variation();
        Some(Self { sample, coefficient_of_variation, availability, trials })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    //! Rows made by hand, for tests of this crate.
    use super::*;

    /// Returns a row of caching and disk-directed I/O, each with published and simulated
    /// throughput.
    pub(crate) fn row(pattern: &str, caching: (f64, f64), disk_directed: (f64, f64)) -> RowResult {
        let cell = |method, (published, mean): (f64, f64)| {
            let sample = Sample { count: 1, mean, deviation: 0.0 };
            let (seed, seconds, digest) = (1, 10.0 / mean, "00000000000000ff".to_owned());
            let (events, host_seconds, availability) = (7, 0.1, None);
            let mib_s = mean;
            let trial =
                TrialResult { seed, seconds, mib_s, digest, events, host_seconds, availability };
            Cell {
                method,
                published: Some(published),
                simulated: Some(Simulated {
                    sample,
                    coefficient_of_variation: 0.0,
                    availability,
                    trials: vec![trial],
                }),
                error_percent: Some((mean / published - 1.0) * 100.0),
                published_available_percent: None,
            }
        };
        RowResult {
            pattern: pattern.to_owned(),
            record_bytes: Some(8192),
            layout: "contiguous".to_owned(),
            value: None,
            clients: 16,
            cells: vec![cell(Method::Caching, caching), cell(Method::DiskDirected, disk_directed)],
            ratio: None,
        }
    }
}
