//! Line charts over two logarithmic axes.

use crate::canvas::{
    BOTTOM, LEFT, LEGEND_LINE, LEGEND_TOP, RIGHT, WIDTH, begin, legend, line, name_axis,
    name_legend, rectangle, text,
};
use crate::charts::LineSeries;

/// Height without the legend, in pixels.
const HEIGHT: f64 = 330.0;

/// Distance of the first and last point from the ends of the horizontal axis, in pixels.
const INSET: f64 = 30.0;

/// Lines over two logarithmic axes, on a white background of their own.
pub struct LogLines {
    /// Title of the picture.
    pub title: String,
    /// Name of the horizontal axis.
    pub x_name: &'static str,
    /// Function that writes a value of the horizontal axis, with its unit.
    pub x_label: fn(f64) -> String,
    /// Name of the vertical axis, with its unit.
    pub y_name: &'static str,
    /// Lines, whose points are positive in both directions. Other points are left out.
    pub series: Vec<LineSeries>,
}

/// Position and scale of both axes.
struct Axes {
    top: f64,
    bottom: f64,
    /// Logarithms of the first and the last value on the horizontal axis.
    x: (f64, f64),
    /// Powers of ten at the ends of the vertical axis.
    y: (i32, i32),
}

impl LogLines {
    /// Draws the picture as SVG.
    pub fn draw(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|it| it.name.as_str()).collect();
        let lines =
            legend(&names).last().map_or(0.0, |(_, y)| (y - LEGEND_TOP) / LEGEND_LINE + 1.0);
        let height = HEIGHT + lines * LEGEND_LINE;
        let mut ticks: Vec<f64> = self.points().map(|(x, _)| x).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        let axes = self.axes(&ticks, LEGEND_TOP + lines * LEGEND_LINE, height - BOTTOM);
        let mut out = begin(&self.title, height);
        // Over the background of the page, whatever its colour; below the title.
        let title = out.rfind("<text").unwrap_or(out.len());
        let title = out.split_off(title);
        rectangle(&mut out, (0.0, 0.0, WIDTH, height), "#fff");
        out.push_str(&title);
        name_legend(&mut out, &names);
        for ((x, y), series) in legend(&names).iter().zip(&self.series) {
            let y = y - 4.0;
            series.stroke(&mut out, &[(x + 8.0, y), (x + 40.0, y)]);
            series.point(&mut out, x + 24.0, y);
        }
        axes.draw(&mut out, self.y_name);
        for tick in &ticks {
            let x = axes.x(*tick);
            line(&mut out, (x, axes.bottom), (x, axes.bottom + 4.0), "axis");
            text(&mut out, (x, axes.bottom + 18.0), "middle", &(self.x_label)(*tick));
        }
        text(&mut out, (f64::midpoint(LEFT, WIDTH - RIGHT), height - 10.0), "middle", self.x_name);
        for series in &self.series {
            let points: Vec<(f64, f64)> =
                series.points.iter().copied().filter(is_positive).collect();
            let points: Vec<_> = points.iter().map(|(x, y)| (axes.x(*x), axes.y(*y))).collect();
            series.stroke(&mut out, &points);
            points.iter().for_each(|(x, y)| series.point(&mut out, *x, *y));
        }
        out.push_str("</svg>\n");
        out
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.series.iter().flat_map(|it| it.points.iter().copied()).filter(is_positive)
    }

    fn axes(&self, ticks: &[f64], top: f64, bottom: f64) -> Axes {
        let ends = ticks.first().zip(ticks.last());
        let x = ends.map_or((0.0, 0.0), |(first, last)| (first.ln(), last.ln()));
        let values = || self.points().map(|(_, y)| y);
        let least = values().reduce(f64::min).unwrap_or(1.0);
        let most = values().reduce(f64::max).unwrap_or(1.0);
        let low = least.log10().floor() as i32;
        Axes { top, bottom, x, y: (low, (most.log10().ceil() as i32).max(low + 1)) }
    }
}

/// True for a point that has a place on two logarithmic axes.
fn is_positive(point: &(f64, f64)) -> bool {
    point.0 > 0.0 && point.1 > 0.0
}

impl Axes {
    fn x(&self, value: f64) -> f64 {
        let width = WIDTH - LEFT - RIGHT - 2.0 * INSET;
        match self.x.1 - self.x.0 {
            0.0 => LEFT + INSET + width / 2.0,
            extent => LEFT + INSET + (value.ln() - self.x.0) / extent * width,
        }
    }

    fn y(&self, value: f64) -> f64 {
        let (low, high) = (f64::from(self.y.0), f64::from(self.y.1));
        self.bottom - (value.log10() - low) / (high - low) * (self.bottom - self.top)
    }

    /// Draws the axes, with a mark at each power of ten and lines at twice and five times it.
    fn draw(&self, out: &mut String, y_name: &str) {
        let right = WIDTH - RIGHT;
        for power in self.y.0..=self.y.1 {
            let value = 10f64.powi(power);
            let y = self.y(value);
            line(out, (LEFT, y), (right, y), if power == self.y.0 { "axis" } else { "grid" });
            text(out, (LEFT - 8.0, y + 4.0), "end", &format!("{value}"));
            let between = [2.0, 5.0].map(|factor| self.y(factor * value));
            for y in between.into_iter().filter(|_| power < self.y.1) {
                line(out, (LEFT, y), (right, y), "grid");
            }
        }
        line(out, (LEFT, self.top), (LEFT, self.bottom), "axis");
        name_axis(out, f64::midpoint(self.top, self.bottom), y_name);
    }
}

#[cfg(test)]
mod tests {
    //! Proves: equal factors are equal distances, every point is inside the axes, and no set of
    //! points breaks the picture.
    use super::*;
    use crate::styles::Style;

    fn lines(points: Vec<(f64, f64)>) -> LogLines {
        let name = "a < b".to_owned();
        LogLines {
            title: "T & U".to_owned(),
            x_name: "x",
            x_label: |value| format!("{value} B"),
            y_name: "y",
            series: vec![LineSeries { name, style: Style::plain(0), is_broken: false, points }],
        }
    }

    #[test]
    fn equal_factors_are_equal_distances() {
        let picture = lines(vec![(8.0, 3.0), (64.0, 30.0), (512.0, 300.0)]);
        let axes = picture.axes(&[8.0, 64.0, 512.0], 60.0, 300.0);
        assert_eq!(axes.y, (0, 3));
        let steps = |place: &dyn Fn(f64) -> f64, at: [f64; 3]| {
            let [a, b, c] = at.map(place);
            ((b - a) - (c - b)).abs() < 1e-9
        };
        assert!(steps(&|x| axes.x(x), [8.0, 64.0, 512.0]));
        assert!(steps(&|y| axes.y(y), [3.0, 30.0, 300.0]));
        assert!((axes.y(1.0) - 300.0).abs() < 1e-9 && (axes.y(1000.0) - 60.0).abs() < 1e-9);
    }

    #[test]
    fn every_set_of_points_is_drawn() {
        let sets = [vec![], vec![(8.0, 1.0)], vec![(0.0, 5.0), (8.0, 0.0)], vec![(1.0, 1e12)]];
        for points in sets {
            let drawn = lines(points).draw();
            assert!(drawn.ends_with("</svg>\n") && !drawn.contains("NaN"), "{drawn}");
            assert!(drawn.contains(">T &amp; U<") && drawn.contains("fill=\"#fff\""), "{drawn}");
        }
        assert!(lines(vec![(8.0, 2.0)]).draw().contains(">8 B<"));
    }
}
