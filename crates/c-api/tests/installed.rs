//! Proves: what `scripts/install` installs is complete; the shared library has the functions of the
//! headers under one version and nothing else; programs are built with pkg-config's flags and run.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Servers, all_declared, declared, done, is_built, package, profile, text};

/// The command that installs below `directory`, but for the libraries of MPI, whose tests install
/// them too.
fn install(directory: &Path, words: &[&str]) -> Command {
    let mut script = Command::new(package().join("../../scripts/install"));
    script.env("MPICC", "none");
    script.args(is_built().then_some("--no-build"));
    script.args(["--profile", &profile(), "--prefix"]).arg(directory).args(words);
    script
}

/// Lines of the output of a program of binutils, split at spaces.
fn words(program: &str, arguments: &[&str], library: &Path) -> Vec<Vec<String>> {
    let mut command = Command::new(program);
    command.args(arguments).arg(library);
    let split = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    done(command).lines().map(split).collect()
}

#[test]
fn the_shared_library_exports_the_functions_of_the_header() {
    let servers = Servers::start();
    let prefix = servers.path("prefix");
    done(install(&prefix, &[]));
    let library = prefix.join("lib/libunisono.so");
    let declared: BTreeSet<String> = all_declared().into_iter().map(|(name, _)| name).collect();
    assert!(declared.len() > 50, "{declared:?}");
    let symbols = words("nm", &["-D", "--defined-only", "--with-symbol-versions"], &library);
    let exported: BTreeSet<String> = symbols.iter().map(|words| words[2].clone()).collect();
    let mut expected: BTreeSet<String> =
        declared.iter().map(|name| format!("{name}@@UNISONO_0")).collect();
    expected.insert("UNISONO_0".to_owned());
    let exported = exported.into_iter().map(|name| match name.as_str() {
        "UNISONO_0@@UNISONO_0" => "UNISONO_0".to_owned(),
        _ => name,
    });
    assert_eq!(exported.collect::<BTreeSet<_>>(), expected);
    let map = text("unisono.map");
    let mapped = map.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let mapped: BTreeSet<String> =
        mapped.filter(|name| name.starts_with("unisono_")).map(str::to_owned).collect();
    assert_eq!(mapped, declared);
    let dynamic = words("readelf", &["-d"], &library);
    assert!(dynamic.iter().flatten().any(|word| word == "[libunisono.so.0]"), "{dynamic:?}");
}

#[test]
fn the_example_is_built_with_pkg_config_and_prints_what_it_should() {
    let servers = Servers::start();
    let prefix = servers.path("prefix");
    done(install(&prefix, &[]));
    for file in ["bin/unisono", "lib/libunisono.so.0", "lib/libunisono.a", "include/unisono.h"] {
        assert!(prefix.join(file).exists(), "{file}");
    }
    for (name, _) in declared() {
        assert!(prefix.join(format!("share/man/man3/{name}.3")).exists(), "{name}");
    }
    assert!(prefix.join("share/man/man7/unisono.7").exists());
    let flags = std::fs::read_to_string(prefix.join("lib/pkgconfig/unisono.pc")).unwrap();
    let (libraries, include) = (prefix.join("lib"), prefix.join("include"));
    assert!(flags.starts_with(&format!("prefix={}\n", prefix.display())), "{flags}");
    let mut asked = Command::new("pkg-config");
    asked.args(["--cflags", "--libs", "unisono"]);
    asked.env("PKG_CONFIG_PATH", libraries.join("pkgconfig"));
    // Without pkg-config these are the flags that it would have told.
    let flags = match asked.output() {
        Ok(_) => done(asked),
        Err(_) => format!("-I{} -L{} -lunisono", include.display(), libraries.display()),
    };
    let program = servers.path("collective");
    let example = package().join("../../examples/collective.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    gcc.arg(example).args(flags.split_whitespace());
    done(gcc);
    let members = (0..3).map(|rank| {
        let mut member = servers.program(&program);
        member.args([&rank.to_string(), "3"]).env("LD_LIBRARY_PATH", &libraries);
        member.stdout(Stdio::piped()).spawn().unwrap()
    });
    let mut printed = String::new();
    for member in members.collect::<Vec<_>>() {
        let ended = member.wait_with_output().unwrap();
        assert!(ended.status.success());
        printed += std::str::from_utf8(&ended.stdout).unwrap();
    }
    assert_eq!(printed, text("../../examples/collective.txt"));
    let written = servers.command(&["cat", "field"]).output().unwrap().stdout;
    let numbers = (0..3000).flat_map(|number| f64::from(number).to_le_bytes());
    assert!(written == numbers.collect::<Vec<u8>>(), "{} bytes", written.len());
}

#[test]
fn packages_are_made_below_another_root() {
    let root = tempfile::tempdir().unwrap();
    let shown = root.path().to_str().unwrap();
    done(install(Path::new("/usr"), &["--destdir", shown]));
    let flags = std::fs::read_to_string(root.path().join("usr/lib/pkgconfig/unisono.pc")).unwrap();
    assert!(flags.starts_with("prefix=/usr\n"), "{flags}");
    for (words, cause) in [
        (&["--prefix", "here"][..], "not absolute"),
        (&["--prefix"], "takes a value"),
        (&["--around"], "unknown option"),
        (&["--prefix", "/proc/none"], "cannot write to"),
    ] {
        let refused = install(Path::new("/usr"), words).output().unwrap();
        let told = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && told.contains(cause), "{told}");
        assert!(told.contains("error: ") && told.contains("\nhelp:  "), "{told}");
    }
}
