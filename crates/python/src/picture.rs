//! Pictures as SVG.

use plot::{BarSeries, Bars, LineSeries, Lines, Style, styles};
use pyo3::prelude::*;

/// Draws bars: for each name a value in each group, or none.
#[pyfunction]
pub(crate) fn draw_bars(
    title: String,
    x_name: &str,
    y_name: &str,
    groups: Vec<String>,
    series: Vec<(String, Vec<Option<f64>>)>,
) -> String {
    let styles = styles(series.iter().map(|(name, _)| name.as_str()));
    let bars = |((name, values), style)| BarSeries {
        name,
        style,
        values,
        ranges: Vec::new(),
        published: Vec::new(),
    };
    let series = series.into_iter().zip(styles).map(bars).collect();
    Bars { title, x_name, y_name, groups, series }.draw()
}

/// Draws lines over a logarithmic axis: for each name its points, with x above 0.
#[pyfunction]
pub(crate) fn draw_lines(
    title: String,
    x_name: &str,
    y_name: &str,
    series: Vec<(String, Vec<(f64, f64)>)>,
) -> String {
    let line =
        |(name, points)| LineSeries { name, style: Style::plain(0), is_broken: false, points };
    let mut series: Vec<LineSeries> = series.into_iter().map(line).collect();
    LineSeries::style_by_names(&mut series);
    Lines { title, x_name, y_name, series }.draw()
}
