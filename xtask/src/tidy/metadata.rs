//! The packages of the workspace and what they depend on, as cargo sees them.

use crate::steps::cargo;
use serde::Deserialize;
use std::path::Path;

/// One package of the workspace.
#[derive(Deserialize)]
pub(super) struct Package {
    /// Its name.
    pub(super) name: String,
    /// Its direct dependencies, of every kind and platform.
    pub(super) dependencies: Vec<Dependency>,
}

/// One direct dependency.
#[derive(Deserialize)]
pub(super) struct Dependency {
    /// The package depended on.
    pub(super) name: String,
    /// `"dev"`, `"build"`, or nothing.
    pub(super) kind: Option<String>,
    /// Where it is, when it belongs to the repository.
    pub(super) path: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Asks cargo for the workspace at `root`.
pub(super) fn read(root: &Path) -> Result<Vec<Package>, String> {
    let mut command = cargo(root, &["metadata", "--no-deps", "--format-version", "1"]);
    let output = command.output().map_err(|cause| format!("cargo metadata: {cause}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout)
        .map_err(|cause| format!("the answer of cargo metadata: {cause}"))?;
    Ok(metadata.packages)
}
