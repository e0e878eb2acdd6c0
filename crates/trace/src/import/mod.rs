//! Traces made of logs of other tools.

mod columns;
mod dxt;
mod lines;
#[cfg(test)]
mod tests;

pub use dxt::{Imported, import_dxt};
