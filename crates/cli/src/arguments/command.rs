//! The command line: one variant for each command.

use super::bench::Bench;
use super::demo::Demo;
use super::files::{Cat, Cp, Df, Du, Find, Get, Layout, Ls, MaybeNamed, Mkdir, Mv, Named, Put, Rm};
use super::hints::Hints;
use super::instance::{InstanceOnly, OnInstance};
use super::mounts::{Mount, Unmount};
use super::programs::{Replay, WhatIf};
use super::record::Record;
use super::reproduce::Reproduce;
use super::run::Run;
use super::select::Select;
use super::servers::{Doctor, KeepMemory, RestartServers, Serve, ServeRemote, Start, Status, Stop};
use super::sim::Sim;
use super::traces::Traces;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 failed, 2 usage, 3 no instance or server unreachable, 4 data check failed,
5 a collective did not complete at all clients, 6 out of space, 7 files not staged out, 130
interrupted. `run` and `record` end with the exit code of their program.
Sizes: 4096, 8KiB, 1MiB, 2GiB. Patterns to read: ra rn rb rc rnb rbb rbc rcn rcb rcc; to write: w
instead of r, except wa.";

/// A parallel file system whose servers direct collective transfers, and its simulated twin.
#[derive(Parser, Debug)]
#[command(name = "unisono", version, after_help = AFTER_HELP, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a program with servers of its own, then check its files and copy them out.
    Run(Box<Run>),
    /// Run an MPI program and record its calls in a trace.
    Record(Record),
    /// Start the servers of an instance, on this machine or on the hosts of a hostfile or job.
    Start(Start),
    /// Stop the servers of an instance. They first write back all dirty data.
    Stop(Stop),
    /// Show the servers of an instance, and how much of protected files is protected now.
    Status(OnInstance<Status>),
    /// Check this machine, the hosts of a hostfile or job, and an instance.
    Doctor(Doctor),
    /// Copy a local file into an instance.
    Put(OnInstance<Put>),
    /// Copy a file out of an instance.
    Get(OnInstance<Get>),
    /// Copy files and directories into an instance, out of it, or within it.
    Cp(OnInstance<Cp>),
    /// Move files and directories within an instance.
    Mv(OnInstance<Mv>),
    /// List a directory of an instance.
    Ls(OnInstance<Ls>),
    /// Draw the directories and files of an instance as a tree.
    Tree(OnInstance<MaybeNamed>),
    /// Find files and directories of an instance.
    Find(OnInstance<Find>),
    /// Show the metadata of a file or a directory, and how much of a file is protected now.
    Stat(OnInstance<Named>),
    /// Print files of an instance.
    Cat(OnInstance<Cat>),
    /// Make directories in an instance.
    Mkdir(OnInstance<Mkdir>),
    /// Remove files and directories of an instance.
    Rm(OnInstance<Rm>),
    /// Show the space that files of an instance use.
    Du(OnInstance<Du>),
    /// Read all that servers have of files, compare it with copies, and repair what is damaged.
    Scrub(OnInstance<MaybeNamed>),
    /// Select the records of a file that match a condition, or count them, at the servers.
    Select(OnInstance<Select>),
    /// Show or set the placement of files on servers, and their buffering there.
    #[command(subcommand)]
    Layout(Layout),
    /// Show the space on the disks of an instance.
    Df(OnInstance<Df>),
    /// Mount an instance on a directory, so that every program can use its files.
    Mount(OnInstance<Mount>),
    /// Unmount an instance from a directory.
    Unmount(Unmount),
    /// List the hints of MPI-IO, or say which of given ones would be in force.
    Hints(Hints),
    /// Measure real transfers and check every byte.
    Bench(Box<Bench>),
    /// Simulate transfers on a modelled machine.
    Sim(Box<Sim>),
    /// Carry a recorded program out on real servers, and measure it.
    Replay(Box<Replay>),
    /// Predict how long a recorded program takes on other machines, by simulation.
    WhatIf(Box<WhatIf>),
    /// Show, export or import traces of programs.
    #[command(subcommand)]
    Trace(Traces),
    /// Run published experiments on the simulated machine and compare with the published results.
    Reproduce(Reproduce),
    /// Write and read a real file with every strategy, here and on the simulated 1994 machine.
    Demo(Demo),
    /// A server process; started by `start`.
    #[command(hide = true)]
    Serve(Serve),
    /// A server process configured by its standard input; started by a launcher.
    #[command(name = "serve-told", hide = true)]
    ServeRemote(ServeRemote),
    /// The process that holds the launchers; started by `start`.
    #[command(name = "keep", hide = true)]
    Supervise(InstanceOnly),
    /// The process that starts lost servers again; started by `start`.
    #[command(hide = true)]
    RestartServers(RestartServers),
    /// The process that holds the memory of a server; started by the server.
    #[command(hide = true)]
    KeepMemory(KeepMemory),
    /// The process that holds a mount; started by `mount`.
    #[command(hide = true)]
    MountHold(OnInstance<Mount>),
    /// The process that serves a mount, until its standard input ends.
    #[command(hide = true)]
    MountServe(OnInstance<Mount>),
    /// Write the manual of the command and its completions; called by `scripts/install`.
    #[command(name = "write-pages", hide = true)]
    Pages(Pages),
    /// A client process of `bench tops`.
    #[command(hide = true)]
    BenchTopsClient,
    /// The process of a rank; started by `bench`, `replay` and `demo`.
    #[command(hide = true)]
    Rank,
}

#[derive(Args, Debug)]
pub(crate) struct Pages {
    /// Directory below which manuals and completions are, such as /usr/share.
    pub(crate) directory: PathBuf,
}
