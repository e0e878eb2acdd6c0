//! Types that every interface of the program shares: errors, exit codes, sizes, and results.
//!
//! *Invariants:*
//! - What a user sees of an error has three parts: error, cause, help.
//! - The numbers of [`ExitCode`] and the fields of [`Report`] are part of the interface.
//! - Nothing here starts a process, opens a connection or runs a simulation.

mod access;
mod availability;
mod cores;
mod error;
mod exit_code;
mod kind;
mod limits;
mod log;
mod nearest;
mod records;
mod row;
mod size;
mod whole_file;

pub use access::access_of;
pub use availability::Availability;
pub use cores::CoreList;
pub use error::{Failure, UserError, is_no_space};
pub use exit_code::ExitCode;
pub use filesystem::collective::Strategy;
pub use kind::{ErrorKind, ErrorPlace, KINDS, KindRow};
pub use limits::Limits;
pub use log::begin_log;
pub use nearest::nearest;
pub use policy::{
    Answers, ClientCacheSpec, Cooperation, Declared, DiskOrder, Extensions, FailedOperator, Number,
    NumberKind, Pattern, Protection, RecordBatch, RecordFunction, RecordFunctions, RecordOperator,
    RecordOperators, Replacement, ReplacementPolicies, ReplacementPolicy,
};
pub use records::{
    FieldKind, RecordField, RecordType, TypedRecords, condition_with, field_of, key_of,
    module_operator, npy_header, number_of, predicate_of, read_npy_header,
};
pub use row::{BENCH_SCHEMA, Report, Row, SIM_SCHEMA, mib_s};
pub use size::{parse_size, size_word};
pub use whole_file::WholeFile;

/// Default bytes of a block of a real file, as a size is written.
pub const DEFAULT_BLOCK: &str = "1MiB";

/// The name of every strategy.
pub fn strategy_names() -> Vec<String> {
    Strategy::ALL.iter().map(Strategy::to_string).collect()
}
