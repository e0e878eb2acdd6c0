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

/// Options of the command line.
struct Options {
    /// Repeats of patterns, and of programs.
    repeats: [u32; 2],
    /// Only cases whose names begin with one of these; none: all.
    only: Vec<String>,
    /// A calibration that is there; none: one is made.
    scenario: Option<PathBuf>,
    /// Folder of the results.
    output: PathBuf,
    /// True to measure nothing, and to simulate what was measured before once more.
    again: bool,
    /// True to replace the page and the residuals of the repository.
    publishes: bool,
}

impl Options {
    fn read() -> Result<Self, String> {
        let output = built().parent().unwrap_or(Path::new(".")).join("accuracy");
        let (only, scenario) = (Vec::new(), None);
        let mut options =
            Self { repeats: [11, 5], only, scenario, output, again: false, publishes: false };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} takes a value"));
            let number = |value: String| value.parse().map_err(|_| format!("{word}: {value}?"));
            match word.as_str() {
                "--pattern-repeats" => options.repeats[0] = number(value()?)?,
                "--repeats" => options.repeats[1] = number(value()?)?,
                "--only" => options.only.push(value()?),
                "--scenario" => options.scenario = Some(value()?.into()),
                "--output" => options.output = value()?.into(),
                "--again" => options.again = true,
                "--publish" => options.publishes = true,
                _ => return Err(format!("there is no option {word}")),
            }
        }
        match options.repeats.contains(&0) {
            false => Ok(options),
            true => Err("a case is measured at least once".to_owned()),
        }
    }

    fn asks_for(&self, case: &Case) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| case.name.starts_with(only))
    }
}

/// Programs, servers and the simulated machine.
struct Bench {
    folder: PathBuf,
    /// Calibrated machine, through the page cache and past it.
    scenarios: [PathBuf; 2],
}

/// Figures that are compared in one setting.
struct Measured {
    program: Vec<f64>,
    replay: Vec<f64>,
    simulated: f64,
    kind: Kind,
}

