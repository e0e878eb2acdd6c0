//! The catalogue: directories and files of the instance, by name.

mod changes;
mod checks;
mod claims;
mod name;
mod node;
mod requests;
mod store;
mod tree;

pub(crate) use checks::check_record;
pub(crate) use store::Catalogue;
