//! Packages of the workspace and their dependencies, as cargo reports them.

use crate::steps::cargo;
use serde::Deserialize;
use std::path::Path;

/// One package of the workspace.
#[derive(Deserialize)]
pub(super) struct Package {
    /// Name.
    pub(super) name: String,
    /// Direct dependencies, of every kind and platform.
    pub(super) dependencies: Vec<Dependency>,
}

/// One direct dependency.
#[derive(Deserialize)]
pub(super) struct Dependency {
    /// Name of the package depended on.
    pub(super) name: String,
    /// Kind: `"dev"`, `"build"`, or `None`.
    pub(super) kind: Option<String>,
    /// Path, when the dependency belongs to the repository.
    pub(super) path: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Runs `cargo metadata` for the workspace at `root`.
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
