//! Replays a trace on a disk model and reports how close the model is.

use super::trace::Trace;
use super::{figure, reader, replay};
use crate::disk::DiskName;
use crate::own_models::OwnModels;
use interface::UserError;
use serde::Serialize;
use std::path::Path;
use world_simulated::models::disk_model::DiskModel;
use world_simulated::models::request_queue::QueueKind;

/// Names the form of a report of a demerit.
const DEMERIT_SCHEMA: &str = "unisono.demerit/1";

/// Inputs of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct DemeritPlan<'a> {
    /// A trace of a disk: HP's SRT format, or CSV.
    pub trace: &'a Path,
    /// The model.
    pub disk: &'a DiskName,
    /// Own disk models that can be named.
    pub models: &'a OwnModels,
    /// Serves waiting requests by cyclical scan instead of in the order of arrival.
    pub cscan: bool,
    /// Unit to replay, for an SRT trace with several units.
    pub unit: Option<u32>,
}

/// Result of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Demerit {
    /// `unisono.demerit/1`.
    pub schema: String,
    /// The trace, as it was named.
    pub trace: String,
    /// The disk, as it was named.
    pub disk: String,
    /// Number of requests.
    pub requests: usize,
    /// Records of the trace that are not requests, or belong to another unit.
    pub records_skipped: usize,
    /// Mean service time in the trace.
    pub measured_mean_ms: f64,
    /// Mean service time of the model.
    pub modelled_mean_ms: f64,
    /// Root of the mean square of the horizontal distance between the two distributions.
    pub demerit_ms: f64,
    /// Demerit over the mean service time in the trace, in percent.
    pub demerit_percent: f64,
    /// Points of the two distributions, at fixed percentages.
    pub percentiles: Vec<Percentile>,
    /// Service times in the trace, in microseconds, ascending.
    #[serde(skip)]
    pub measured_us: Vec<u64>,
    /// Service times of the model, in microseconds, ascending.
    #[serde(skip)]
    pub modelled_us: Vec<u64>,
}

/// One point of the two distributions.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Percentile {
    /// Percentage of the requests that took no longer than the times below.
    pub percent: f64,
    /// In the trace.
    pub measured_ms: f64,
    /// In the model.
    pub modelled_ms: f64,
}

/// Percentiles that a report shows.
const PERCENTS: [f64; 8] = [1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0, 100.0];

/// Replays a trace on a disk model and compares the service times.
///
/// Requests arrive at the times in the trace and wait until the disk takes another. A service time
/// begins when the disk is given the request and ends when it reports. Both sides are compared in
/// whole microseconds, the resolution of the traces.
///
/// # Errors
/// Fails when the trace cannot be read, is not valid, or does not fit the disk.
pub fn demerit(plan: &DemeritPlan<'_>) -> Result<Demerit, UserError> {
    let mechanism = plan.disk.kind(plan.models)?;
    let model = mechanism.build(0);
    let refuse = |cause: String| {
        UserError::usage(
            format!("cannot replay {}", plan.trace.display()),
            cause,
            "a trace is in HP's SRT format, or CSV with the columns \
             arrival_us,op,lbn,sectors,service_us; see: unisono sim demerit --help",
        )
    };
    let trace = reader::open(plan.trace, model.sector_bytes(), plan.unit).map_err(refuse)?;
    check_sectors(&trace, &*model).map_err(refuse)?;
    let kind = if plan.cscan { QueueKind::Cscan } else { QueueKind::Fcfs };
    let mut modelled = replay::replay(&trace.requests, model, mechanism.bus(), kind);
    let mut measured: Vec<u64> = trace.requests.iter().map(|request| request.service_us).collect();
    measured.sort_unstable();
    modelled.sort_unstable();
    let demerit_us = figure::demerit(&measured, &modelled);
    let measured_mean_us = figure::mean(&measured);
    let percentile = |percent: f64| Percentile {
        percent,
        measured_ms: figure::quantile(&measured, percent / 100.0) / 1e3,
        modelled_ms: figure::quantile(&modelled, percent / 100.0) / 1e3,
    };
    Ok(Demerit {
        schema: DEMERIT_SCHEMA.to_owned(),
        trace: plan.trace.display().to_string(),
        disk: plan.disk.to_string(),
        requests: trace.requests.len(),
        records_skipped: trace.records_skipped,
        measured_mean_ms: measured_mean_us / 1e3,
        modelled_mean_ms: figure::mean(&modelled) / 1e3,
        demerit_ms: demerit_us / 1e3,
        demerit_percent: if demerit_us > 0.0 { demerit_us / measured_mean_us * 100.0 } else { 0.0 },
        percentiles: PERCENTS.map(percentile).to_vec(),
        measured_us: measured,
        modelled_us: modelled,
    })
}

/// Refuses a trace with sectors that the disk does not have.
fn check_sectors(trace: &Trace, model: &dyn DiskModel) -> Result<(), String> {
    let capacity = model.shape().capacity_sectors;
    let beyond = trace
        .requests
        .iter()
        .find(|request| request.lbn.checked_add(request.sectors).is_none_or(|end| end > capacity));
    match beyond {
        None => Ok(()),
        Some(request) => Err(format!(
            "{}: {} sectors from sector {} on are not all on the disk, which has {capacity} \
             sectors",
            trace.place(request),
            request.sectors,
            request.lbn,
        )),
    }
}
