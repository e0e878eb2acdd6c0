//! What can be said about files and directories.

use super::InstanceOnly;
use clap::{Args, ValueEnum};
use launch::parse_size as size;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Put {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// The local file.
    pub(crate) local: PathBuf,
    /// Its name in the instance (default: the local file's name), or a directory with a / behind
    /// it; directories are made as needed.
    pub(crate) name: Option<String>,
    /// Bytes of a block.
    #[arg(long, default_value = launch::DEFAULT_BLOCK, value_parser = size, value_name = "SIZE")]
    pub(crate) block: u64,
}

#[derive(Args, Debug)]
pub(crate) struct Get {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// The file's name in the instance.
    pub(crate) name: String,
    /// The local file, or - for standard output (default: the name's last part, here).
    pub(crate) local: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Cp {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// What to copy: local paths, or unisono://NAME in the instance.
    #[arg(required = true, value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Where to: a local path, or unisono://NAME; into it if it is a directory. Files of that name
    /// are replaced.
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// Copy directories with all that is in them.
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Bytes of a block of new files in the instance.
    #[arg(long, default_value = launch::DEFAULT_BLOCK, value_parser = size, value_name = "SIZE")]
    pub(crate) block: u64,
}

#[derive(Args, Debug)]
pub(crate) struct Mv {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// What to move, in the instance.
    #[arg(required = true, value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Its new name, or a directory to move it into. A file of that name is replaced.
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
}

#[derive(Args, Debug)]
pub(crate) struct Ls {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// A directory or a file (default: the root).
    pub(crate) name: Option<String>,
    /// Also show what begins with a dot.
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Show owner, time and stripe.
    #[arg(long, short)]
    pub(crate) long: bool,
    /// Also what is in its directories, at any depth.
    #[arg(long, short = 'R')]
    pub(crate) recursive: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Named {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// The name.
    pub(crate) name: String,
}

#[derive(Args, Debug)]
pub(crate) struct MaybeNamed {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// The name (default: the root).
    pub(crate) name: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Cat {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// The files' names.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Rm {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// The names.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Remove directories with all that is in them.
    #[arg(long, short)]
    pub(crate) recursive: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Mkdir {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// The directories.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Also make those that they are in; do nothing about those that are there.
    #[arg(long, short)]
    pub(crate) parents: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Du {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// The name (default: the root).
    pub(crate) name: Option<String>,
    /// Only the sum.
    #[arg(long, short)]
    pub(crate) summarize: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Find {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// Where to look (default: the root).
    pub(crate) directory: Option<String>,
    /// Only what the last part of the name fits this: * for any characters, ? for one, [a-z].
    #[arg(long, value_name = "GLOB")]
    pub(crate) name: Option<String>,
    /// Only files, or only directories.
    #[arg(long = "type", value_name = "KIND")]
    pub(crate) kind: Option<Kind>,
    /// Only files of at least this size.
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) min_size: Option<u64>,
    /// Only files of at most this size.
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) max_size: Option<u64>,
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// A file.
    #[value(alias = "f")]
    File,
    /// A directory.
    #[value(alias = "d")]
    Directory,
}
