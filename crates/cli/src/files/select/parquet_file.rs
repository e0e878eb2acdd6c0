//! Records as a Parquet file: a column for each element of a field, with its type.

use super::csv::{Column, Scalar, columns, scalar};
use interface::{FieldKind, Number, NumberKind, RecordType};
use parquet::basic::{IntType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};
use std::fs::File;
use std::io;
use std::sync::Arc;

/// A Parquet file that gets records.
pub(super) struct ParquetFile(SerializedFileWriter<File>);

impl ParquetFile {
    pub(super) fn create(file: File, records: &RecordType) -> io::Result<Self> {
        let properties = Arc::new(WriterProperties::builder().build());
        let schema = schema(records).map_err(io::Error::other)?;
        let writer = SerializedFileWriter::new(file, schema, properties);
        writer.map(Self).map_err(io::Error::other)
    }

    /// Writes records as a group of rows.
    pub(super) fn write(&mut self, records: &RecordType, bytes: &[u8]) -> io::Result<()> {
        let rows: Vec<&[u8]> = bytes.chunks_exact(records.record_bytes() as usize).collect();
        let mut written = || -> Result<(), ParquetError> {
            let mut group = self.0.next_row_group()?;
            for column in columns(records) {
                write_column(&mut group, &column, &rows)?;
            }
            group.close().map(|_| ())
        };
        written().map_err(io::Error::other)
    }

    pub(super) fn close(self) -> io::Result<()> {
        self.0.close().map(|_| ()).map_err(io::Error::other)
    }
}

/// Physical and logical type of a column.
fn type_of(kind: FieldKind) -> (Physical, Option<LogicalType>) {
    let integer =
        |bit_width, is_signed| Some(LogicalType::Integer(IntType { bit_width, is_signed }));
    let FieldKind::Number(Number { kind, .. }) = kind else {
        let is_text = matches!(kind, FieldKind::Text { .. } | FieldKind::WideText { .. });
        return (Physical::BYTE_ARRAY, is_text.then_some(LogicalType::String));
    };
    match kind {
        NumberKind::Bool => (Physical::BOOLEAN, None),
        NumberKind::I8 => (Physical::INT32, integer(8, true)),
        NumberKind::I16 => (Physical::INT32, integer(16, true)),
        NumberKind::I32 => (Physical::INT32, None),
        NumberKind::I64 => (Physical::INT64, None),
        NumberKind::U8 => (Physical::INT32, integer(8, false)),
        NumberKind::U16 => (Physical::INT32, integer(16, false)),
        NumberKind::U32 => (Physical::INT32, integer(32, false)),
        NumberKind::U64 => (Physical::INT64, integer(64, false)),
        NumberKind::F32 => (Physical::FLOAT, None),
        NumberKind::F64 => (Physical::DOUBLE, None),
    }
}

fn schema(records: &RecordType) -> Result<TypePtr, ParquetError> {
    let column = |column: Column<'_>| {
        let (physical, logical) = type_of(column.field.kind);
        let builder = Type::primitive_type_builder(&column.name, physical);
        let builder = builder.with_logical_type(logical).with_repetition(Repetition::REQUIRED);
        builder.build().map(Arc::new)
    };
    let fields = columns(records).into_iter().map(column).collect::<Result<_, _>>()?;
    Type::group_type_builder("records").with_fields(fields).build().map(Arc::new)
}

fn write_column(
    group: &mut SerializedRowGroupWriter<'_, File>,
    column: &Column<'_>,
    rows: &[&[u8]],
) -> Result<(), ParquetError> {
    let scalars = |number| rows.iter().map(move |row| scalar(number, column.bytes(row)));
    let FieldKind::Number(number) = column.field.kind else {
        let bytes = rows.iter().map(|row| match column.text(row) {
            Some(text) => ByteArray::from(text.into_bytes()),
            None => ByteArray::from(column.bytes(row).to_vec()),
        });
        return put::<ByteArrayType>(group, bytes.collect());
    };
    let integers = || {
        scalars(number).map(|value| match value {
            Scalar::Signed(value) => value,
            Scalar::Unsigned(value) => value as i64,
            Scalar::Truth(_) | Scalar::Single(_) | Scalar::Double(_) => 0,
        })
    };
    match type_of(column.field.kind).0 {
        Physical::BOOLEAN => {
            let truths = scalars(number).map(|value| value == Scalar::Truth(true));
            put::<BoolType>(group, truths.collect())
        }
        Physical::INT32 => put::<Int32Type>(group, integers().map(|it| it as i32).collect()),
        Physical::INT64 => put::<Int64Type>(group, integers().collect()),
        Physical::FLOAT => {
            let single = |value| if let Scalar::Single(value) = value { value } else { 0.0 };
            put::<FloatType>(group, scalars(number).map(single).collect())
        }
        _ => {
            let double = |value| if let Scalar::Double(value) = value { value } else { 0.0 };
            put::<DoubleType>(group, scalars(number).map(double).collect())
        }
    }
}

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: Vec<T::T>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else { return Ok(()) };
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}
