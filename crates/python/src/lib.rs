//! The extension module `unisono._native`, on which the Python package is built.
//!
//! *Invariants:*
//! - The interpreter is free for other threads while a call waits for servers or members.
//! - The main thread looks for signals while it waits, so Ctrl-C ends a call within a second.
//! - Memory of Python objects in use by a call stays where it is, also when it is interrupted.

mod connection;
mod errors;
mod file;
mod group;
mod interrupted;
mod memory;
mod open_file;
mod part;
mod picture;
mod records;
mod simulation;
mod waiting;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<connection::Connection>()?;
    module.add_class::<file::File>()?;
    module.add_class::<group::Group>()?;
    module.add_class::<part::Part>()?;
    module.add_class::<records::RecordType>()?;
    module.add_class::<records::Records>()?;
    module.add_class::<waiting::Started>()?;
    module.add_function(wrap_pyfunction!(simulation::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(picture::draw_bars, module)?)?;
    module.add_function(wrap_pyfunction!(picture::draw_lines, module)?)?;
    module.add_function(wrap_pyfunction!(records::find_records, module)?)?;
    module.add_function(wrap_pyfunction!(records::reduce_records, module)?)?;
    module.add_function(wrap_pyfunction!(records::summarise_records, module)?)?;
    module.add_function(wrap_pyfunction!(memory::after_fork, module)?)?;
    module.add_function(wrap_pyfunction!(memory::check_memory, module)?)?;
    module.add_function(wrap_pyfunction!(errors::error_kinds, module)?)?;
    module.add_function(wrap_pyfunction!(connection::instance_name, module)?)?;
    module.add_function(wrap_pyfunction!(connection::instance_directory, module)?)?;
    module.add_function(wrap_pyfunction!(connection::mounted, module)?)?;
    module.add_function(wrap_pyfunction!(connection::default_instance, module)?)
}
