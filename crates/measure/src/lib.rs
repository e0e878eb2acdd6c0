//! Measurements: benchmarks of real servers, and the demo.
//!
//! [`bench()`] has client processes make collective transfers. [`tops`] measures files that each
//! client uses independently. [`replay`] carries out a recorded program.
//! [`calibrate`] measures this machine for simulations; [`Residuals`] tell how far they were from
//! real programs. [`plain_rates`] are those of a plain file.
//! [`demo`] shows every strategy on real and on simulated servers.
//!
//! *Invariants:*
//! - A rate is shown only of a transfer in which every byte was checked to be in its place.
//! - What a measurement starts and makes is gone when it ends.

mod accuracy;
mod bench;
mod calibrate;
mod compute;
mod demo;
mod orders;
mod plain;
mod ranks;
mod replay;
mod span;
mod thread_times;
mod tops;

pub use accuracy::{
    CASES_MIN, CONFIDENCE, Interval, Kind, Measurement, Profile, Residuals, Row, median,
};
pub use bench::{BenchPlan, bench, measure_limits};
pub use calibrate::{
    Calibration, Loads, Measured, Parameters, Residual, calibrate, check_calibration,
};
pub use compute::{
    COMPUTE_SCHEMA, ComputeCores, ComputePlan, ComputeReport, ComputeRow, Share, compute,
};
pub use demo::{DEMO_CLIENTS, DEMO_SERVERS, DemoCase, DemoEvent, demo};
pub use plain::{PlainRates, plain_rates};
pub use ranks::{CaseSpec, run_rank};
pub use replay::{RankReport, ReplayPlan, ReplayReport, ReplayRun, replay};
pub use tops::{Figure, TopsLimits, TopsPlan, TopsPoint, TopsReport, tops, tops_client};
