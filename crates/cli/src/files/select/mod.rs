//! `select`: finds records of a file that match, and writes them, or computes a number of them.

mod csv;
mod parquet_file;
mod sink;

use crate::arguments::{InstanceOnly, Select, SelectFormat};
use crate::instances::servers::instance;
use crate::output::format::plural;
use crate::output::present;
use client::{Blocks, Connection, Constant, Expression, Records, Reduced, Reduction};
use interface::{RecordType, UserError, condition_with, field_of, key_of, number_of, predicate_of};
use serde_json::{Value, json};
use sink::Sink;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of records that are in memory at a time.
const WINDOW_BYTES: usize = 16 << 20;

/// Bytes of a module that are read: more than it may have.
const MODULE_READ_MAX: u64 = 1 << 24;

pub(crate) fn run(which: &InstanceOnly, arguments: &Select) -> Result<(), UserError> {
    let connection = Connection::open(&instance(which))?;
    let file = connection.open_file(&client::instance_name(&arguments.name))?;
    let record_type = arguments.record_type.as_deref();
    let typed = file.typed_records(record_type, arguments.offset, arguments.records)?;
    let (grid, records, count) = (typed.grid(), typed.records, typed.count);
    if !arguments.summarise.is_empty() {
        let fields = arguments.summarise.iter().map(|field| field_of(&records, field));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        return file.summarise_records(None, grid, fields);
    }
    let condition = match &arguments.condition {
        Some(text) => predicate_of(&records, text)?,
        None => Expression::always(),
    };
    let module = arguments.module.as_deref().map(read_module).transpose()?;
    let condition = condition_with(condition, arguments.operator.clone(), module)?;
    if let Some(reduction) = reduction_of(&records, arguments)? {
        let (reduced, blocks) = file.reduce_records(None, grid, condition, reduction)?;
        return show_number(which, arguments, &reduced, blocks);
    }
    let format = arguments.format.unwrap_or_else(|| format_of(arguments.output.as_deref()));
    let (written, blocks) = match (&arguments.by, &arguments.output) {
        (None, None) => {
            let found = file.find_records(None, grid, condition, client::Share::Even)?;
            // Nothing but records goes to standard output.
            return write(&found, &records, Sink::standard_output(format)?);
        }
        (None, Some(path)) => {
            let found = file.find_records(None, grid, condition, client::Share::Even)?;
            write(&found, &records, Sink::create(path, format)?)?;
            (vec![(path.clone(), found.count())], found.blocks())
        }
        (Some(key), output) => {
            let key = key_of(&records, key)?;
            let (Some(path), Some(parts)) = (output, arguments.parts) else {
                return Err(UserError::usage(
                    "cannot divide records",
                    "--by writes a file for each part",
                    "give --parts N and --output FILE",
                ));
            };
            let found = file.divide_records(grid, condition, key, parts)?;
            let mut written = Vec::new();
            for (number, found) in found.iter().enumerate() {
                let path = numbered(path, number);
                write(found, &records, Sink::create(&path, format)?)?;
                written.push((path, found.count()));
            }
            (written, found.first().map_or_else(Blocks::default, Records::blocks))
        }
    };
    show_files(which, (count, blocks), &written)
}

/// Reads a module from a local file, as far as its size is possible.
fn read_module(path: &Path) -> Result<Vec<u8>, UserError> {
    let mut module = Vec::new();
    let opened = File::open(path);
    let read = opened.and_then(|file| file.take(MODULE_READ_MAX).read_to_end(&mut module));
    match read {
        Ok(_) => Ok(module),
        Err(error) => Err(UserError::usage(
            format!("cannot read the module {}", path.display()),
            error.to_string(),
            "give a local file that you may read",
        )),
    }
}

/// Returns the number that the arguments ask for, if they do.
fn reduction_of(records: &RecordType, arguments: &Select) -> Result<Option<Reduction>, UserError> {
    let value = |text: &String| number_of(records, text);
    Ok(if arguments.count {
        Some(Reduction::Count)
    } else if let Some(text) = &arguments.minimum {
        Some(Reduction::Minimum(value(text)?))
    } else if let Some(text) = &arguments.maximum {
        Some(Reduction::Maximum(value(text)?))
    } else if let Some(text) = &arguments.sum {
        Some(Reduction::Sum(value(text)?))
    } else if let Some(text) = &arguments.histogram {
        Some(Reduction::Histogram { of: value(text)?, edges: arguments.edges.clone() })
    } else {
        None
    })
}

