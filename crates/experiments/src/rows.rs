//! Results of an experiment as rows, one for each trial of each case, with typed columns.
//!
//! Every result file is made of this table. Throughputs are in 2^20 bytes a second; `mib_s` is that
//! of the trial, `mean_mib_s` that of all trials of the case. Processor time is that of the trial,
//! if the experiment is about it.

use crate::compare::Comparison;
use crate::results::{Cell, RowResult, Simulated, TrialResult};

/// One trial of one case, with its context.
pub(crate) struct Line<'a> {
    comparison: &'a Comparison,
    row: &'a RowResult,
    cell: &'a Cell,
    simulated: &'a Simulated,
    trial: &'a TrialResult,
}

/// Column: its name, and a function for its values. Numbers may be missing.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) values: Values,
}

/// Values of a column, by type.
#[derive(Clone, Copy)]
pub(crate) enum Values {
    Text(fn(&Line<'_>) -> String),
    Integer(fn(&Line<'_>) -> Option<i64>),
    Real(fn(&Line<'_>) -> Option<f64>),
}

const fn text(name: &'static str, value: fn(&Line<'_>) -> String) -> Column {
    Column { name, values: Values::Text(value) }
}

const fn integer(name: &'static str, value: fn(&Line<'_>) -> Option<i64>) -> Column {
    Column { name, values: Values::Integer(value) }
}

const fn real(name: &'static str, value: fn(&Line<'_>) -> Option<f64>) -> Column {
    Column { name, values: Values::Real(value) }
}

/// All columns, from left to right.
pub(crate) static COLUMNS: [Column; 17] = [
    text("experiment", |line| line.comparison.name.to_owned()),
    text("machine", |line| line.comparison.machine.clone()),
    text("layout", |line| line.row.layout.clone()),
    text("pattern", |line| line.row.pattern.clone()),
    integer("record_bytes", |line| line.row.record_bytes.and_then(|it| it.try_into().ok())),
    text("varied", |line| line.comparison.axis.head().to_owned()),
    integer("value", |line| line.row.value.map(i64::from)),
    text("method", |line| line.cell.method.to_string()),
    integer("seed", |line| line.trial.seed.try_into().ok()),
    real("seconds", |line| Some(line.trial.seconds)),
    real("mib_s", |line| Some(line.trial.mib_s)),
    real("mean_mib_s", |line| Some(line.simulated.sample.mean)),
    real("published_mib_s", |line| line.cell.published),
    text("digest", |line| line.trial.digest.clone()),
    real("cpu_available_percent", |line| {
        line.trial.availability.map(|left| left.cpu_available_percent)
    }),
    real("published_cpu_available_percent", |line| line.cell.published_available_percent),
    real("cpu_usable_with_barriers_percent", |line| {
        line.trial.availability.map(|left| left.cpu_usable_with_barriers_percent)
    }),
];

/// Returns every row of an experiment.
pub(crate) fn lines(comparison: &Comparison) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    for row in &comparison.rows {
        for cell in &row.cells {
            let Some(simulated) = &cell.simulated else { continue };
            let trials = simulated.trials.iter();
            lines.extend(trials.map(|trial| Line { comparison, row, cell, simulated, trial }));
        }
    }
    lines
}

/// Returns the CSV file of an experiment; missing values are empty.
pub(crate) fn csv(comparison: &Comparison) -> Result<Vec<u8>, std::io::Error> {
    let shown = |values: Values, line: &Line<'_>| match values {
        Values::Text(of) => of(line),
        Values::Integer(of) => of(line).map(|it| it.to_string()).unwrap_or_default(),
        Values::Real(of) => of(line).map(|it| it.to_string()).unwrap_or_default(),
    };
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS.iter().map(|column| column.name))?;
    for line in lines(comparison) {
        writer.write_record(COLUMNS.iter().map(|column| shown(column.values, &line)))?;
    }
    writer.into_inner().map_err(csv::IntoInnerError::into_error)
}
