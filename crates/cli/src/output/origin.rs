//! Origin of this command, which `--version` tells: the package that installed it, its build, and
//! its parts.
//!
//! Target, profile and compiler are known when the command is compiled. One compiled command is
//! part of several packages, so `scripts/install` describes each of them in a file beside the
//! command.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Description of the package, below the prefix that the command is installed below.
const DESCRIPTION: &str = "share/unisono/package";

/// Most bytes of a description that are read. One has about a hundred.
const DESCRIPTION_BYTES_MAX: u64 = 4096;

/// Lines that follow the version.
pub(crate) fn lines() -> Vec<String> {
    let prefix = prefix();
    let description = prefix.as_deref().map(described).unwrap_or_default();
    told(&description, &families(prefix.as_deref()))
}

/// Prefix of this command: the folder above its own.
fn prefix() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    Some(executable.parent()?.parent()?.to_owned())
}

/// Text of the description of the package; empty without one.
fn described(prefix: &Path) -> String {
    let mut text = String::new();
    let read = std::fs::File::open(prefix.join(DESCRIPTION))
        .and_then(|file| file.take(DESCRIPTION_BYTES_MAX).read_to_string(&mut text));
    if read.is_err() {
        text.clear();
    }
    text
}

/// Families of MPI libraries, such as `mpich`, whose programs this installation serves.
fn families(prefix: Option<&Path>) -> BTreeSet<String> {
    let entries = prefix.and_then(|prefix| prefix.join("lib").read_dir().ok());
    let names = entries.into_iter().flatten().flatten().map(|entry| entry.file_name());
    let family =
        |name: &str| name.strip_prefix("libunisono-mpi-")?.strip_suffix(".so").map(str::to_owned);
    names.filter_map(|name| family(name.to_str()?)).collect()
}

/// Lines about a package with this description and libraries for these families.
fn told(description: &str, families: &BTreeSet<String>) -> Vec<String> {
    let value = |wanted: &str| {
        let fields = description.lines().filter_map(|line| line.split_once(": "));
        let mut values = fields.filter(|(name, _)| *name == wanted).map(|(_, value)| value);
        values.next().filter(|value| !value.chars().any(char::is_control))
    };
    // A description that another version has left says nothing about this command.
    let is_own = value("version") == Some(env!("CARGO_PKG_VERSION"));
    let own = |name: &str| value(name).filter(|_| is_own);
    let mut lines = vec![format!("package:  {}", own("package").unwrap_or("none, built by cargo"))];
    lines.extend(own("commit").map(|commit| format!("commit:   {commit}")));
    lines.push(format!(
        "build:    profile {} by {}, for {}",
        env!("UNISONO_BUILT_PROFILE"),
        env!("UNISONO_BUILT_COMPILER"),
        env!("UNISONO_BUILT_TARGET")
    ));
    lines.extend(own("glibc").map(|glibc| format!("needs:    glibc {glibc} or newer")));
    let mut features = Vec::new();
    if cfg!(feature = "modules") {
        features.push("modules of WebAssembly".to_owned());
    }
    if !families.is_empty() {
        let names: Vec<&str> = families.iter().map(String::as_str).collect();
        features.push(format!("MPI-IO for {}", names.join(", ")));
    }
    if !features.is_empty() {
        lines.push(format!("features: {}", features.join("; ")));
    }
    lines
}

#[cfg(test)]
mod tests {
    //! Proves: a description is told if it is of this version, and a wrong one is left out.
    use super::*;

    #[test]
    fn descriptions_of_this_version_are_told() {
        let version = env!("CARGO_PKG_VERSION");
        let families = ["openmpi", "mpich"].map(str::to_owned).into();
        let description =
            format!("version: {version}\npackage: wheel\ncommit: 0123abc\nglibc: 2.28\n");
        let lines = told(&description, &families);
        assert_eq!(lines[0], "package:  wheel");
        assert_eq!(lines[1], "commit:   0123abc");
        assert!(lines[2].starts_with("build:    profile "), "{}", lines[2]);
        assert_eq!(lines[3], "needs:    glibc 2.28 or newer");
        assert!(lines[4].ends_with("MPI-IO for mpich, openmpi"), "{}", lines[4]);
    }

    #[test]
    fn other_descriptions_are_left_out() {
        let version = env!("CARGO_PKG_VERSION");
        for description in [
            "",
            "version",
            "version: 0.0.1\npackage: wheel\ncommit: 0123abc\nglibc: 2.28\n",
            &format!("version: {version}\npackage: a\u{1b}[2Jb\n"),
        ] {
            let lines = told(description, &BTreeSet::new());
            assert_eq!(lines[0], "package:  none, built by cargo", "{description}");
            assert!(lines[1].starts_with("build:    "), "{description}");
        }
    }
}
