//! `make accuracy`: measures how far predictions of `unisono what-if` are from what programs take,
//! and writes docs/accuracy.md and the residuals that predictions state.
//!
//! ```text
//! program ──record──▶ trace ──replay──▶ real servers        each under the servers and the strategy
//!    │                  └────what-if──▶ simulated servers   of the recording, and under two others
//!    └─ run again under the other servers and strategies
//! ```
//!
//! The machine is calibrated first. Runs of all settings of a case take turns, in rounds.

mod cases;
mod page;

use cases::{Case, RANKS, RECORDED, Setting, Source, patterns, recorded};
use measure::{Kind, Measurement, Residuals, Row, median};
use mpi::{Servers, built, done, prefix, python, root};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use units::SplitMix64;

/// A pattern on real and on simulated servers.
pub(crate) struct PatternRow {
    pub(crate) name: String,
    pub(crate) strategy: &'static str,
    pub(crate) real: Measurement,
    pub(crate) simulated: f64,
}

/// What the command line asks for.
struct Options {
    /// Repeats of patterns, and of programs.
    repeats: [u32; 2],
    /// Only cases whose names begin so.
    only: String,
    /// A calibration that is there; none: one is made.
    scenario: Option<PathBuf>,
    /// Folder of the results.
    output: PathBuf,
    /// True to replace the page and the residuals of the repository.
    publishes: bool,
}

impl Options {
    fn read() -> Result<Self, String> {
        let output = built().parent().unwrap_or(Path::new(".")).join("accuracy");
        let (only, scenario) = (String::new(), None);
        let mut options = Self { repeats: [11, 5], only, scenario, output, publishes: false };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} takes a value"));
            let number = |value: String| value.parse().map_err(|_| format!("{word}: {value}?"));
            match word.as_str() {
                "--pattern-repeats" => options.repeats[0] = number(value()?)?,
                "--repeats" => options.repeats[1] = number(value()?)?,
                "--only" => options.only = value()?,
                "--scenario" => options.scenario = Some(value()?.into()),
                "--output" => options.output = value()?.into(),
                "--publish" => options.publishes = true,
                _ => return Err(format!("there is no option {word}")),
            }
        }
        match options.repeats.contains(&0) {
            false => Ok(options),
            true => Err("a case is measured at least once".to_owned()),
        }
    }
}

/// Programs, servers and the simulated machine.
struct Bench {
    folder: PathBuf,
    /// Calibrated machine, through the page cache and past it.
    scenarios: [PathBuf; 2],
}

/// What is compared in one setting.
struct Measured {
    program: Vec<f64>,
    replay: Vec<f64>,
    simulated: f64,
    kind: Kind,
}

impl Bench {
    fn new(options: &Options) -> Self {
        let folder = options.output.clone();
        let scenario = options.scenario.clone().unwrap_or_else(|| {
            println!("calibrating; keep the machine idle");
            let scenario = folder.join("this-machine.toml");
            let mut calibrate = unisono();
            calibrate.args(["sim", "calibrate", "--output"]).arg(&scenario);
            println!("{}", done(calibrate));
            scenario
        });
        let direct = direct_scenario(&scenario, &folder);
        let kernels = root().join("mpi/bench/accuracy/kernels.c");
        mpi::Family::Mpich.compile(&kernels, &folder.join("kernels"), &["-O2", "-lm"]);
        Self { folder, scenarios: [scenario, direct] }
    }

    fn trace(&self) -> PathBuf {
        self.folder.join("case.trace")
    }

    /// Starts servers with empty data.
    fn servers(&self, servers: u32, is_direct: bool) -> Servers {
        let count = servers.to_string();
        let mut words = vec!["--servers", &count];
        words.extend(is_direct.then_some("--direct"));
        Servers::start_as(&self.folder, &words)
    }

