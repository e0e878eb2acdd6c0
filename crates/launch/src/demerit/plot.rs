//! The two distributions as curves in an SVG drawing that needs no other file.

use super::Demerit;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 52.0;

/// Points of a curve at most.
const POINTS_MAX: usize = 500;

/// Draws `measured` and `modelled`, sorted times in microseconds, one at least of each.
pub(super) fn svg(report: &Demerit, measured: &[u64], modelled: &[u64]) -> String {
    let longest = measured.last().max(modelled.last()).copied().unwrap_or(1).max(1);
    let step_ms = tick_ms(longest as f64 / 1e3);
    let ticks = (longest as f64 / 1e3 / step_ms).ceil().max(1.0);
    let axis_ms = ticks * step_ms;
    let x = |ms: f64| LEFT + ms / axis_ms * (WIDTH - LEFT - RIGHT);
    let y = |fraction: f64| HEIGHT - BOTTOM - fraction * (HEIGHT - TOP - BOTTOM);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    let title = format!(
        "{} on {}: demerit {:.3} ms, {:.1} % of the mean ({} requests)",
        report.trace, report.disk, report.demerit_ms, report.demerit_percent, report.requests
    );
    text(&mut out, (LEFT, 20.0), "start", &title);
    for tick in 0..=ticks as u64 {
        let ms = tick as f64 * step_ms;
        line(&mut out, (x(ms), y(0.0)), (x(ms), y(1.0)));
        text(&mut out, (x(ms), y(0.0) + 18.0), "middle", &format!("{}", (ms * 1e6).round() / 1e6));
    }
    for tenth in (0..=10).step_by(2) {
        let fraction = f64::from(tenth) / 10.0;
        line(&mut out, (x(0.0), y(fraction)), (x(axis_ms), y(fraction)));
        text(&mut out, (LEFT - 8.0, y(fraction) + 4.0), "end", &format!("{fraction}"));
    }
    text(&mut out, (x(axis_ms / 2.0), HEIGHT - 12.0), "middle", "service time in ms");
    text(&mut out, (8.0, TOP - 12.0), "start", "fraction of requests");
    let curves = [("measured", measured, "#1f77b4", ""), ("model", modelled, "#d62728", "6 3")];
    for (index, (name, times, colour, dashes)) in curves.into_iter().enumerate() {
        let style = format!(
            "fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" stroke-dasharray=\"{dashes}\""
        );
        let _ = write!(out, "<polyline {style} points=\"");
        for (ms, fraction) in points(times) {
            let _ = write!(out, "{:.1},{:.1} ", x(ms), y(fraction));
        }
        out.push_str("\"/>\n");
        let at = WIDTH - 200.0 + 100.0 * index as f64;
        let _ = writeln!(out, "<path {style} d=\"M{at} 40h24\"/>");
        text(&mut out, (at + 30.0, 44.0), "start", name);
    }
    out.push_str("</svg>\n");
    out
}

/// Some points of a distribution, first and last included: milliseconds and fraction.
fn points(times: &[u64]) -> impl Iterator<Item = (f64, f64)> + '_ {
    let count = times.len().min(POINTS_MAX);
    let last = times.len() - 1;
    (0..count).map(move |point| {
        let index = if count > 1 { point * last / (count - 1) } else { 0 };
        (times[index] as f64 / 1e3, (index as f64 + 0.5) / times.len() as f64)
    })
}

/// A round distance of ticks, so that there are five to twelve up to `longest_ms`.
fn tick_ms(longest_ms: f64) -> f64 {
    let power = 10_f64.powf((longest_ms / 5.0).log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|step| step * power);
    steps.into_iter().find(|step| longest_ms / step >= 5.0).unwrap_or(power)
}

fn text(out: &mut String, at: (f64, f64), anchor: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (x, y) = at;
    let _ =
        writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>");
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64)) {
    let _ = writeln!(
        out,
        "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"#ddd\"/>",
        from.0, from.1, to.0, to.1
    );
}
