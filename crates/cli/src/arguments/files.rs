//! Arguments of the commands on files and directories.

use super::instance::OnInstance;
use super::value_parsers::{count, either};
use clap::{ArgAction, Args, Subcommand, ValueEnum};
use interface::{Declared, Protection, Replacement, parse_size as size};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Put {
    /// Local file, or - for standard input.
    pub(crate) local: PathBuf,
    /// Name in the instance (default: the local file's name), or a directory with a / at its end.
    /// Missing directories are created.
    pub(crate) name: Option<String>,
    /// Block size (default: the directory's, as set with `layout`, else 1MiB).
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) block: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct Get {
    /// Name of the file in the instance.
    pub(crate) name: String,
    /// Local file, or - for standard output (default: the last part of the name, in this
    /// directory).
    pub(crate) local: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Cp {
    /// Sources: local paths, or unisono://NAME in the instance, also with * ? [a-z]. - is standard
    /// input.
    #[arg(required = true, value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Target: a local path, or unisono://NAME. If it is a directory, the sources are copied into
    /// it. Existing files are replaced. - is standard output.
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// Copy directories with everything below them.
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Give the copies the times of the last change of their sources.
    #[arg(long, short)]
    pub(crate) preserve: bool,
    /// Skip the comparison of checksums between the data copied and the data on the servers.
    #[arg(long)]
    pub(crate) no_verify: bool,
    /// Block size of new files in the instance (default: the directory's, as set with `layout`,
    /// else 1MiB).
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) block: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct Mv {
    /// Files or directories to move, in the instance, also with * ? [a-z].
    #[arg(required = true, value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// New name, or a directory to move the sources into. An existing file is replaced.
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
}

/// Options of commands in which -h is not the help, as in a shell.
#[derive(Args, Debug)]
pub(crate) struct Sizes {
    /// Show sizes in units, such as 3.5 MiB.
    #[arg(long, short = 'h')]
    pub(crate) human_readable: bool,
    /// Print help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Ls {
    #[command(flatten)]
    pub(crate) sizes: Sizes,
    /// Directories or files to list, also with * ? [a-z] (default: the root).
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Also show names that begin with a dot.
    #[arg(long, short)]
    pub(crate) all: bool,
    /// Show owner, time and stripe.
    #[arg(long, short)]
    pub(crate) long: bool,
    /// List directories recursively.
    #[arg(long, short = 'R')]
    pub(crate) recursive: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Named {
    /// Name of the file or directory.
    pub(crate) name: String,
}

#[derive(Args, Debug)]
pub(crate) struct MaybeNamed {
    /// Name of the file or directory (default: the root).
    pub(crate) name: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Cat {
    /// Names of the files, also with * ? [a-z].
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct Rm {
    /// Names of the files or directories, also with * ? [a-z].
    #[arg(required_unless_present = "force", value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Remove directories with everything below them.
    #[arg(long, short)]
    pub(crate) recursive: bool,
    /// Ignore names that do not exist.
    #[arg(long, short)]
    pub(crate) force: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Mkdir {
    /// Names of the directories.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Also make missing parents. An existing directory is not an error.
    #[arg(long, short)]
    pub(crate) parents: bool,
}

#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Df {
    #[command(flatten)]
    pub(crate) sizes: AlwaysInUnits,
}

/// The options [`Sizes`] of commands that always show sizes in units.
#[derive(Args, Debug)]
pub(crate) struct AlwaysInUnits {
    /// Show sizes in units, as without this option.
    #[arg(long, short = 'h')]
    human_readable: bool,
    /// Print help.
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Du {
    #[command(flatten)]
    pub(crate) sizes: AlwaysInUnits,
    /// Name of the file or directory (default: the root).
    pub(crate) name: Option<String>,
    /// Show only the sum.
    #[arg(long, short)]
    pub(crate) summarize: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Find {
    /// Directory to search (default: the root).
    pub(crate) directory: Option<String>,
    /// Only names whose last part matches this pattern: * for any characters, ? for one, [a-z] for
    /// one of several.
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
    /// Only entries that were changed after this local file, or after unisono://NAME.
    #[arg(long, value_name = "FILE")]
    pub(crate) newer: Option<String>,
}

/// Kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Kind {
    /// A file.
    #[value(alias = "f")]
    File,
    /// A directory.
    #[value(alias = "d")]
    Directory,
}

/// Show or set the placement of files on servers, and their buffering there.
#[derive(Subcommand, Debug)]
pub(crate) enum Layout {
    /// Show the layout of a file, or the defaults of a directory for new files.
    Get(OnInstance<LayoutGet>),
    /// Set the defaults of a directory for new files, or the protection of a file. Existing files
    /// keep their layout.
    Set(OnInstance<LayoutSet>),
}

#[derive(Args, Debug)]
pub(crate) struct LayoutGet {
    /// Name of the file or directory (default: the root).
    pub(crate) name: Option<String>,
    /// Also show the location of this many blocks, from the first on (files only).
    #[arg(long, value_name = "COUNT", default_value = "0")]
    pub(crate) blocks: u64,
}

#[derive(Args, Debug)]
pub(crate) struct LayoutSet {
    /// Name of the directory; / for the root. Options that are left out return to their defaults.
    /// Or name of a file, with --protect alone.
    pub(crate) name: String,
    /// Block size.
    #[arg(long, value_parser = size, value_name = "SIZE")]
    pub(crate) block: Option<u64>,
    /// Maximum number of servers of one file.
    #[arg(long, value_parser = count)]
    pub(crate) servers: Option<u32>,
    /// Numbers of the servers that may hold files, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "SERVERS")]
    pub(crate) pool: Vec<u32>,
    /// Number of the server of each block of a file, separated by commas. The list repeats: 0,0,1
    /// puts two blocks out of three on server 0.
    #[arg(long, value_delimiter = ',', value_name = "SERVERS")]
    #[arg(conflicts_with_all = ["pool", "servers"])]
    pub(crate) map: Vec<u32>,
    #[arg(long, default_value = "unknown", value_name = "ACCESS", help = format!(
        "Declared access of the files' users: {}",
        either(Declared::WORDS),
    ))]
    pub(crate) declare: Declared,
    #[arg(long, value_name = "POLICY", help = format!(
        "Replacement policy, which selects the block to evict from a full cache: {}, or \
         custom:NAME for a policy of the servers' program (default: the policy that suits \
         --declare)",
        Replacement::WORDS.join(", "),
    ))]
    pub(crate) replacement: Option<Replacement>,
    /// Blocks of one file that other files cannot evict from a server's cache.
    #[arg(long, default_value = "0", value_name = "COUNT")]
    pub(crate) min_blocks: u32,
    /// Maximum number of blocks of one file in a server's cache (0: limited only by the cache).
    #[arg(long, default_value = "0", value_name = "COUNT")]
    pub(crate) max_blocks: u32,
    /// Protection of new files, or of the file, against the loss of a server: none, mirror (the
    /// next server of a file has a copy of what a server holds), or parity (each row of blocks has
    /// a parity block on a further server; parity:4 has rows of 4 blocks).
    #[arg(long, value_name = "PROTECTION")]
    pub(crate) protect: Option<Protection>,
}
