//! Proves: the Python package passes its own tests (`python/tests`), as it lies in an environment.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Folder that cargo builds to.
fn built() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.parent().unwrap().parent().unwrap().to_owned()
}

/// Lays the package out as an installation does, with the extension module that cargo has built.
fn install(site: &Path) {
    let package = site.join("unisono");
    std::fs::create_dir_all(&package).unwrap();
    for entry in root().join("python/unisono").read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    let module = built().join("lib_native.so");
    assert!(module.exists(), "{} is built by cargo build --workspace --lib", module.display());
    std::fs::copy(module, package.join("_native.abi3.so")).unwrap();
    let about = site.join("unisono-0.2.0.dist-info");
    std::fs::create_dir(&about).unwrap();
    std::fs::write(
        about.join("METADATA"),
        "Metadata-Version: 2.1\nName: unisono\nVersion: 0.2.0\n",
    )
    .unwrap();
    let project = std::fs::read_to_string(root().join("pyproject.toml")).unwrap();
    std::fs::write(about.join("entry_points.txt"), entry_points(&project)).unwrap();
}

/// The entry points of a project, as an installation has them.
fn entry_points(project: &str) -> String {
    let sections = project.split("[project.entry-points.").skip(1);
    let section = |section: &str| format!("[{}\n", section.split('[').next().unwrap());
    sections.map(section).collect::<String>().replace('"', "")
}

#[test]
fn the_package_passes_its_tests() {
    let site = tempfile::tempdir().unwrap();
    install(site.path());
    // The environment of `make setup`, and the command that cargo has built.
    let python = built().parent().unwrap().join("python/bin/python");
    let path = std::env::var("PATH").unwrap();
    let mut pytest = Command::new("timeout");
    pytest.args(["-k", "5", "500"]).arg(python).args(["-m", "pytest", "-q"]);
    // Each of two processes has an instance of its own, for whole files of tests.
    pytest.args(["-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile"]);
    pytest.arg(root().join("python/tests")).current_dir(site.path());
    pytest.env("PYTHONPATH", site.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    pytest.env("PATH", format!("{}:{path}", built().display()));
    let output = pytest.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    let last = text.lines().rev().find(|line| line.contains(" passed")).unwrap();
    assert!(!last.contains("skipped") && !last.contains("failed"), "{text}");
    println!("{last}");
}
