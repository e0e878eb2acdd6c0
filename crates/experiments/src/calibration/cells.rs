//! Cells that the costs are fitted to, and their simulations.

use crate::catalogue::Point;
use crate::defect::defect;
use crate::method::Method;
use crate::published::Throughputs;
use interface::{Strategy, UserError};
use simulate::{
    FittedCosts, LayoutName, Machine, MachineName, Progress, Scenario, simulate_trials,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Patterns whose chunks are single records, in both directions.
const PATTERNS: [&str; 6] = ["rc", "rcc", "rbc", "wc", "wcc", "wbc"];
const METHODS: [Method; 2] = [Method::Caching, Method::DiskDirected];
const RECORD_BYTES: u64 = 8;
/// Pattern with the largest published ratio.
const PEAK: &str = "wbc";

/// Cell of the table: published throughput, and simulated throughput with some costs.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Cell {
    pub(super) pattern: &'static str,
    pub(super) method: Method,
    /// Published throughput, in 2^20 bytes a second.
    pub(super) published: f64,
    /// Simulated throughput, in 2^20 bytes a second.
    pub(super) simulated: f64,
    /// Published ratio of disk-directed to caching in its row.
    pub(super) published_ratio: f64,
}

impl Cell {
    pub(super) fn log_ratio(&self) -> f64 {
        (self.simulated / self.published).ln()
    }

    pub(super) fn error_percent(&self) -> f64 {
        (self.simulated / self.published - 1.0) * 100.0
    }
}

/// Returns the error of the simulated peak ratio of disk-directed to caching, in percent of the
/// published one.
pub(super) fn ratio_error_percent(cells: &[Cell]) -> Option<f64> {
    let cell = |method| cells.iter().find(|it| it.pattern == PEAK && it.method == method);
    let (caching, directed) = (cell(Method::Caching)?, cell(Method::DiskDirected)?);
    Some((directed.simulated / caching.simulated / caching.published_ratio - 1.0) * 100.0)
}

/// Key of a simulation: pattern, method, and the costs that affect it.
type Key = (&'static str, Method, [u64; 2]);

/// All cells, each simulated once for all costs that do not affect it.
pub(super) struct Cells<'a> {
    published: Vec<Cell>,
    simulated: BTreeMap<Key, f64>,
    jobs: usize,
    progress: &'a (dyn Fn(Progress) + Sync),
}

impl<'a> Cells<'a> {
    /// Loads the published cells; simulates nothing yet.
    ///
    /// # Errors
    /// If a cell is not published.
    pub(super) fn new(
        jobs: usize,
        progress: &'a (dyn Fn(Progress) + Sync),
    ) -> Result<Self, UserError> {
        let table = Throughputs::of("tr94-table4")?;
        let cell = |pattern: &'static str, method: Method| {
            let point = Point {
                pattern: pattern.to_owned(),
                record_bytes: Some(RECORD_BYTES),
                layout: LayoutName::CONTIGUOUS,
                value: None,
            };
            let published = table.value(&point, method).zip(table.ratio(&point));
            let (published, published_ratio) =
                published.ok_or_else(|| defect(format!("table 4 has no {pattern} {method}")))?;
            Ok(Cell { pattern, method, published, simulated: f64::NAN, published_ratio })
        };
        let all = PATTERNS.iter().flat_map(|pattern| METHODS.map(|method| cell(pattern, method)));
        let published = all.collect::<Result<_, UserError>>()?;
        Ok(Self { published, simulated: BTreeMap::new(), jobs, progress })
    }

    /// Returns the number of simulations so far.
    pub(super) fn trials(&self) -> u64 {
        self.simulated.len() as u64
    }

    /// Simulates every cell with each of these costs, unless it was simulated before.
    ///
    /// # Errors
    /// If a simulation fails.
    pub(super) fn simulate(&mut self, choices: &[FittedCosts]) -> Result<(), UserError> {
        let mut missing: BTreeMap<Key, FittedCosts> = BTreeMap::new();
        for costs in choices {
            let keys = self.published.iter().map(|cell| (key(cell, costs), *costs));
            missing.extend(keys.filter(|(key, _)| !self.simulated.contains_key(key)));
        }
        let before = self.trials();
        let all = before + missing.len() as u64;
        let scenarios = missing.iter().map(|(key, costs)| scenario(key, *costs));
        let scenarios = scenarios.collect::<Result<Vec<Scenario>, _>>()?;
        let trials = simulate_trials(&scenarios, self.jobs.max(1), &|now| {
            (self.progress)(Progress { done: before + now.done, all });
            ControlFlow::Continue(())
        })?;
        for (key, trials) in missing.into_keys().zip(trials) {
            self.simulated.insert(key, trials.iter().map(|trial| trial.mib_s).sum());
        }
        Ok(())
    }

    /// Returns every cell with these costs, which have been simulated.
    pub(super) fn with(&self, costs: &FittedCosts) -> Vec<Cell> {
        let simulated = |cell: &Cell| {
            self.simulated.get(&key(cell, costs)).copied().expect("a cell is simulated before use")
        };
        let cells = self.published.iter();
        cells.map(|cell| Cell { simulated: simulated(cell), ..cell.clone() }).collect()
    }
}

