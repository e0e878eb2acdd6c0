//! Proves: `reproduce` runs a part of a published table, says the same on the terminal, in JSON, in
//! CSV, in the report and in docs/validation.md, whatever the number of threads, and refuses what
//! makes no sense before anything is simulated.

use crate::support;
use serde_json::{Value, json};
use std::path::Path;
use support::{Ended, FAILED, USAGE, run, unisono};

/// The fastest cases of the table: one pattern, records of a block.
const SMALL: &str = "reproduce tr94-table4 --only rc:8192 --trials 1";

fn reproduce(words: &str, out: Option<&Path>) -> Ended {
    let mut command = unisono(&words.split_whitespace().collect::<Vec<_>>());
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    run(command)
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).expect("the file is there")
}

/// Cells of the only row.
fn cells(report: &Value) -> &Vec<Value> {
    let rows = report["experiments"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1);
    rows[0]["cells"].as_array().expect("cells")
}

/// True if a field equals a number, but for the last digits that a reader of JSON may lose.
fn is_close(field: &str, number: f64) -> bool {
    field.parse::<f64>().is_ok_and(|field| (field - number).abs() < 1e-9 * number)
}

#[test]
fn every_form_says_the_same() {
    let place = tempfile::tempdir().expect("a folder");
    let shown = reproduce(SMALL, Some(place.path())).done();
    let report = reproduce(&format!("{SMALL} --json"), None).done().json();
    assert_eq!(report["schema"], "unisono.reproduce/1");
    assert_eq!(report["trials"], 1);
    let experiment = &report["experiments"][0];
    assert_eq!(experiment["name"], "tr94-table4");
    let csv = read(place.path(), "tr94-table4.csv");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| lines[0].iter().position(|head| *head == name).expect("a column");
    let html = read(place.path(), "report.html");
    let row = shown.text().lines().find(|line| line.starts_with("rc ")).expect("a row").to_owned();
    let cells = cells(&report);
    assert_eq!((cells.len(), lines.len()), (2, 3), "two methods, and the heads");
    for (cell, line) in cells.iter().zip(&lines[1..]) {
        assert_eq!(line[column("method")], cell["method"].as_str().expect("a name"));
        let simulated = &cell["simulated"];
        let mean = simulated["mean"].as_f64().expect("a mean");
        assert!(is_close(line[column("mib_s")], mean), "one trial is its own mean");
        assert_eq!(line[column("seed")], "1");
        assert_eq!(line[column("digest")], simulated["trials"][0]["digest"].as_str().expect("one"));
        let published = cell["published"].as_f64().expect("this table is published");
        assert!(is_close(line[column("published_mib_s")], published));
        let error = cell["error_percent"].as_f64().expect("both are there");
        assert!((error - (mean / published - 1.0) * 100.0).abs() < 1e-9);
        for number in [format!("{published:.1}"), format!("{mean:.1}"), format!("{error:+.1} %")] {
            assert!(row.contains(&format!(" {number}")), "{number} in {row}");
            assert!(html.contains(&format!(">{number}<")), "{number} in the report");
        }
    }
    assert!(html.contains("<svg") && html.ends_with("</html>\n"));
}

/// Rows of TR94-226, Table 4, that take seconds: those with records of a block, or without records.
const BLOCK_ROWS: &str = "ra,rn,rb:8192,rc:8192,rnb:8192,rbb:8192,rcb:8192,rbc:8192,rcc:8192,\
    rcn:8192,wn,wb:8192,wc:8192,wnb:8192,wbb:8192,wcb:8192,wbc:8192,wcc:8192,wcn:8192";

/// Section of an experiment in a page, from its heading to the next one.
fn section<'a>(page: &'a str, name: &str) -> &'a str {
    let heading = format!("\n## {name}\n");
    let start = page.find(&heading).expect("the page has the section") + 1;
    let end = page[start..].find("\n## ").map_or(page.len(), |length| start + length);
    &page[start..end]
}

