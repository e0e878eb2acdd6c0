//! Bar charts over categories and line charts over numbers.
//!
//! The layout is fixed: the title on top, the legend below it, then the axes. Only the name of the
//! vertical axis is rotated.

use crate::canvas::{
    BOTTOM, COLOURS, LEFT, LEGEND_LINE, LEGEND_TOP, RIGHT, WIDTH, begin, legend, line, name_axis,
    name_legend, rectangle, step, text,
};
use crate::styles::{Style, styles};
use std::fmt::Write;

const HEIGHT: f64 = 330.0;

/// Grouped bars, with a mark at each bar that has a published value.
pub struct Bars<'a> {
    /// Title of the picture.
    pub title: String,
    /// Name of the horizontal axis.
    pub x_name: &'a str,
    /// Name of the vertical axis, with its unit.
    pub y_name: &'a str,
    /// The name of each group.
    pub groups: Vec<String>,
    /// Series, each with one bar in each group.
    pub series: Vec<BarSeries>,
}

/// Bars of one colour.
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// Colour; further series of the same colour are paler.
    pub style: Style,
    /// Height in each group.
    pub values: Vec<Option<f64>>,
    /// Range in each group that the value may lie in, drawn over the bar; may be empty.
    pub ranges: Vec<Option<[f64; 2]>>,
    /// Published height in each group.
    pub published: Vec<Option<f64>>,
}

/// Lines over a logarithmic axis.
pub struct Lines<'a> {
    /// Title of the picture.
    pub title: String,
    /// Name of the horizontal axis, with its unit.
    pub x_name: &'a str,
    /// Name of the vertical axis, with its unit.
    pub y_name: &'a str,
    /// Lines.
    pub series: Vec<LineSeries>,
}

/// One line.
pub struct LineSeries {
    /// Name in the legend.
    pub name: String,
    /// Colour, which with the variant selects the shape of the points.
    pub style: Style,
    /// True for a broken line with hollow points.
    pub is_broken: bool,
    /// Points from left to right; x is positive.
    pub points: Vec<(f64, f64)>,
}

/// Position and scale of a plot's axes.
pub(crate) struct Frame {
    top: f64,
    y_max: f64,
    y_step: f64,
    pub(crate) height: f64,
}

impl Bars<'_> {
    /// Draws the picture as SVG.
    pub fn draw(&self) -> String {
        let has_published = self.series.iter().any(|it| it.published.iter().any(Option::is_some));
        let values = self.series.iter().flat_map(|it| it.values.iter().chain(&it.published));
        let highest =
            self.series.iter().flat_map(|it| it.ranges.iter().flatten().map(|[_, high]| *high));
        let all = values.flatten().copied().chain(highest);
        let mut names: Vec<&str> = self.series.iter().map(|it| it.name.as_str()).collect();
        names.extend(has_published.then_some("published"));
        let frame = Frame::new(&names, all);
        let mut out = begin(&self.title, frame.height);
        let places = legend(&names);
        name_legend(&mut out, &names);
        for ((x, y), series) in places.iter().zip(&self.series) {
            let (x, y) = (x + 12.0, y - 10.0);
            series.bar(&mut out, (x, y, 24.0, 11.0));
        }
        if let (true, Some((x, y))) = (has_published, places.last()) {
            mark(&mut out, x + 12.0, y - 4.0, 24.0);
        }
        frame.draw_axes(&mut out, self.x_name, self.y_name);
        let group_width = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        let bar_width = (group_width * 0.8 / self.series.len().max(1) as f64).min(34.0);
        for (index, group) in self.groups.iter().enumerate() {
            let centre = LEFT + (index as f64 + 0.5) * group_width;
            text(&mut out, (centre, frame.bottom() + 16.0), "middle", group);
            let left = centre - bar_width * self.series.len() as f64 / 2.0;
            for (number, series) in self.series.iter().enumerate() {
                let x = left + number as f64 * bar_width;
                if let Some(value) = series.values.get(index).copied().flatten() {
                    let y = frame.y(value);
                    series.bar(&mut out, (x + 0.5, y, bar_width - 1.0, frame.bottom() - y));
                }
                if let Some([low, high]) = series.ranges.get(index).copied().flatten() {
                    range(&mut out, x + bar_width / 2.0, (frame.y(low), frame.y(high)));
                }
                if let Some(value) = series.published.get(index).copied().flatten() {
                    mark(&mut out, x, frame.y(value), bar_width);
                }
            }
        }
        out.push_str("</svg>\n");
        out
    }
}

impl BarSeries {
    /// Draws a rectangle. Further series of a colour are paler.
    fn bar(&self, out: &mut String, place: (f64, f64, f64, f64)) {
        let opacity = [1.0, 0.6, 0.35, 0.2][self.style.variant % 4];
        let _ = writeln!(out, "<g fill-opacity=\"{opacity}\">");
        rectangle(out, place, COLOURS[self.style.colour % COLOURS.len()]);
        out.push_str("</g>\n");
    }
}

