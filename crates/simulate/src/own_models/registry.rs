//! Registry of the models that a program adds.
//!
//! Invariant: each model has passed the test of its interface's contract.

use super::model_name::{CUSTOM, ModelName};
use interface::UserError;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use world_simulated::models::{disk, network};
use world_simulated::{DiskKind, DiskSpec, NetworkKind, NetworkShape};

/// Disk models and networks of a program, besides the built-in ones. Scenario files and options
/// name them `custom:` and the name.
#[derive(Clone, Default, Debug)]
pub struct OwnModels {
    disks: BTreeMap<ModelName, DiskKind>,
    networks: BTreeMap<ModelName, NetworkKind>,
}

/// Error for a model that cannot be added.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokenModel {
    /// Name of the model.
    pub name: String,
    /// Violation of the contract of its interface, or the reason why the name is none.
    pub cause: String,
}

impl fmt::Display for BrokenModel {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "the model {} is broken: {}", self.name, self.cause)
    }
}

impl Error for BrokenModel {}

impl OwnModels {
    /// Adds a disk model, in place of one with the same name. The name has 1 to 15 small letters,
    /// digits and hyphens.
    ///
    /// # Errors
    /// A disk of the model is first tested with some hundred commands, and refused if it violates
    /// the contract of [`DiskModel`](crate::models::DiskModel).
    pub fn with_disk(
        mut self,
        name: &str,
        disk: impl DiskSpec + 'static,
    ) -> Result<Self, BrokenModel> {
        let broken = |cause| BrokenModel { name: name.to_owned(), cause };
        let (key, disk) = (name.parse().map_err(broken)?, DiskKind::of(disk));
        disk::contract::check(&*disk).map_err(broken)?;
        self.disks.insert(key, disk);
        Ok(self)
    }

    /// Adds a network, in place of one with the same name. The name has 1 to 15 small letters,
    /// digits and hyphens.
    ///
    /// # Errors
    /// Networks of a few sizes are first tested with some hundred messages. The network is refused
    /// if one of them violates the contract of its interface.
    pub fn with_network(
        mut self,
        name: &str,
        network: impl NetworkShape + 'static,
    ) -> Result<Self, BrokenModel> {
        let broken = |cause| BrokenModel { name: name.to_owned(), cause };
        let (key, network) = (name.parse().map_err(broken)?, NetworkKind::of(network));
        network::contract::check(&network).map_err(broken)?;
        self.networks.insert(key, network);
        Ok(self)
    }

    /// Returns the disk model of a name.
    pub(crate) fn disk(&self, name: &ModelName) -> Result<DiskKind, UserError> {
        self.disks.get(name).cloned().ok_or_else(|| unknown("disk model", name))
    }

    /// Returns the network of a name.
    pub(crate) fn network(&self, name: &ModelName) -> Result<NetworkKind, UserError> {
        self.networks.get(name).cloned().ok_or_else(|| unknown("network", name))
    }
}

/// Returns the error of a model that this program does not have.
fn unknown(what: &str, name: &ModelName) -> UserError {
    UserError::usage(
        "this scenario cannot be simulated",
        format!("this program has no {what} {CUSTOM}{name}"),
        "docs/scenarios.md lists the built-in ones; a program of your own adds others, by \
         simulate::OwnModels",
    )
}

impl Eq for OwnModels {}

impl PartialEq for OwnModels {
    /// Compares the names: models cannot be compared.
    fn eq(&self, other: &Self) -> bool {
        self.disks.keys().eq(other.disks.keys()) && self.networks.keys().eq(other.networks.keys())
    }
}
