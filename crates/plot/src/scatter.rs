//! Scatter plot over an axis of percentages.

use crate::canvas::{
    LEFT, RIGHT, WIDTH, begin, escape, legend, line as straight, name_legend, text,
};
use crate::charts::{Frame, LineSeries};
use crate::styles::Style;
use std::fmt::Write;

/// Distance of 0 and 100 percent from the ends of the horizontal axis, in pixels.
const INSET: f64 = 14.0;

/// Points, each with a name that is shown under the pointer.
pub struct Scatter {
    /// Title of the picture.
    pub title: String,
    /// Name of the horizontal axis, in percent.
    pub x_name: &'static str,
    /// Name of the vertical axis, with its unit.
    pub y_name: &'static str,
    /// Series of points.
    pub series: Vec<ScatterSeries>,
}

/// Points of one colour and shape.
pub struct ScatterSeries {
    /// Name in the legend.
    pub name: String,
    /// Index into the colours; also selects the shape.
    pub colour: usize,
    /// True for hollow points.
    pub is_hollow: bool,
    /// Name and position of each point: x from 0 to 100, y not negative.
    pub points: Vec<(String, f64, f64)>,
}

impl Scatter {
    /// Draws the picture as SVG.
    pub fn draw(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|it| it.name.as_str()).collect();
        let points = self.series.iter().flat_map(|it| &it.points);
        let frame = Frame::new(&names, points.map(|(_, _, y)| *y));
        let mut out = begin(&self.title, frame.height);
        name_legend(&mut out, &names);
        for ((x, y), series) in legend(&names).iter().zip(&self.series) {
            series.form().point(&mut out, x + 24.0, y - 4.0);
        }
        frame.draw_axes(&mut out, self.x_name, self.y_name);
        for percent in (0..=100u8).step_by(10).map(f64::from) {
            let (x, y) = (place(percent), frame.bottom());
            straight(&mut out, (x, y), (x, y + 4.0), "axis");
            text(&mut out, (x, y + 18.0), "middle", &percent.to_string());
        }
        for series in &self.series {
            for (name, x, y) in &series.points {
                let name = escape(&format!("{name}: {x:.1} %, {y:.1}"));
                let _ = writeln!(out, "<g><title>{name}</title>");
                series.form().point(&mut out, place(*x), frame.y(*y));
                out.push_str("</g>\n");
            }
        }
        out.push_str("</svg>\n");
        out
    }
}

impl ScatterSeries {
    fn form(&self) -> LineSeries {
        let (name, points) = (String::new(), Vec::new());
        LineSeries { name, style: Style::plain(self.colour), is_broken: self.is_hollow, points }
    }
}

fn place(percent: f64) -> f64 {
    LEFT + INSET + percent / 100.0 * (WIDTH - LEFT - RIGHT - 2.0 * INSET)
}

#[cfg(test)]
mod tests {
    //! Proves: every point is drawn with its name, inside the frame, and names cannot break the
    //! markup.
    use super::*;

    #[test]
    fn points_are_drawn_with_their_names() {
        let points = vec![("a<b".to_owned(), 0.0, 0.0), ("c".to_owned(), 100.0, 33.0)];
        let series = |is_hollow| ScatterSeries {
            name: "kind".to_owned(),
            colour: 0,
            is_hollow,
            points: points.clone(),
        };
        let series = vec![series(false), series(true)];
        let drawn = Scatter { title: "T".to_owned(), x_name: "x", y_name: "y", series }.draw();
        // Two symbols in the legend and four points.
        assert_eq!(drawn.matches("<circle").count(), 6);
        assert_eq!(drawn.matches("<title>a&lt;b: 0.0 %, 0.0</title>").count(), 2);
        assert!(place(0.0) > LEFT && place(100.0) < WIDTH - RIGHT);
    }
}
