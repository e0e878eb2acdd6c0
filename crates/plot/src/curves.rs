//! Curves of many points over linear axes.

use crate::canvas::{COLOURS, LEFT, RIGHT, WIDTH, begin, legend, line, name_legend, step, text};
use crate::charts::Frame;
use std::fmt::Write;

/// Curves over linear axes.
pub struct Curves {
    /// Title of the picture.
    pub title: String,
    /// Name of the horizontal axis, with its unit.
    pub x_name: &'static str,
    /// Name of the vertical axis, with its unit.
    pub y_name: &'static str,
    /// Curves.
    pub series: Vec<Curve>,
}

/// One curve.
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Index into the colours.
    pub colour: usize,
    /// True for a broken line.
    pub is_broken: bool,
    /// Points in drawing order; neither x nor y is negative.
    pub points: Vec<(f64, f64)>,
}

impl Curves {
    /// Draws the picture as SVG.
    pub fn draw(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|it| it.name.as_str()).collect();
        let points = || self.series.iter().flat_map(|it| &it.points);
        let frame = Frame::new(&names, points().map(|(_, y)| *y));
        let mut out = begin(&self.title, frame.height);
        name_legend(&mut out, &names);
        for ((x, y), curve) in legend(&names).iter().zip(&self.series) {
            curve.stroke(&mut out, &[(x + 8.0, y - 4.0), (x + 40.0, y - 4.0)]);
        }
        frame.draw_axes(&mut out, self.x_name, self.y_name);
        let longest = points().map(|(x, _)| *x).fold(0.0, f64::max);
        let distance = step(longest);
        let marks = (longest / distance).ceil().max(1.0);
        let place = |x: f64| LEFT + x / (marks * distance) * (WIDTH - LEFT - RIGHT);
        for mark in 0..=marks as u64 {
            let value = mark as f64 * distance;
            let (x, y) = (place(value), frame.bottom());
            line(&mut out, (x, y), (x, y + 4.0), "axis");
            // Steps below one have one decimal: see `step`.
            let label = if distance < 1.0 { format!("{value:.1}") } else { format!("{value:.0}") };
            text(&mut out, (x, y + 18.0), "middle", &label);
        }
        for curve in &self.series {
            let places: Vec<_> =
                curve.points.iter().map(|(x, y)| (place(*x), frame.y(*y))).collect();
            curve.stroke(&mut out, &places);
        }
        out.push_str("</svg>\n");
        out
    }
}

impl Curve {
    fn stroke(&self, out: &mut String, points: &[(f64, f64)]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes = if self.is_broken { " stroke-dasharray=\"6 3\"" } else { "" };
        let _ = writeln!(
            out,
            "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{dashes} points=\"{}\"/>",
            COLOURS[self.colour % COLOURS.len()],
            points.join(" "),
        );
    }
}

#[cfg(test)]
mod tests {
    //! Proves: every curve is drawn inside the axes, whose marks reach the largest value, and empty
    //! curves give a picture.
    use super::*;

    fn curves(points: Vec<(f64, f64)>) -> Curves {
        let curve = |colour, is_broken| Curve {
            name: "a < b".to_owned(),
            colour,
            is_broken,
            points: points.clone(),
        };
        let series = vec![curve(0, false), curve(4, true)];
        Curves { title: "T & U".to_owned(), x_name: "x", y_name: "y", series }
    }

    #[test]
    fn curves_stay_inside() {
        let drawn = curves(vec![(0.0, 0.0), (17.0, 0.5), (43.0, 1.0)]).draw();
        // Each curve is drawn once in the legend and once in the plot.
        assert_eq!(drawn.matches("<polyline").count(), 4);
        assert_eq!(drawn.matches("stroke-dasharray").count(), 2);
        assert!(drawn.contains(">T &amp; U<") && drawn.contains(">50<"), "{drawn}");
        let last = drawn.rsplit("points=\"").next().and_then(|it| it.split('"').next());
        for point in last.expect("a curve").split(' ') {
            let (x, y) = point.split_once(',').expect("two numbers");
            let (x, y): (f64, f64) = (x.parse().expect("x"), y.parse().expect("y"));
            assert!((LEFT..=WIDTH - RIGHT).contains(&x) && y > 0.0, "{point}");
        }
    }

    #[test]
    fn nothing_can_be_drawn() {
        for points in [vec![], vec![(0.0, 0.0)]] {
            let drawn = curves(points).draw();
            assert!(drawn.ends_with("</svg>\n") && !drawn.contains("NaN"));
        }
    }
}