    /// Runs the program of a case once; records it if asked. Returns its seconds.
    fn run(&self, case: &Case, setting: Setting, records: bool) -> f64 {
        let servers = self.servers(setting.servers, case.is_direct);
        let family = case.source.family();
        let mut command = match records {
            true => servers.unisono(&["record", "--force", "--output"]),
            false => servers.mpiexec(family, RANKS),
        };
        if records {
            let start = family.mpiexec(RANKS);
            command.arg(self.trace()).arg("--").arg(start.get_program()).args(start.get_args());
            command.envs(start.get_envs().filter_map(|(name, value)| Some((name, value?))));
        }
        let words = match &case.source {
            Source::C(words) => {
                command.arg(self.folder.join("kernels"));
                words
            }
            Source::Python(words) => {
                command.arg("/usr/bin/python3");
                command.arg(root().join("mpi/bench/accuracy/kernels.py"));
                words
            }
            Source::Pattern(words) => words,
        };
        command.arg("unisono://accuracy").args(words.split(' '));
        command.env("UNISONO_METHOD", setting.strategy);
        let text = done(command);
        let seconds = text.lines().find_map(|line| line.strip_prefix("seconds ")?.parse().ok());
        seconds.unwrap_or_else(|| panic!("{case:?} does not say its seconds:\n{text}"))
    }

    /// Carries the trace out on real servers; returns the seconds of each run.
    fn replay(&self, case: &Case, setting: Setting, repeats: u32) -> Vec<f64> {
        let servers = self.servers(setting.servers, case.is_direct);
        let mut replay = servers.unisono(&["replay", "--json", "--strategy", setting.strategy]);
        replay.args(["--repeat", &repeats.to_string(), "--instance"]);
        replay.arg(servers.path("instance")).arg(self.trace());
        let report = json(&done(replay));
        let runs = report["runs"].as_array().into_iter().flatten();
        runs.filter_map(|run| run["seconds"].as_f64()).collect()
    }

    /// Carries the trace out on simulated servers; returns its seconds and its kind.
    fn simulate(&self, case: &Case, setting: Setting) -> (f64, Kind) {
        let mut simulate = unisono();
        simulate.args(["what-if", "--json", "--warm-files", "--scenario"]);
        simulate.arg(&self.scenarios[usize::from(case.is_direct)]);
        simulate.args(["--servers", &setting.servers.to_string()]);
        simulate.args(["--strategy", setting.strategy]).arg(self.trace());
        let report = json(&done(simulate));
        let point = &report["points"][0];
        let seconds = point["seconds"].as_f64().unwrap_or_default();
        let kind = serde_json::from_value(point["kind"].clone());
        (seconds, kind.unwrap_or_else(|error| panic!("{error}: {point}")))
    }

    /// Measures a case: the setting of the recording, and the others.
    fn measure(&self, case: &Case, repeats: u32) -> Vec<Row> {
        let settings = [RECORDED, case.others[0], case.others[1]];
        let first = self.run(case, RECORDED, true);
        let mut measured = settings.map(|setting| {
            let (simulated, kind) = self.simulate(case, setting);
            Measured { program: Vec::new(), replay: Vec::new(), simulated, kind }
        });
        println!("  recorded: {first:.3} s");
        for _ in 0..repeats {
            for (setting, measured) in settings.into_iter().zip(&mut measured) {
                measured.program.push(self.run(case, setting, false));
                measured.replay.extend(self.replay(case, setting, 1));
            }
        }
        let row = |(setting, measured): (Setting, Measured)| Row {
            program: case.name.clone(),
            servers: setting.servers,
            strategy: setting.strategy.to_owned(),
            is_direct: case.is_direct,
            is_what_if: setting != RECORDED,
            kind: measured.kind,
            program_seconds: measurement(&measured.program),
            replay_seconds: measurement(&measured.replay),
            simulated_seconds: measured.simulated,
        };
        settings.into_iter().zip(measured).map(row).collect()
    }

    /// Makes the trace of a pattern and simulates it.
    fn pattern(&self, case: &Case, setting: Setting) -> f64 {
        let Source::Pattern(words) = &case.source else { return 0.0 };
        let words: Vec<&str> = words.split(' ').collect();
        let [pattern, record, repeat, more @ ..] = words.as_slice() else { return 0.0 };
        let _ = std::fs::remove_dir_all(self.trace());
        let mut make = unisono();
        make.args(["trace", "pattern", "--pattern", pattern, "--record", record]);
        make.args(["--repeat", repeat, "--ranks", &RANKS.to_string()]).args(more);
        done({
            make.arg("--output").arg(self.trace());
            make
        });
        self.simulate(case, setting).0
    }
}

