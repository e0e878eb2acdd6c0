//! Arguments of the command line.

mod bench;
mod cases;
mod client_cache;
mod command;
mod compute;
mod demo;
mod files;
mod hints;
mod instance;
mod mounts;
pub(crate) mod pages;
mod programs;
mod record;
mod reproduce;
mod run;
mod select;
mod servers;
mod sim;
mod traces;
mod value_parsers;

pub(crate) use bench::{Bench, BenchCommand, Tops};
pub(crate) use command::{Arguments, Command, Pages};
pub(crate) use compute::Compute;
pub(crate) use demo::Demo;
pub(crate) use files::{
    Cat, Cp, Du, Find, Get, Kind, Layout, LayoutGet, LayoutSet, Ls, MaybeNamed, Mkdir, Mv, Named,
    Put, Rm,
};
pub(crate) use hints::{Explain, Hints, HintsCommand};
pub(crate) use instance::InstanceOnly;
pub(crate) use mounts::{Mount, Unmount};
pub(crate) use programs::{Replay, WhatIf};
pub(crate) use record::Record;
pub(crate) use reproduce::Reproduce;
pub(crate) use run::Run;
pub(crate) use select::{Select, SelectFormat};
pub(crate) use servers::{ALL, Doctor, Hosts, Serve, Start, Status, Stop};
pub(crate) use sim::{Calibrate, Demerit, Sim, SimBase, SimCommand, SimProtection};
pub(crate) use traces::{
    ExportFormat, TraceBtio, TraceBtioClass, TraceBtioMode, TraceExport, TraceImport, TraceInfo,
    TraceLu, TracePattern, Traces,
};
