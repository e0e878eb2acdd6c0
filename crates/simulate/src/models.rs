//! Interfaces of disk models and networks that a program of its own adds
//! ([`OwnModels`](crate::OwnModels)).
//!
//! A disk is a [`DiskSpec`] and the [`DiskModel`] that it builds. A network is a [`NetworkShape`]
//! and the [`SwitchedNetwork`] or [`EventDrivenNetwork`] that it builds.

pub use units::{Duration, Instant};
pub use world_simulated::models::bus::BusSpec;
pub use world_simulated::models::disk::disk_model::{
    Activity, Command, DiskModel, Motion, Phase, SectorsOutOfRange, Step,
};
pub use world_simulated::models::disk::layout::DiskShape;
pub use world_simulated::models::network::{
    BuiltNetwork, EventDrivenNetwork, NODES_MAX, SwitchedNetwork,
};
pub use world_simulated::{DiskSpec, LinkSpec, NetworkShape, UnfitNetwork};
