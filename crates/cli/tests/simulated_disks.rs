//! Proves: simulated disks are chosen by name or file, a slip gets an error in three parts, and a
//! trace replayed on a disk gives a demerit and a drawing.

use std::process::{Command, Output};

fn unisono(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_unisono")).args(words).output().unwrap()
}

fn refused(words: &[&str]) -> String {
    let output = unisono(words);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let parts = ["error: ", "\ncause: ", "\nhelp:  "];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    said
}

#[test]
fn disks_have_names() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/disks/hp97560.toml");
    let result = |disk: &str| {
        let words = ["sim", "--pattern", "rb", "--strategy", "disk-directed", "--trials", "1"];
        let small =
            ["--size", "1MiB", "--servers", "2", "--clients", "2", "--json", "--disk", disk];
        let output = unisono(&[&words[..], &small[..]].concat());
        assert!(output.status.success(), "{disk}: {}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        report["results"][0]["mib_s"].as_f64().unwrap()
    };
    assert_eq!(result("hp97560"), result(example));
    assert!(result("nvme") > 10.0 * result("hp97560"));
    assert!(result("analytic") < result("hp97560"), "it has no read-ahead");
    assert!(result("hp-c2200a") < result("hp97560"));

    assert!(refused(&["sim", "--disk", "hp97650"]).contains("did you mean hp97560?"));
    assert!(refused(&["sim", "--disk", "none.toml"]).contains("none.toml"));
}

#[test]
fn traces_are_replayed() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (trace, plot) = (path("trace.csv"), path("plot.svg"));
    let lines: Vec<String> =
        (0..100).map(|index| format!("{},R,{},16,20000", index * 40_000, index * 9_000)).collect();
    std::fs::write(&trace, lines.join("\n")).unwrap();
    let output = unisono(&["sim", "demerit", &trace, "--json", "--plot", &plot]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "unisono.demerit/1");
    assert_eq!((&report["requests"], &report["measured_mean_ms"]), (&100.into(), &20.0.into()));
    let drawn = std::fs::read_to_string(&plot).unwrap();
    assert!(drawn.starts_with("<svg ") && drawn.contains("trace.csv on hp97560: demerit"));
    assert!(drawn.contains(">measured<") && drawn.contains(">model<") && !drawn.contains("NaN"));
    let output = unisono(&["sim", "demerit", &trace, "--disk", "analytic"]);
    assert!(String::from_utf8(output.stdout).unwrap().contains("demerit"));

    std::fs::write(&trace, "0,R,0,16,20000\n1,R,0,16\n").unwrap();
    assert!(refused(&["sim", "demerit", &trace]).contains("cause: line 2: "));
    assert!(refused(&["sim", "demerit", &path("none")]).contains("none"));
}

#[test]
fn calls_on_protected_files_are_simulated() {
    // Proves: each call has a time with each protection; what nothing else has is left out; writes
    // of copies, and a read without a server, take longer; what makes no sense is refused.
    let small = ["sim", "protection", "--clients", "4", "--servers", "5", "--size", "1MiB"];
    let with = |words: &[&'static str]| [&small[..], words].concat();
    let output = unisono(&with(&["--protect", "none,mirror,parity:4", "--json"]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["schema"], "unisono.sim-protection/1");
    let rows = report["rows"].as_array().unwrap();
    let seconds = |call: &str, protection: &str| {
        let row = rows.iter().find(|row| row["call"] == call).unwrap();
        let results = row["results"].as_array().unwrap();
        let found = results.iter().find(|it| it["protection"] == protection)?;
        found["seconds"].as_f64()
    };
    for protection in ["mirror", "parity:4"] {
        let of = |call: &str| seconds(call, protection).unwrap();
        assert!(of("write a new file") > seconds("write a new file", "none").unwrap());
        assert!(of("read without a server") > of("read") && of("fill a lost server again") > 0.0);
    }
    assert_eq!(seconds("read without a server", "none"), None);
    assert_eq!(seconds("fill a lost server again", "none"), None);
    let output = unisono(&with(&[]));
    let text = String::from_utf8(output.stdout).unwrap();
    for words in ["4 clients, 5 servers", "fill a lost server again", "mirror", "parity"] {
        assert!(text.contains(words), "{words:?} is missing: {text}");
    }
    assert!(refused(&with(&["--protect", "parity:5"])).contains("cause: "));
    assert!(refused(&with(&["--set", "none=1"])).contains("none"));
}
