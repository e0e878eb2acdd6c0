//! Records of files, as users write them: their types, and the conditions for selecting some.

mod npy;
mod operators;
mod parser;
mod record_type;
mod tokens;

pub use npy::{TypedRecords, npy_header, read_npy_header};
pub use operators::{condition_with, module_operator};
pub use parser::{field_of, key_of, number_of, predicate_of};
pub use record_type::{FieldKind, RecordField, RecordType};
