//! Runs trial 0 of a scenario with a recorder.

use super::chrome::{ChromeTrace, EVENTS_MAX, TraceSummary};
use super::head::{HeadPath, HeadRecorder};
use crate::program::{ProgramOutcome, simulate_program_recorded};
use crate::scenario::Scenario;
use crate::trials::{Trial, simulate_trial_recorded};
use interface::{ExitCode, UserError};
use program::Program;
use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;

/// Runs trial 0 of a scenario and writes all its events to `out`, as a trace in the JSON format of
/// Chrome, which Perfetto shows. The output is valid JSON at any length; it is cut after a million
/// events.
///
/// # Errors
/// Fails when the trial fails, or writing to `out` fails.
pub fn trace_trial(
    scenario: &Scenario,
    out: impl Write + 'static,
) -> Result<(Trial, TraceSummary), UserError> {
    trace_with(scenario, out, EVENTS_MAX)
}

pub(super) fn trace_with(
    scenario: &Scenario,
    out: impl Write + 'static,
    events_max: u64,
) -> Result<(Trial, TraceSummary), UserError> {
    let trace = Rc::new(RefCell::new(ChromeTrace::begin(out, scenario, events_max)));
    let trial = simulate_trial_recorded(scenario, 0, trace.clone());
    let summary = trace.borrow_mut().end().map_err(|error| {
        let help = "check the disk that the file is on, and its free space";
        UserError::new(ExitCode::Failed, "cannot write the timeline", error.to_string(), help)
    });
    Ok((trial?, summary?))
}

/// Simulates a program on the machine of a scenario, as
/// [`simulate_program`](crate::simulate_program) does, and writes all events to `out` in the form
/// of [`trace_trial`], with a track for each rank above the others.
///
/// # Errors
/// Fails when the simulation fails, or writing to `out` fails.
pub fn trace_program(
    scenario: &Scenario,
    program: &Arc<Program>,
    out: impl Write + 'static,
) -> Result<(ProgramOutcome, TraceSummary), UserError> {
    let scenario = Scenario { clients: program.ranks(), ..scenario.clone() };
    let trace = ChromeTrace::begin_program(out, &scenario, program.ranks(), EVENTS_MAX);
    let trace = Rc::new(RefCell::new(trace));
    let ended = simulate_program_recorded(&scenario, program, trace.clone());
    let summary = trace.borrow_mut().end().map_err(|error| {
        let help = "check the disk that the file is on, and its free space";
        UserError::new(ExitCode::Failed, "cannot write the timeline", error.to_string(), help)
    });
    Ok((ended?, summary?))
}

/// Runs trial 0 of a scenario and follows the head of disk number `disk`, counted over all servers.
///
/// # Errors
/// Fails when the trial fails, the disk does not exist, or the disk has no head.
pub fn follow_head(scenario: &Scenario, disk: u32) -> Result<(Trial, HeadPath), UserError> {
    check_disk(scenario, disk)?;
    let recorder = Rc::new(RefCell::new(HeadRecorder::new(disk)));
    let trial = simulate_trial_recorded(scenario, 0, recorder.clone())?;
    let path = recorder.borrow_mut().take();
    if path.motions.is_empty() {
        return Err(UserError::usage(
            format!("cannot record the head of disk {disk}"),
            format!("on machine {} the head does not move in this transfer", scenario.machine),
            "choose a machine with mechanical disks, such as tr94, and a disk that the transfer \
             uses",
        ));
    }
    Ok((trial, path))
}

/// Checks that disk number `disk` exists, counted over all servers, without simulating anything.
///
/// # Errors
/// Fails when the disk does not exist, or the scenario makes no sense.
pub fn check_disk(scenario: &Scenario, disk: u32) -> Result<(), UserError> {
    scenario.check()?;
    let disks = u64::from(scenario.servers) * u64::from(scenario.disks_per_server);
    if u64::from(disk) >= disks {
        return Err(UserError::usage(
            format!("there is no disk {disk}"),
            format!("the machine has {disks} disks, counted from 0 over all servers"),
            "choose one of these disks with --plot-disk, or add disks with --servers and --disks",
        ));
    }
    Ok(())
}
