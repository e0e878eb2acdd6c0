//! Arguments of `trace`: recorded programs.

use super::value_parsers::count;
use clap::{Args, Subcommand, ValueEnum};
use interface::parse_size as size;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum Traces {
    /// Show what a trace has: calls, times, bytes, what depends on timing, what is cut.
    Info(TraceInfo),
    /// Write all calls of a trace into one file, for other programs.
    Export(TraceExport),
    /// Make the trace of a program that only moves an access pattern, to try `replay` and `what-if`
    /// without a program.
    Pattern(TracePattern),
    /// Make the trace of a program that writes as the NAS benchmark BTIO does, without messages.
    Btio(TraceBtio),
    /// Make the trace of a program that factors a matrix out of core (LU), in slabs of columns.
    Lu(TraceLu),
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
pub(crate) struct TracePattern {
    /// Trace to make: a directory that does not exist, NAME.trace.
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: PathBuf,
    /// Access pattern by name, or a direction and a distribution such as w:block,cyclic(4).
    #[arg(long)]
    pub(crate) pattern: String,
    /// Size of a record.
    #[arg(long, default_value = "8KiB", value_parser = size)]
    pub(crate) record: u64,
    /// Size of a file.
    #[arg(long, default_value = "64MiB", value_parser = size)]
    pub(crate) size: u64,
    /// Number of ranks.
    #[arg(long, default_value = "4", value_parser = count)]
    pub(crate) ranks: u32,
    /// Number of files. Each is moved by a group of ranks of its own, all at the same time.
    #[arg(long, default_value = "1", value_parser = count)]
    pub(crate) files: u32,
    /// Number of transfers.
    #[arg(long, default_value = "8", value_parser = count)]
    pub(crate) repeat: u32,
    /// Computation of each rank before each transfer, in milliseconds.
    #[arg(long, default_value = "0", value_name = "MS")]
    pub(crate) compute: u64,
    /// Each rank moves its part by itself.
    #[arg(long)]
    pub(crate) independent: bool,
    /// Bring written data to stable storage after each transfer.
    #[arg(long)]
    pub(crate) sync: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TraceBtio {
    /// Trace to make: a directory that does not exist, NAME.trace.
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: PathBuf,
    /// Calls of a dump.
    #[arg(long, value_enum)]
    pub(crate) mode: TraceBtioMode,
    /// Size of the cube.
    #[arg(long, value_enum, ignore_case = true)]
    pub(crate) class: TraceBtioClass,
    /// Number of ranks, a square.
    #[arg(long, default_value = "4", value_parser = count)]
    pub(crate) ranks: u32,
    /// Number of dumps (default: those of the class).
    #[arg(long, value_parser = count)]
    pub(crate) dumps: Option<u32>,
    /// Computation of all ranks together before each dump, in milliseconds. Each rank has the share
    /// of its points.
    #[arg(long, default_value = "0", value_name = "MS")]
    pub(crate) compute: u64,
    /// Bring the data to stable storage before the file is closed.
    #[arg(long)]
    pub(crate) sync: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TraceLu {
    /// Trace to make: a directory that does not exist, NAME.trace.
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: PathBuf,
    /// Rows and columns of the matrix, which has 8 bytes for each element.
    #[arg(long, value_parser = count)]
    pub(crate) order: u32,
    /// Columns of a slab. A rank holds its share of two slabs, and two whole ones.
    #[arg(long, value_parser = count)]
    pub(crate) slab: u32,
    /// Number of ranks.
    #[arg(long, default_value = "4", value_parser = count)]
    pub(crate) ranks: u32,
    /// Floating-point operations of a rank in a second, in millions.
    #[arg(long, default_value = "10000", value_parser = count)]
    pub(crate) mflops: u32,
    /// Keep rows together in the files instead of columns: each rank has a small piece of each row.
    #[arg(long)]
    pub(crate) rows: bool,
    /// Move one file in a call, and read nothing ahead.
    #[arg(long)]
    pub(crate) sequential: bool,
}

/// Calls of a dump of BTIO.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum TraceBtioMode {
    /// A collective write of all cells of a rank.
    Full,
    /// An independent write of each row of each cell.
    Simple,
}

/// Class of BTIO.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum TraceBtioClass {
    /// 12 points in each direction, 69,120 bytes in each of 12 dumps.
    S,
    /// 24 points, 552,960 bytes in each of 40 dumps.
    W,
    /// 64 points, 10 MiB in each of 40 dumps.
    A,
    /// 102 points, 42.4 MB in each of 40 dumps.
    B,
    /// 162 points, 170 MB in each of 40 dumps.
    C,
    /// 408 points, 2.7 GB in each of 50 dumps.
    D,
}

#[derive(Args, Debug)]
pub(crate) struct TraceImport {
    /// Output of `darshan-dxt-parser LOG`.
    pub(crate) log: PathBuf,
    /// Trace to make: a directory that does not exist, NAME.trace.
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: PathBuf,
}
