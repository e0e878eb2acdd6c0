//! Calibration: measures this machine, and writes a scenario that simulates it.
//!
//! [`calibrate`] makes [operations](anchors) on one real server and counts the processor time of
//! each thread that takes part; [`parameters`] are what follows from it. Then it carries a few
//! programs out on real and on simulated servers, and tells how far the two are apart.

mod anchors;
mod busy;
mod load;
mod medium;
mod parameters;
mod residuals;
mod write;

pub use parameters::{Measured, Parameters};
pub use residuals::Residual;

use anchors::Bench;
use busy::BusyProcessors;
use client::{Direct, Instance};
use cluster::{Program, ServerOptions, TemporaryInstance};
use interface::{ExitCode, UserError};
pub use load::Loads;
use residuals::{CHECKED, Case, FITTED, RUNS, simulate_all, with_simulated};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use units::MIB;

/// Name and version of the form of a calibration's report.
const SCHEMA: &str = "unisono.calibration/5";

/// A calibration.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// Name and version of the form.
    pub schema: String,
    /// Unix time.
    pub calibrated_at: u64,
    /// Parameters, each with its source.
    pub parameters: Parameters,
    /// Factors of costs, fitted to programs.
    pub loads: Loads,
    /// Programs to which it is fitted.
    pub fitted: Vec<Residual>,
    /// Programs that have no part in any parameter.
    pub residuals: Vec<Residual>,
}

/// Bytes of the server's cache: less than the files of the operations, so that blocks come from the
/// system's page cache.
const CACHE_BYTES: u64 = 8 * MIB;

/// Measures this machine and writes the scenario to `output`, and its disk beside it. `directory`
/// is on the disk that is described; `progress` is told each step.
///
/// # Errors
/// Fails when the files cannot be written, and when servers cannot be started. Files of these names
/// are replaced.
pub fn calibrate(
    program: &Program,
    directory: Option<&Path>,
    output: &Path,
    mut progress: impl FnMut(&str),
) -> Result<Calibration, UserError> {
    let (scenario, disk) = write::paths(output)?;
    let options = ServerOptions { cache_bytes: CACHE_BYTES, ..ServerOptions::default() };
    progress("one server: requests, cached blocks, directed blocks, pieces");
    let started = TemporaryInstance::start(program, 1, &[], directory, &options)?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    // It connects while nothing else runs, as that is timed by the clock.
    let bench = Bench::new(started.instance())?;
    let busy = BusyProcessors::start(cores);
    let anchors = bench.anchors()?;
    drop(busy);
    drop(bench);
    progress("the disk: writes, syncs, reads past the cache");
    let medium = medium::measure(started.directory())?;
    drop(started);
    let parameters = parameters::parameters(cores, &anchors, &medium);
    let calibrated_at = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |time| time.as_secs().max(1));
    let save = |parameters: &Parameters, loads: Loads| {
        write::write(&scenario, &disk, (parameters, loads), calibrated_at)
    };
    progress("programs to which four numbers are fitted: the loads");
    let fitted = carry_out(&FITTED, program, directory, RUNS)?;
    let loads = load::fit(&fitted, |loads| {
        save(&parameters.under(loads), loads)?;
        simulate_all(&FITTED, &scenario)
    })?;
    let parameters = parameters.under(loads);
    save(&parameters, loads)?;
    progress("other programs, on real and on simulated servers");
    let checked = carry_out(&CHECKED, program, directory, RUNS)?;
    Ok(Calibration {
        schema: SCHEMA.to_owned(),
        calibrated_at,
        parameters,
        loads,
        fitted: with_simulated(fitted, &simulate_all(&FITTED, &scenario)?),
        residuals: with_simulated(checked, &simulate_all(&CHECKED, &scenario)?),
    })
}

/// Factor of the mean beyond which a calibration does not fit.
const FACTOR_MAX: f64 = 1.3;

/// The same of a single program.
const EACH_FACTOR_MAX: f64 = 2.0;

/// Runs of each program in a check; the shortest counts, as others may use the machine.
const CHECK_RUNS: u32 = 2;

/// Carries programs out on real servers and on those of a calibration, in about ten seconds.
///
/// # Errors
/// Refuses a calibration that no longer fits, and a scenario that is none; faults of servers.
pub fn check_calibration(
    program: &Program,
    directory: Option<&Path>,
    scenario: &Path,
) -> Result<Vec<Residual>, UserError> {
    let machine = Case::machine(scenario)?;
    let calibrate = format!("unisono sim calibrate --output {}", scenario.display());
    if !machine.is_calibrated() {
        return Err(UserError::usage(
            format!("{} is no calibration", scenario.display()),
            "the scenario does not say when its machine was measured (calibrated-at)",
            format!("measure this machine: {calibrate}"),
        ));
    }
    let mut checked = carry_out(&FITTED, program, directory, CHECK_RUNS)?;
    checked.iter_mut().for_each(|case| case.real_seconds = case.real_least);
    let checked = with_simulated(checked, &simulate_all(&FITTED, scenario)?);
    match misfit(&checked) {
        None => Ok(checked),
        Some(cause) => Err(UserError::new(
            ExitCode::Failed,
            format!("{} no longer fits this machine", scenario.display()),
            cause,
            format!("let nothing else run and check again, or measure again: {calibrate}"),
        )),
    }
}

