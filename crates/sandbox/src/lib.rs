//! Modules of WebAssembly that users send to servers, as operators over records.
//!
//! A module exports its memory and a function `select`, and imports nothing. For each batch of
//! records the server copies the records into the memory of the module, calls `select`, and copies
//! a number for each record out. docs/modules.md is the page for their authors.
//!
//! Invariants, for any bytes as a module:
//! - It reaches nothing but its own memory, which has at most [`MEMORY_BYTES_MAX`].
//! - A call ends after [`FUEL_PER_CALL`] units of fuel and [`FUEL_PER_BYTE`] for each byte of the
//!   records. One instruction takes about one unit; those that fill or copy take more.
//! - A module that has failed once fails each time.

mod instance;
mod limits;

pub use instance::Modules;
pub use limits::{
    FUEL_PER_BYTE, FUEL_PER_CALL, MEMORY_BYTES_MAX, RECURSION_MAX, STACK_BYTES_MAX,
    TABLE_ELEMENTS_MAX,
};