/// The installed program.
fn unisono() -> Command {
    let mut command = Command::new(prefix().join("bin/unisono"));
    command.env("UNISONO_ALLOW_ROOT", "true");
    command
}

fn json(text: &str) -> Value {
    let found = text.lines().find_map(|line| serde_json::from_str(line).ok());
    found.unwrap_or_else(|| panic!("this is not JSON:\n{text}"))
}

/// Writes a copy of a calibration whose disk is read and written past the page cache.
fn direct_scenario(scenario: &Path, folder: &Path) -> PathBuf {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let disk = scenario.with_file_name("this-machine-disk.toml");
    let written = folder.join("direct-disk.toml");
    let text = read(&disk).replace("\ndirect = 0", "\ndirect = 1");
    std::fs::write(&written, text).unwrap_or_else(|error| panic!("{written:?}: {error}"));
    let path = folder.join("direct.toml");
    let text = read(scenario).replace("this-machine-disk.toml", "direct-disk.toml");
    std::fs::write(&path, text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    path
}

/// Median of seconds, and its interval by 2,000 samples of them with replacement.
fn measurement(seconds: &[f64]) -> Measurement {
    let mut numbers = SplitMix64::new(seconds.len() as u64);
    let mut draw = || seconds[numbers.below(seconds.len() as u64) as usize];
    let sample = |_| median((0..seconds.len()).map(|_| draw()).collect());
    let mut medians: Vec<f64> = (0..2000).map(sample).collect();
    medians.sort_by(f64::total_cmp);
    Measurement { median: median(seconds.to_vec()), interval: [medians[50], medians[1949]] }
}

fn measure_patterns(bench: &Bench, options: &Options) -> Vec<PatternRow> {
    let cases: Vec<(Case, Setting)> =
        patterns().into_iter().filter(|(case, _)| case.name.starts_with(&options.only)).collect();
    let mut real = vec![Vec::new(); cases.len()];
    let mut simulated = vec![0.0; cases.len()];
    for round in 0..options.repeats[0] {
        for (index, (case, setting)) in cases.iter().enumerate() {
            println!("pattern {}, {}, round {}", case.name, setting.strategy, round + 1);
            simulated[index] = bench.pattern(case, *setting);
            real[index].extend(bench.replay(case, *setting, 1));
        }
    }
    let row = |(((case, setting), real), simulated): (((Case, Setting), Vec<f64>), f64)| {
        let real = measurement(&real);
        PatternRow { name: case.name, strategy: setting.strategy, real, simulated }
    };
    cases.into_iter().zip(real).zip(simulated).map(row).collect()
}

fn run(options: &Options) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(&options.output).map_err(told)?;
    println!("accuracy: programs of {}, Python of {}", prefix().display(), python().display());
    let bench = Bench::new(options);
    let mut rows = Vec::new();
    for case in recorded().iter().filter(|case| case.name.starts_with(&options.only)) {
        println!("program {}", case.name);
        let measured = bench.measure(case, options.repeats[1]);
        for row in &measured {
            println!("  {}", page::line(row));
        }
        rows.extend(measured);
    }
    let residuals = Residuals {
        schema: Residuals::SCHEMA.to_owned(),
        machine: page::machine(),
        ranks: RANKS,
        rows,
    };
    let patterns = measure_patterns(&bench, options);
    let page = page::page(&residuals, &patterns, options.repeats);
    let text = page::lines(&residuals);
    std::fs::write(options.output.join("accuracy.md"), &page).map_err(told)?;
    std::fs::write(options.output.join("residuals.json"), &text).map_err(told)?;
    if options.publishes {
        std::fs::write(root().join("docs/accuracy.md"), &page).map_err(told)?;
        let published = root().join("crates/measure/src/accuracy/residuals.json");
        std::fs::write(published, &text).map_err(told)?;
    }
    println!("{page}\naccuracy: results are in {}", options.output.display());
    Ok(())
}

fn main() -> std::process::ExitCode {
    let outcome = Options::read().and_then(|options| run(&options));
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(cause) => {
            eprintln!(
                "error: the accuracy was not measured\ncause: {cause}\nhelp:  options: --repeats N, \
                 --pattern-repeats N, --only NAME, --scenario FILE, --output DIR, --publish"
            );
            std::process::ExitCode::FAILURE
        }
    }
}
