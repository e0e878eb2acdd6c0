//! Plots as SVG, independent of the subject.
//!
//! Invariant: a picture is self-contained; it loads no script, font or file.
//!
//! Sizes and positions are in pixels. Colours are distinguishable with any kind of colour vision.

mod canvas;
mod charts;
mod curves;
mod log_lines;
mod scatter;
mod styles;
mod trajectories;

pub use canvas::escape;
pub use charts::{BarSeries, Bars, LineSeries, Lines};
pub use curves::{Curve, Curves};
pub use log_lines::LogLines;
pub use scatter::{Scatter, ScatterSeries};
pub use styles::{Style, styles};
pub use trajectories::{Kind, Panel, Stroke, Trajectories};
