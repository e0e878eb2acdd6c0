//! Rule: crates depend on one another only as the table of the architecture permits.

use super::metadata::{Dependency, Package};
use super::tree::{Finding, Tree};

/// Crates that never know which machine they run on.
pub(super) const CORE: [&str; 6] =
    ["units", "policy", "wire", "world", "filesystem", "world-simulated"];

/// Crates, each with the crates of the workspace that it may depend on.
const PERMITTED: [(&str, &[&str]); 23] = [
    ("units", &[]),
    ("policy", &["units"]),
    ("wire", &["units", "policy"]),
    ("sandbox", &["policy"]),
    ("world", &["units"]),
    ("filesystem", &["units", "policy", "wire", "world"]),
    ("world-simulated", &["units", "world"]),
    ("world-real", &["units", "world"]),
    ("interface", &["units", "policy", "wire", "filesystem"]),
    ("client", &["interface", "units", "policy", "wire", "world", "filesystem", "world-real"]),
    (
        "cluster",
        &["client", "interface", "units", "policy", "wire", "world", "filesystem", "world-real"],
    ),
    ("mount", &["client", "interface"]),
    (
        "simulate",
        &[
            "interface",
            "program",
            "trace",
            "units",
            "policy",
            "wire",
            "world",
            "filesystem",
            "world-simulated",
        ],
    ),
    (
        "measure",
        &[
            "program",
            "trace",
            "client",
            "cluster",
            "simulate",
            "interface",
            "units",
            "policy",
            "wire",
            "world",
            "filesystem",
            "world-real",
        ],
    ),
    ("plot", &[]),
    ("trace", &["interface", "units", "policy"]),
    ("program", &["interface", "trace", "units", "policy"]),
    ("experiments", &["simulate", "trace", "interface", "plot"]),
    ("c-api", &["client", "interface", "policy", "trace", "units", "wire"]),
    (
        "cli",
        &[
            "client",
            "cluster",
            "mount",
            "simulate",
            "measure",
            "experiments",
            "sandbox",
            "trace",
            "interface",
            "plot",
        ],
    ),
    ("mpi", &["interface", "measure", "plot", "policy", "trace", "units"]),
    ("python", &["client", "simulate", "interface", "policy", "plot"]),
    ("xtask", &[]),
];

/// Additional permitted dependencies of tests.
const PERMITTED_IN_TESTS: [(&str, &[&str]); 1] = [("filesystem", &["sandbox", "world-simulated"])];

/// Libraries that bring another clock, other tasks or other I/O than the world's.
const WORLDLY: [&str; 12] = [
    "tokio",
    "async-std",
    "smol",
    "mio",
    "io-uring",
    "rustix",
    "libc",
    "nix",
    "rand",
    "getrandom",
    "rayon",
    "crossbeam",
];

/// Checks every direct dependency of every package.
pub(super) fn check(packages: &[Package], tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let Some(permitted) = row(&PERMITTED, &package.name) else {
            let wrong = format!("the crate {} is not in the table of crates", package.name);
            let help = "give it a row in ARCHITECTURE.md and in xtask/src/tidy/crate_edges.rs";
            findings.push(finding(tree, &package.name, "name", wrong, help));
            continue;
        };
        let in_tests = row(&PERMITTED_IN_TESTS, &package.name).unwrap_or_default();
        for dependency in &package.dependencies {
            if let Some((wrong, help)) = judge(&package.name, permitted, in_tests, dependency) {
                findings.push(finding(tree, &package.name, &dependency.name, wrong, help));
            }
        }
    }
    findings
}

fn row<'a>(table: &'a [(&str, &[&'a str])], name: &str) -> Option<&'a [&'a str]> {
    table.iter().find(|(row, _)| *row == name).map(|(_, permitted)| *permitted)
}

/// Returns the defect of a dependency, and what to do.
fn judge(
    package: &str,
    permitted: &[&str],
    in_tests: &[&str],
    dependency: &Dependency,
) -> Option<(String, &'static str)> {
    let name = dependency.name.as_str();
    let is_test = dependency.kind.as_deref() == Some("dev");
    if dependency.path.is_none() {
        let is_worldly = CORE.contains(&package) && !is_test && WORLDLY.contains(&name);
        let wrong = format!("{package} must not depend on {name}");
        return is_worldly.then_some((wrong, "ask the world for it"));
    }
    if permitted.contains(&name) || (is_test && in_tests.contains(&name)) {
        return None;
    }
    let where_used = if is_test { ", not even in tests" } else { "" };
    let wrong = format!("{package} must not depend on {name}{where_used}");
    Some((wrong, "move the code to the crate that ARCHITECTURE.md gives the duty to"))
}

/// Returns a finding at the line of the package's manifest that begins with `key`.
fn finding(tree: &Tree, package: &str, key: &str, wrong: String, help: &str) -> Finding {
    let paths = [format!("crates/{package}/Cargo.toml"), format!("{package}/Cargo.toml")];
    let manifest = paths.iter().find_map(|path| tree.get(path));
    let begins = |line: &str| {
        let rest = line.trim_start().strip_prefix(key);
        rest.is_some_and(|rest| rest.starts_with([' ', '.', '=']))
    };
    let line = manifest.and_then(|file| file.lines().find(|(_, line)| begins(line)));
    Finding {
        path: manifest.map_or_else(|| "Cargo.toml".to_owned(), |file| file.path.clone()),
        line: line.map_or(1, |(number, _)| number),
        wrong,
        help: help.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    //! Proves: an edge outside the table is found for every kind of dependency, with its line.
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Option<&str>, bool)]) -> Package {
        let dependency = |(name, kind, ours): &(&str, Option<&str>, bool)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
            path: ours.then(|| format!("crates/{name}")),
        };
        let dependencies = dependencies.iter().map(dependency).collect();
        Package { name: name.to_owned(), dependencies }
    }

    fn count(package: Package) -> usize {
        check(&[package], &Tree::of(&[])).len()
    }

    #[test]
    fn only_edges_of_the_table_pass() {
        for (name, permitted) in PERMITTED {
            for (other, _) in PERMITTED.iter().filter(|(other, _)| *other != name) {
                let expected = usize::from(!permitted.contains(other));
                assert_eq!(count(package(name, &[(other, None, true)])), expected);
                assert_eq!(count(package(name, &[(other, Some("build"), true)])), expected);
            }
        }
    }

    #[test]
    fn tests_may_do_a_little_more() {
        let dev = |name, other| count(package(name, &[(other, Some("dev"), true)]));
        assert_eq!(dev("filesystem", "world-simulated"), 0);
        assert_eq!(dev("filesystem", "simulate"), 1);
        assert_eq!(dev("filesystem", "world-real"), 1);
        assert_eq!(dev("policy", "world"), 1);
    }

    #[test]
    fn core_crates_have_no_other_world() {
        for name in CORE {
            assert_eq!(count(package(name, &[("tokio", None, false)])), 1);
            assert_eq!(count(package(name, &[("serde", None, false)])), 0);
        }
        assert_eq!(count(package("world-real", &[("tokio", None, false)])), 0);
    }

    #[test]
    fn a_finding_names_the_line_of_the_manifest() {
        let manifest = "[package]\nname = \"policy\"\n[dependencies]\nworld.workspace = true\n";
        let tree = Tree::of(&[("crates/policy/Cargo.toml", manifest)]);
        let found = check(&[package("policy", &[("world", None, true)])], &tree);
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/policy/Cargo.toml", 4));
        assert_eq!(count(package("newcomer", &[])), 1);
    }
}
