//! Text form of an experiment: a table, its agreement, and the figures that the papers state.

use crate::anchors::AnchorResult;
use crate::availability::AvailableSummary;
use crate::catalogue::{Axis, Processors, RaUnit};
use crate::compare::{ColumnSummary, Comparison, WITHIN_PERCENT};
use crate::method::Method;
use crate::results::{Cell, RatioCell, RowResult};
use std::fmt::Write;

/// Placeholder for a missing value.
pub(crate) const NOTHING: &str = "-";

const PROCESSORS_LINE: &str = "cpu %: processor time of the servers left for a computation";
const BARRIERS_LINE: &str = "cpu %: processor time of the servers left for a computation; barr. %: \
    with a barrier every 5 ms";

/// Returns the text of one experiment for a terminal, ending with a line feed.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    for line in head(comparison) {
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(out);
    for line in Table::new(comparison).lines(&comparison.rows) {
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let foot = foot(comparison);
    if !foot.is_empty() {
        let _ = writeln!(out);
    }
    for line in foot {
        let _ = writeln!(out, "{line}");
    }
    out
}

/// Returns the lines above the table.
pub(crate) fn head(comparison: &Comparison) -> Vec<String> {
    let mut lines = vec![
        format!("{}: {}", comparison.name, comparison.title),
        format!("source: {}", comparison.source),
        conditions(comparison),
    ];
    let processors = match comparison.processors {
        Processors::Ignored => "",
        Processors::Available => PROCESSORS_LINE,
        Processors::WithBarriers => BARRIERS_LINE,
    };
    lines.extend((!processors.is_empty()).then(|| processors.to_owned()));
    if !comparison.note.is_empty() {
        lines.push(comparison.note.to_owned());
    }
    lines
}

/// Returns a line with the simulated conditions, and the unit of the table.
pub(crate) fn conditions(comparison: &Comparison) -> String {
    let (trials, first) = (comparison.trials, comparison.first_seed);
    let trials = match trials {
        1 => format!("one trial (seed {first})"),
        _ => {
            let last = first + u64::from(trials) - 1;
            format!("mean of {trials} trials (seeds {first} to {last})")
        }
    };
    let has_ra = comparison.rows.iter().any(|row| row.pattern == "ra");
    let ra = match comparison.ra {
        _ if !has_ra => "",
        RaUnit::Each => "; ra divided by the number of clients",
        RaUnit::Together => "; ra: what all clients receive together",
    };
    format!("MB/s of 2^20 bytes, {trials}, machine {}{ra}", comparison.machine)
}

/// Returns the lines below the table: agreement of columns and order, and the anchors.
fn foot(comparison: &Comparison) -> Vec<String> {
    let mut lines: Vec<String> = comparison.columns.iter().map(column_line).collect();
    lines.extend(comparison.available.iter().map(AvailableSummary::line));
    lines.extend(order_line(comparison));
    lines.extend(chance_line(comparison));
    for row in &comparison.improvements {
        if lines.last().is_none_or(|line| !line.starts_with(' ')) {
            lines.push("faster than caching, over all rows: published, simulated (error)".into());
        }
        lines.push(format!("  {:<23} {}", row.method, improvement_cells(row).join("   ")));
    }
    if !comparison.anchors.is_empty() {
        lines.push("stated in the text: published, simulated (error)".to_owned());
        lines.extend(comparison.anchors.iter().map(anchor_line));
    }
    if !comparison.is_whole {
        lines.push("what is published about all rows is left out: --only selects some".to_owned());
    }
    lines
}

/// Returns minimum, geometric mean and maximum of an improvement, each with the published value.
pub(crate) fn improvement_cells(row: &crate::improvement::ImprovementRow) -> [String; 3] {
    let values = |factors: crate::stats::Improvement| {
        [factors.minimum, factors.geometric_mean, factors.maximum]
    };
    let published = values(row.published);
    let simulated = row.simulated.map(values);
    let names = ["minimum", "mean", "maximum"];
    std::array::from_fn(|index| {
        let shown = match simulated {
            Some(simulated) => {
                let error = (simulated[index] / published[index] - 1.0) * 100.0;
                format!("{:.2} ({})", simulated[index], percent(error))
            }
            None => NOTHING.to_owned(),
        };
        format!("{} {:.2}, {shown}", names[index], published[index])
    })
}

