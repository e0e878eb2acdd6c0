//! Proves: the recipes of packages agree with Cargo.toml and pyproject.toml, and the notices of
//! packages have the licence of each crate. `make packages-test` builds and uses the packages.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the repository.
fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Text of a file of the repository.
fn text(path: &str) -> String {
    std::fs::read_to_string(root(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Value of `name = "value"` in a file of TOML.
fn value(file: &str, name: &str) -> String {
    let start = format!("{name} = \"");
    let line = file.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
    line.trim_end_matches('"').to_owned()
}

/// Words of `name = ["a", "b"]` in a file of TOML.
fn words(file: &str, name: &str) -> Vec<String> {
    let start = format!("{name} = [");
    let line = file.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
    let parts = line.trim_end_matches(']').split(", ");
    parts.map(|part| part.trim_matches('"').to_owned()).collect()
}

#[test]
fn recipes_agree_with_the_manifests() {
    let (cargo, project) = (text("Cargo.toml"), text("pyproject.toml"));
    let oldest = value(&cargo, "rust-version");
    let spack = text("packaging/spack/package.py");
    assert!(spack.contains(&format!("depends_on(\"rust@{oldest}:\"")), "{spack}");
    let conda = text("packaging/conda/recipe.yaml");
    let python = value(&project, "requires-python");
    let oldest = python.strip_prefix(">=").unwrap();
    let variants = text("packaging/conda/variants.yaml");
    assert!(variants.contains(&format!("python:\n  - {oldest}.*")), "{variants}");
    let (_, run) = conda.split_once("  run:\n").unwrap();
    let (run, constraints) = run.split_once("  run_constraints:\n").unwrap();
    for needed in words(&project, "dependencies") {
        let line = format!("    - {}\n", needed.replacen(">=", " >=", 1));
        assert!(run.contains(&line), "packaging/conda/recipe.yaml does not need {needed}");
    }
    let of_mpi = words(&project, "mpi");
    assert_eq!(of_mpi.len(), 2, "{of_mpi:?}");
    let mpi4py = of_mpi[0].replacen(">=", " >=", 1);
    assert!(mpi4py.starts_with("mpi4py ") && constraints.contains(&mpi4py), "{constraints}");
    let maturin = words(&project, "requires")[0].replacen(">=", " >=", 1);
    assert!(conda.contains(&format!("    - {maturin}\n")), "{conda}");
}

#[test]
fn recipes_have_a_place_for_each_fact_of_a_release() {
    // scripts/packages fills these, so that no recipe has a version of its own.
    let packages = text("scripts/packages");
    for (recipe, facts) in [
        ("spack/package.py", &["@ARCHIVE@", "@VERSION@", "@SHA256@"][..]),
        ("conda/recipe.yaml", &["@ARCHIVE@", "@VERSION@", "@SHA256@"]),
        ("Containerfile", &["@VERSION@"]),
        ("apptainer.def", &["@VERSION@"]),
    ] {
        assert!(packages.contains(&format!("recipe {recipe} ")), "{recipe} is not written");
        let text = text(&format!("packaging/{recipe}"));
        for fact in facts {
            assert!(text.contains(fact), "packaging/{recipe} has no {fact}");
        }
        assert!(!text.contains(env!("CARGO_PKG_VERSION")), "{recipe} has a version of its own");
    }
    let control = text("packaging/debian/control");
    for field in ["@VERSION@", "@ARCHITECTURE@", "@SIZE@", "@MAINTAINER@"] {
        assert_eq!(control.matches(&format!(": {field}")).count(), 2, "{field}");
    }
    // git writes the commit into the archive of the sources.
    let commit = text("packaging/commit");
    let is_written = commit.trim().chars().all(|digit| digit.is_ascii_hexdigit());
    assert!(commit == "$Format:%h$\n" || is_written, "{commit}");
    assert!(text(".gitattributes").contains("packaging/commit export-subst"));
}

#[test]
fn notices_have_the_licence_of_each_crate() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("copyright");
    let mut written = Command::new(root("packaging/notices"));
    assert!(written.arg(&file).status().unwrap().success());
    let notices = std::fs::read_to_string(&file).unwrap();
    let crates: Vec<&str> = notices.lines().filter(|line| line.contains("; texts: ")).collect();
    for contained in ["clap", "tokio", "redb", "graviola", "pyo3"] {
        assert!(
            crates.iter().any(|line| line.starts_with(&format!("{contained} "))),
            "{contained}"
        );
    }
    assert!(crates.iter().all(|line| line.contains(": ")), "{crates:?}");
    // They are those of the processors and systems that packages are for, without tools of tests.
    for foreign in ["windows-sys ", "proptest ", "tempdir "] {
        assert!(!crates.iter().any(|line| line.starts_with(foreign)), "{foreign}");
    }
    assert!(notices.contains("---- Unisono: LICENSE-MIT\n\nMIT License"));
}
