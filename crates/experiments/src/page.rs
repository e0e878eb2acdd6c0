//! Plots of an experiment.

use crate::catalogue::{Axis, Processors, RaUnit};
use crate::compare::Comparison;
use crate::method::Method;
use crate::results::RowResult;
use interface::Availability;
use plot::{BarSeries, Bars, LineSeries, Lines, Scatter, ScatterSeries, Style, styles};

/// Name of the vertical axis of every plot.
const THROUGHPUT: &str = "throughput, MB/s (2²⁰ bytes)";

/// Index of black among the colours of plots.
const PUBLISHED_COLOUR: usize = 6;

/// Returns the plots of an experiment as SVG, in order.
pub(crate) fn plots(comparison: &Comparison) -> Vec<String> {
    match comparison.axis {
        _ if comparison.processors != Processors::Ignored => vec![scatter(comparison)],
        Axis::Pattern => bars(comparison),
        Axis::RecordBytes => vec![record_sizes(comparison)],
        _ => vec![lines(comparison)],
    }
}

/// Draws throughput over remaining processor time, with a series for each method and direction,
/// full for reads, and one for published values.
fn scatter(comparison: &Comparison) -> String {
    let left = |left: Availability| match comparison.processors {
        Processors::WithBarriers => left.cpu_usable_with_barriers_percent,
        Processors::Ignored | Processors::Available => left.cpu_available_percent,
    };
    let point = |row: &RowResult, method: Method| {
        Some((row.label(), left(row.availability(method)?), row.simulated(method)?))
    };
    let mut series = Vec::new();
    for method in comparison.methods.iter().copied() {
        for (prefix, direction) in [("r", "reading"), ("w", "writing")] {
            let rows = comparison.rows.iter().filter(|row| row.pattern.starts_with(prefix));
            series.push(ScatterSeries {
                name: format!("{method}, {direction}"),
                colour: style_of(method).colour,
                is_hollow: prefix == "w",
                points: rows.filter_map(|row| point(row, method)).collect(),
            });
        }
    }
    let published = |row: &RowResult, method: Method| {
        let cell = row.cell(method)?;
        let name = format!("{} {method}, published", row.label());
        Some((name, cell.published_available_percent?, cell.published?))
    };
    let published = comparison.rows.iter().flat_map(|row| {
        comparison.methods.iter().copied().filter_map(move |method| published(row, method))
    });
    let points: Vec<_> = published.collect();
    if !points.is_empty() {
        let name = "published".to_owned();
        series.push(ScatterSeries { name, colour: PUBLISHED_COLOUR, is_hollow: true, points });
    }
    let x_name = match comparison.processors {
        Processors::WithBarriers => "processor time of the servers usable with barriers, percent",
        Processors::Ignored | Processors::Available => {
            "processor time of the servers left for a computation, percent"
        }
    };
    let title = format!("{}: {}", comparison.name, comparison.title);
    Scatter { title, x_name, y_name: THROUGHPUT, series }.draw()
}

/// Draws a plot for each layout, record size and direction. Patterns that do not depend on the
/// record size are in the plots of each.
fn bars(comparison: &Comparison) -> Vec<String> {
    let rows = &comparison.rows;
    let mut layouts: Vec<&str> = rows.iter().map(|row| row.layout.as_str()).collect();
    layouts.dedup();
    layouts.sort_unstable();
    layouts.dedup();
    let mut records: Vec<u64> = rows.iter().filter_map(|row| row.record_bytes).collect();
    records.sort_unstable();
    records.dedup();
    let mut records: Vec<Option<u64>> = records.into_iter().map(Some).collect();
    if records.is_empty() {
        records.push(None);
    }
    let mut plots = Vec::new();
    for layout in layouts {
        for record in &records {
            for (prefix, direction) in [("r", "reading"), ("w", "writing")] {
                let shown = |row: &&RowResult| {
                    row.layout == layout
                        && row.pattern.starts_with(prefix)
                        && (row.record_bytes.is_none() || row.record_bytes == *record)
                };
                let rows: Vec<&RowResult> = rows.iter().filter(shown).collect();
                if rows.is_empty() {
                    continue;
                }
                let size = record.map_or(String::new(), |bytes| format!(", {bytes}-byte records"));
                let title = format!("{}: {direction}{size}, {layout}", comparison.name);
                plots.push(one_bars(comparison, &rows, title));
            }
        }
    }
    plots
}