/// Formats the agreement of a column.
pub(crate) fn column_line(column: &ColumnSummary) -> String {
    let limits = WITHIN_PERCENT.map(|limit| limit.to_string()).join("/");
    let within = column.within.map(|count| count.to_string()).join("/");
    format!(
        "{}: median |error| {:.1} %, worst {} ({}), within {limits} %: {within} of {} cells",
        column.method,
        column.median_percent,
        percent(column.worst_percent),
        column.worst_row,
        column.cells,
    )
}

/// Formats the agreement of the order of methods.
pub(crate) fn order_line(comparison: &Comparison) -> Option<String> {
    let order = comparison.order.as_ref()?;
    Some(format!(
        "order of strategies: right in {} of {} rows with published figures over {} % apart",
        order.right, order.rows, WITHIN_PERCENT[0],
    ))
}

/// Explains the mark of an insignificant ratio, if any row has it.
pub(crate) fn chance_line(comparison: &Comparison) -> Option<String> {
    let ratios = comparison.rows.iter().filter_map(|row| row.ratio.as_ref()?.simulated);
    let line = "~ the two methods do not differ significantly (95 %, Welch's t-test)";
    let marked = ratios.into_iter().any(|ratio| ratio.significant == Some(false));
    marked.then(|| line.to_owned())
}

fn anchor_line(anchor: &AnchorResult) -> String {
    format!(
        "  {}: {} {}, {} ({}) [{}]",
        anchor.name,
        range(anchor),
        anchor.unit,
        anchor.simulated.map_or(NOTHING.to_owned(), throughput),
        anchor.error_percent.map_or(NOTHING.to_owned(), percent),
        anchor.source,
    )
}

/// Formats the published side of an anchor.
pub(crate) fn range(anchor: &AnchorResult) -> String {
    match (anchor.low, anchor.high) {
        (Some(low), Some(high)) if low == high => low.to_string(),
        (Some(low), Some(high)) => format!("{low} to {high}"),
        (Some(low), None) => format!("at least {low}"),
        (None, Some(high)) => format!("at most {high}"),
        (None, None) => NOTHING.to_owned(),
    }
}

/// Formats a throughput or a ratio with the digits of the papers, and one more for small values.
pub(crate) fn throughput(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { format!("{value:.1}") }
}

/// Formats a signed percentage.
pub(crate) fn percent(value: f64) -> String {
    let rounded = format!("{value:+.1} %");
    if rounded == "-0.0 %" { "+0.0 %".to_owned() } else { rounded }
}

/// Column of the table.
struct Column {
    /// Heading above this column and those after it, if a group begins here.
    group: Option<String>,
    head: &'static str,
    width: usize,
    is_left: bool,
    kind: Kind,
}

/// Contents of a column.
#[derive(Clone, Copy)]
enum Kind {
    Pattern,
    Record,
    Value,
    Layout,
    Published(Method),
    Simulated(Method),
    Error(Method),
    Variation(Method),
    PublishedAvailable(Method),
    Available(Method),
    WithBarriers(Method),
    PublishedRatio,
    Ratio,
}