#[test]
fn the_validation_page_has_what_is_simulated() {
    let committed = include_str!("../../../docs/validation.md");
    let stale = "docs/validation.md is stale: run \
                 `unisono reproduce all --markdown docs/validation.md`";
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("page.md");
    let page = |words: &str| {
        reproduce(&format!("reproduce {words} --markdown {}", file.display()), None).done();
        std::fs::read_to_string(&file).expect("the page is written")
    };
    let whole = page("cai-table2 tocs-fig10");
    assert_eq!(section(committed, "cai-table2"), section(&whole, "cai-table2"), "{stale}");
    let stated: Vec<&str> =
        whole.lines().filter(|line| line.starts_with("| tocs-fig10 |")).collect();
    assert_eq!(stated.len(), 2, "two figures that the text states");
    for row in stated {
        assert!(committed.lines().any(|line| line == row), "{row}\n{stale}");
    }
    let part = page(&format!("tr94-table4 --only {BLOCK_ROWS}"));
    let table = section(committed, "tr94-table4");
    let rows: Vec<&str> = part.lines().filter(|line| line.starts_with("| `")).collect();
    for row in &rows {
        assert!(table.lines().any(|line| line == *row), "{row}\n{stale}");
    }
    assert_eq!(rows.len(), 19, "one row for each pattern");
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let digests = |jobs: u32| {
        let words = format!("reproduce tocs-fig5 --only rc --trials 2 --jobs {jobs} --json");
        let report = reproduce(&words, None).done().json();
        let digest = |trial: &Value| trial["digest"].as_str().map(str::to_owned);
        let trials =
            cells(&report).iter().filter_map(|cell| cell["simulated"]["trials"].as_array());
        let digests: Vec<_> = trials.flatten().map(digest).collect();
        assert!(digests.len() >= 6, "at least three methods, two trials each");
        digests
    };
    assert_eq!(digests(1), digests(3));
}

#[test]
fn nonsense_is_refused() {
    let refused = |words: &str, code, told: &[&str]| reproduce(words, None).refused(code, told);
    refused("reproduce tr94-tabel4", USAGE, &["tr94-tabel4", "tr94-table4"]);
    refused("reproduce tr94-table4 --trials 0", USAGE, &["--trials"]);
    refused("reproduce tr94-table4 --jobs 0", USAGE, &["--jobs"]);
    refused("reproduce tr94-table4 --only zz", USAGE, &["zz"]);
    refused("reproduce tr94-table4 --only rc:64", USAGE, &["--only"]);
    refused("reproduce", USAGE, &[]);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_first() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let page = file.path().join("page.md").display().to_string();
    let words = format!("reproduce all --trials 1000 --markdown {page}");
    reproduce(&words, None).refused(FAILED, &["cannot write", &page]);
    // All experiments would take far longer than a test is patient.
    let ended = reproduce("reproduce all --trials 1000", Some(file.path()));
    ended.refused(FAILED, &["cannot write", &file.path().display().to_string()]);
}

#[test]
fn a_study_of_programs_says_the_same_in_text_and_json() {
    let words = "reproduce piosim-btio-ranking --trials 1";
    let shown = reproduce(words, None).done();
    let report = reproduce(&format!("{words} --json"), None).done().json();
    assert_eq!(report["schema"], "unisono.study/1");
    let study = &report["programs"][0];
    assert_eq!((&study["name"], &study["trials"]), (&"piosim-btio-ranking".into(), &1.into()));
    let rows = study["rows"].as_array().expect("rows");
    assert!(!rows.is_empty());
    for row in rows {
        let label = row["label"].as_str().expect("a label");
        let line = shown.text().lines().find(|line| line.starts_with(label)).expect("a line");
        for cell in row["cells"].as_array().expect("cells") {
            let seconds = format!("{:.3}", cell["seconds"].as_f64().expect("seconds"));
            assert!(line.split_whitespace().any(|word| word == seconds), "{line}: {seconds}");
        }
    }
    for claim in study["claims"].as_array().expect("claims") {
        let text = format!("{}: holds in", claim["claim"].as_str().expect("a claim"));
        assert!(shown.text().contains(&text), "{text}");
    }
    let place = tempfile::tempdir().expect("a folder");
    reproduce(words, Some(place.path())).refused(USAGE, &["a study has no files"]);
}

#[test]
fn the_study_of_protection_has_rates_and_their_bounds() {
    let words = "reproduce protection --trials 1";
    let shown = reproduce(words, None).done();
    let report = reproduce(&format!("{words} --json"), None).done().json();
    let study = &report["protections"][0];
    assert_eq!(study["columns"], json!(["none", "mirror", "parity:2", "parity:4", "parity:8"]));
    for row in study["rows"].as_array().expect("rows") {
        let label = row["label"].as_str().expect("a label");
        let is_of = |line: &&str| line.starts_with(&format!("{label}  "));
        let lines = shown.text().lines().filter(is_of);
        let [rates, shares]: [&str; 2] = lines.collect::<Vec<_>>().try_into().expect("two lines");
        for cell in row["cells"].as_array().expect("cells") {
            let number = |key: &str| cell[key].as_f64();
            let Some((rate, share)) = number("mib_s").zip(number("share")) else {
                let loses = ["read without a server", "fill a lost server again"];
                assert!(loses.iter().any(|it| label.ends_with(it)) && shares.contains(" - "));
                continue;
            };
            let bound = number("bound").expect("a bound");
            assert!(rates.contains(&format!(" {rate:.2}")), "{rates}: {rate}");
            assert!(shares.contains(&format!(" {share:.2} of {bound:.2}")), "{shares}: {share}");
        }
    }
}
