//! Files, and the standard output, that records are written to.

use super::csv;
use super::parquet_file::ParquetFile;
use crate::arguments::SelectFormat;
use crate::output::file::{OutputFile, cannot_write};
use interface::{ExitCode, RecordType, UserError, npy_header};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

/// Target of records. The records that it gets must be whole.
pub(super) struct Sink<'a> {
    format: SelectFormat,
    target: Target<'a>,
}

enum Target<'a> {
    Output(BufWriter<io::Stdout>),
    File(OutputFile<'a>, BufWriter<File>),
    Parquet(OutputFile<'a>, Option<ParquetFile>),
}

impl<'a> Sink<'a> {
    pub(super) fn standard_output(format: SelectFormat) -> Result<Self, UserError> {
        if format == SelectFormat::Parquet {
            return Err(UserError::usage(
                "cannot write Parquet to the standard output",
                "such a file ends with what is known at its end only",
                "give --output FILE",
            ));
        }
        Ok(Self { format, target: Target::Output(BufWriter::new(io::stdout())) })
    }

    pub(super) fn create(path: &'a Path, format: SelectFormat) -> Result<Self, UserError> {
        let output = OutputFile::create(path)?;
        let target = match format {
            SelectFormat::Parquet => Target::Parquet(output, None),
            _ => {
                let writer = output.file.writer().and_then(|writer| writer.try_clone());
                let writer = writer.map_err(|error| cannot_write(path, &error))?;
                Target::File(output, BufWriter::new(writer))
            }
        };
        Ok(Self { format, target })
    }

    /// Writes what comes before `count` records.
    pub(super) fn begin(&mut self, records: &RecordType, count: u64) -> Result<(), UserError> {
        let head = match self.format {
            SelectFormat::Csv => csv::header(records).into_bytes(),
            SelectFormat::Npy => npy_header(records, count),
            SelectFormat::Raw => Vec::new(),
            SelectFormat::Parquet => {
                if let Target::Parquet(output, file) = &mut self.target {
                    let made = output.file.writer().and_then(|writer| writer.try_clone());
                    let made = made.and_then(|writer| ParquetFile::create(writer, records));
                    *file = Some(made.map_err(|error| cannot_write(output.path, &error))?);
                }
                return Ok(());
            }
        };
        self.put(&head).map(|_| ())
    }

    /// Writes some records. Returns false if nobody reads them.
    pub(super) fn write(&mut self, records: &RecordType, bytes: &[u8]) -> Result<bool, UserError> {
        match (&self.format, &mut self.target) {
            (_, Target::Parquet(output, Some(file))) => {
                let written = file.write(records, bytes);
                written.map(|()| true).map_err(|error| cannot_write(output.path, &error))
            }
            (SelectFormat::Csv, _) => {
                let text = csv::lines(records, bytes);
                self.put(text.as_bytes())
            }
            _ => self.put(bytes),
        }
    }

    fn put(&mut self, bytes: &[u8]) -> Result<bool, UserError> {
        match &mut self.target {
            Target::Output(output) => at_output(output.write_all(bytes)),
            Target::File(output, file) => {
                let written = file.write_all(bytes);
                written.map(|()| true).map_err(|error| cannot_write(output.path, &error))
            }
            Target::Parquet(..) => Ok(true),
        }
    }

    pub(super) fn end(self) -> Result<(), UserError> {
        match self.target {
            Target::Output(mut output) => at_output(output.flush()).map(|_| ()),
            Target::File(output, mut file) => {
                file.flush().map_err(|error| cannot_write(output.path, &error))?;
                output.finish("")
            }
            Target::Parquet(output, file) => {
                let closed = file.map_or(Ok(()), ParquetFile::close);
                closed.map_err(|error| cannot_write(output.path, &error))?;
                output.finish("")
            }
        }
    }
}

/// Returns false if the reader of the standard output has gone, which is no failure.
fn at_output(written: io::Result<()>) -> Result<bool, UserError> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(UserError::new(
            ExitCode::Failed,
            "cannot write the records",
            error.to_string(),
            "check the file or pipe that standard output goes to",
        )),
    }
}
