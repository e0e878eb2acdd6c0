//! Records of files, as users write them: their types, and the conditions for selecting some.

mod parser;
mod record_type;
mod tokens;

pub use parser::{key_of, number_of, predicate_of};
pub use record_type::{FieldKind, RecordField, RecordType};
