//! Arguments of `trace`: recorded programs.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum Traces {
    /// Show what a trace has: calls, times, bytes, what depends on timing, what is cut.
    Info(TraceInfo),
    /// Write all calls of a trace into one file, for other programs.
    Export(TraceExport),
    /// Make a trace of a log of Darshan DXT, as darshan-dxt-parser prints it. A log has no messages
    /// and no views, so a replay of the trace is a bound and not a prediction.
    Import(TraceImport),
}

#[derive(Args, Debug)]
pub(crate) struct TraceInfo {
    /// Trace: the directory that `unisono record` made.
    pub(crate) trace: PathBuf,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TraceExport {
    /// Trace: the directory that `unisono record` made.
    pub(crate) trace: PathBuf,
    /// Format of the file.
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,
    /// File to write.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// Format of an exported trace.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum ExportFormat {
    /// A table with a row for each call.
    Parquet,
    /// A picture with a lane for each rank: open it in Perfetto (ui.perfetto.dev) or
    /// chrome://tracing.
    Perfetto,
}

#[derive(Args, Debug)]
pub(crate) struct TraceImport {
    /// Output of `darshan-dxt-parser LOG`.
    pub(crate) log: PathBuf,
    /// Trace to make: a directory that does not exist, NAME.trace.
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: PathBuf,
}
