//! Where programs meet worlds: plain functions without type parameters.
//!
//! [`simulate`] runs the file system on a machine made of models and measures it;
//! [`Instance`] starts, finds and stops servers, here or on hosts; [`bench`] measures them. This is
//! the only crate that puts a world into the generic code.

mod bench;
mod demerit;
mod demo;
mod disk;
mod error;
mod machine;
mod nearest;
mod plan;
mod real;
mod row;
mod scenario;
mod simulated;
mod size;
mod timeline;
mod tops;
mod whole_file;

pub use bench::{BenchPlan, CaseSpec, Limits, bench, bench_client};
pub use demerit::{DEMERIT_SCHEMA, Demerit, DemeritPlan, Percentile, demerit};
pub use demo::{DEMO_CLIENTS, DEMO_SERVERS, DemoCase, DemoEvent, demo};
pub use disk::DiskName;
pub use error::{ExitCode, LaunchError};
pub use filesystem::Costs;
pub use filesystem::collective::Strategy;
pub use machine::{Machine, Network};
pub use plan::{Setting, SimulationPlan, scenarios_page};
pub use policy::{
    Access, BYTES_MAX, BrokenPolicy, Buffering, Declared, Direction, DiskOrder, ListEntry,
    MakePolicy, Pattern, PolicyName, PolicyNameError, Replacement, ReplacementPolicies,
    ReplacementPolicy,
};
pub use real::{
    Choice, Copied, CopyPlan, DIRTY_PERCENT, DataDirectories, Direct, FileCopy, Finding,
    HostOptions, HostPlan, Instance, InstanceFile, Launcher, Library, LibraryBuffer, LibraryFile,
    LibraryPage, LocalOutput, Operation, Place, Program, SCHEME, Seat, ServerEntry, ServerOptions,
    ServerState, Session, Stopped, TemporaryInstance, Venue, Wish, clean_up_on_signals,
    default_instance_directory, doctor, instance_name, keep, no_directory, refuse_root,
    serve_process, serve_told,
};
pub use row::{BENCH_SCHEMA, Report, Row, SIM_SCHEMA};
pub use scenario::{LayoutName, MachineName, NetworkName, PayloadName, ReadAhead, Scenario};
pub use simulated::{Availability, FittedCosts, Trial, combine_trials, simulate, simulate_trial};
pub use size::parse_size;
pub use timeline::{
    Activity, EVENTS_MAX, HEAD_MOTIONS_MAX, HeadMotion, HeadPath, TraceSummary, check_disk,
    follow_head, trace_trial,
};
pub use tops::{Figure, TopsGoal, TopsLimits, TopsPlan, TopsPoint, TopsReport, tops, tops_client};
pub use units::ServerId;
pub use whole_file::WholeFile;
pub use wire::{Entry, EntryKind, FileDefaults, FileRecord};
pub use world_simulated::{MessageCosts, Pieces, QueueKind, StartAngle};

/// Bytes of a block of a real file, as a size is written.
pub const DEFAULT_BLOCK: &str = "1MiB";

/// The name of every strategy.
pub fn strategy_names() -> Vec<String> {
    Strategy::ALL.iter().map(Strategy::to_string).collect()
}
