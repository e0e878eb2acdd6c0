//! The worth of predictions: the residuals of programs of the same kind, and what lies outside
//! them.

use ::simulate::{Axis, Point, Program};
use interface::UserError;
use measure::{CONFIDENCE, Interval, Kind, Profile, Residuals};
use std::collections::BTreeSet;
use trace::{Header, Recorded, TimingShare};

/// Keys whose change makes another machine.
const MACHINES: [&str; 3] = ["machine", "disk", "network"];

/// Knowledge about the error of predictions.
pub(super) struct Worth {
    residuals: Residuals,
    /// Reason not to believe seconds, if there is one.
    refusal: Option<&'static str>,
    /// Settings that were not checked, in words.
    outside: Vec<String>,
    share: TimingShare,
    is_bound: bool,
    collective_share: f64,
}

impl Worth {
    /// Returns what predictions of a program at these points are worth.
    ///
    /// # Errors
    /// Fails when the published residuals are damaged.
    pub(super) fn of(
        axes: &[Axis],
        points: &[Point],
        program: &Program,
        header: &Header,
        share: TimingShare,
    ) -> Result<Self, UserError> {
        let residuals = Residuals::published()?;
        let is_other = axes.iter().any(|axis| MACHINES.contains(&axis.key.as_str()));
        let refusal = if points.iter().any(|point| !point.scenario.machine.is_calibrated()) {
            Some("the machine was never measured")
        } else if is_other {
            Some("the machine, its disk or network is another one than was measured")
        } else {
            None
        };
        let outside = outside(&residuals, points, program);
        let (is_bound, collective_share) =
            (header.recorded == Recorded::DarshanDxt, program.collective_share());
        Ok(Self { residuals, refusal, outside, share, is_bound, collective_share })
    }

    /// Returns the kind of a prediction by its mean seconds of a rank.
    pub(super) fn kind(&self, computing_seconds: f64, files_seconds: f64, point: &Point) -> Kind {
        Kind::of(Profile {
            computing_seconds,
            files_seconds,
            collective_share: self.collective_share,
            is_directed: point.scenario.strategy.to_string() == "disk-directed",
        })
    }

    /// Returns the range in which the program's seconds lie with the stated probability.
    pub(super) fn range(&self, kind: Kind, seconds: f64) -> Option<[f64; 2]> {
        if self.refusal.is_some() || self.is_bound {
            return None;
        }
        let Interval { low, high, .. } = self.residuals.interval(kind, None)?;
        // Calls that depend on timing may take no time, or twice the time.
        let widened = self.share.time_percent() / 100.0;
        Some([seconds * low * (1.0 - widened), seconds * high * (1.0 + widened)])
    }

    /// Returns the statement about predictions of these kinds, in one line.
    pub(super) fn statement(&self, kinds: &[Kind]) -> String {
        let mut said = Vec::new();
        if self.is_bound {
            said.push(
                "a bound and no prediction: the log has no messages and no views, so ranks do not \
                 wait for one another"
                    .to_owned(),
            );
        }
        match self.refusal {
            Some(cause) => {
                said.push(format!("not calibrated: {cause}, compare shapes and not seconds"));
            }
            None if self.residuals.rows.is_empty() => {
                said.push("calibrated, but no residuals were measured".to_owned());
            }
            None => {
                let mut named: Vec<Kind> = Vec::new();
                kinds.iter().for_each(|kind| {
                    if !named.contains(kind) {
                        named.push(*kind)
                    }
                });
                said.extend(named.into_iter().filter_map(|kind| self.of_kind(kind)));
                if !self.outside.is_empty() {
                    said.push(format!("outside what was checked: {}", self.outside.join(", ")));
                }
            }
        }
        if self.share.calls > 0 {
            said.push(format!(
                "{:.1} % of the calls and {:.1} % of the recorded time depend on timing{}",
                self.share.calls_percent(),
                self.share.time_percent(),
                if self.refusal.is_none() { ", which widens the range" } else { "" },
            ));
        }
        said.join("; ")
    }

    fn of_kind(&self, kind: Kind) -> Option<String> {
        let Interval { low, high, median_error, cases } = self.residuals.interval(kind, None)?;
        Some(format!(
            "{kind}: {:.0} % of {cases} checked cases took {low:.2} to {high:.2} times what was \
             predicted, median error {:.0} %",
            CONFIDENCE * 100.0,
            median_error * 100.0
        ))
    }
}

/// Says what of the points was not checked.
fn outside(residuals: &Residuals, points: &[Point], program: &Program) -> Vec<String> {
    let rows = &residuals.rows;
    let servers = || rows.iter().map(|row| row.servers);
    let (Some(least), Some(most)) = (servers().min(), servers().max()) else { return Vec::new() };
    let mut outside = BTreeSet::new();
    if program.ranks() != residuals.ranks {
        outside.insert(format!("{} ranks (checked: {})", program.ranks(), residuals.ranks));
    }
    if !program.has_warm_files() && !program.existing_files().is_empty() {
        outside.insert("files that no cache holds (checked: --warm-files)".to_owned());
    }
    for point in points {
        let servers = point.scenario.servers;
        if !(least..=most).contains(&servers) {
            outside.insert(format!("{servers} servers (checked: {least} to {most})"));
        }
        let strategy = point.scenario.strategy.to_string();
        if !rows.iter().any(|row| row.strategy == strategy) {
            outside.insert(format!("the strategy {strategy}"));
        }
    }
    outside.into_iter().collect()
}
