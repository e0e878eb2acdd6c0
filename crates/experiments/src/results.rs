//! The rows of an experiment: what was simulated beside what was published.

use crate::catalogue::{Experiment, Point, RaUnit};
use crate::method::Method;
use crate::published::Throughputs;
use crate::queue::Done;
use crate::scenarios::scenario;
use crate::stats::{Ratio, Sample};
use interface::{Availability, UserError};
use serde::Serialize;
use simulate::Trial;

/// One row: a pattern with everything that is fixed.
#[derive(Clone, Debug, Serialize)]
pub struct RowResult {
    /// The pattern.
    pub pattern: String,
    /// Bytes of a record; nothing where the pattern does not depend on it.
    pub record_bytes: Option<u64>,
    /// How blocks lie on the disks.
    pub layout: String,
    /// The value of what is varied.
    pub value: Option<u32>,
    /// Clients that take part.
    pub clients: u32,
    /// One cell for each method.
    pub cells: Vec<Cell>,
    /// The ratio of two methods.
    pub ratio: Option<RatioCell>,
}

/// What a method achieves in a row. Throughputs are in 2^20 bytes a second.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The method.
    pub method: Method,
    /// The published throughput.
    pub published: Option<f64>,
    /// What was simulated.
    pub simulated: Option<Simulated>,
    /// How far the simulated mean is from the published value, in percent of that.
    pub error_percent: Option<f64>,
    /// The published share of the servers' processor time that is left for a computation.
    pub published_available_percent: Option<f64>,
}

/// All trials of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Simulated {
    /// Mean and deviation of the throughput.
    #[serde(flatten)]
    pub sample: Sample,
    /// The deviation over the mean.
    pub coefficient_of_variation: f64,
    /// What was left of the servers' processors, where the experiment is about that.
    #[serde(flatten)]
    pub availability: Option<Availability>,
    /// Each trial.
    pub trials: Vec<TrialResult>,
}

/// One trial.
#[derive(Clone, Debug, Serialize)]
pub struct TrialResult {
    /// Its seed.
    pub seed: u64,
    /// Simulated seconds of the transfer.
    pub seconds: f64,
    /// Throughput, in 2^20 bytes a second.
    pub mib_s: f64,
    /// Equal for equal simulations, in hexadecimal.
    pub digest: String,
    /// Events of the engine.
    pub events: u64,
    /// Real seconds of computing.
    pub host_seconds: f64,
    /// What was left of the servers' processors, where the experiment is about that.
    #[serde(flatten)]
    pub availability: Option<Availability>,
}

/// The ratio of two methods in a row.
#[derive(Clone, Debug, Serialize)]
pub struct RatioCell {
    /// The published ratio.
    pub published: Option<f64>,
    /// The ratio of the simulated means.
    pub simulated: Option<Ratio>,
}

impl RowResult {
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

    /// The cell of a method, if the experiment is about it.
    pub(crate) fn cell(&self, method: Method) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.method == method)
    }

    /// What was simulated of a method, if anything.
    pub(crate) fn sample(&self, method: Method) -> Option<Sample> {
        Some(self.cell(method)?.simulated.as_ref()?.sample)
    }

    /// The simulated mean throughput of a method, in 2^20 bytes a second.
    pub(crate) fn simulated(&self, method: Method) -> Option<f64> {
        self.sample(method).map(|sample| sample.mean)
    }

    /// The simulated throughput of a method over that of another.
    pub(crate) fn ratio_of(&self, method: Method, over: Method) -> Option<f64> {
        self.simulated(method).zip(self.simulated(over)).map(|(one, other)| one / other)
    }

    /// What a method leaves of the servers' processors, if that was simulated.
    pub(crate) fn availability(&self, method: Method) -> Option<Availability> {
        self.cell(method)?.simulated.as_ref()?.availability
    }

    /// What names it among the rows of its experiment.
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
    //! A row made by hand.
    use super::*;

    /// A row of caching and disk-directed I/O, each with published and simulated throughput.
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