/// Returns the form that a file has by its name.
fn format_of(output: Option<&Path>) -> SelectFormat {
    let Some(path) = output else { return SelectFormat::Csv };
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("csv") => SelectFormat::Csv,
        Some("npy") => SelectFormat::Npy,
        Some("parquet") => SelectFormat::Parquet,
        _ => SelectFormat::Raw,
    }
}

/// Returns the path of a part: `events.3.csv` for `events.csv`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    match path.extension() {
        Some(extension) => path.with_extension(format!("{number}.{}", extension.to_string_lossy())),
        None => path.with_extension(number.to_string()),
    }
}

/// Writes records, a window at a time.
fn write(found: &Records, records: &RecordType, mut sink: Sink<'_>) -> Result<(), UserError> {
    let record_bytes = records.record_bytes() as usize;
    let room = (WINDOW_BYTES / record_bytes).max(1).min(found.count() as usize);
    let mut window = vec![0; room * record_bytes];
    sink.begin(records, found.count())?;
    let mut first = 0;
    while first < found.count() {
        let read = found.read_from(first, &mut window)?;
        if read == 0 || !sink.write(records, &window[..read as usize * record_bytes])? {
            break;
        }
        first += read;
    }
    sink.end()
}

fn show_files(
    which: &InstanceOnly,
    (of, blocks): (u64, Blocks),
    written: &[(PathBuf, u64)],
) -> Result<(), UserError> {
    if which.json {
        let files = written.iter().map(|(path, count)| json!({ "file": path, "records": count }));
        let files: Vec<Value> = files.collect();
        return present::json(&json!({
            "schema": "unisono.select/1", "of_records": of, "files": files,
            "blocks_read": blocks.read, "blocks_skipped": blocks.skipped,
        }));
    }
    present::lines(
        written.iter().map(|(path, count)| {
            format!("{}: {} of {of}", path.display(), plural(*count, "record"))
        }),
    )
}

fn show_number(
    which: &InstanceOnly,
    arguments: &Select,
    reduced: &Reduced,
    blocks: Blocks,
) -> Result<(), UserError> {
    let edges = &arguments.edges;
    if !which.json {
        return match reduced {
            Reduced::Histogram(counts) => {
                let bins = edges.windows(2).zip(counts);
                present::lines(bins.map(|(bin, count)| {
                    format!("{},{},{count}", csv::float(bin[0]), csv::float(bin[1]))
                }))
            }
            other => present::line(&text_of(other)),
        };
    }
    let value = match reduced {
        Reduced::Count(count) => json!(count),
        Reduced::Histogram(counts) => json!({ "edges": edges, "counts": counts }),
        Reduced::Minimum(None) | Reduced::Maximum(None) => Value::Null,
        Reduced::IntegerSum(sum) if i64::try_from(*sum).is_err() => {
            // Readers of JSON would round it.
            Value::String(sum.to_string())
        }
        other => {
            // A number of JSON if it is one there; NaN and infinities are texts.
            let text = text_of(other);
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
    };
    present::json(&json!({
        "schema": "unisono.select/1", "value": value,
        "blocks_read": blocks.read, "blocks_skipped": blocks.skipped,
    }))
}

fn text_of(reduced: &Reduced) -> String {
    match reduced {
        Reduced::Count(count) => count.to_string(),
        Reduced::Minimum(None) | Reduced::Maximum(None) => "none".to_owned(),
        Reduced::Minimum(Some(value)) | Reduced::Maximum(Some(value)) => match value {
            Constant::Signed(value) => value.to_string(),
            Constant::Unsigned(value) => value.to_string(),
            Constant::Float(value) => csv::float(*value),
        },
        Reduced::IntegerSum(sum) => sum.to_string(),
        Reduced::FloatSum(sum, _) => csv::float(*sum),
        Reduced::Histogram(_) => String::new(),
    }
}
