//! Elements that all pictures share: frame, text, lines, colours and round numbers.

use std::fmt::Write;

/// Colours that are distinguishable with any kind of colour vision (M. Okabe and K. Ito, Color
/// Universal Design, 2008), the darker ones first.
pub(crate) const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000", "#777777"];

pub(crate) const WIDTH: f64 = 860.0;
pub(crate) const LEFT: f64 = 62.0;
pub(crate) const RIGHT: f64 = 14.0;
pub(crate) const BOTTOM: f64 = 48.0;
/// Distance of the first line of the legend from the top, in pixels.
pub(crate) const LEGEND_TOP: f64 = 42.0;
/// Distance between lines of the legend, in pixels.
pub(crate) const LEGEND_LINE: f64 = 18.0;
/// Approximate width of a letter, in pixels, to find out how much fits into a line of the legend.
pub(crate) const LETTER: f64 = 6.4;
/// Width of the symbol before a name in the legend, with the gaps around it, in pixels.
pub(crate) const SIGN: f64 = 44.0;

/// Returns the distance between marks on an axis that reaches `largest`: 1, 2 or 5 times a power of
/// ten, at least 0.1, so that there are about three to seven marks.
pub(crate) fn step(largest: f64) -> f64 {
    let power = 10f64.powf((largest.max(0.1) / 5.0).log10().floor()).max(0.1);
    let fits = |factor: &&f64| power * **factor * 6.0 >= largest;
    power * [1.0, 2.0, 5.0].iter().find(fits).copied().unwrap_or(10.0)
}

/// Returns the position of each name of a legend: from left to right, in as many lines as
/// necessary.
pub(crate) fn legend(names: &[&str]) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (LEFT - 8.0, LEGEND_TOP);
    let mut places = Vec::new();
    for name in names {
        let width = SIGN + name.chars().count() as f64 * LETTER + 14.0;
        if x + width > WIDTH - RIGHT && x > LEFT {
            (x, y) = (LEFT - 8.0, y + LEGEND_LINE);
        }
        places.push((x, y));
        x += width;
    }
    places
}

/// Writes the names of a legend beside their symbols.
pub(crate) fn name_legend(out: &mut String, names: &[&str]) {
    for ((x, y), name) in legend(names).into_iter().zip(names) {
        text(out, (x + SIGN, y), "start", name);
    }
}

pub(crate) fn begin(title: &str, height: f64) -> String {
    let title = escape(title);
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         style=\"background:#fff\" aria-label=\"{title}\" \
         xmlns=\"http://www.w3.org/2000/svg\">\n<style>.grid{{stroke:#ddd}}\
         .axis{{stroke:#444}}text{{font:12px sans-serif;fill:#222}}.title{{font-weight:bold}}\
         </style>\n<text class=\"title\" x=\"{LEFT}\" y=\"20\">{title}</text>\n"
    )
}

pub(crate) fn text(out: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let words = escape(words);
    let _ =
        writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

pub(crate) fn line(out: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
    let _ = writeln!(
        out,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

pub(crate) fn rectangle(
    out: &mut String,
    (x, y, width, height): (f64, f64, f64, f64),
    colour: &str,
) {
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
         fill=\"{colour}\"/>"
    );
}

/// Writes the name of a vertical axis whose middle is at `y`.
pub(crate) fn name_axis(out: &mut String, y: f64, name: &str) {
    let _ = writeln!(
        out,
        "<text transform=\"translate(16 {y:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        escape(name),
    );
}

/// Escapes text for SVG and HTML.
pub fn escape(words: &str) -> String {
    let mut out = String::new();
    for letter in words.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(letter),
        }
    }
    out
}
