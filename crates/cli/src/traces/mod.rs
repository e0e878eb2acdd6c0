//! `trace`: shows, exports and imports traces of programs.

mod info;
mod parquet_file;
mod perfetto;
mod table;

use crate::arguments::{
    ExportFormat, TraceBtio, TraceBtioClass, TraceBtioMode, TraceExport, TraceImport, TraceLu,
    TracePattern, Traces,
};
use crate::output::file::{OutputFile, cannot_write};
use crate::output::present;
use interface::{ErrorKind, UserError};
use std::fs::File;
use std::io::BufReader;
use trace::{BtioClass, BtioMode, BtioProgram, LuProgram, PatternProgram, Trace};

pub(crate) fn run(command: &Traces) -> Result<(), UserError> {
    match command {
        Traces::Info(arguments) => info::run(arguments),
        Traces::Export(arguments) => export(arguments),
        Traces::Pattern(arguments) => pattern(arguments),
        Traces::Btio(arguments) => btio(arguments),
        Traces::Lu(arguments) => lu(arguments),
        Traces::Import(arguments) => import(arguments),
    }
}

fn export(arguments: &TraceExport) -> Result<(), UserError> {
    let trace = Trace::open(&arguments.trace)?;
    let output = OutputFile::create(&arguments.output)?;
    let failed = |error| cannot_write(&arguments.output, &error);
    let file = output.file.writer().map_err(failed)?;
    let written = match arguments.format {
        ExportFormat::Parquet => parquet_file::write(&trace, file),
        ExportFormat::Perfetto => perfetto::write(&trace, file),
    };
    let calls = written.map_err(failed)?;
    output.finish(&format!(": {calls} calls"))?;
    if arguments.format == ExportFormat::Perfetto && calls > perfetto::CALLS_SHOWN {
        present::note(&format!(
            "note: viewers are slow with more than {} calls; Parquet files have no such limit",
            perfetto::CALLS_SHOWN
        ));
    }
    let cut: Vec<String> = info::cut_ranks(&trace).map(|rank| rank.to_string()).collect();
    if !cut.is_empty() {
        present::note(&format!("note: cut, so without their last calls: ranks {}", cut.join(", ")));
    }
    Ok(())
}

fn pattern(arguments: &TracePattern) -> Result<(), UserError> {
    let pattern = arguments.pattern.parse::<interface::Pattern>().map_err(|error| {
        UserError::usage(
            format!("there is no pattern {:?}", arguments.pattern),
            error.to_string(),
            "patterns are named as in the papers, such as rbc and wcn",
        )
    })?;
    let program = PatternProgram {
        pattern,
        record_bytes: arguments.record,
        file_bytes: arguments.size,
        ranks: arguments.ranks,
        files: arguments.files,
        repeat: arguments.repeat,
        computed_ns: arguments.compute.saturating_mul(1_000_000),
        is_independent: arguments.independent,
        sync: arguments.sync,
    };
    program.write(&arguments.output)?;
    present::note(&format!("wrote {}", arguments.output.display()));
    Ok(())
}

fn btio(arguments: &TraceBtio) -> Result<(), UserError> {
    let mode = match arguments.mode {
        TraceBtioMode::Full => BtioMode::Full,
        TraceBtioMode::Simple => BtioMode::Simple,
    };
    let class = match arguments.class {
        TraceBtioClass::S => BtioClass::S,
        TraceBtioClass::W => BtioClass::W,
        TraceBtioClass::A => BtioClass::A,
        TraceBtioClass::B => BtioClass::B,
        TraceBtioClass::C => BtioClass::C,
        TraceBtioClass::D => BtioClass::D,
    };
    let program = BtioProgram {
        class,
        mode,
        ranks: arguments.ranks,
        dumps: arguments.dumps.unwrap_or(class.dumps()),
        computed_ns: arguments.compute.saturating_mul(1_000_000),
        sync: arguments.sync,
    };
    program.write(&arguments.output)?;
    present::note(&format!("wrote {}", arguments.output.display()));
    Ok(())
}

fn lu(arguments: &TraceLu) -> Result<(), UserError> {
    let program = LuProgram {
        order: arguments.order.into(),
        slab: arguments.slab.into(),
        ranks: arguments.ranks,
        flops_per_us: arguments.mflops.into(),
        is_by_rows: arguments.rows,
        is_sequential: arguments.sequential,
    };
    program.write(&arguments.output)?;
    present::note(&format!("wrote {}", arguments.output.display()));
    Ok(())
}

fn import(arguments: &TraceImport) -> Result<(), UserError> {
    let name = arguments.log.display().to_string();
    let log = File::open(&arguments.log).map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::LocalFile,
        };
        let help = "name a file with the output of darshan-dxt-parser";
        UserError::of_kind(kind, format!("cannot read {name}"), error.to_string(), help)
    })?;
    let imported = trace::import_dxt(&name, BufReader::new(log), &arguments.output)?;
    let (output, ranks) = (arguments.output.display(), imported.ranks);
    present::note(&format!("wrote {output}: {} calls of {ranks} ranks", imported.segments));
    if imported.left_out > 0 {
        present::note(&format!(
            "note: {} calls of POSIX were left out: calls of MPI-IO of the same files contain them",
            imported.left_out
        ));
    }
    if imported.without_offset > 0 {
        present::note(&format!(
            "note: {} calls of MPI-IO were left out: the log has no offsets of them, which Darshan \
             records since release 3.2",
            imported.without_offset
        ));
    }
    if imported.is_incomplete {
        present::note("note: the log is incomplete: Darshan had no memory for all calls");
    }
    present::note(
        "note: a log has no messages and no views: a replay is a bound and not a prediction",
    );
    Ok(())
}
