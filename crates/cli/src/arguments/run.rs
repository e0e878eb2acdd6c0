//! Arguments of `run`.

use super::servers::{AsRoot, Hosts};
use super::value_parsers::{count, in_place_patterns, memory, wire};
use clap::Args;
use client::WireProtection;
use interface::{CoreList, Protection, parse_size as size};
use std::ffi::OsString;
use std::path::PathBuf;

const RUN_HELP: &str = "\
The program finds the servers by UNISONO_INSTANCE. MPI programs get libunisono-mpi.so by LD_PRELOAD
and use files named unisono://NAME. Files are copied to the directory of --stage-out when the
program has ended. Without --stage-out and --data, they go to a new directory ./unisono-run-*.
Ctrl-C and SIGTERM go to the program. In a Slurm job, or with --until, the program gets SIGTERM
early enough to stage out. The exit code is that of the program, or 128 + N when signal N ended it.
If the program succeeds: 4 a file is damaged, 7 files are not staged out. 126 or 127: the program
cannot be started. With --json its output goes to standard error.";

#[derive(Args, Debug)]
#[command(after_help = RUN_HELP)]
pub(crate) struct Run {
    /// Number of servers (default: 4 on this machine, in a job one on each host).
    #[arg(long, value_parser = count)]
    pub(crate) servers: Option<u32>,
    /// Data directory, which stands for one disk, and remains. Repeat the option for more (default:
    /// inside the instance, removed at the end).
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Vec<PathBuf>,
    /// Keep files in memory, this much at each server, which is taken at the start.
    #[arg(long, value_parser = memory, value_name = "SIZE", conflicts_with = "data")]
    pub(crate) memory: Option<u64>,
    /// Bypass the page cache (O_DIRECT) in the data directories, and with --in-place in long
    /// transfers of the ordinary files: for devices and file systems that are faster without.
    #[arg(long, conflicts_with = "memory")]
    pub(crate) direct: bool,
    /// Protection of new files against the loss of a server: none, mirror (the next server of a
    /// file has a copy of what a server holds, which takes twice the space), or parity (each row of
    /// blocks has a parity block on a further server; parity:4 has rows of 4 blocks)
    /// (default: none).
    #[arg(long, value_name = "PROTECTION")]
    pub(crate) protect: Option<Protection>,
    /// Copy a file, or a directory with everything below it, into the instance first.
    #[arg(long, value_name = "PATH")]
    pub(crate) stage_in: Vec<PathBuf>,
    /// Copy all files of the instance to this directory at the end.
    #[arg(long, value_name = "DIR")]
    pub(crate) stage_out: Option<PathBuf>,
    /// Do not copy files whose names match. * also matches slashes.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) no_stage_out_of: Vec<String>,
    /// Replace files of the same names in the directory of --stage-out. Without this option the run
    /// fails, and its data is kept.
    #[arg(long, requires = "stage_out")]
    pub(crate) overwrite: bool,
    /// Mount the instance on this empty directory for the time of the program, which finds its path
    /// in UNISONO_MOUNT. On other hosts of a job there is no mount.
    #[arg(long, value_name = "DIR")]
    pub(crate) mount: Option<PathBuf>,
    /// Work on ordinary files at their own paths: MPI-IO of names that match goes to the servers,
    /// which carry it out on these files. Without a pattern, all names match. Several patterns are
    /// separated by commas; type:lustre matches all names on a file system of that type. No file is
    /// copied. The hosts of the servers must find the files at the same paths.
    #[arg(
        long,
        value_name = "PATTERN",
        value_parser = in_place_patterns,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "*",
        conflicts_with_all = ["no_preload", "compare", "memory"]
    )]
    pub(crate) in_place: Option<String>,
    /// Also run the program without Unisono, before and after the run, on plain files in a new
    /// directory inside DIR, and compare the times. The program so runs three times.
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ".",
        conflicts_with = "no_preload"
    )]
    pub(crate) compare: Option<PathBuf>,
    /// Keep the instance, with its data, at the end.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Remove all files at the end, and copy none.
    #[arg(long, conflicts_with_all = ["stage_out", "keep", "data"])]
    pub(crate) discard: bool,
    /// Start the program without libunisono-mpi.so.
    #[arg(long)]
    pub(crate) no_preload: bool,
    /// Do not measure a plain file for comparison.
    #[arg(long)]
    pub(crate) no_limit: bool,
    /// End of the time for the run, in seconds since 1970 or as 2030-01-31T12:00:00Z (default:
    /// that of the Slurm job).
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) hosts: Hosts,
    /// Size of each server's block cache.
    #[arg(long, default_value = "64MiB", value_parser = size, value_name = "SIZE")]
    pub(crate) cache: u64,
    /// Cores for the servers of each host, such as 0-3,8. Each server runs on a part of the list of
    /// its own, or on one core of it if there are more servers than cores (default: any core).
    #[arg(long, value_name = "LIST")]
    pub(crate) server_cores: Option<CoreList>,
    /// Protection of connections by TCP: plain (none), integrity (changes on the way end the
    /// connection) or private (also encrypted). Default: private, or plain on a loopback address.
    #[arg(long, value_name = "PROTECTION", value_parser = wire)]
    pub(crate) wire: Option<WireProtection>,
    #[command(flatten)]
    pub(crate) root: AsRoot,
    /// Print the report as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Program, with its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}
