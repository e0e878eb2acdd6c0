//! Proves: what `scripts/install` installs is complete; the shared library has the functions of the
//! headers under one version and nothing else; programs are built with pkg-config's flags and run.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Servers, all_declared, declared, done, is_built, package, profile, text};

/// Largest size of the installed command: 30 MB. It had 115 MB with debug information.
const INSTALLED_BYTES_MAX: u64 = 30_000_000;

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
    let first = servers.path("first");
    done(install(&first, &[]));
    // Nothing in it depends on its place.
    std::fs::rename(&first, &prefix).unwrap();
    for file in ["bin/unisono", "lib/libunisono.so.0", "lib/libunisono.a", "include/unisono.h"] {
        assert!(prefix.join(file).exists(), "{file}");
    }
    for (name, _) in declared() {
        assert!(prefix.join(format!("share/man/man3/{name}.3")).exists(), "{name}");
    }
    for page in ["man7/unisono.7", "man1/unisono.1", "man1/unisono-run.1"] {
        assert!(prefix.join("share/man").join(page).exists(), "{page}");
    }
    assert!(!prefix.join("share/man/man1/unisono-serve.1").exists(), "it is not for users");
    for completion in [
        "bash-completion/completions/unisono",
        "zsh/site-functions/_unisono",
        "fish/vendor_completions.d/unisono.fish",
    ] {
        let text = std::fs::read_to_string(prefix.join("share").join(completion)).unwrap();
        assert!(text.contains("stage-out"), "{completion}");
    }
    let (libraries, include) = (prefix.join("lib"), prefix.join("include"));
    let mut asked = Command::new("pkg-config");
    asked.args(["--cflags", "--libs", "unisono"]);
    asked.env("PKG_CONFIG_PATH", libraries.join("pkgconfig"));
    // Without pkg-config these are the flags that it would have told.
    let flags = match asked.output() {
        Ok(_) => done(asked),
        Err(_) => {
            let (include, libraries) = (include.display(), libraries.display());
            format!("-I{include} -L{libraries} -Wl,-rpath,{libraries} -lunisono")
        }
    };
    let program = servers.path("collective");
    let example = package().join("../../examples/collective.c");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    gcc.arg(example).args(flags.split_whitespace());
    done(gcc);
    let members = (0..3).map(|rank| {
        let mut member = servers.program(&program);
        member.args([&rank.to_string(), "3"]).env_remove("LD_LIBRARY_PATH");
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

/// Programs that `scripts/setup build` runs, and those that they run.
const OF_SETUP: [&str; 22] = [
    "sh", "sed", "awk", "mktemp", "rm", "dirname", "cat", "grep", "head", "tail", "cut", "id",
    "tr", "rustc", "cargo", "cc", "as", "ld", "install", "strip", "readelf", "mkdir",
];

/// `scripts/setup build` with only these programs on the path.
fn setup(folder: &Path, programs: &[&str]) -> std::process::Output {
    let search = std::env::var("PATH").unwrap();
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir(folder).unwrap();
    for program in programs {
        let found = std::env::split_paths(&search).map(|place| place.join(program));
        let found = { found }.find(|path| path.exists());
        let found = found.unwrap_or_else(|| panic!("{program} is not on the path"));
        std::os::unix::fs::symlink(found, folder.join(program)).unwrap();
    }
    let mut script = Command::new(package().join("../../scripts/setup"));
    script.arg("build").env("PATH", folder).output().unwrap()
}

#[test]
fn setup_asks_for_what_it_needs_and_looks_for_it() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("bin");
    // No package manager, no MPI, no Python.
    let passed = setup(&folder, &OF_SETUP);
    let told = [&passed.stdout[..], &passed.stderr].concat();
    assert!(passed.status.success(), "{}", String::from_utf8_lossy(&told));
    let some = |out: &[&str]| -> Vec<&str> {
        OF_SETUP.into_iter().filter(|program| !out.contains(program)).collect()
    };
    let refused = setup(&folder, &some(&["cc", "strip"]));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && told.starts_with("error: "), "{told}");
    assert!(told.contains("\ncause: not found: a C compiler (cc)"), "{told}");
    assert!(told.contains("strip of the binutils"), "{told}");
    assert!(told.contains("\nhelp:  install it") && told.contains("apt install gcc"), "{told}");
    let refused = setup(&folder, &some(&["cargo"]));
    let told = String::from_utf8_lossy(&refused.stderr);
    assert!(told.contains("cause: cargo was not found") && told.contains("rustup.rs"), "{told}");
}

#[test]
fn packages_are_made_below_another_root() {
    let root = tempfile::tempdir().unwrap();
    let shown = root.path().to_str().unwrap();
    done(install(Path::new("/usr"), &["--destdir", shown, "--package", "a test"]));
    let flags = std::fs::read_to_string(root.path().join("usr/lib/pkgconfig/unisono.pc")).unwrap();
    assert!(flags.starts_with("prefix=/usr\n") && !flags.contains("rpath"), "{flags}");
    let command = root.path().join("usr/bin/unisono");
    let bytes = std::fs::metadata(&command).unwrap().len();
    assert!(bytes < INSTALLED_BYTES_MAX, "the installed command has {bytes} bytes");
    let sections = words("readelf", &["-SW"], &command);
    let has_names = sections.iter().flatten().any(|word| word == ".symtab");
    assert!(!has_names, "names of functions are stripped");
    // The command says which package it is of, and its description which C library it needs.
    let mut asked = Command::new(&command);
    asked.arg("--version");
    let told = done(asked);
    let version = env!("CARGO_PKG_VERSION");
    assert!(told.starts_with(&format!("unisono {version}\npackage:  a test\n")), "{told}");
    assert!(told.contains(&format!("build:    profile {} by rustc ", profile())), "{told}");
    assert!(told.contains("\nneeds:    glibc 2."), "{told}");
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