impl Bench {
    fn new(options: &Options) -> Self {
        let folder = options.output.clone();
        std::fs::create_dir_all(folder.join("traces"))
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
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

    /// The trace of a case.
    fn trace(&self, case: &Case) -> PathBuf {
        let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
        let name: String = case.name.chars().map(letter).collect();
        self.folder.join("traces").join(format!("{name}.trace"))
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
            command.arg(self.trace(case)).arg("--").arg(start.get_program()).args(start.get_args());
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
        replay.arg(servers.path("instance")).arg(self.trace(case));
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
        simulate.args(["--strategy", setting.strategy]).arg(self.trace(case));
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

    /// Makes the trace of a pattern.
    fn make_pattern(&self, case: &Case) {
        let Source::Pattern(words) = &case.source else { return };
        let words: Vec<&str> = words.split(' ').collect();
        let [pattern, record, repeat, more @ ..] = words.as_slice() else { return };
        let _ = std::fs::remove_dir_all(self.trace(case));
        let mut make = unisono();
        make.args(["trace", "pattern", "--pattern", pattern, "--record", record]);
        make.args(["--repeat", repeat, "--ranks", &RANKS.to_string()]).args(more);
        make.arg("--output").arg(self.trace(case));
        done(make);
    }

    /// Simulates what was measured before.
    fn again(&self, row: Row, cases: &[Case]) -> Row {
        let case = cases.iter().find(|case| case.name == row.program);
        let case = case.unwrap_or_else(|| panic!("there is no case {}", row.program));
        let strategies = [RECORDED.strategy, "two-phase", "caching"];
        let strategy = strategies.into_iter().find(|strategy| *strategy == row.strategy);
        let strategy = strategy.unwrap_or(RECORDED.strategy);
        let (simulated_seconds, kind) =
            self.simulate(case, Setting { servers: row.servers, strategy });
        Row { simulated_seconds, kind, ..row }
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

fn measure_patterns(bench: &Bench, options: &Options) -> Vec<Row> {
    let cases: Vec<(Case, Setting)> =
        patterns().into_iter().filter(|(case, _)| options.asks_for(case)).collect();
    cases.iter().for_each(|(case, _)| bench.make_pattern(case));
    let mut real = vec![Vec::new(); cases.len()];
    for round in 0..options.repeats[0] {
        println!("patterns, round {}", round + 1);
        for (index, (case, setting)) in cases.iter().enumerate() {
            real[index].extend(bench.replay(case, *setting, 1));
        }
    }
    let row = |((case, setting), real): ((Case, Setting), Vec<f64>)| {
        let (real, (simulated_seconds, kind)) =
            (measurement(&real), bench.simulate(&case, setting));
        Row {
            program: case.name,
            servers: setting.servers,
            strategy: setting.strategy.to_owned(),
            is_direct: case.is_direct,
            is_what_if: false,
            kind,
            program_seconds: real,
            replay_seconds: real,
            simulated_seconds,
        }
    };
    cases.into_iter().zip(real).map(row).collect()
}

/// Measures all programs, then all patterns. The programs that are done are on the disk after each
/// one, for `--again` after an interruption.
fn measure(bench: &Bench, options: &Options) -> Result<[Residuals; 2], String> {
    let mut rows = Vec::new();
    for case in recorded().iter().filter(|case| options.asks_for(case)) {
        println!("program {}", case.name);
        let measured = bench.measure(case, options.repeats[1]);
        for row in &measured {
            println!("  {}", page::line(row));
        }
        rows.extend(measured);
        save(&options.output, RESIDUALS, &residuals(rows.clone()))?;
    }
    Ok([residuals(rows), residuals(measure_patterns(bench, options))])
}

/// Simulates once more what was measured before, perhaps on another machine.
fn simulate_again(bench: &Bench, folder: &Path) -> Result<[Residuals; 2], String> {
    let patterns = patterns().into_iter().map(|(case, _)| case);
    let cases: Vec<Case> = recorded().into_iter().chain(patterns).collect();
    let read = |file: &str| -> Result<Residuals, String> {
        let text = std::fs::read_to_string(folder.join(file)).map_err(|error| error.to_string())?;
        let found: Residuals = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let rows = found.rows.into_iter().map(|row| bench.again(row, &cases)).collect();
        Ok(Residuals { rows, ..found })
    };
    Ok([read(RESIDUALS)?, read(PATTERNS)?])
}

/// Files of what was measured.
const RESIDUALS: &str = "residuals.json";
const PATTERNS: &str = "patterns.json";

/// Rows with what was the same for all of them.
fn residuals(rows: Vec<Row>) -> Residuals {
    let (schema, machine) = (Residuals::SCHEMA.to_owned(), page::machine());
    Residuals { schema, machine, ranks: RANKS, rows }
}

fn save(folder: &Path, file: &str, residuals: &Residuals) -> Result<(), String> {
    let path = folder.join(file);
    std::fs::write(&path, page::lines(residuals))
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn run(options: &Options) -> Result<(), String> {
    let told = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(&options.output).map_err(told)?;
    println!("accuracy: programs of {}, Python of {}", prefix().display(), python().display());
    let bench = Bench::new(options);
    let [rows, patterns] = match options.again {
        true => simulate_again(&bench, &options.output)?,
        false => measure(&bench, options)?,
    };
    let page = page::page(&rows, &patterns.rows, options.repeats);
    save(&options.output, PATTERNS, &patterns)?;
    save(&options.output, RESIDUALS, &rows)?;
    std::fs::write(options.output.join("accuracy.md"), &page).map_err(told)?;
    if options.publishes {
        std::fs::write(root().join("docs/accuracy.md"), &page).map_err(told)?;
        save(&root().join("crates/measure/src/accuracy"), RESIDUALS, &rows)?;
    }
    println!("{page}\naccuracy: results are in {}", options.output.display());
    Ok(())
}

fn main() -> std::process::ExitCode {
    let outcome = Options::read().and_then(|options| run(&options));
    let help = "options: --repeats N, --pattern-repeats N, --only NAME, \
                --scenario FILE, --output DIR, --again, --publish";
    mpi::ended_by("the accuracy was not measured", outcome, help)
}
