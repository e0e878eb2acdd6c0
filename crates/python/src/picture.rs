//! Pictures as SVG.

use plot::{BarSeries, Bars, LineSeries, Lines};
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
    let bars = |(colour, (name, values)): (usize, (String, Vec<Option<f64>>))| {
        let published = vec![None; values.len()];
        BarSeries { name, colour, values, published }
    };
    let series = series.into_iter().enumerate().map(bars).collect();
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
    let line = |(colour, (name, points)): (usize, (String, Vec<(f64, f64)>))| LineSeries {
        name,
        colour,
        is_broken: false,
        points,
    };
    let series = series.into_iter().enumerate().map(line).collect();
    Lines { title, x_name, y_name, series }.draw()
}
