//! Parquet file with the rows of an experiment: the columns of the CSV file, with their types.
//!
//! Text is UTF-8 and never null; numbers are 64-bit integers and doubles, null where missing.
//! Nothing is compressed: a table has some hundred rows.

use crate::compare::Comparison;
use crate::rows::{COLUMNS, Column, Line, Values, lines};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Returns the Parquet file of an experiment.
pub(crate) fn parquet(comparison: &Comparison) -> Result<Vec<u8>, std::io::Error> {
    write(&lines(comparison)).map_err(std::io::Error::other)
}

fn write(lines: &[Line<'_>]) -> Result<Vec<u8>, ParquetError> {
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(Vec::new(), schema()?, properties)?;
    let mut group = file.next_row_group()?;
    for Column { values, .. } in &COLUMNS {
        let Some(mut column) = group.next_column()? else { break };
        match values {
            Values::Text(of) => {
                let texts: Vec<_> = lines.iter().map(|line| of(line).as_str().into()).collect();
                column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
            }
            Values::Integer(of) => numbers::<Int64Type>(&mut column, lines.iter().map(of))?,
            Values::Real(of) => numbers::<DoubleType>(&mut column, lines.iter().map(of))?,
        }
        column.close()?;
    }
    group.close()?;
    file.into_inner()
}

/// Writes the present numbers, and for each row the definition level that says if it has one.
fn numbers<T: DataType>(
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
        let (physical, logical, repetition) = match column.values {
            Values::Text(_) => {
                (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED)
            }
            Values::Integer(_) => (Physical::INT64, None, Repetition::OPTIONAL),
            Values::Real(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
        };
        let builder = Type::primitive_type_builder(column.name, physical);
        builder.with_logical_type(logical).with_repetition(repetition).build().map(Arc::new)
    };
    let columns = COLUMNS.iter().map(column).collect::<Result<_, _>>()?;
    Type::group_type_builder("trials").with_fields(columns).build().map(Arc::new)
}

#[cfg(test)]
mod tests {
    //! Proves: the file read back has the rows, names, types and values of the CSV file.
    use super::*;
    use crate::compare::tests::comparison;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use std::io::Write;

    #[test]
    fn both_files_say_the_same() {
        let comparison = comparison();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&parquet(&comparison).unwrap()).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let read: Vec<Vec<(String, Field)>> =
            reader.get_row_iter(None).unwrap().map(|row| row.unwrap().into_columns()).collect();
        let csv = crate::rows::csv(&comparison).unwrap();
        let mut csv = csv::Reader::from_reader(csv.as_slice());
        let heads: Vec<String> = csv.headers().unwrap().iter().map(str::to_owned).collect();
        let expected: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
        assert_eq!((read.len(), expected.len()), (6, 6));
        for (read, expected) in read.iter().zip(&expected) {
            let names: Vec<&String> = read.iter().map(|(name, _)| name).collect();
            assert_eq!(names, heads.iter().collect::<Vec<_>>());
            for ((name, field), expected) in read.iter().zip(expected) {
                let (field, is_text) = match field {
                    Field::Str(text) => (text.clone(), true),
                    Field::Long(number) => (number.to_string(), false),
                    Field::Double(number) => (number.to_string(), false),
                    Field::Null => (String::new(), false),
                    other => panic!("{name} is {other:?}"),
                };
                assert_eq!(field, expected, "{name}");
                let column = COLUMNS.iter().find(|column| column.name == name).unwrap();
                assert_eq!(is_text, matches!(column.values, Values::Text(_)), "{name}");
            }
        }
    }

    #[test]
    fn an_experiment_without_rows_is_a_table() {
        let empty = Comparison { rows: Vec::new(), ..comparison() };
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&parquet(&empty).unwrap()).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.get_row_iter(None).unwrap().count(), 0);
        let columns = reader.metadata().file_metadata().schema_descr().num_columns();
        assert_eq!(columns, COLUMNS.len());
    }
}
