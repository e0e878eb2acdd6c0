//! Arguments that name an instance.

use clap::Args;
use std::path::PathBuf;

/// Instance of the command, and format of its result.
#[derive(Args, Debug)]
pub(crate) struct InstanceOnly {
    /// Directory of the instance.
    #[arg(long, value_name = "DIR", env = "UNISONO_INSTANCE")]
    pub(crate) instance: Option<PathBuf>,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of a command that does something on an instance.
#[derive(Args, Debug)]
pub(crate) struct OnInstance<T: Args> {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    #[command(flatten)]
    pub(crate) what: T,
}
