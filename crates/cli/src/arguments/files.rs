//! What can be said about files and directories.

use super::instance::InstanceOnly;
use crate::value_parsers::{count, either};
use clap::{Args, Subcommand, ValueEnum};
use interface::{Declared, Replacement, parse_size as size};
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
    /// Bytes of a block (default: what `layout` says of the directory, else 1MiB).
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) block: Option<u64>,
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
    /// Do not compare checksums of what the servers hold with what was copied.
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Bytes of a block of new files in the instance (default: what `layout` says of their
    /// directory, else 1MiB).
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) block: Option<u64>,
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

/// How files lie on servers, and how servers buffer them.
#[derive(Subcommand, Debug)]
pub(crate) enum Layout {
    /// Show how a file lies, or how new files in a directory are made.
    Get(LayoutGet),
    /// Say how new files in a directory are made; files that are there stay as they are.
    Set(LayoutSet),
}

#[derive(Args, Debug)]
pub(crate) struct LayoutGet {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// The name (default: the root).
    pub(crate) name: Option<String>,
    /// Of a file: also where each of its first blocks lies, so many of them.
    #[arg(long, value_name = "COUNT", default_value = "0")]
    pub(crate) blocks: u64,
}

#[derive(Args, Debug)]
pub(crate) struct LayoutSet {
    #[command(flatten)]
    pub(crate) which: InstanceOnly,
    /// The directory; / for the root. What is not said goes back to what is usual.
    pub(crate) name: String,
    /// Bytes of a block.
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) block: Option<u64>,
    /// The most servers of one file.
    #[arg(long, value_parser = count)]
    pub(crate) servers: Option<u32>,
    /// The servers that files may lie on, by number, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "SERVERS")]
    pub(crate) pool: Vec<u32>,
    /// The server of each of the first blocks of a file, by number, separated by commas; then it
    /// begins again: 0,0,1 puts two blocks out of three on server 0.
    #[arg(long, value_delimiter = ',', value_name = "SERVERS")]
    #[arg(conflicts_with_all = ["pool", "servers"])]
    pub(crate) map: Vec<u32>,
    #[arg(long, default_value = "unknown", value_name = "ACCESS", help = format!(
        "Declared access of the files' users: {}",
        either(Declared::WORDS),
    ))]
    pub(crate) declare: Declared,
    #[arg(long, value_name = "POLICY", help = format!(
        "Replacement policy, which chooses the block that is evicted first from a full cache: {}, \
         or custom:NAME of the servers' program (default: what suits --declare)",
        Replacement::WORDS.join(", "),
    ))]
    pub(crate) replacement: Option<Replacement>,
    /// Blocks of one file that others cannot drive out of a server's cache.
    #[arg(long, default_value = "0", value_name = "COUNT")]
    pub(crate) min_blocks: u32,
    /// Blocks of one file that a server's cache holds at most (0: as many as there is room for).
    #[arg(long, default_value = "0", value_name = "COUNT")]
    pub(crate) max_blocks: u32,
}
