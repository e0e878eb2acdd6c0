//! A trace as a Parquet file: the columns of the table, with their types.
//!
//! Text is UTF-8, numbers are 64-bit integers; every value may be null. Rows are in groups, so that
//! memory does not grow with the trace.

use super::table::{COLUMNS, Column, Row, Values, begun_ns, part_sizes, rows};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::fs::File;
use std::io;
use std::sync::Arc;
use trace::Trace;

/// Largest number of rows of a group.
const GROUP_ROWS_MAX: usize = 1 << 18;

/// Writes the file. Returns the number of rows.
pub(super) fn write(trace: &Trace, file: File) -> io::Result<u64> {
    write_rows(trace, file).map_err(io::Error::other)
}

fn write_rows(trace: &Trace, file: File) -> Result<u64, ParquetError> {
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(file, schema()?, properties)?;
    let begun_ns = begun_ns(&trace.ranks);
    let mut count = 0;
    for (rank, trace) in (0_u32..).zip(&trace.ranks) {
        let parts = part_sizes(trace);
        let mut rows = rows(rank, trace, &parts, begun_ns);
        loop {
            let group: Vec<Row<'_>> = rows.by_ref().take(GROUP_ROWS_MAX).collect();
            if group.is_empty() {
                break;
            }
            count += group.len() as u64;
            write_group(&mut writer, &group)?;
        }
    }
    writer.close()?;
    Ok(count)
}

fn write_group(
    writer: &mut SerializedFileWriter<File>,
    rows: &[Row<'_>],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for Column { values, .. } in &COLUMNS {
        let Some(mut column) = group.next_column()? else { break };
        match values {
            Values::Text(of) => {
                let text = |row| of(row).map(|text| ByteArray::from(text.as_str()));
                write_column::<ByteArrayType>(&mut column, rows.iter().map(text))?;
            }
            Values::Integer(of) => write_column::<Int64Type>(&mut column, rows.iter().map(of))?,
            Values::Flag(of) => write_column::<BoolType>(&mut column, rows.iter().map(of))?,
        }
        column.close()?;
    }
    group.close()?;
    Ok(())
}

/// Writes the present values, and for each row the definition level that says if it has one.
fn write_column<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = values.collect();
    let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let present: Vec<T::T> = values.into_iter().flatten().collect();
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    Ok(())
}

fn schema() -> Result<TypePtr, ParquetError> {
    let column = |column: &Column| {
        let (physical, logical) = match column.values {
            Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Values::Integer(_) => (Physical::INT64, None),
            Values::Flag(_) => (Physical::BOOLEAN, None),
        };
        let builder = Type::primitive_type_builder(column.name, physical);
        let builder = builder.with_logical_type(logical).with_repetition(Repetition::OPTIONAL);
        builder.build().map(Arc::new)
    };
    let columns = COLUMNS.iter().map(column).collect::<Result<_, _>>()?;
    Type::group_type_builder("calls").with_fields(columns).build().map(Arc::new)
}
