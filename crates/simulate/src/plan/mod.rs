//! Simulation plans as users give them: a preset, then a scenario file, then options.
//!
//! Invariants:
//! - The explanation of a plan ([`SimulationPlan::explain`]), read again as a file, gives the same
//!   plan.
//! - Every key is described once: in `keys.rs`, in `parameters.rs`, or by the network that it is
//!   about.

mod changes;
mod client_cache_keys;
mod explain;
mod file;
mod key;
mod keys;
mod network_parameters;
mod origin;
mod page;
mod parameters;
mod resolve;
mod setting;
mod simulation_plan;
#[cfg(test)]
mod tests;
mod value;

pub use page::scenarios_page;
pub(crate) use resolve::PlanTemplate;
pub use setting::Setting;
pub use simulation_plan::SimulationPlan;
