//! `reproduce`: runs the published experiments and compares.

use crate::arguments::Reproduce;
use crate::output::file::OutputFile;
use crate::output::present;
use experiments::{Folder, Options, Progress, Report};
use indicatif::{ProgressBar, ProgressStyle};
use interface::UserError;
use std::num::NonZero;
use std::time::Duration;

pub(crate) fn run(arguments: &Reproduce) -> Result<(), UserError> {
    let all = arguments.experiments.iter().cloned();
    let (studies, names): (Vec<String>, Vec<String>) = all.partition(is_study);
    if names.is_empty() {
        return run_studies(arguments, &studies);
    }
    if !studies.is_empty() {
        return Err(UserError::usage(
            "studies and experiments cannot be reproduced together",
            format!("{} is a study", studies.join(", ")),
            "run one command for the studies and one for the experiments",
        ));
    }
    let selected = experiments::select(&names, &arguments.only)?;
    let folder = arguments.out.as_deref().map(Folder::prepare).transpose()?;
    let page = arguments.markdown.as_deref().map(OutputFile::create).transpose()?;
    let options = Options { trials: arguments.trials, jobs: jobs(arguments) };
    let bar = bar();
    let progress = |progress: Progress| {
        bar.set_length(progress.all);
        bar.set_position(progress.done);
    };
    let comparisons = experiments::run(&selected, options, &progress);
    bar.finish_and_clear();
    let comparisons = comparisons?;
    let written = folder.map(|folder| folder.write(&comparisons)).transpose()?;
    if arguments.json {
        present::json(&Report::new(arguments.trials, &comparisons))?;
    } else {
        let texts: Vec<String> = comparisons.iter().map(experiments::text).collect();
        present::line(texts.join("\n").trim_end())?;
    }
    if let Some(page) = page {
        page.write(&experiments::markdown(&comparisons))?;
    }
    for path in written.unwrap_or_default() {
        present::note(&format!("wrote {}", path.display()));
    }
    Ok(())
}

#[allow(clippy::ptr_arg, reason = "a predicate of owned names")]
fn is_study(name: &String) -> bool {
    experiments::study_names().contains(&name.as_str())
}

fn jobs(arguments: &Reproduce) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    arguments.jobs.map_or(processors, |jobs| jobs as usize)
}

/// Runs studies, which have a text and a JSON form.
fn run_studies(arguments: &Reproduce, names: &[String]) -> Result<(), UserError> {
    if arguments.out.is_some() || arguments.markdown.is_some() || !arguments.only.is_empty() {
        return Err(UserError::usage(
            "a study has no files and no selection of rows",
            "--out, --markdown and --only are for experiments with published figures",
            "leave them out; --json prints every figure",
        ));
    }
    let bar = bar();
    let progress = |progress: Progress| {
        bar.set_length(progress.all);
        bar.set_position(progress.done);
    };
    let report = experiments::run_studies(names, arguments.trials, jobs(arguments), &progress);
    bar.finish_and_clear();
    let report = report?;
    if arguments.json {
        present::json(&report)?;
    } else {
        present::line(report.text().trim_end())?;
    }
    report.check()
}

/// Interval at which the bar shows that the command works.
const TICK: Duration = Duration::from_millis(250);

/// Progress bar with the number of finished trials, on standard error; hidden unless that is a
/// terminal.
fn bar() -> ProgressBar {
    let template = "{spinner} {pos}/{len} trials {wide_bar} {elapsed_precise}, {eta} left";
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(0).with_style(style);
    bar.enable_steady_tick(TICK);
    bar
}
