//! Pictures as SVG. They know numbers and names, and nothing of what is drawn.
//!
//! A picture stands for itself: no script, no font and no file is fetched. Sizes and places are in
//! pixels. Colours are such that people with any kind of colour vision tell them apart.

mod canvas;
mod charts;
mod curves;
mod scatter;
mod trajectories;

pub use canvas::escape;
pub use charts::{BarSeries, Bars, LineSeries, Lines};
pub use curves::{Curve, Curves};
pub use scatter::{Scatter, ScatterSeries};
pub use trajectories::{Kind, Panel, Stroke, Trajectories};
