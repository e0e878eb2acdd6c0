//! `sim --timeline` and `sim --plot`: shows what happens in a trial.
//!
//! All refusals come before the simulation, also those of paths.

use super::head_plot;
use crate::arguments::Sim;
use crate::output::file::{OutputFile, cannot_write};
use crate::output::present;
use interface::{Row, UserError};
use simulate::{HeadPath, Scenario, TraceSummary, Trial};
use std::path::Path;

/// Outputs wanted of a simulated trial.
pub(crate) struct Wanted<'a> {
    timeline: Option<&'a Path>,
    plot: Option<&'a Path>,
    disk: u32,
}

impl<'a> Wanted<'a> {
    /// Outputs that the arguments ask for, if any.
    pub(crate) fn of(arguments: &'a Sim) -> Option<Self> {
        let (timeline, plot) = (arguments.timeline.as_deref(), arguments.plot.as_deref());
        let is_wanted = timeline.is_some() || plot.is_some();
        is_wanted.then_some(Self { timeline, plot, disk: arguments.plot_disk })
    }
}

/// Simulates one trial of each case and writes the outputs wanted.
pub(crate) fn run(scenarios: &[Scenario], wanted: &Wanted<'_>) -> Result<Vec<Row>, UserError> {
    for scenario in scenarios {
        scenario.check()?;
        if scenario.trials > 1 {
            let cause = format!("the command asks for {} trials", scenario.trials);
            return Err(UserError::usage(
                "cannot record more than one trial",
                cause,
                "use --trials 1; to record trial n, also add n to --seed",
            ));
        }
    }
    let one_case = |what: &str, is_one: bool| match is_one {
        true => Ok(()),
        false => Err(too_many(what, scenarios.len())),
    };
    if wanted.timeline.is_some() {
        one_case("cannot record more than one case in a timeline", scenarios.len() == 1)?;
    }
    if wanted.plot.is_some() {
        let case = |it: &Scenario| (it.pattern.to_string(), it.record_bytes);
        let is_one = scenarios.windows(2).all(|pair| case(&pair[0]) == case(&pair[1]));
        one_case("cannot plot more than one case, which may have several strategies", is_one)?;
        scenarios.iter().try_for_each(|it| simulate::check_disk(it, wanted.disk))?;
    }
    let timeline = wanted.timeline.map(OutputFile::create).transpose()?;
    let plot = wanted.plot.map(OutputFile::create).transpose()?;
    let mut trials = Vec::new();
    if let (Some(output), Some(scenario)) = (timeline, scenarios.first()) {
        trials = vec![trace(scenario, output)?];
    }
    if let Some(output) = plot {
        let followed = scenarios.iter().map(|it| simulate::follow_head(it, wanted.disk));
        let (of_plot, heads): (Vec<Trial>, Vec<HeadPath>) =
            followed.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        output.write(&head_plot::picture(scenarios, wanted.disk, &of_plot, &heads).draw())?;
        trials = of_plot;
    }
    let both = scenarios.iter().zip(trials);
    both.map(|(scenario, trial)| simulate::combine_trials(scenario, &[trial])).collect()
}

fn trace(scenario: &Scenario, output: OutputFile<'_>) -> Result<Trial, UserError> {
    let writer = output.file.writer().map_err(|error| cannot_write(output.path, &error))?;
    let (trial, summary) = simulate::trace_trial(scenario, writer)?;
    let TraceSummary { events, events_left_out } = summary;
    output.finish(&format!(": {events} events"))?;
    if events_left_out > 0 {
        present::note(&format!(
            "note: {events_left_out} later events were left out; a smaller --size or a larger \
             --record makes fewer events"
        ));
    }
    Ok(trial)
}

fn too_many(what: &str, cases: usize) -> UserError {
    UserError::usage(
        what,
        format!("patterns, records and strategies make {cases} cases"),
        "name one of each, such as --pattern rb --record 8KiB --strategy disk-directed",
    )
}