/// The colour of a method, which it has in every picture.
fn style_of(method: Method) -> Style {
    styles([method.name()]).pop().unwrap_or(Style::plain(0))
}

fn one_bars(comparison: &Comparison, rows: &[&RowResult], title: String) -> String {
    // All figures of the papers divide ra by the number of clients; so does a plot of a table that
    // does not.
    let scale = |row: &RowResult| match comparison.ra {
        RaUnit::Together if row.pattern == "ra" => f64::from(row.clients.max(1)),
        _ => 1.0,
    };
    let group = |row: &&RowResult| match scale(row) {
        1.0 => row.pattern.clone(),
        clients => format!("{}/{clients}", row.pattern),
    };
    let series = |method: Method| BarSeries {
        name: method.to_string(),
        style: style_of(method),
        ranges: Vec::new(),
        values: rows.iter().map(|row| Some(row.simulated(method)? / scale(row))).collect(),
        published: rows.iter().map(|row| Some(row.cell(method)?.published? / scale(row))).collect(),
    };
    let plot = Bars {
        title,
        x_name: "pattern",
        y_name: THROUGHPUT,
        groups: rows.iter().map(group).collect(),
        series: comparison.methods.iter().copied().map(series).collect(),
    };
    plot.draw()
}

/// Draws one line for each pattern and method.
fn lines(comparison: &Comparison) -> String {
    let mut patterns: Vec<&str> = comparison.rows.iter().map(|row| row.pattern.as_str()).collect();
    patterns.dedup();
    let mut series = Vec::new();
    for pattern in patterns {
        for method in comparison.methods.iter().copied() {
            let of_pattern = comparison.rows.iter().filter(|row| row.pattern == pattern);
            series.push(LineSeries {
                name: format!("{pattern} {method}"),
                style: Style::plain(0),
                is_broken: false,
                points: points(of_pattern, method),
            });
        }
    }
    let x_name = match comparison.axis {
        Axis::Clients => "clients",
        Axis::Servers => "servers, one bus each",
        Axis::Disks => "disks on one bus",
        Axis::FileMib => "size of the file, MB (2²⁰ bytes)",
        Axis::Pattern | Axis::RecordBytes => "bytes of a record",
    };
    draw(comparison, x_name, series)
}

/// Draws one line for each layout.
fn record_sizes(comparison: &Comparison) -> String {
    let mut layouts: Vec<&str> = comparison.rows.iter().map(|row| row.layout.as_str()).collect();
    layouts.dedup();
    let mut series = Vec::new();
    for layout in layouts {
        for method in comparison.methods.iter().copied() {
            let of_layout = comparison.rows.iter().filter(|row| row.layout == layout);
            series.push(LineSeries {
                name: format!("{method}, {layout}"),
                style: Style::plain(0),
                is_broken: false,
                points: points(of_layout, method),
            });
        }
    }
    draw(comparison, "bytes of a record", series)
}

fn points<'a>(rows: impl Iterator<Item = &'a RowResult>, method: Method) -> Vec<(f64, f64)> {
    rows.filter_map(|row| Some((f64::from(row.value?), row.simulated(method)?))).collect()
}

fn draw(comparison: &Comparison, x_name: &'static str, mut series: Vec<LineSeries>) -> String {
    LineSeries::style_by_names(&mut series);
    let title = format!("{}: {}", comparison.name, comparison.title);
    Lines { title, x_name, y_name: THROUGHPUT, series }.draw()
}