impl Lines<'_> {
    /// Draws the picture as SVG.
    pub fn draw(&self) -> String {
        let points = self.series.iter().flat_map(|it| &it.points);
        let names: Vec<&str> = self.series.iter().map(|it| it.name.as_str()).collect();
        let frame = Frame::new(&names, points.clone().map(|(_, y)| *y));
        let mut out = begin(&self.title, frame.height);
        name_legend(&mut out, &names);
        for ((x, y), series) in legend(&names).iter().zip(&self.series) {
            let y = y - 4.0;
            series.stroke(&mut out, &[(x + 8.0, y), (x + 40.0, y)]);
            series.point(&mut out, x + 24.0, y);
        }
        frame.draw_axes(&mut out, self.x_name, self.y_name);
        let mut ticks: Vec<f64> = points.map(|(x, _)| *x).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        let (first, last) = match (ticks.first(), ticks.last()) {
            (Some(first), Some(last)) => (first.ln(), last.ln()),
            _ => (0.0, 0.0),
        };
        let inset = 30.0;
        let width = WIDTH - LEFT - RIGHT - 2.0 * inset;
        let place = |x: f64| match last - first {
            0.0 => LEFT + inset + width / 2.0,
            extent => LEFT + inset + (x.ln() - first) / extent * width,
        };
        for tick in &ticks {
            let (x, y) = (place(*tick), frame.bottom());
            line(&mut out, (x, y), (x, y + 4.0), "axis");
            text(&mut out, (x, y + 18.0), "middle", &tick.to_string());
        }
        for series in &self.series {
            let points: Vec<(f64, f64)> =
                series.points.iter().map(|(x, y)| (place(*x), frame.y(*y))).collect();
            series.stroke(&mut out, &points);
            for (x, y) in points {
                series.point(&mut out, x, y);
            }
        }
        out.push_str("</svg>\n");
        out
    }
}

impl LineSeries {
    /// Gives each line the style that its name has. Every second line of a colour is broken.
    pub fn style_by_names(series: &mut [Self]) {
        let styles = styles(series.iter().map(|line| line.name.as_str()));
        for (line, style) in series.iter_mut().zip(styles) {
            (line.style, line.is_broken) = (style, style.is_second());
        }
    }

    fn colour(&self) -> &'static str {
        COLOURS[self.style.colour % COLOURS.len()]
    }

    pub(crate) fn stroke(&self, out: &mut String, points: &[(f64, f64)]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes = if self.is_broken { " stroke-dasharray=\"6 4\"" } else { "" };
        let _ = writeln!(
            out,
            "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{dashes} points=\"{}\"/>",
            self.colour(),
            points.join(" "),
        );
    }

    /// Draws a point. Its shape distinguishes lines where colours do not, and is open, so that
    /// points below it are visible.
    pub(crate) fn point(&self, out: &mut String, x: f64, y: f64) {
        // Larger shapes surround smaller ones where lines meet, and hollow ones surround full ones.
        let hollow = if self.is_broken { 2.0 } else { 0.0 };
        let shape = (self.style.colour + self.style.variant / 2) % 4;
        let r = 3.5 + 1.2 * shape as f64 + hollow;
        let corners = |corners: &[(f64, f64)]| {
            let at = |(dx, dy): &(f64, f64)| format!("{:.1},{:.1}", x + dx * r, y + dy * r);
            let points = corners.iter().map(at).collect::<Vec<String>>().join(" ");
            format!("<polygon points=\"{points}\"")
        };
        let form = match shape {
            0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\""),
            1 => corners(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => corners(&[(0.0, -1.1), (1.0, 0.8), (-1.0, 0.8)]),
            _ => corners(&[(0.0, -1.2), (1.2, 0.0), (0.0, 1.2), (-1.2, 0.0)]),
        };
        let fill = if self.is_broken { "none" } else { self.colour() };
        let _ = writeln!(
            out,
            "{form} fill=\"{fill}\" fill-opacity=\"0.35\" stroke=\"{}\" stroke-width=\"1.5\"/>",
            self.colour(),
        );
    }
}

impl Frame {
    /// Returns a frame with room for a legend of these names, and an axis from zero over all
    /// values.
    pub(crate) fn new(names: &[&str], values: impl Iterator<Item = f64>) -> Self {
        let lines = legend(names).last().map_or(0.0, |(_, y)| (y - LEGEND_TOP) / LEGEND_LINE + 1.0);
        let top = LEGEND_TOP + lines * LEGEND_LINE;
        let largest = values.fold(0.0, f64::max);
        let y_step = step(largest);
        let y_max = (largest * 1.02 / y_step).ceil().max(1.0) * y_step;
        Self { top, y_max, y_step, height: HEIGHT + lines * LEGEND_LINE }
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.height - BOTTOM
    }

