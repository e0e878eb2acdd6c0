//! Arguments of `hints`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

const EXPLAIN_HELP: &str = "\
A file has one hint a line, KEY VALUE; # begins a comment. Without arguments, the hints of
UNISONO_HINTS and UNISONO_METHOD are explained. Where an instance is found, striping_factor is
compared with its number of servers.";

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Hints {
    #[command(subcommand)]
    pub(crate) command: Option<HintsCommand>,
    /// Print the list as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand, Debug)]
pub(crate) enum HintsCommand {
    /// List all hints of MPI-IO.
    List(List),
    /// Say which hints of a file or of the command line would be in force, and why others not.
    Explain(Explain),
}

#[derive(Args, Debug)]
pub(crate) struct List {
    /// Print the list as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = EXPLAIN_HELP)]
pub(crate) struct Explain {
    /// Files of hints, and hints as KEY=VALUE.
    #[arg(value_name = "FILE|KEY=VALUE")]
    pub(crate) words: Vec<String>,
    /// Name of the file in the instance for which patterns of UNISONO_HINTS are matched.
    #[arg(long, default_value = "", value_name = "NAME", hide_default_value = true)]
    pub(crate) file: String,
    /// End with exit code 2 when a hint is rejected.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Directory of the instance.
    #[arg(long, value_name = "DIR", env = "UNISONO_INSTANCE")]
    pub(crate) instance: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
