//! The catalogue: directories, files and other entries of the instance, by name and by number.

mod changes;
mod checks;
mod claims;
mod copies;
mod copy;
mod name;
mod node;
mod nodes;
mod requests;
mod store;
mod tree;

pub(crate) use checks::check_record;
pub use copies::{COPIES_MAX, OtherServer, POSITION_KEY, position_of};
pub(crate) use copy::CatalogueCopy;
pub(crate) use store::Catalogue;