    pub(crate) fn y(&self, value: f64) -> f64 {
        self.bottom() - value / self.y_max * (self.bottom() - self.top)
    }

    pub(crate) fn draw_axes(&self, out: &mut String, x_name: &str, y_name: &str) {
        let right = WIDTH - RIGHT;
        let ticks = (self.y_max / self.y_step).round() as u32;
        for tick in 0..=ticks {
            let value = f64::from(tick) * self.y_step;
            let y = self.y(value);
            line(out, (LEFT, y), (right, y), if tick == 0 { "axis" } else { "grid" });
            // Steps below one have one decimal: see `step`.
            let label =
                if self.y_step < 1.0 { format!("{value:.1}") } else { format!("{value:.0}") };
            text(out, (LEFT - 8.0, y + 4.0), "end", &label);
        }
        line(out, (LEFT, self.top), (LEFT, self.bottom()), "axis");
        text(out, (f64::midpoint(LEFT, right), self.height - 10.0), "middle", x_name);
        name_axis(out, f64::midpoint(self.top, self.bottom()), y_name);
    }
}

/// Draws a range: a vertical line with a short one at each end.
fn range(out: &mut String, x: f64, (low, high): (f64, f64)) {
    line(out, (x, low), (x, high), "axis");
    for y in [low, high] {
        line(out, (x - 4.0, y), (x + 4.0, y), "axis");
    }
}

/// Draws the mark of a published value: a black line with a white rim, visible on bars of any
/// colour.
fn mark(out: &mut String, x: f64, y: f64, width: f64) {
    for (colour, thickness) in [("#fff", 5.0), ("#000", 2.0)] {
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" \
             stroke-width=\"{thickness}\"/>",
            x + width,
        );
    }
}

#[cfg(test)]
mod tests {
    //! Proves: axes have few round marks that reach the largest value, nothing leaves the picture,
    //! names cannot break the markup, and entries of the legend do not overlap.
    use super::*;
    use crate::canvas::{LETTER, SIGN, escape};

    #[test]
    fn axes_have_round_marks() {
        for (largest, expected) in
            [(32.8, 10.0), (7.4, 2.0), (0.9, 0.2), (522.9, 100.0), (5.0, 1.0)]
        {
            assert!((step(largest) - expected).abs() < 1e-9, "{largest}: {}", step(largest));
        }
        for hundredths in 1..100_000u32 {
            let largest = f64::from(hundredths) / 100.0;
            let frame = Frame::new(&["a"], [largest].into_iter());
            let marks = frame.y_max / frame.y_step;
            assert!(frame.y_max >= largest && marks < 7.5, "{largest}: {marks}");
        }
    }

    #[test]
    fn legends_wrap() {
        let names = ["a name of some length"; 9];
        let places = legend(&names);
        for pair in places.windows(2) {
            assert!(pair[1].0 > pair[0].0 + SIGN || pair[1].1 > pair[0].1);
        }
        assert!(places.iter().all(|(x, _)| x + SIGN + 21.0 * LETTER < WIDTH));
    }

    #[test]
    fn bars_are_drawn_with_their_marks() {
        let series = BarSeries {
            name: "a < b".to_owned(),
            style: Style::plain(0),
            values: vec![Some(10.0), None],
            ranges: vec![Some([8.0, 30.0]), None],
            published: vec![Some(9.0), None],
        };
        let bars = Bars {
            title: "T".to_owned(),
            x_name: "x",
            y_name: "y",
            groups: vec!["one".to_owned(), "two".to_owned()],
            series: vec![series],
        };
        let drawn = bars.draw();
        // The legend has one rectangle and the plot another; a mark is two lines.
        assert_eq!(drawn.matches("<rect").count(), 2);
        assert_eq!(drawn.matches("stroke=\"#000\"").count(), 2);
        assert!(drawn.contains(">30<"), "the axis reaches the end of the range: {drawn}");
        assert!(drawn.contains(">a &lt; b<") && drawn.contains(">published<"));
        assert!(!drawn.contains("NaN"));
    }

    #[test]
    fn a_single_point_has_a_place() {
        let series = LineSeries {
            name: "a".to_owned(),
            style: Style::plain(3),
            is_broken: true,
            points: vec![(8.0, 1.0)],
        };
        let lines = Lines { title: String::new(), x_name: "x", y_name: "y", series: vec![series] };
        assert!(!lines.draw().contains("NaN"));
        assert_eq!(escape("<a href=\"&\">"), "&lt;a href=&quot;&amp;&quot;&gt;");
    }
}
