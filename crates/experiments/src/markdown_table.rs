//! Tables of the Markdown page.
//!
//! Invariant: a limit that the text states ("at most") is shown, and counts as no figure.

use crate::anchors::AnchorResult;
use crate::availability::{AvailableSummary, WITHIN_POINTS};
use crate::catalogue::{Axis, Processors};
use crate::compare::{Comparison, WITHIN_PERCENT};
use crate::method::Method;
use crate::notes::Standing;
use crate::results::RowResult;
use crate::stats::{Improvement, median};
use crate::text::{NOTHING, percent, range, ratio, throughput};
use std::fmt::Write;

/// Fragment of the section of figures that are only stated in a text.
const STATED_FRAGMENT: &str = "stated-in-the-text";

/// Error above which a figure is bold, in percent.
const BOLD_PERCENT: f64 = 10.0;

/// Error of one published figure, in percent, and the name of the figure.
struct Deviation {
    percent: f64,
    figure: String,
}

/// Returns a table with a row for each experiment: number of figures and their errors.
pub(crate) fn agreement_table(comparisons: &[&Comparison]) -> String {
    let mut rows = Vec::new();
    for comparison in comparisons {
        let begin = |name: &str| {
            let standing = Standing::of(comparison.name).name().to_owned();
            let source = format!("{}: {}", comparison.short_source(), comparison.title);
            vec![name.to_owned(), source, standing]
        };
        let link = format!("[{}](#{})", comparison.name, section(comparison));
        let mut row = begin(&link);
        row.extend(errors(&deviations(comparison)));
        rows.push(row);
        rows.extend(processor_time(&comparison.available).map(|cells| {
            let mut row = begin(&format!("{link}, processor time"));
            row.extend(cells);
            row
        }));
    }
    let within = format!("within {} %", WITHIN_PERCENT.map(|limit| limit.to_string()).join(" / "));
    let heads = ["experiment", "published in", "evidence", "figures", "median error", "worst"];
    table(&[&heads.map(str::to_owned)[..], &[within]].concat(), rows)
}

/// Formats number, worst difference and agreement of all shares of processor time.
fn processor_time(methods: &[AvailableSummary]) -> Option<[String; 4]> {
    let by_size = |a: &&AvailableSummary, b: &&AvailableSummary| {
        a.worst_points.abs().total_cmp(&b.worst_points.abs())
    };
    let AvailableSummary { method, worst_points, worst_row, .. } =
        methods.iter().max_by(by_size)?;
    let within: usize = methods.iter().map(|left| left.within).sum();
    let cells: usize = methods.iter().map(|left| left.cells).sum();
    Some([
        cells.to_string(),
        NOTHING.to_owned(),
        format!("{worst_points:+.1} points ({method} {worst_row})"),
        format!("{within} within {WITHIN_POINTS} points"),
    ])
}

/// Returns the fragment of the section that has the figures of an experiment.
fn section(comparison: &Comparison) -> &str {
    if comparison.is_tabulated() { comparison.name } else { STATED_FRAGMENT }
}

/// Formats number, median, worst and counts of errors.
fn errors(deviations: &[Deviation]) -> [String; 4] {
    let sizes: Vec<f64> = deviations.iter().map(|one| one.percent.abs()).collect();
    let by_size = |a: &&Deviation, b: &&Deviation| a.percent.abs().total_cmp(&b.percent.abs());
    let count = |limit: &f64| sizes.iter().filter(|size| *size <= limit).count().to_string();
    match median(&sizes).zip(deviations.iter().max_by(by_size)) {
        Some((median, worst)) => [
            sizes.len().to_string(),
            format!("{median:.1} %"),
            format!("{} ({})", error(worst.percent), worst.figure),
            WITHIN_PERCENT.iter().map(count).collect::<Vec<_>>().join(" / "),
        ],
        None => ["limits only", NOTHING, NOTHING, NOTHING].map(str::to_owned),
    }
}

/// Returns the errors of all published figures of an experiment but limits and processor time.
fn deviations(comparison: &Comparison) -> Vec<Deviation> {
    let mut all = Vec::new();
    for row in &comparison.rows {
        for cell in &row.cells {
            let figure = format!("{} {}", cell.method, row.label());
            all.extend(cell.error_percent.map(|percent| Deviation { percent, figure }));
        }
    }
    for (figure, published, simulated) in improvements(comparison) {
        let error = simulated.map(|simulated| (simulated / published - 1.0) * 100.0);
        all.extend(error.map(|percent| Deviation { percent, figure }));
    }
    for anchor in comparison.anchors.iter().filter(|anchor| !is_limit(anchor)) {
        let figure = anchor.name.clone();
        all.extend(anchor.error_percent.map(|percent| Deviation { percent, figure }));
    }
    all
}

