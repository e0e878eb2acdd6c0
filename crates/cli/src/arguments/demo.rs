//! Arguments of the demo.

use super::servers::AsRoot;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Demo {
    #[command(flatten)]
    pub(crate) root: AsRoot,
    /// File to write and read (default: a large file of this machine).
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Directory for the servers' data while the demo runs.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