/// Returns the key of a cell: with those of the costs that affect it.
fn key(cell: &Cell, costs: &FittedCosts) -> Key {
    let reads = cell.pattern.starts_with('r');
    let costs = match (cell.method, reads) {
        (Method::Caching, true) => [costs.client_read_ns, costs.cache_read_ns],
        (Method::Caching, false) => [costs.client_write_ns, 0],
        (_, true) => [costs.piece_per_dimension_ns, 0],
        (_, false) => [costs.piece_per_dimension_ns, costs.get_answer_ns],
    };
    (cell.pattern, cell.method, costs)
}

fn scenario(key: &Key, costs: FittedCosts) -> Result<Scenario, UserError> {
    let (pattern, method, _) = *key;
    let strategy = match method {
        Method::Caching => Strategy::Caching,
        _ => Strategy::DiskDirected,
    };
    Ok(Scenario {
        machine: costs.on(Machine::of(MachineName::Tr94)),
        pattern: pattern.parse().map_err(|_| defect(format!("{pattern} is not a pattern")))?,
        record_bytes: RECORD_BYTES,
        strategy,
        trials: 1,
        ..Scenario::default()
    })
}

#[cfg(test)]
mod tests {
    //! Proves: every cell is published, errors equal those computed by hand, and a cell is
    //! simulated again only for costs that affect it.
    use super::*;

    #[test]
    fn every_cell_is_published() {
        let cells = Cells::new(1, &|_| ()).unwrap();
        assert_eq!(cells.published.len(), 12);
        assert!(cells.published.iter().all(|cell| cell.published > 0.0));
    }

    #[test]
    fn errors_are_relative() {
        let cell = |method, published, simulated| Cell {
            pattern: "wbc",
            method,
            published,
            simulated,
            published_ratio: 18.0,
        };
        let cells = [cell(Method::Caching, 0.8, 1.0), cell(Method::DiskDirected, 14.0, 9.0)];
        assert!((cells[0].error_percent() - 25.0).abs() < 1e-9);
        assert!((cells[0].log_ratio() - 1.25f64.ln()).abs() < 1e-12);
        assert!((ratio_error_percent(&cells).unwrap() + 50.0).abs() < 1e-9);
        assert_eq!(ratio_error_percent(&cells[..1]), None);
    }

    #[test]
    fn only_costs_that_matter_make_a_difference() {
        let cells = Cells::new(1, &|_| ()).unwrap().published;
        let costs = FittedCosts::of(&Machine::of(MachineName::Tr94));
        let changed = |costs: FittedCosts, base: FittedCosts| {
            cells.iter().filter(|cell| key(cell, &costs) != key(cell, &base)).count()
        };
        assert_eq!(changed(FittedCosts { client_read_ns: 1, ..costs }, costs), 3);
        assert_eq!(changed(FittedCosts { client_write_ns: 1, ..costs }, costs), 3);
        assert_eq!(changed(FittedCosts { cache_read_ns: 1, ..costs }, costs), 3);
        assert_eq!(changed(FittedCosts { piece_per_dimension_ns: 1, ..costs }, costs), 6);
        assert_eq!(changed(FittedCosts { get_answer_ns: 1, ..costs }, costs), 3);
    }
}
