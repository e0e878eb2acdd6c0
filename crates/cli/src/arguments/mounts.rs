//! Arguments about mounts.

use clap::Args;
use std::path::PathBuf;

const MOUNT_HELP: &str = "\
A file that a program has closed is read as it is by a program that opens it then, on this machine
or another, however it was written. MPI programs and Python use a path below the mount without a
prefix and without its costs. The mount ends with `unisono unmount`, and when the servers stop. What
differs from a local file system is listed in docs/mount.md.";

#[derive(Args, Debug)]
#[command(after_help = MOUNT_HELP)]
pub(crate) struct Mount {
    /// Empty directory to mount on.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Let other users use the files, as their modes say.
    #[arg(long)]
    pub(crate) allow_other: bool,
    /// Permit no changes through the mount.
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Stay until the directory is unmounted. An interrupt unmounts it.
    #[arg(long)]
    pub(crate) foreground: bool,
    /// End when standard input ends.
    #[arg(long, hide = true)]
    pub(crate) attached: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Unmount {
    /// Directory that an instance is mounted on.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Free the directory at once, also while programs use files in it.
    #[arg(long)]
    pub(crate) lazy: bool,
    /// Print the result as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