impl Kind {
    fn show(self, row: &RowResult) -> String {
        let number =
            |value: Option<f64>, show: fn(f64) -> String| value.map_or(NOTHING.to_owned(), show);
        let cell = |method| row.cell(method);
        match self {
            Self::Pattern => row.pattern.clone(),
            Self::Record => row.record_bytes.map_or(NOTHING.to_owned(), |bytes| bytes.to_string()),
            Self::Value => row.value.map_or(NOTHING.to_owned(), |value| value.to_string()),
            Self::Layout => row.layout.clone(),
            Self::Published(method) => {
                number(cell(method).and_then(|cell| cell.published), |value| format!("{value:.1}"))
            }
            Self::Simulated(method) => number(row.simulated(method), throughput),
            Self::Error(method) => {
                number(cell(method).and_then(|cell| cell.error_percent), percent)
            }
            Self::Variation(method) => {
                let variation =
                    |cell: &Cell| Some(cell.simulated.as_ref()?.coefficient_of_variation);
                number(cell(method).and_then(variation), |value| format!("{value:.3}"))
            }
            Self::PublishedAvailable(method) => {
                let published = cell(method).and_then(|cell| cell.published_available_percent);
                published.map_or(NOTHING.to_owned(), |value| value.to_string())
            }
            Self::Available(method) => {
                let left = row.availability(method).map(|left| left.cpu_available_percent);
                number(left, |value| format!("{value:.1}"))
            }
            Self::WithBarriers(method) => {
                let left = row.availability(method);
                let left = left.map(|left| left.cpu_usable_with_barriers_percent);
                number(left, |value| format!("{value:.1}"))
            }
            Self::PublishedRatio => {
                let published = row.ratio.as_ref().and_then(|ratio| ratio.published);
                number(published, |value| format!("{value:.1}"))
            }
            Self::Ratio => row.ratio.as_ref().map_or(NOTHING.to_owned(), ratio),
        }
    }
}

/// Formats a simulated ratio, marked if it is not significant.
pub(crate) fn ratio(cell: &RatioCell) -> String {
    match cell.simulated {
        Some(ratio) if ratio.significant == Some(false) => format!("~{:.2}", ratio.ratio),
        Some(ratio) => format!("{:.2}", ratio.ratio),
        None => NOTHING.to_owned(),
    }
}

impl Column {
    fn new(head: &'static str, width: usize, kind: Kind) -> Self {
        Self { group: None, head, width, is_left: false, kind }
    }

    fn pad(&self, word: &str) -> String {
        let width = self.width;
        if self.is_left { format!("{word:<width$}") } else { format!("{word:>width$}") }
    }
}

fn columns(comparison: &Comparison) -> Vec<Column> {
    let pattern = Column { is_left: true, ..Column::new("pattern", 8, Kind::Pattern) };
    let mut columns = vec![pattern];
    // The record size is the variable, or differs between rows, or is not worth a column.
    if comparison.axis == Axis::Pattern {
        columns.push(Column::new("record", 7, Kind::Record));
    } else {
        columns.push(Column::new(comparison.axis.head(), 9, Kind::Value));
    }
    if comparison.rows.iter().any(|row| row.layout != comparison.rows[0].layout) {
        let layout = Column::new("layout", 15, Kind::Layout);
        columns.push(layout);
    }
    for &method in &comparison.methods {
        let first = columns.len();
        let is_published = comparison.is_published(method);
        if is_published {
            columns.push(Column::new("publ.", 9, Kind::Published(method)));
        }
        let width = if is_published { 8 } else { 10 };
        columns.push(Column::new("sim.", width, Kind::Simulated(method)));
        if is_published {
            columns.push(Column::new("error", 10, Kind::Error(method)));
        }
        columns.push(Column::new("cv", 7, Kind::Variation(method)));
        if comparison.available.iter().any(|published| published.method == method) {
            columns.push(Column::new("publ.", 9, Kind::PublishedAvailable(method)));
        }
        if comparison.processors >= Processors::Available {
            columns.push(Column::new("cpu %", 8, Kind::Available(method)));
        }
        if comparison.processors >= Processors::WithBarriers {
            columns.push(Column::new("barr. %", 9, Kind::WithBarriers(method)));
        }
        name_group(&mut columns[first..], method.to_string());
    }
    if let Some((one, other)) = comparison.ratio {
        let has_published =
            |row: &RowResult| row.ratio.as_ref().is_some_and(|ratio| ratio.published.is_some());
        let first = columns.len();
        if comparison.rows.iter().any(has_published) {
            columns.push(Column::new("publ.", 9, Kind::PublishedRatio));
            columns.push(Column::new("sim.", 8, Kind::Ratio));
        } else {
            columns.push(Column::new("sim.", 10, Kind::Ratio));
        }
        name_group(&mut columns[first..], format!("{one} / {other}"));
    }
    columns
}

/// Makes columns a group, wide enough for its name.
fn name_group(columns: &mut [Column], name: String) {
    let width: usize = columns.iter().map(|column| column.width).sum();
    if let [first, ..] = columns {
        first.width += (name.len() + 3).saturating_sub(width);
        first.group = Some(name);
    }
}

