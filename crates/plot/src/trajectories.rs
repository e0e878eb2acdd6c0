//! Trajectories: positions over time, by kind of motion, in panels with the same axes.

use crate::canvas::{
    LEFT, LEGEND_LINE, LEGEND_TOP, RIGHT, WIDTH, begin, legend, line, name_axis, name_legend, step,
    text,
};
use std::fmt::Write;

/// Height of the axes of a panel, in pixels.
const PANEL: f64 = 250.0;
/// Space above the axes of a panel for its two lines of text, in pixels.
const HEAD: f64 = 46.0;
/// Space between panels for the numbers of the axis, in pixels.
const GAP: f64 = 22.0;
/// Space below the last panel for the numbers and the name of the axis, in pixels.
const FOOT: f64 = 46.0;

/// Trajectories in panels, one above the other.
pub struct Trajectories {
    /// Title of the picture.
    pub title: String,
    /// Name of the horizontal axis, with its unit.
    pub x_name: String,
    /// Name of the vertical axis, with its unit.
    pub y_name: String,
    /// Kinds of motion, drawn in this order.
    pub kinds: Vec<Kind>,
    /// Panels from the top down.
    pub panels: Vec<Panel>,
}

/// Style of a kind of stroke.
pub struct Kind {
    /// Name in the legend.
    pub name: String,
    /// SVG colour.
    pub colour: &'static str,
    /// Width of the line, in pixels.
    pub width: f64,
    /// Dash pattern of a broken line.
    pub dashes: Option<&'static str>,
}

/// Trajectory of one thing.
pub struct Panel {
    /// First line above the axes.
    pub title: String,
    /// Second line above the axes.
    pub note: String,
    /// Strokes of the trajectory.
    pub strokes: Vec<Stroke>,
    /// End of the trajectory on the horizontal axis, marked with a line.
    pub end: f64,
}

/// Straight part of a trajectory; x is not negative.
pub struct Stroke {
    /// Index into the kinds.
    pub kind: usize,
    /// Start point.
    pub from: (f64, f64),
    /// End point.
    pub to: (f64, f64),
}

/// Mapping of values to pixels.
struct Scale {
    x_max: f64,
    y_min: f64,
    y_max: f64,
}

impl Trajectories {
    /// Draws the picture as SVG.
    pub fn draw(&self) -> String {
        let mut used: Vec<&Kind> = self.used().map(|(_, kind)| kind).collect();
        used.reverse(); // The topmost kind is named first.
        let names: Vec<&str> = used.iter().map(|kind| kind.name.as_str()).collect();
        let places = legend(&names);
        let top = places.last().map_or(LEGEND_TOP, |(_, y)| y + LEGEND_LINE);
        let panels = self.panels.len() as f64;
        let height = top + panels * (HEAD + PANEL + GAP) - GAP + FOOT;
        let mut out = begin(&self.title, height);
        name_legend(&mut out, &names);
        for ((x, y), kind) in places.iter().zip(&used) {
            let y = y - 4.0;
            let path = format!("M{:.1} {y:.1}H{:.1}", x + 8.0, x + 40.0);
            kind.draw(&mut out, &path);
        }
        let scale = self.scale();
        let mut bottom = top - GAP;
        for panel in &self.panels {
            bottom += GAP + HEAD + PANEL;
            self.draw_panel(&mut out, panel, &scale, bottom);
        }
        let centre = f64::midpoint(LEFT, WIDTH - RIGHT);
        text(&mut out, (centre, bottom + 38.0), "middle", &self.x_name);
        out.push_str("</svg>\n");
        out
    }

    /// Returns the kinds that occur, with their indices.
    fn used(&self) -> impl Iterator<Item = (usize, &Kind)> {
        let occurs = |number| {
            self.panels.iter().any(|panel| panel.strokes.iter().any(|it| it.kind == number))
        };
        self.kinds.iter().enumerate().filter(move |(number, _)| occurs(*number))
    }

    fn scale(&self) -> Scale {
        let strokes = || self.panels.iter().flat_map(|panel| &panel.strokes);
        let ends = || strokes().flat_map(|stroke| [stroke.from, stroke.to]);
        let panel_ends = self.panels.iter().map(|panel| panel.end);
        let x_max = ends().map(|(x, _)| x).chain(panel_ends).fold(0.0, f64::max);
        let low = ends().map(|(_, y)| y).fold(f64::INFINITY, f64::min);
        let high = ends().map(|(_, y)| y).fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return Scale { x_max: 1.0, y_min: 0.0, y_max: 1.0 };
        }
        // The margin keeps a trajectory along an edge off the axis.
        let margin = ((high - low) * 0.03).max(1e-3);
        Scale { x_max: x_max.max(1e-3), y_min: low - margin, y_max: high + margin }
    }

    fn draw_panel(&self, out: &mut String, panel: &Panel, scale: &Scale, bottom: f64) {
        let top = bottom - PANEL;
        text(out, (LEFT, top - 25.0), "start", &panel.title);
        text(out, (LEFT, top - 9.0), "start", &panel.note);
        let right = WIDTH - RIGHT;
        for value in marks(scale.y_min, scale.y_max) {
            let y = scale.y(value, bottom);
            line(out, (LEFT, y), (right, y), "grid");
            let label = mark_label(value, scale.y_max - scale.y_min);
            text(out, (LEFT - 8.0, y + 4.0), "end", &label);
        }
        for value in marks(0.0, scale.x_max) {
            let x = scale.x(value);
            line(out, (x, bottom), (x, bottom + 4.0), "axis");
            text(out, (x, bottom + 17.0), "middle", &mark_label(value, scale.x_max));
        }
        line(out, (LEFT, top), (LEFT, bottom), "axis");
        line(out, (LEFT, bottom), (right, bottom), "axis");
        name_axis(out, f64::midpoint(top, bottom), &self.y_name);
        for (number, kind) in self.used() {
            let path = scale.path(panel.strokes.iter().filter(|it| it.kind == number), bottom);
            if !path.is_empty() {
                kind.draw(out, &path);
            }
        }
        let end = scale.x(panel.end);
        let dashes = "stroke=\"#444\" stroke-dasharray=\"2 3\"";
        let _ = writeln!(out, "<path d=\"M{end:.1} {top:.1}V{bottom:.1}\" {dashes}/>");
        let (x, anchor) =
            if end + 30.0 > right { (end - 4.0, "end") } else { (end + 4.0, "start") };
        text(out, (x, bottom - 6.0), anchor, "end");
    }
}