/// Says how far simulated programs are from real ones, if that is too far.
fn misfit(programs: &[Residual]) -> Option<String> {
    let factor = load::mean_factor(programs);
    if !(1.0 / FACTOR_MAX..=FACTOR_MAX).contains(&factor) {
        return Some(format!(
            "programs take {factor:.2} times as long as it says, and up to {FACTOR_MAX} is allowed"
        ));
    }
    let is_far = |one: &&Residual| {
        !(1.0 / EACH_FACTOR_MAX..=EACH_FACTOR_MAX)
            .contains(&(one.real_seconds / one.simulated_seconds))
    };
    let far: Vec<&Residual> = programs.iter().filter(is_far).collect();
    let worst = far.iter().max_by(|one, other| {
        let size = |one: &Residual| (one.real_seconds / one.simulated_seconds).ln().abs();
        size(one).total_cmp(&size(other))
    })?;
    Some(format!(
        "{} of {} programs take more than {EACH_FACTOR_MAX} times as long as it says, or as \
         little; {} with records of {} B by {} {:.2} times as long",
        far.len(),
        programs.len(),
        worst.pattern,
        worst.record_bytes,
        worst.access,
        worst.real_seconds / worst.simulated_seconds,
    ))
}

impl Calibration {
    /// Sentence about how far simulated programs are from real ones.
    ///
    /// # Errors
    /// Refuses a calibration that is too far from the machine to be used.
    pub fn verdict(&self, scenario: &Path) -> Result<String, UserError> {
        let mut errors: Vec<f64> =
            self.residuals.iter().map(|one| one.error().abs() * 100.0).collect();
        errors.sort_by(f64::total_cmp);
        let all = [&self.fitted[..], &self.residuals].concat();
        if let Some(cause) = misfit(&all) {
            return Err(UserError::new(
                ExitCode::Failed,
                format!("{} does not fit this machine", scenario.display()),
                cause,
                "let nothing else run, and measure again; until then compare shapes, not seconds",
            ));
        }
        let (median, worst) = (errors.get(errors.len() / 2), errors.last());
        Ok(format!(
            "it fits: of {} programs that had no part in it, half are predicted within {:.0} %, \
             all within {:.0} %",
            errors.len(),
            median.copied().unwrap_or_default(),
            worst.copied().unwrap_or_default(),
        ))
    }
}

/// Carries programs out on real servers.
fn carry_out(
    cases: &[Case],
    program: &Program,
    directory: Option<&Path>,
    runs: u32,
) -> Result<Vec<Residual>, UserError> {
    cases.iter().map(|case| case.carry_out(program, directory, runs)).collect()
}

/// Starts servers for a program that is measured.
fn servers(
    program: &Program,
    count: u32,
    directory: Option<&Path>,
) -> Result<TemporaryInstance, UserError> {
    let options = ServerOptions { direct: Direct::None, ..ServerOptions::default() };
    TemporaryInstance::start(program, count, &[] as &[PathBuf], directory, &options)
}

/// The instance of started servers.
fn instance_of(started: &TemporaryInstance) -> &Instance {
    started.instance()
}

#[cfg(test)]
mod tests {
    //! Proves: a calibration fits if its mean and each program are near, and says what is far.
    use super::*;

    /// Programs that take these times as long as is simulated.
    fn programs(factors: &[f64]) -> Vec<Residual> {
        let program = |factor: &f64| Residual {
            pattern: "rc".to_owned(),
            record_bytes: 8,
            file_bytes: MIB,
            access: "two-phase".to_owned(),
            servers: 2,
            ranks: 4,
            real_seconds: *factor,
            real_least: *factor,
            real_most: *factor,
            simulated_seconds: 1.0,
        };
        factors.iter().map(program).collect()
    }

    #[test]
    fn programs_that_are_far_are_told() {
        assert_eq!(misfit(&programs(&[1.1, 0.9, 1.6])), None);
        let mean = misfit(&programs(&[1.4, 1.5, 1.4])).unwrap();
        assert!(mean.contains("1.43 times as long"), "{mean}");
        let one = misfit(&programs(&[1.0, 0.45, 2.2, 1.0])).unwrap();
        assert!(one.contains("2 of 4 programs") && one.contains("0.45 times"), "{one}");
    }
}
