//! Arguments of `record`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

const RECORD_HELP: &str = "\
The program gets libunisono-record.so and libunisono-mpi.so by LD_PRELOAD. Each rank writes what it
calls to the directory of the trace: messages, collective operations, accesses of files, and its
processor time between them. Contents of messages and files are not recorded.
With servers of its own: unisono run --servers 2 -- unisono record -- mpiexec -n 4 ./app
Ctrl-C and SIGTERM go to the program. The exit code is that of the program, or 128 + N when signal N
ended it. If the program succeeds: 1 nothing was recorded. 126 or 127: it cannot be started.";

#[derive(Args, Debug)]
#[command(after_help = RECORD_HELP)]
pub(crate) struct Record {
    /// Directory of the trace, which is made.
    #[arg(short, long, value_name = "DIR", default_value = "unisono.trace")]
    pub(crate) output: PathBuf,
    /// Replace a trace that is there.
    #[arg(long)]
    pub(crate) force: bool,
    /// Start the program without libunisono-mpi.so.
    #[arg(long)]
    pub(crate) no_preload: bool,
    /// Program, with its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}
