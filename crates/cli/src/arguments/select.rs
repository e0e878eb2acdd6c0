//! Arguments of `select`.

use clap::{Args, ValueEnum, value_parser};
use interface::parse_size as size;
use std::path::PathBuf;

/// Arguments that ask for a number instead of records.
const NUMBERS: [&str; 5] = ["count", "minimum", "maximum", "sum", "histogram"];

#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("number").args(NUMBERS)))]
pub(crate) struct Select {
    /// Name of the file in the instance.
    pub(crate) name: String,
    /// Type of a record: "id:u8, energy:f4, at:3f8", or as NumPy describes it (default: as the .npy
    /// header of the file says).
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) record_type: Option<String>,
    /// Condition for a record to match: "energy > 5.0 and 0 <= at[0] < 1 or id in {1, 2}" (default:
    /// all match).
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) condition: Option<String>,
    /// Module of WebAssembly that looks at the records for which the condition is true, and selects
    /// some. It gives them numbers, which --by and others write as answer().
    #[arg(long, value_name = "FILE", conflicts_with_all = ["operator", "summarise"])]
    pub(crate) module: Option<PathBuf>,
    /// Operator, as a module is one, that the program of the servers has added.
    #[arg(long, value_name = "NAME", conflicts_with = "summarise")]
    pub(crate) operator: Option<String>,
    /// First byte of the first record (default: 0, or the end of the header).
    #[arg(long, value_parser = size, value_name = "BYTES")]
    pub(crate) offset: Option<u64>,
    /// Number of records (default: all of the file, which must be a whole number).
    #[arg(long, value_name = "NUMBER")]
    pub(crate) records: Option<u64>,
    /// Print the number of records that match.
    #[arg(long)]
    pub(crate) count: bool,
    /// Print the smallest value.
    #[arg(long = "min", value_name = "VALUE")]
    pub(crate) minimum: Option<String>,
    /// Print the largest value.
    #[arg(long = "max", value_name = "VALUE")]
    pub(crate) maximum: Option<String>,
    /// Print the sum of a value.
    #[arg(long, value_name = "VALUE")]
    pub(crate) sum: Option<String>,
    /// Print the number of values between each two edges.
    #[arg(long, value_name = "VALUE", requires = "edges")]
    pub(crate) histogram: Option<String>,
    /// Edges of the bins, ascending.
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true, value_name = "EDGE,EDGE...")]
    pub(crate) edges: Vec<f64>,
    /// Have the servers compute bounds of these fields for each block: until the file changes, they
    /// do not read blocks in which nothing matches.
    #[arg(
        long, value_delimiter = ';', value_name = "FIELD;FIELD...",
        conflicts_with_all = ["condition", "number", "by", "output"],
    )]
    pub(crate) summarise: Vec<String>,
    /// Integer of each record that says into which part it goes, such as "hash(id) % 4".
    #[arg(long, value_name = "KEY", conflicts_with = "number")]
    pub(crate) by: Option<String>,
    /// Number of parts, at most 1024, each in a file of its own: FILE.0, FILE.1 and so on.
    #[arg(long, value_name = "NUMBER", requires = "by",
          value_parser = value_parser!(u32).range(1..=1024))]
    pub(crate) parts: Option<u32>,
    /// Local file to write the records to (default: standard output, as CSV).
    #[arg(long, short, value_name = "FILE", conflicts_with = "number")]
    pub(crate) output: Option<PathBuf>,
    /// Form of the records (default: by the name of the file; raw for an unknown one).
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "number")]
    pub(crate) format: Option<SelectFormat>,
}

/// Form in which records are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum SelectFormat {
    /// As they are in the file.
    Raw,
    /// Comma-separated values, with a line of names.
    Csv,
    /// NumPy's format.
    Npy,
    /// Parquet, with a column for each element of a field.
    Parquet,
}
