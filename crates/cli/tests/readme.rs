//! Proves: the program in the README is that of the example, which is compiled; the example writes
//! what it says, by several processes together. The commands of all pages run as printed.

use crate::support;
use client::{ClientId, Connection, Group, Instance, OwnPart};
use std::path::{Path, PathBuf};
use support::Place;
use support::pages::{Example, How, Printed, assert_printed, examples, script};

/// Folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A file of the repository.
fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

#[test]
fn the_program_of_the_readme_is_the_example() {
    let (readme, example) = (text("README.md"), text("examples/collective.rs"));
    let (_, sample) = readme.split_once("```rust\n").unwrap();
    let (sample, _) = sample.split_once("```").unwrap();
    assert!(sample.lines().count() >= 15, "the sample is a whole program:\n{sample}");
    assert!(example.contains(sample), "the README shows another program:\n{sample}");
}

#[test]
fn the_call_of_the_readme_writes_each_block_in_its_place() {
    let place = Place::new();
    place.start(&["--servers", "2"]);
    let instance = Instance::at(place.instance());
    std::thread::scope(|scope| {
        for rank in 0..3_u32 {
            let instance = instance.clone();
            scope.spawn(move || {
                let connection = Connection::open(&instance).unwrap();
                let group = Group::form(&connection, "field writers", rank, 3).unwrap();
                let file = connection.open_or_create("field").unwrap();
                let part = OwnPart::Dealt {
                    distribution: client::Distribution {
                        shape: vec![3000],
                        record_bytes: 8,
                        dimensions: vec![client::Dimension::Block],
                        grid: vec![3],
                        clients: 3,
                    },
                    client: ClientId(rank),
                    file_offset: 0,
                };
                let values = (0..1000_u64).map(|value| value + 1000 * u64::from(rank));
                let block: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
                group.write(&file, &part, &block).unwrap();
                file.close().unwrap();
            });
        }
    });
    let whole: Vec<u8> = (0..3000_u64).flat_map(u64::to_le_bytes).collect();
    assert!(place.run(&["get", "field", "-"]).done().output == whole);
}

/// Pages with examples: those of the root, and of the folder `docs`.
fn pages() -> Vec<PathBuf> {
    let folder = |name: &str| {
        let entries = std::fs::read_dir(root().join(name)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<PathBuf>>()
    };
    let all = [folder("."), folder("docs"), folder("examples")].concat();
    let mut pages: Vec<PathBuf> =
        all.into_iter().filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect();
    pages.sort();
    pages
}

/// Runs the examples of a page in a directory that has links to the pages and the examples.
pub(crate) fn run_page(page: &Path, examples: &[Example]) {
    let place = Place::new();
    for name in ["README.md", "docs", "examples"] {
        std::os::unix::fs::symlink(root().join(name), place.path(name)).unwrap();
    }
    std::fs::create_dir(place.path("tmp")).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_unisono")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = support::program("sh", &["-c", &script(examples)]);
    shell.current_dir(place.path("")).env("TMPDIR", place.path("tmp"));
    shell.env("HOME", place.path("")).env("PATH", format!("{}:{path}", binary.display()));
    let ended = support::run(shell).done();
    assert_printed(page, examples, ended.text());
}

#[test]
fn the_examples_of_every_page_run_as_printed() {
    let mut count = 0;
    for page in pages() {
        let mut all = examples(&std::fs::read_to_string(&page).unwrap());
        all.retain(|example| matches!(example.how, How::Run(_)));
        if !all.is_empty() {
            run_page(&page, &all);
            count += all.len();
        }
    }
    assert!(count >= 8, "only {count} examples are run");
}

/// Pages with code in other languages than that of the shell, each with the test that runs it.
const OTHER_LANGUAGES: [(&str, &str, &str); 6] = [
    ("README.md", "rust", "crates/cli/tests/readme.rs"),
    ("README.md", "python", "python/tests/test_documentation.py"),
    ("docs/python.md", "python", "python/tests/test_documentation.py"),
    ("docs/out-of-core.md", "python", "python/tests/test_documentation.py"),
    ("docs/records.md", "python", "python/tests/test_documentation.py"),
    ("docs/scenarios.md", "toml", "crates/simulate/src/plan/tests.rs"),
];

#[test]
fn no_block_of_a_page_is_left_out() {
    // Proves: each block is one of commands or of text, whose comments other tests read, or its
    // language has a test for this page.
    for page in pages() {
        let name = page.strip_prefix(root()).unwrap().to_str().unwrap();
        let text = text(name);
        let fences = text.lines().filter_map(|line| line.trim_start().strip_prefix("```"));
        for kind in fences.step_by(2) {
            let has_test = OTHER_LANGUAGES.iter().any(|(of, other, test)| {
                (*of, *other) == (name, kind) && root().join(test).is_file()
            });
            assert!(["sh", "text"].contains(&kind) || has_test, "{name}: no test runs `{kind}`");
        }
    }
}

#[test]
fn the_picture_of_the_readme_is_that_of_its_command() {
    let (place, readme) = (Place::new(), text("README.md"));
    let command = "sim --pattern rcb --strategy caching,disk-directed --plot heads.svg";
    assert!(readme.contains(&format!("`unisono {command}`")), "the README has another command");
    let mut drawing = support::unisono(&command.split(' ').collect::<Vec<_>>());
    drawing.current_dir(place.path(""));
    support::run(drawing).done();
    let drawn = std::fs::read_to_string(place.path("heads.svg")).unwrap();
    assert!(drawn == text("docs/pictures/heads.svg"), "replace docs/pictures/heads.svg");
}

#[test]
fn examples_are_read_with_what_the_page_says_of_them() {
    let page = "# T\n\n```sh\na\n```\n\n<!-- printed -->\n```text\n1.5 MiB  in 30 ms\n```\n\
                <!-- not run: it needs a cluster -->\n```sh\nb\n```\n\n<!-- fails: 2 -->\n\
                ```sh\nfalse\n```\n<!-- picture -->\n```text\n--> o\n```\n";
    let found = examples(page);
    let hows: Vec<&How> = found.iter().map(|example| &example.how).collect();
    assert_eq!(hows, [&How::Run(0), &How::NotRun, &How::Run(2)]);
    assert_eq!(found[0].printed, Some(("1.5 MiB  in 30 ms\n".to_owned(), Printed::ButNumbers)));
    assert_eq!((found[0].line, found[1].printed.as_ref()), (3, None));
    let printed = "== output of the block at line 3\n271 MiB in 0.2 s\n";
    assert_printed(Path::new("T"), &found[..1], printed);
    let other = std::panic::catch_unwind(|| {
        assert_printed(Path::new("T"), &found[..1], &printed.replace("MiB", "GiB"));
    });
    assert!(other.is_err(), "other words are found");
    let part = page.replace("<!-- printed -->", "<!-- printed in part -->");
    assert_printed(Path::new("T"), &examples(&part)[..1], &format!("{printed}and more\n"));
    for (right, wrong) in [("<!-- picture -->\n", ""), ("picture", "painting")] {
        let wrong = page.replace(right, wrong);
        assert!(std::panic::catch_unwind(|| examples(&wrong)).is_err(), "{wrong}");
    }
}
