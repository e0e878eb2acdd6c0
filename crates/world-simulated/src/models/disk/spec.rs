//! The interface of a specification of disks, and its declaration to users.
//!
//! To add a disk model: write its file, beside [`analytic`](super::analytic), with its
//! specification, its [`DiskModel`] and its [`DiskDeclaration`]. Then add one line to
//! [`DISKS`](super::DISKS). A program can also bring along a specification of its own, which needs
//! no declaration.

use super::disk_model::DiskModel;
use crate::models::bus::BusSpec;
use crate::models::{ModelInfo, Parameter, ParameterValues};
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;

/// Specification of a disk. All disks of a machine are built of one.
pub trait DiskSpec: Debug + Send + Sync {
    /// Bus that all disks of a node share; `None` where each disk has a link of its own.
    fn bus(&self) -> Option<BusSpec> {
        None
    }

    /// Bytes of the disk's buffer, if a block must fit it.
    fn buffer_bytes(&self) -> Option<u64> {
        None
    }

    /// Builds a disk at rest. `angle` is the rotation of the medium at the start, in nanoseconds;
    /// whole revolutions do not count. Disks without a medium that turns ignore it.
    fn build(&self, angle: u64) -> Box<dyn DiskModel>;
}

/// Kind of disk: a shared specification.
#[derive(Clone, Debug)]
pub struct DiskKind(Arc<dyn DiskSpec>);

impl DiskKind {
    /// The kind of the disks of a specification.
    pub fn of(spec: impl DiskSpec + 'static) -> Self {
        Self(Arc::new(spec))
    }
}

impl Deref for DiskKind {
    type Target = dyn DiskSpec;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// Declaration of a disk model: all that users know of it.
#[derive(Clone, Copy, Debug)]
pub struct DiskDeclaration {
    /// Name and help text.
    pub info: ModelInfo,
    /// Word `kind` in files that describe such disks; `None` if there are no such files.
    pub kind_in_files: Option<&'static str>,
    /// Parameters of such files. Their defaults are those of the disk that the name stands for.
    pub parameters: &'static [Parameter],
    /// Constructor. It fails, with the reason, when the values do not fit one another.
    pub make: fn(&ParameterValues) -> Result<DiskKind, String>,
}

impl Eq for DiskDeclaration {}

impl PartialEq for DiskDeclaration {
    /// Compares the names, which differ from model to model.
    fn eq(&self, other: &Self) -> bool {
        self.info.name == other.info.name
    }
}