impl Kind {
    fn draw(&self, out: &mut String, path: &str) {
        let Self { colour, width, .. } = self;
        let dashes = self.dashes.map(|it| format!(" stroke-dasharray=\"{it}\""));
        let _ = writeln!(
            out,
            "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{} d=\"{path}\"/>",
            dashes.unwrap_or_default(),
        );
    }
}

impl Scale {
    fn x(&self, value: f64) -> f64 {
        LEFT + value / self.x_max * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64, bottom: f64) -> f64 {
        bottom - (value - self.y_min) / (self.y_max - self.y_min) * PANEL
    }

    /// Returns one path of all strokes; a stroke that begins at the end of the last one continues
    /// it.
    fn path<'a>(&self, strokes: impl Iterator<Item = &'a Stroke>, bottom: f64) -> String {
        let mut path = String::new();
        let mut at = None;
        for stroke in strokes {
            let place = |(x, y)| format!("{:.2} {:.2}", self.x(x), self.y(y, bottom));
            if at != Some(stroke.from) {
                let _ = write!(path, "M{}", place(stroke.from));
            }
            let _ = write!(path, "L{}", place(stroke.to));
            at = Some(stroke.to);
        }
        path
    }
}

/// Returns round numbers from `low` to `high`, about three to seven.
fn marks(low: f64, high: f64) -> impl Iterator<Item = f64> {
    let step = step(high - low);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(move |number| number as f64 * step)
}

/// Formats a round number of an axis with the length `extent`.
fn mark_label(value: f64, extent: f64) -> String {
    if step(extent) < 1.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    //! Proves: panels share their axes, nothing leaves them, kinds that do not occur are not named,
    //! and empty panels give a picture.
    use super::*;

    fn trajectories(panels: Vec<Panel>) -> Trajectories {
        let kind = |name: &str| Kind {
            name: name.to_owned(),
            colour: "#123456",
            width: 2.0,
            dashes: None,
        };
        Trajectories {
            title: "a < b".to_owned(),
            x_name: "time (ms)".to_owned(),
            y_name: "sector".to_owned(),
            kinds: vec![kind("here"), kind("nowhere")],
            panels,
        }
    }

    fn panel(end: f64, to: f64) -> Panel {
        let stroke = Stroke { kind: 0, from: (0.0, 100.0), to: (end, to) };
        Panel { title: "P".to_owned(), note: String::new(), strokes: vec![stroke], end }
    }

    #[test]
    fn panels_share_their_axes() {
        let drawing = trajectories(vec![panel(10.0, 300.0), panel(40.0, 200.0)]);
        let scale = drawing.scale();
        assert!((scale.x_max - 40.0).abs() < 1e-9);
        assert!(scale.y_min < 100.0 && scale.y_max > 300.0);
        let drawn = drawing.draw();
        assert!(drawn.contains("here") && !drawn.contains("nowhere"));
        assert!(drawn.contains("a &lt; b") && !drawn.contains("NaN"));
        // One line in the legend and one in each panel.
        assert_eq!(drawn.matches("#123456").count(), 3);
    }

    #[test]
    fn strokes_that_meet_are_one_line() {
        let scale = Scale { x_max: 2.0, y_min: 0.0, y_max: 1.0 };
        let stroke = |from, to| Stroke { kind: 0, from, to };
        let strokes = [
            stroke((0.0, 0.0), (1.0, 1.0)),
            stroke((1.0, 1.0), (1.5, 1.0)),
            stroke((1.6, 0.0), (2.0, 1.0)),
        ];
        let path = scale.path(strokes.iter(), PANEL);
        assert_eq!(path.matches('M').count(), 2);
        assert_eq!(path.matches('L').count(), 3);
    }

    #[test]
    fn nothing_can_be_drawn() {
        let nothing =
            Panel { title: String::new(), note: String::new(), strokes: vec![], end: 0.0 };
        let drawn = trajectories(vec![nothing]).draw();
        assert!(drawn.ends_with("</svg>\n") && !drawn.contains("NaN") && !drawn.contains("inf"));
    }
}