/// Returns name, published and simulated value of each improvement factor.
fn improvements(comparison: &Comparison) -> Vec<(String, f64, Option<f64>)> {
    let values = |factors: Improvement| {
        [
            ("minimum", factors.minimum),
            ("geometric mean", factors.geometric_mean),
            ("maximum", factors.maximum),
        ]
    };
    let of_method = |row: &crate::improvement::ImprovementRow| {
        let simulated = row.simulated.map(values);
        let named = values(row.published).into_iter().enumerate();
        let method = row.method;
        let each = named.map(move |(index, (name, published))| {
            (format!("{method}, {name}"), published, simulated.map(|all| all[index].1))
        });
        each.collect::<Vec<_>>()
    };
    comparison.improvements.iter().flat_map(of_method).collect()
}

/// Returns the table of rows: published and simulated value and error, for each method.
pub(crate) fn result_table(comparison: &Comparison) -> String {
    let mut heads = vec!["pattern".to_owned()];
    let by_record = comparison.axis == Axis::Pattern;
    heads.push(if by_record { "record" } else { comparison.axis.head() }.to_owned());
    let has_available =
        |method: Method| comparison.available.iter().any(|left| left.method == method);
    for &method in &comparison.methods {
        heads.push(format!("{method}: published"));
        heads.extend(["simulated", "error"].map(str::to_owned));
        if has_available(method) {
            heads.extend(["processor left: published", "simulated"].map(str::to_owned));
        }
    }
    if let Some((one, other)) = comparison.ratio {
        heads.push(format!("{one} / {other}: published"));
        heads.push("simulated".to_owned());
    }
    let mut rows = Vec::new();
    for row in &comparison.rows {
        let second = if by_record { row.record_bytes } else { row.value.map(u64::from) };
        let mut cells = vec![format!("`{}`", row.pattern), or_nothing(second, |it| it.to_string())];
        for &method in &comparison.methods {
            cells.extend(throughput_cells(row, method));
            if has_available(method) {
                cells.extend(available_cells(row, method));
            }
        }
        if comparison.ratio.is_some() {
            let published = row.ratio.as_ref().and_then(|ratio| ratio.published);
            cells.push(or_nothing(published, |value| format!("{value:.1}")));
            cells.push(row.ratio.as_ref().map_or(NOTHING.to_owned(), ratio));
        }
        rows.push(cells);
    }
    table(&heads, rows)
}

fn throughput_cells(row: &RowResult, method: Method) -> [String; 3] {
    let cell = row.cell(method);
    [
        or_nothing(cell.and_then(|cell| cell.published), |value| format!("{value:.1}")),
        or_nothing(row.simulated(method), throughput),
        or_nothing(cell.and_then(|cell| cell.error_percent), error),
    ]
}

fn available_cells(row: &RowResult, method: Method) -> [String; 2] {
    let published = row.cell(method).and_then(|cell| cell.published_available_percent);
    let left = row.availability(method).map(|left| left.cpu_available_percent);
    [
        or_nothing(published, |value| format!("{value} %")),
        or_nothing(left, |value| format!("{value:.1} %")),
    ]
}

/// Returns the table of improvement factors.
pub(crate) fn improvement_table(comparison: &Comparison) -> String {
    let row = |(name, published, simulated): (String, f64, Option<f64>)| {
        vec![
            name,
            format!("{published:.2}"),
            or_nothing(simulated, |value| format!("{value:.2}")),
            or_nothing(simulated, |value| error((value / published - 1.0) * 100.0)),
        ]
    };
    let heads = ["times caching, over all rows", "published", "simulated", "error"];
    table(&heads.map(str::to_owned), improvements(comparison).into_iter().map(row).collect())
}

/// Returns the table of figures that texts state. Equal figures of several experiments share a row.
pub(crate) fn anchor_table(comparisons: &[&Comparison]) -> String {
    let mut rows: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
    for comparison in comparisons {
        for anchor in &comparison.anchors {
            let cells = anchor_cells(anchor);
            match rows.iter_mut().find(|(_, known)| *known == cells) {
                Some((names, _)) => names.push(comparison.name),
                None => rows.push((vec![comparison.name], cells)),
            }
        }
    }
    let heads = ["experiment", "stated in the text", "published", "simulated", "error", "place"];
    let row = |(names, cells): (Vec<&str>, Vec<String>)| [vec![names.join(", ")], cells].concat();
    table(&heads.map(str::to_owned), rows.into_iter().map(row).collect())
}

