//! `reproduce`: runs the published experiments and compares.

use crate::arguments::Reproduce;
use crate::output_file::OutputFile;
use crate::present;
use experiments::{Folder, Options, Progress, Report};
use indicatif::{ProgressBar, ProgressStyle};
use interface::UserError;
use std::num::NonZero;

pub(crate) fn run(arguments: &Reproduce) -> Result<(), UserError> {
    let selected = experiments::select(&arguments.experiments, &arguments.only)?;
    let folder = arguments.out.as_deref().map(Folder::prepare).transpose()?;
    let page = arguments.markdown.as_deref().map(OutputFile::create).transpose()?;
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let jobs = arguments.jobs.map_or(processors, |jobs| jobs as usize);
    let options = Options { trials: arguments.trials, jobs };
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

/// Progress bar with the number of finished trials, on standard error; hidden unless that is a
/// terminal.
fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{pos}/{len} trials {wide_bar} {elapsed_precise}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style)
}
