//! Records of files, as users write them: their types, and the conditions for selecting some.

mod npy;
mod parser;
mod record_type;
mod tokens;

pub use npy::{TypedRecords, npy_header, read_npy_header};
pub use parser::{field_of, key_of, number_of, predicate_of};
pub use record_type::{FieldKind, RecordField, RecordType};
