//! Proves: `run` starts servers for one program, keeps its exit code, reports on one screen, copies
//! every file out or keeps the data, and leaves no process and no file behind, also after signals.

use crate::support;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{
    Ended, FAILED, Place, Running, USAGE, children_of, processes_naming, run, signal, unisono,
    until,
};

/// Exit code of a run whose files were not staged out.
const NOT_STAGED_OUT: i32 = 7;

/// Seconds that `run` keeps for staging out.
const MARGIN: u64 = 60;

/// Report lines of one of two processes.
fn report_lines() -> String {
    let lines = [
        json!({ "line": "process", "rank": 0, "size": 2, "host": "h", "pid": 1,
                "mpi": "MPICH 4.0.2", "seconds": 2.0 }),
        json!({ "line": "file", "name": "field", "opens": 1, "method": "disk-directed",
                "hints": { "unisono_method": "auto" },
                "rejected": "cb_node(unknown; did you mean cb_nodes?)" }),
        json!({ "line": "calls", "file": "field", "op": "write", "form": "collective", "why": "",
                "calls": 10, "bytes": 3_000_000, "copied": 0, "seconds": 0.5,
                "first_at": 1_764_000_000.1, "last_at": 1_764_000_003.1, "waited": 0.1 }),
        json!({ "line": "calls", "file": "a/rather/long/name/of/a/file", "op": "read",
                "form": "independent", "why": "the program called MPI_File_read_at", "calls": 7,
                "bytes": 70, "copied": 70, "seconds": 0.25, "waited": 0 }),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A directory for runs: with an input, report lines, and a folder for everything temporary.
struct Site {
    place: Place,
    input: Vec<u8>,
}

impl Site {
    fn new() -> Self {
        let (place, input) = (Place::new(), support::bytes((3 << 20) + 5));
        place.file("input", &input);
        place.file("lines", report_lines().as_bytes());
        std::fs::create_dir(place.path("tmp")).expect("a test must have room");
        Self { place, input }
    }

    /// `unisono run` with options and a program.
    fn command(&self, options: &[&str], program: &[&str]) -> Command {
        let words = [&["run", "--no-preload", "--servers", "2"], options, &["--"], program];
        let mut command = unisono(&words.concat());
        command.current_dir(self.place.path("")).env("TMPDIR", self.place.path("tmp"));
        command.env("UNISONO", env!("CARGO_BIN_EXE_unisono"));
        // Not in the foreground of a terminal, so that a signal for one is not for all.
        command.process_group(0);
        command
    }

    /// Runs a script for the shell as the program. `$UNISONO` is the command.
    fn run(&self, options: &[&str], script: &str) -> Ended {
        run(self.command(options, &["sh", "-c", script]))
    }

    /// Proves that no process and no temporary file is left.
    #[track_caller]
    fn assert_clean(&self) {
        assert_eq!(processes_naming(&self.place.path("")), [0_u32; 0]);
        assert_eq!(names(&self.place.path("tmp")), [""; 0]);
    }

    #[track_caller]
    fn assert_input(&self, path: &Path) {
        let found = std::fs::read(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert!(found == self.input, "{path:?} is the input");
    }
}

/// Names in a directory, in order.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("it is there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("it is there").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

/// Writes the input and the report lines, as an MPI program would.
const WRITE: &str = "$UNISONO put input runs/field >/dev/null && \
                     $UNISONO put lines .unisono/report/h-1.jsonl >/dev/null";

#[test]
fn files_are_copied_out_and_the_screen_is_small() {
    let site = Site::new();
    let ended = site.run(&["--stage-out", "out"], &format!("{WRITE} && echo own output")).done();
    site.assert_input(&site.place.path("out/runs/field"));
    assert_eq!(names(&site.place.path("out")), ["runs"], "the command's own files stay inside");
    let text = ended.text();
    let screen = text.strip_prefix("own output\n").expect("the program comes first");
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines.len() <= 24, "{screen}");
    for line in &lines {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for words in [
        "2 servers, 2 ranks, MPICH 4.0.2",
        "exit code 0",
        "stored  once: a lost data directory loses files",
        "write   2.9 MiB     10 collective",
        "independent: the program called MPI_File_read_at",
        "of 1 of 2 ranks",
        "MiB/s (page cache)",
        "every byte of 1 file",
        "rejected cb_node(unknown; did you mean cb_nodes?)",
        "1 file, 3.0 MiB in",
        "servers stopped",
    ] {
        assert!(screen.contains(words), "{words:?} is missing in\n{screen}");
    }
    site.assert_clean();
}

#[test]
fn the_report_says_what_is_mirrored() {
    let site = Site::new();
    let ended = site.run(&["--discard", "--protect", "mirror"], WRITE).done();
    let told = "stored  twice: the loss of any one server loses nothing";
    assert!(ended.text().contains(told), "{}", ended.text());
    let json = site.run(&["--discard", "--protect", "mirror", "--json"], WRITE).done().json();
    let stored = ["files", "mirrored", "files_behind"].map(|key| json["stored"][key].clone());
    assert_eq!(stored, [1, 1, 0].map(Value::from), "{json}");
    let protection = &json["stored"]["protection"];
    // The files of the report count too.
    assert!(protection["bytes"].as_u64() >= json["stored"]["bytes"].as_u64(), "{json}");
    assert_eq!(protection["protected_bytes"], protection["bytes"], "{json}");
}

#[test]
fn the_report_is_one_json_object() {
    let site = Site::new();
    let options = ["--stage-out", "out", "--json", "--no-limit"];
    let ended = site.run(&options, &format!("{WRITE} && echo own output && exit 3")).code(3);
    assert!(ended.error.contains("own output"), "{}", ended.error);
    let report = ended.json();
    assert_eq!(report["schema"], "unisono.run/1");
    assert_eq!((&report["exit_code"], &report["program"]["exit_code"]), (&3.into(), &3.into()));
    assert_eq!(report["ranks"]["expected"], 2);
    assert_eq!(report["calls"][0]["calls"], 10);
    assert_eq!(report["place"]["files"], 1);
    assert_eq!((&report["checked"], &report["limit"]), (&true.into(), &Value::Null));
    let moved = report["servers"].as_array().expect("servers").iter();
    let moved: u64 = moved.filter_map(|server| server["bytes_moved"].as_u64()).sum();
    assert!(moved >= site.input.len() as u64, "{report}");
    site.assert_clean();
}

#[test]
fn exit_codes_are_those_of_the_program() {
    let site = Site::new();
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill $$", 143)] {
        let ended = site.run(&[], script).code(code);
        assert!(ended.text().contains("files   none; servers stopped"), "{}", ended.text());
        let calls = match code {
            0 => "calls   none of MPI-IO",
            _ => "calls   not known: the program ended before its processes left a report",
        };
        assert!(ended.text().contains(calls), "{}", ended.text());
    }
    site.assert_clean();
    assert_eq!(names(&site.place.path("")), ["input", "lines", "tmp"]);
}

#[test]
fn nothing_is_started_for_a_program_that_is_not_there() {
    let site = Site::new();
    run(site.command(&[], &["no-such-program"])).refused(127, &["no-such-program", "no such"]);
    run(site.command(&[], &["./none"])).refused(127, &["./none"]);
    run(site.command(&[], &["./input"])).refused(126, &["./input", "not executable"]);
    run(site.command(&["--stage-out", "input"], &["true"])).refused(USAGE, &["input"]);
    run(site.command(&["--until", "noon"], &["true"])).refused(USAGE, &["noon"]);
    run(site.command(&["--no-stage-out-of", "["], &["true"])).refused(USAGE, &["pattern"]);
    let mut rank = site.command(&[], &["true"]);
    rank.env("PMI_SIZE", "4");
    let refused = run(rank).refused(USAGE, &["4 processes"]);
    assert!(refused.error.contains("unisono run -- mpiexec"), "{}", refused.error);
    let script = site.place.path("bin/unisono");
    std::fs::create_dir(site.place.path("bin")).expect("a test must have room");
    std::fs::copy(env!("CARGO_BIN_EXE_unisono"), &script).expect("a test must have room");
    let mut lost = support::program(&script, &["run", "true"]);
    lost.env("TMPDIR", site.place.path("tmp"));
    run(lost).refused(FAILED, &["libunisono-mpi.so", "bin/../lib"]);
    site.assert_clean();
}

#[test]
fn signals_go_to_the_program_and_its_files_are_saved() {
    for (script, sent, code) in [
        ("trap 'exit 9' INT; touch begun; while :; do sleep 0.05; done", Signal::INT, 9),
        ("touch begun; exec sleep 1000", Signal::TERM, 143),
    ] {
        let site = Site::new();
        let script = format!("{WRITE}; {script}");
        let running = Running::start(site.command(&["--stage-out", "out"], &["sh", "-c", &script]));
        let begun = site.place.path("begun");
        until("the program has begun", || begun.exists().then_some(()));
        signal(running.pid(), sent);
        let ended = running.end().code(code);
        assert!(ended.text().contains("the signal went to the program"), "{}", ended.text());
        site.assert_input(&site.place.path("out/runs/field"));
        site.assert_clean();
    }
}

#[test]
fn data_is_kept_when_it_cannot_be_copied_out() {
    let site = Site::new();
    // Copies to the device fail, as on a disk that is full.
    let full = format!("{WRITE} && mkdir -p out/runs && ln -s /dev/full out/runs/field");
    let options = ["--stage-out", "out", "--overwrite", "--json"];
    let ended = site.run(&options, &full).code(NOT_STAGED_OUT);
    let report = ended.json();
    assert_eq!((&report["exit_code"], &report["place"]["is"]), (&7.into(), &"data".into()));
    for words in ["error: not all files are staged out", "No space left", "help:  the data is kept"]
    {
        assert!(ended.error.contains(words), "{}", ended.error);
    }
    let instance = PathBuf::from(report["instance"].as_str().expect("a path"));
    assert!(ended.error.contains(&format!("--instance {}", instance.display())));
    let command = |words: &[&str]| {
        let mut command = unisono(words);
        command.current_dir(site.place.path("")).arg("--instance").arg(&instance);
        run(command)
    };
    command(&["start", "--servers", "2"]).done();
    command(&["get", "runs/field", "saved"]).done();
    site.assert_input(&site.place.path("saved"));
    command(&["stop"]).done();
}

#[test]
fn files_of_another_run_are_not_replaced() {
    let site = Site::new();
    site.place.file("other", b"newer");
    let again = "$UNISONO put other runs/field >/dev/null && $UNISONO put other new >/dev/null";
    let out = ["--stage-out", "out"];
    site.run(&out, WRITE).done();
    let ended = site.run(&[&out[..], &["--json"]].concat(), again).code(NOT_STAGED_OUT);
    assert!(ended.error.contains("out/runs/field is there already"), "{}", ended.error);
    assert!(ended.error.contains("help:  the data is kept: unisono start"), "{}", ended.error);
    site.assert_input(&site.place.path("out/runs/field"));
    assert_eq!(names(&site.place.path("out")), ["runs"], "no file is copied if one cannot be");
    let instance = ended.json()["instance"].as_str().expect("a path").to_owned();
    std::fs::remove_dir_all(instance).expect("the data is kept");
    site.run(&[&out[..], &["--overwrite"]].concat(), again).done();
    let replaced = std::fs::read(site.place.path("out/runs/field")).expect("it is there");
    assert_eq!(replaced, b"newer");
    site.assert_clean();
}

#[test]
fn a_run_that_would_replace_a_file_is_refused_before_it_starts() {
    let site = Site::new();
    let refused = |options: &[&str], program: &[&str]| {
        let ended = run(site.command(options, program)).refused(USAGE, &["input is there already"]);
        assert!(ended.error.contains("--overwrite"), "{}", ended.error);
        site.assert_clean();
    };
    refused(&["--stage-out", "."], &["true", "--file=unisono://input,x"]);
    refused(&["--stage-out", ".", "--stage-in", "input"], &["true"]);
    let options = ["--stage-out", ".", "--stage-in", "input", "--no-stage-out-of", "input"];
    run(site.command(&options, &["true"])).done();
    site.assert_clean();
}

#[test]
fn files_without_a_target_go_to_a_new_directory() {
    let site = Site::new();
    let ended = site.run(&[], WRITE).done();
    assert!(ended.text().contains("--stage-out DIR was not given"), "{}", ended.text());
    let made =
        names(&site.place.path("")).into_iter().find(|name| name.starts_with("unisono-run-"));
    let made = made.expect("a directory was made");
    site.assert_input(&site.place.path(&format!("{made}/runs/field")));
    assert!(ended.text().contains(&made), "{}", ended.text());
    std::fs::remove_dir_all(site.place.path(&made)).expect("it is there");
    let ended = site.run(&["--discard"], WRITE).done();
    assert!(ended.text().contains("1 file discarded"), "{}", ended.text());
    assert_eq!(names(&site.place.path("")), ["input", "lines", "tmp"]);
    site.assert_clean();
}

#[test]
fn named_data_directories_remain() {
    let site = Site::new();
    let options = ["--data", "d0", "--data", "d1"];
    let ended = site.run(&options, WRITE).done();
    let again = "unisono start --servers 2 --data d0 --data d1";
    assert!(ended.text().contains(again), "{}", ended.text());
    site.assert_clean();
    let words: Vec<&str> = again.split(' ').skip(1).collect();
    site.place.run(&words).done();
    assert_eq!(site.place.run(&["get", "runs/field", "-"]).done().output, site.input);
    site.place.run(&["stop"]).done();
}

#[test]
fn inputs_are_staged_in_and_need_not_be_staged_out() {
    let site = Site::new();
    let options = ["--stage-in", "input", "--stage-out", "out", "--no-stage-out-of", "inp*"];
    let ended = site.run(&options, "$UNISONO cp unisono://input unisono://result").done();
    assert!(ended.error.contains("1 file staged in"), "{}", ended.error);
    assert!(ended.text().contains("1 left out"), "{}", ended.text());
    assert_eq!(names(&site.place.path("out")), ["result"]);
    site.assert_input(&site.place.path("out/result"));
    site.assert_clean();
}

#[test]
fn redirected_names_are_those_of_the_working_directory() {
    // Proves: what UNISONO_MATCH redirects is staged in under the path by which the program opens
    // it; what has a name below the working directory is staged out from there, also in patterns.
    let site = Site::new();
    let options = ["--stage-in", "input", "--stage-out", "out", "--no-stage-out-of", "deep/*.tmp"];
    let script = "here=$(pwd -P) && $UNISONO cp unisono:$here/input unisono:$here/deep/field && \
                  $UNISONO cp unisono:$here/input unisono:$here/deep/x.tmp && \
                  $UNISONO cp unisono:$here/input unisono://elsewhere/field";
    let mkdir = format!("$UNISONO mkdir -p elsewhere $(pwd -P)/deep && {script}");
    let mut command = site.command(&options, &["sh", "-c", &mkdir]);
    command.env("UNISONO_MATCH", "none,*/inp*");
    let ended = run(command).done();
    assert!(ended.text().contains("1 left out"), "{}", ended.text());
    for path in ["out/input", "out/deep/field", "out/elsewhere/field"] {
        site.assert_input(&site.place.path(path));
    }
    assert_eq!(names(&site.place.path("out")), ["deep", "elsewhere", "input"]);
    assert_eq!(names(&site.place.path("out/deep")), ["field"]);
    site.assert_clean();
    // Two files that would have one place keep their whole names.
    let script = "$UNISONO mkdir -p $(pwd -P) && $UNISONO put input $(pwd -P)/f && \
                  $UNISONO put input f";
    site.run(&["--stage-out", "both"], script).done();
    site.assert_input(&site.place.path("both/f"));
    let whole = site.place.path("").canonicalize().expect("it is there").join("f");
    site.assert_input(&site.place.path("both").join(whole.strip_prefix("/").expect("absolute")));
}

#[test]
fn servers_run_on_the_hosts_of_a_file() {
    let site = Site::new();
    site.place.file("hosts", b"127.0.0.2\n127.0.0.3\n");
    std::fs::create_dir(site.place.path("work")).expect("a test must have room");
    let scratch = site.place.path("tmp");
    let script =
        format!("#!/bin/sh\nshift\ncd / && exec env -i TMPDIR={} \"$@\"\n", scratch.display());
    let launcher = site.place.script("launcher", &script);
    let options = [
        "--hostfile",
        "../hosts",
        "--launcher",
        launcher.to_str().expect("UTF-8"),
        "--wire",
        "private",
        "--stage-out",
        "../out",
    ];
    let script = "$UNISONO put ../input runs/field >/dev/null";
    let mut command = site.command(&options, &["sh", "-c", script]);
    command.current_dir(site.place.path("work"));
    let ended = run(command).done();
    assert!(ended.text().contains("servers stopped"), "{}", ended.text());
    assert!(ended.text().contains("TCP, private (encrypted)"), "{}", ended.text());
    site.assert_input(&site.place.path("out/runs/field"));
    assert_eq!(processes_naming(&site.place.path("")), [0_u32; 0]);
    assert_eq!(names(&site.place.path("work")), [""; 0], "the private directory is removed");
    // So are the data directories of the hosts.
    site.assert_clean();
}

/// Proves that a program is asked to end before its time does, and its files are copied out.
/// `limit` gives options and variables that limit the run to a number of seconds.
#[track_caller]
fn assert_asked_in_time(limit: impl Fn(&Site, u64) -> (Vec<String>, Vec<(&'static str, String)>)) {
    let script = format!("trap '{WRITE}; exit 5' TERM; echo ready; while :; do sleep 0.05; done");
    // On a busy machine, the time for the program may be over before the shell has set its trap.
    let asked_when_ready = [1, 4, 16, 64].into_iter().find_map(|seconds| {
        let site = Site::new();
        let (limited, variables) = limit(&site, MARGIN + seconds);
        let mut options = vec!["--stage-out", "out", "--json"];
        options.extend(limited.iter().map(String::as_str));
        let mut command = site.command(&options, &["sh", "-c", &script]);
        command.envs(variables);
        let ended = run(command);
        ended.error.contains("ready").then_some((site, ended))
    });
    let (site, ended) = asked_when_ready.expect("a shell starts within a minute");
    let ended = ended.code(5);
    assert_eq!(ended.json()["program"]["time_ran_short"], true);
    site.assert_input(&site.place.path("out/runs/field"));
    site.assert_clean();
}

#[test]
fn the_program_is_asked_to_end_before_the_time_does() {
    assert_asked_in_time(|_, seconds| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let until = now.expect("a clock").as_secs() + seconds;
        (vec!["--until".to_owned(), until.to_string()], Vec::new())
    });
}

#[test]
fn the_end_of_a_slurm_job_is_asked_for() {
    // Proves: without the variable, which older versions of Slurm do not set, squeue is asked.
    assert_asked_in_time(|site, seconds| {
        let left = format!("{}:{:02}", seconds / 60, seconds % 60);
        site.place.script("squeue", &format!("#!/bin/sh\necho {left}\n"));
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", site.place.path("").display());
        let job = [("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "localhost")];
        let job = job.map(|(name, value)| (name, value.to_owned()));
        (Vec::new(), [vec![("PATH", path)], job.to_vec()].concat())
    });
}

#[test]
fn files_are_staged_out_when_slurm_ends_the_job() {
    // Proves: after SIGTERM to every process of the job, as Slurm sends it to a job that ends, the
    // servers go on, the program writes its last file, and it is copied out.
    for memory in [&[][..], &["--memory", "64MiB"]] {
        let site = Site::new();
        site.place.script("squeue", "#!/bin/sh\necho COMPLETING\n");
        site.place.script("scontrol", "#!/bin/sh\necho 'KillWait = 600 sec'\n");
        let script =
            format!("trap '{WRITE}; exit 5' TERM; touch begun; while :; do sleep 0.05; done");
        let options = [&["--stage-out", "out"], memory].concat();
        let mut command = site.command(&options, &["sh", "-c", &script]);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", site.place.path("").display()));
        command.env("SLURM_JOB_ID", "7").env("SLURM_JOB_NODELIST", "localhost");
        let running = Running::start(command);
        let begun = site.place.path("begun");
        until("the program has begun", || begun.exists().then_some(()));
        let others = processes_naming(&site.place.path("tmp"));
        assert!(others.len() >= 2, "there are servers");
        let program = children_of(running.pid(), &script);
        assert_eq!(program.len(), 1, "the program runs");
        others.into_iter().chain(program).for_each(|pid| signal(pid, Signal::TERM));
        signal(running.pid(), Signal::TERM);
        let ended = running.end().code(5);
        assert!(ended.text().contains("servers stopped"), "{}", ended.text());
        site.assert_input(&site.place.path("out/runs/field"));
        site.assert_clean();
    }
}

#[test]
fn a_killed_run_leaves_its_data() {
    // Proves: after `run` was killed (-9), its servers write everything back and end. As the page
    // of `run` says, an instance is started on the directory that `run` named, the files are
    // copied out, and the directory is removed.
    let site = Site::new();
    let (errors, ready) = (site.place.path("errors"), site.place.path("ready"));
    let script = "touch ready; exec sleep 86398";
    let mut command = site.command(&["--stage-in", "input"], &["sh", "-c", script]);
    command.stderr(std::fs::File::create(&errors).unwrap());
    let running = Running::start_as_is(command);
    until("the program runs", || ready.exists().then_some(()));
    let named = std::fs::read_to_string(&errors).unwrap();
    let instance = named.split_whitespace().skip_while(|word| *word != "instance").nth(1);
    let instance = PathBuf::from(instance.expect("run names its instance").trim_end_matches(','));
    assert!(instance.starts_with(site.place.path("tmp")), "{named}");
    // Held by servers, and on no disk yet.
    let content = support::bytes(700_001);
    let options = client::ConnectionOptions::with_pool(1 << 20);
    let library = client::Connection::open_with(&client::Instance::at(&instance), options).unwrap();
    let file = library.create("written", 0, 65536, client::Buffering::default()).unwrap();
    file.write_at(&content, 0).unwrap();
    let program = until("sleep runs", || children_of(running.pid(), "86398").first().copied());
    signal(running.pid(), Signal::KILL);
    assert_eq!(running.end().exit_code(), None, "it was killed");
    signal(program, Signal::KILL);
    until("the servers end", || processes_naming(&instance).is_empty().then_some(()));
    let on_it = |words: &[&str]| {
        let mut command = unisono(words);
        command.current_dir(site.place.path("")).arg("--instance").arg(&instance);
        run(command).done()
    };
    on_it(&["start", "--servers", "2"]);
    on_it(&["cp", "-r", "unisono://", "out"]);
    let stopped = on_it(&["stop"]);
    site.assert_input(&site.place.path("out/input"));
    assert!(std::fs::read(site.place.path("out/written")).unwrap() == content);
    assert!(stopped.text().contains(&format!("rm -r {}", instance.display())));
    std::fs::remove_dir_all(&instance).unwrap();
    site.assert_clean();
}
