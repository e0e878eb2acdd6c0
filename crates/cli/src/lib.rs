//! The `unisono` command: parses, calls `client`, `cluster`, `simulate`,
//! `measure` and `experiments`, presents.
//!
//! A program that brings replacement policies along, or functions for selections of records, is
//! this command with [`main_with`]; see `examples/own_policy.rs`, `examples/own_function.rs` and
//! `examples/own_operator.rs`.
//! One that brings disk models or networks along is this command with [`main_with_models`].
//!
//! Results go to standard output, everything else to standard error. Exit codes are those of
//! [`interface::ExitCode`], and 130 after an interruption. `run` and `record` end with that of
//! their program.

mod arguments;
mod files;
mod instances;
mod measurements;
mod output;
mod programs;
mod simulation;
mod traces;

use arguments::{Arguments, Command, pages};
use clap::Parser;
use clap::error::ErrorKind;
use client::Instance;
use files::{copies, layout, names, scrub, select};
use instances::{mounts, servers, space, stops};
use interface::{Extensions, UserError};
use measurements::{bench, demo, replay};
use output::{origin, present};
use programs::{hints, record, run};
use simulate::OwnModels;
use simulation::{reproduce, sim, what_if};

/// Runs the command with the words after the program's name. Its servers, also those that it
/// starts, offer these extensions, and its simulations these replacement policies besides the
/// built-in ones.
pub fn main_with(extensions: impl Into<Extensions>) -> std::process::ExitCode {
    main_with_models(extensions.into(), OwnModels::default())
}

/// Runs the command as [`main_with`] does. Its simulations offer these disk models and networks
/// besides the built-in ones.
pub fn main_with_models(extensions: Extensions, models: OwnModels) -> std::process::ExitCode {
    let extensions = with_modules(extensions);
    let ended = match Arguments::try_parse() {
        Ok(arguments) => carry_out(arguments, extensions, &models),
        Err(error) if error.use_stderr() => Err(present::usage_error(&error)),
        Err(help_or_version) => {
            // The reader may be gone.
            let _ = help_or_version.print();
            match help_or_version.kind() {
                ErrorKind::DisplayVersion => present::lines(origin::lines()).map(|()| 0),
                _ => Ok(0),
            }
        }
    };
    match ended {
        Ok(code) => std::process::ExitCode::from(code),
        Err(error) => {
            present::note(&error.to_string());
            std::process::ExitCode::from(error.code as u8)
        }
    }
}

/// Adds the compiler of modules that users send, if the program has none of its own.
fn with_modules(extensions: Extensions) -> Extensions {
    #[cfg(feature = "modules")]
    let extensions = {
        let compiler = || std::sync::Arc::new(sandbox::Modules::default()) as _;
        let modules = extensions.modules.or_else(|| Some(compiler()));
        Extensions { modules, ..extensions }
    };
    extensions
}

/// Carries out a command. Returns its exit code.
fn carry_out(
    arguments: Arguments,
    extensions: Extensions,
    models: &OwnModels,
) -> Result<u8, UserError> {
    interface::begin_log()?;
    let done: Result<(), UserError> = match arguments.command {
        Command::Run(program) => return run::run(&program),
        Command::Record(program) => return record::run(&program),
        Command::Start(start) => servers::start(&start),
        Command::Stop(stop) => stops::stop(&stop),
        Command::Status(it) => servers::status(&it.which, &it.what),
        Command::Doctor(doctor) => servers::doctor(&doctor),
        Command::Put(put) => copies::put(&put.which, &put.what),
        Command::Get(get) => copies::get(&get.which, &get.what),
        Command::Cp(cp) => copies::copy(&cp.which, &cp.what),
        Command::Cat(cat) => copies::cat(&cat.which, &cat.what),
        Command::Mv(mv) => names::rename(&mv.which, &mv.what),
        Command::Ls(ls) => names::list(&ls.which, &ls.what),
        Command::Tree(tree) => names::tree(&tree.which, &tree.what),
        Command::Find(find) => names::find(&find.which, &find.what),
        Command::Stat(stat) => names::stat(&stat.which, &stat.what),
        Command::Mkdir(mkdir) => names::make_directories(&mkdir.which, &mkdir.what),
        Command::Rm(remove) => names::remove(&remove.which, &remove.what),
        Command::Du(du) => names::usage(&du.which, &du.what),
        Command::Scrub(scrub) => scrub::run(&scrub.which, &scrub.what),
        Command::Select(select) => select::run(&select.which, &select.what),
        Command::Layout(layout) => layout::run(&layout),
        Command::Df(df) => space::show(&df.which),
        Command::Mount(mount) => mounts::mount(&mount.which, &mount.what),
        Command::Unmount(unmount) => mounts::unmount(&unmount),
        Command::MountHold(mount) => mounts::hold(&mount.which, &mount.what),
        Command::MountServe(mount) => mounts::serve(&mount.which, &mount.what),
        Command::Hints(which) => hints::run(&which),
        Command::Bench(bench) => bench::run(&bench),
        Command::Sim(sim) => sim::run(&sim, &extensions.policies, models),
        Command::Replay(replay) => replay::run(&replay),
        Command::WhatIf(what_if) => what_if::run(&what_if, &extensions.policies, models),
        Command::Trace(command) => traces::run(&command),
        Command::Reproduce(reproduce) => reproduce::run(&reproduce),
        Command::Demo(demo) => demo::run(&demo),
        Command::Serve(serve) => servers::serve(&serve, extensions),
        Command::ServeRemote(_) => cluster::serve_remote(extensions),
        Command::Supervise(which) => cluster::supervise(&servers::instance(&which)),
        Command::RestartServers(which) => {
            cluster::restart_servers(&Instance::at(which.instance), which.refill)
        }
        Command::KeepMemory(which) => {
            cluster::keep_memory(&which.directory, which.outlasts_sigterm)
        }
        Command::Pages(which) => pages::run(&which),
        Command::BenchTopsClient => measure::tops_client(),
        Command::Rank => measure::run_rank(),
    };
    done.map(|()| 0)
}
