//! Commands that simulate transfers, programs and published experiments.

mod calibrate;
mod demerit;
mod head_plot;
mod protection;
pub(crate) mod reproduce;
pub(crate) mod sim;
mod trace_output;
pub(crate) mod what_if;
