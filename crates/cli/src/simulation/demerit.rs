//! `sim demerit`: compares a disk model with a trace, and plots both.

use crate::arguments::Demerit as Arguments;
use crate::output::file::OutputFile;
use crate::output::present;
use interface::UserError;
use plot::{Curve, Curves};
use simulate::{Demerit, DemeritPlan, DiskName, OwnModels};

/// Maximum number of points of a curve.
const POINTS_MAX: usize = 500;

pub(crate) fn run(arguments: &Arguments, models: &OwnModels) -> Result<(), UserError> {
    let disk: DiskName = arguments.disk.parse()?;
    let Arguments { trace, cscan, unit, .. } = arguments;
    let output = arguments.plot.as_deref().map(OutputFile::create).transpose()?;
    let found =
        simulate::demerit(&DemeritPlan { trace, disk: &disk, models, cscan: *cscan, unit: *unit })?;
    if let Some(output) = output {
        output.write(&picture(&found).draw())?;
    }
    if arguments.json {
        return present::json(&found);
    }
    present::line(&format!("requests       {:>12}", found.requests))?;
    present::line(&format!("mean measured  {:>12.3} ms", found.measured_mean_ms))?;
    present::line(&format!("mean modelled  {:>12.3} ms", found.modelled_mean_ms))?;
    present::line(&format!("demerit        {:>12.3} ms", found.demerit_ms))?;
    present::line(&format!("               {:>12.2} % of the mean", found.demerit_percent))?;
    present::line("")?;
    present::line(&format!("{:>8} {:>12} {:>12}", "percent", "measured ms", "modelled ms"))?;
    found.percentiles.iter().try_for_each(|point| {
        let times = format!("{:>12.3} {:>12.3}", point.measured_ms, point.modelled_ms);
        present::line(&format!("{:>8} {times}", point.percent))
    })
}

/// The two distributions.
fn picture(found: &Demerit) -> Curves {
    let curve = |name: &str, colour, times: &[u64]| Curve {
        name: name.to_owned(),
        colour,
        is_broken: colour > 0,
        points: points(times),
    };
    Curves {
        title: format!(
            "{} on {}: demerit {:.3} ms, {:.1} % of the mean ({} requests)",
            found.trace, found.disk, found.demerit_ms, found.demerit_percent, found.requests
        ),
        x_name: "service time (ms)",
        y_name: "fraction of requests",
        series: vec![
            curve("measured", 0, &found.measured_us),
            curve("model", 4, &found.modelled_us),
        ],
    }
}

/// Some points of a distribution of ascending times in microseconds, first and last included:
/// milliseconds and fraction.
fn points(times: &[u64]) -> Vec<(f64, f64)> {
    let count = times.len().min(POINTS_MAX);
    let last = times.len().saturating_sub(1);
    let point = |point: usize| {
        let index = if count > 1 { point * last / (count - 1) } else { 0 };
        (times[index] as f64 / 1e3, (index as f64 + 0.5) / times.len() as f64)
    };
    (0..count).map(point).collect()
}

#[cfg(test)]
mod tests {
    //! Proves: the curves have the first and the last time, few points, and no distribution is too
    //! small for them.
    use super::*;

    #[test]
    fn curves_have_their_ends() {
        let times: Vec<u64> = (1..=10_000).map(|time| time * 10).collect();
        let points = points(&times);
        assert_eq!(points.len(), POINTS_MAX);
        assert_eq!((points[0].0, points[POINTS_MAX - 1].0), (0.01, 100.0));
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        assert_eq!(super::points(&[400]), [(0.4, 0.5)]);
        assert!(super::points(&[]).is_empty());
    }
}