/// Table of an experiment: columns that format cells of a row.
pub(crate) struct Table {
    columns: Vec<Column>,
}

impl Table {
    /// Returns the columns that an experiment needs.
    pub(crate) fn new(comparison: &Comparison) -> Self {
        Self { columns: columns(comparison) }
    }

    /// Returns the groups of columns by name, with the number of columns of each. The first group
    /// holds the parameters and has no name.
    pub(crate) fn groups(&self) -> Vec<(&str, usize)> {
        let mut groups = vec![("", 0)];
        for column in &self.columns {
            groups.extend(column.group.as_deref().map(|group| (group, 0)));
            if let Some((_, columns)) = groups.last_mut() {
                *columns += 1;
            }
        }
        groups
    }

    /// Returns the heading of each column, and true if a group begins with it.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (&str, bool)> {
        self.columns.iter().map(|column| (column.head, column.group.is_some()))
    }

    /// Returns the cell of each column in a row.
    pub(crate) fn cells(&self, row: &RowResult) -> impl Iterator<Item = String> {
        self.columns.iter().map(|column| column.kind.show(row))
    }

    /// Returns the lines of group names, headings and rows, with aligned columns.
    fn lines(&self, rows: &[RowResult]) -> Vec<String> {
        let pad = |cells: Vec<String>| -> String {
            let padded = self.columns.iter().zip(&cells).map(|(column, cell)| column.pad(cell));
            padded.collect::<Vec<String>>().concat()
        };
        let heads = pad(self.heads().map(|(head, _)| head.to_owned()).collect());
        let rows = rows.iter().map(|row| pad(self.cells(row).collect()));
        [self.over_heads(), heads].into_iter().chain(rows).collect()
    }

    /// Returns the line of group names, each ending where its columns end.
    fn over_heads(&self) -> String {
        let mut line = String::new();
        let mut columns = self.columns.iter();
        for (group, count) in self.groups() {
            let width: usize = columns.by_ref().take(count).map(|column| column.width).sum();
            let _ = write!(line, "{group:>width$}");
        }
        line
    }
}

#[cfg(test)]
mod tests {
    //! Proves: a table has a line for each row with all its numbers in columns, and the lines below
    //! summarise it.
    use super::*;
    use crate::compare::tests::comparison;

    #[test]
    fn a_table_shows_both_sides() {
        let shown = text(&comparison());
        let lines: Vec<&str> = shown.lines().collect();
        let row = lines.iter().find(|line| line.starts_with("rc ")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        let expected = "rc 8192 10.0 9.00 -10.0 % 0.000 30.0 30.0 +0.0 % 0.000 - 3.33";
        assert_eq!(words, expected.split(' ').collect::<Vec<_>>());
        assert!(lines.iter().all(|line| !line.ends_with(' ')));
        let expected = "caching: median |error| 10.0 %, worst +50.0 % (rn 8192), within 2/10/35 %: \
                        1/2/2 of 3 cells";
        assert!(lines.contains(&expected), "{shown}");
    }

    #[test]
    fn numbers_are_rounded_as_papers_do() {
        assert_eq!(
            (throughput(9.994), throughput(31.44), throughput(0.789)),
            ("9.99".to_owned(), "31.4".to_owned(), "0.79".to_owned())
        );
        assert_eq!((percent(-0.01), percent(-3.24)), ("+0.0 %".to_owned(), "-3.2 %".to_owned()));
    }

    #[test]
    fn ranges_may_be_open() {
        let at = |low, high| {
            let (name, unit, source) = (String::new(), String::new(), String::new());
            let (simulated, error_percent, sentence) = (None, None, String::new());
            range(&AnchorResult {
                name,
                low,
                high,
                unit,
                simulated,
                error_percent,
                source,
                sentence,
            })
        };
        assert_eq!(at(Some(7.4), Some(7.5)), "7.4 to 7.5");
        assert_eq!(
            (at(Some(6.2), Some(6.2)), at(None, Some(5.0))),
            ("6.2".into(), "at most 5".into())
        );
    }
}