fn anchor_cells(anchor: &AnchorResult) -> Vec<String> {
    let agreement = match anchor.error_percent {
        Some(0.0) if is_limit(anchor) => "kept".to_owned(),
        percent => or_nothing(percent, error),
    };
    vec![
        anchor.name.clone(),
        format!("{} {}", range(anchor), anchor.unit),
        or_nothing(anchor.simulated, throughput),
        agreement,
        anchor.source.clone(),
    ]
}

/// Returns a table of experiments with the range of the results of each method.
pub(crate) fn simulated_table(comparisons: &[&Comparison]) -> String {
    let row = |comparison: &&Comparison| {
        let methods = comparison.methods.iter();
        let shown: Vec<String> =
            methods.filter_map(|method| simulated_range(comparison, *method)).collect();
        vec![
            comparison.name.to_owned(),
            format!("{}: {}", comparison.short_source(), comparison.title),
            shown.join("; "),
        ]
    };
    let heads = ["experiment", "published in", "simulated, all rows"];
    table(&heads.map(str::to_owned), comparisons.iter().map(row).collect())
}

/// Formats the smallest and the largest throughput of a method, or the processor time that it
/// leaves if the experiment is about it.
fn simulated_range(comparison: &Comparison, method: Method) -> Option<String> {
    let left = |row: &RowResult| {
        let left = row.availability(method)?;
        Some(match comparison.processors {
            Processors::WithBarriers => left.cpu_usable_with_barriers_percent,
            Processors::Ignored | Processors::Available => left.cpu_available_percent,
        })
    };
    let value = |row: &RowResult| match comparison.processors {
        Processors::Ignored => row.simulated(method),
        Processors::Available | Processors::WithBarriers => left(row),
    };
    let unit = if comparison.processors == Processors::Ignored { "MB/s" } else { "% left" };
    let all: Vec<f64> = comparison.rows.iter().filter_map(value).collect();
    let Improvement { minimum, maximum, .. } = Improvement::of(&all)?;
    Some(format!("{method} {}..{} {unit}", throughput(minimum), throughput(maximum)))
}

/// True if the text states one side only.
fn is_limit(anchor: &AnchorResult) -> bool {
    anchor.low.is_none() || anchor.high.is_none()
}

/// Formats an error, bold if it is large.
fn error(value: f64) -> String {
    let shown = percent(value);
    if value.abs() > BOLD_PERCENT { format!("**{shown}**") } else { shown }
}

fn or_nothing<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or(NOTHING.to_owned(), show)
}

/// Returns a Markdown table.
fn table(heads: &[String], rows: Vec<Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    let mut out = format!("{}\n|{}\n", line(heads), "---|".repeat(heads.len()));
    for row in rows {
        let _ = writeln!(out, "{}", line(&row));
    }
    out
}

#[cfg(test)]
mod tests {
    //! Proves: equal figures of two experiments share a row, a limit is not counted, and a large
    //! error is bold.
    use super::*;
    use crate::compare::tests::comparison;

    fn stated(low: Option<f64>, simulated: f64, error_percent: f64) -> AnchorResult {
        AnchorResult {
            name: "fastest".to_owned(),
            low,
            high: Some(10.0),
            unit: "MB/s".to_owned(),
            simulated: Some(simulated),
            error_percent: Some(error_percent),
            source: "page 1".to_owned(),
            sentence: String::new(),
        }
    }

    #[test]
    fn equal_figures_share_a_row() {
        let (mut one, mut other) = (comparison(), comparison());
        one.anchors = vec![stated(Some(10.0), 11.5, 15.0), stated(None, 6.0, 0.0)];
        other.name = "other";
        other.anchors = vec![stated(None, 6.0, 0.0)];
        let shown = anchor_table(&[&one, &other]);
        let rows: Vec<&str> = shown.lines().skip(2).collect();
        let expected = [
            "| made-up | fastest | 10 MB/s | 11.5 | **+15.0 %** | page 1 |",
            "| made-up, other | fastest | at most 10 MB/s | 6.00 | kept | page 1 |",
        ];
        assert_eq!(rows, expected);
        assert_eq!(deviations(&one).len(), deviations(&other).len() + 1);
    }
}
