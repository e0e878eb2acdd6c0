//! Disk models and networks that a program adds to the built-in ones.

mod model_name;
mod registry;

pub(crate) use model_name::CUSTOM;
pub use model_name::ModelName;
pub use registry::{BrokenModel, OwnModels};
