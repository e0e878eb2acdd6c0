//! Results of several studies.

use super::definition::Definition;
use super::program_study::{ProgramDefinition, ProgramStudy};
use super::program_study_text::program_study_text;
use super::protection::{self, ProtectionDefinition, ProtectionStudy};
use super::record_study::{RecordDefinition, RecordStudy};
use super::study::Study;
use super::study_text::study_text;
use super::{piosim_btio, piosim_caches, piosim_matmul, records};
use interface::UserError;
use serde::Serialize;
use simulate::Progress;

/// Version of the form of [`StudyReport`].
pub const STUDY_SCHEMA: &str = "unisono.study/1";

/// Results of studies, as one JSON object.
#[derive(Clone, Debug, Serialize)]
pub struct StudyReport {
    /// [`STUDY_SCHEMA`].
    pub schema: &'static str,
    /// Studies of caches at clients, in the order of their definition.
    pub studies: Vec<Study>,
    /// Studies of programs, in the order of their definition.
    pub programs: Vec<ProgramStudy>,
    /// Studies of records, in the order of their definition.
    pub records: Vec<RecordStudy>,
    /// Studies of protection, in the order of their definition.
    pub protections: Vec<ProtectionStudy>,
}

/// Returns every study of caches at clients.
fn cache_studies() -> [Definition; 2] {
    [piosim_caches::study(), piosim_matmul::study()]
}

/// Returns the name of every study.
pub fn study_names() -> Vec<&'static str> {
    let caches = cache_studies().into_iter().map(|study| study.name);
    let programs = piosim_btio::studies().into_iter().map(|study| study.name);
    let records = records::studies().into_iter().map(|study| study.name);
    let protections = protection::studies().into_iter().map(|study| study.name);
    caches.chain(programs).chain(records).chain(protections).collect()
}

/// Runs the studies of these names; others are ignored. `progress` is called after each trial. The
/// result does not depend on the number of jobs.
///
/// # Errors
/// If a case cannot be simulated, or a simulation fails.
pub fn run_studies(
    names: &[String],
    trials: u32,
    jobs: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<StudyReport, UserError> {
    let is_wanted = |name: &str| names.iter().any(|wanted| wanted == name);
    let caches = cache_studies().into_iter().filter(|study| is_wanted(study.name));
    let studies = caches.map(|study| study.run(trials, jobs, progress));
    let studies = studies.collect::<Result<Vec<_>, _>>()?;
    let programs = piosim_btio::studies().into_iter().filter(|study| is_wanted(study.name));
    let run = |study: ProgramDefinition| study.run(trials, jobs, progress);
    let programs = programs.map(run).collect::<Result<Vec<_>, _>>()?;
    let records = records::studies().into_iter().filter(|study| is_wanted(study.name));
    let run = |study: RecordDefinition| study.run(trials, progress);
    let records = records.map(run).collect::<Result<Vec<_>, _>>()?;
    let protections = protection::studies().into_iter().filter(|study| is_wanted(study.name));
    let run = |study: ProtectionDefinition| study.run(trials, progress);
    let protections = protections.map(run).collect::<Result<Vec<_>, _>>()?;
    Ok(StudyReport { schema: STUDY_SCHEMA, studies, programs, records, protections })
}

impl StudyReport {
    /// Returns the text of all studies for a terminal, ending with a line feed.
    pub fn text(&self) -> String {
        let caches = self.studies.iter().map(study_text);
        let programs = self.programs.iter().map(program_study_text);
        let records = self.records.iter().map(RecordStudy::text);
        let protections = self.protections.iter().map(ProtectionStudy::text);
        caches.chain(programs).chain(records).chain(protections).collect::<Vec<String>>().join("\n")
    }

    /// Checks the claims of all studies.
    ///
    /// # Errors
    /// The first claim that is about no row, or does not hold in a row where it is not known to
    /// fail.
    pub fn check(&self) -> Result<(), UserError> {
        self.studies.iter().try_for_each(Study::check)?;
        self.programs.iter().try_for_each(ProgramStudy::check)?;
        self.records.iter().try_for_each(RecordStudy::check)?;
        self.protections.iter().try_for_each(ProtectionStudy::check)
    }
}
