//! `make bench-mpi`: measures one MPI program with plain MPICH, plain Open MPI, and under both with
//! Unisono, on files of an instance and on ordinary files in place, in turns, on the same file
//! system.
//!
//! The program is `hpf.c`, `overlap.c` for [`overlap`], and `many_calls.c` for [`many_calls`]. A case
//! is one pattern, record size, mode, direction, sync and number of ranks. All contenders run a
//! case before the next one begins, and all cases are repeated in rounds; the least time of each
//! counts. Ratios compare the slower of the two MPI libraries with Unisono with the better of the two
//! without.

mod contender;

mod many_calls;
mod overlap;

use contender::{Compared, Contender, Kind, contenders};
use mpi::{Family, Servers, prefix, root};
use plot::{LineSeries, Lines, Style};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seconds after which a run of a plain library is given up; it counts as that long.
const LIMIT_S: u64 = 60;

/// Default bytes of the array.
const BYTES: u64 = 64 << 20;

/// Sizes of arrays that can be distributed to all numbers of ranks and sizes of records, in bytes:
/// MPICH holds the places of all records in memory.
const BYTES_LIMITS: std::ops::RangeInclusive<u64> = 1 << 20..=2 << 30;

/// Parts of the benchmark: the main table, and the two others.
const PARTS: [&str; 3] = ["transfers", "overlap", "many-calls"];

/// Transfers of one run; the least time counts. Plain libraries are slow at small records.
fn repeats(record_bytes: u64) -> u32 {
    if record_bytes < 512 { 2 } else { 8 }
}

/// Measurements to make.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Case {
    ranks: u32,
    pattern: &'static str,
    mode: &'static str,
    direction: &'static str,
    sync: &'static str,
    record_bytes: u64,
}

/// Least times of a contender in a case.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// From before the open call to after the close call.
    total_s: f64,
    /// Of the transfer alone.
    transfer_s: f64,
    /// Processor time of all ranks.
    cpu_s: f64,
    /// True when a run was given up.
    is_bound: bool,
}

type Results = BTreeMap<(Case, Contender), Times>;

/// The cases, or few of them for a quick look.
fn cases(Options { is_quick, ranks, records, .. }: &Options) -> Vec<Case> {
    let usual: &[u64] = if *is_quick { &[8, 8192] } else { &[8, 64, 512, 8192, 65536] };
    let records = records.as_deref().unwrap_or(usual);
    let mut cases = Vec::new();
    let mut add = |ranks, pattern, mode, direction, sync, record_bytes| {
        cases.push(Case { ranks, pattern, mode, direction, sync, record_bytes });
    };
    for &ranks in ranks {
        for &record in records {
            for mode in ["collective", "independent"] {
                add(ranks, "c", mode, "write", "nosync", record);
                add(ranks, "c", mode, "read", "nosync", record);
                if !*is_quick {
                    add(ranks, "c", mode, "write", "sync", record);
                }
            }
            for pattern in if *is_quick { &["b"][..] } else { &["b", "bb", "cc"] } {
                add(ranks, pattern, "collective", "write", "nosync", record);
                add(ranks, pattern, "collective", "read", "nosync", record);
            }
            add(ranks, "b", "independent", "write", "nosync", record);
            add(ranks, "b", "independent", "read", "nosync", record);
        }
    }
    cases
}

/// Places of the contenders' programs and files.
struct Bench {
    servers: Servers,
    contenders: &'static [Contender],
    folder: PathBuf,
    /// File of the plain libraries, and of Unisono in place.
    plain: PathBuf,
    /// Of the array.
    bytes: u64,
}

impl Bench {
    /// Compiles the programs and starts the servers.
    fn new(options: &Options) -> Self {
        let (folder, bytes) = (options.output.clone(), options.bytes);
        let mut words = vec!["--servers", "2"];
        words.extend(options.memory.iter().flat_map(|size| ["--memory", size]));
        let servers = Servers::start_as(&folder, &words);
        let plain = match options.memory {
            None => folder.join("plain.dat"),
            Some(_) => format!("/dev/shm/unisono-bench-{}.dat", std::process::id()).into(),
        };
        let contenders = contenders(options.memory.is_some());
        let bench = Self { servers, contenders, folder, plain, bytes };
        for family in Family::OF_DEBIAN {
            for name in ["hpf", "overlap", "many_calls"] {
                let source = root().join("mpi/bench").join(name).with_extension("c");
                family.compile(&source, &bench.program(name, family), &["-O2"]);
            }
        }
        bench
    }

    fn program(&self, name: &str, family: Family) -> PathBuf {
        self.folder.join(format!("{name}.{}", family.name()))
    }

    /// Runs a program of a contender, whose first argument is the name of its file; returns the
    /// line of output that `parse` reads. `Ok(None)`: a plain library was given up.
    fn run<T>(
        &self,
        contender: Contender,
        (name, ranks): (&str, u32),
        arguments: &[String],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Contender { family, kind } = contender;
        let plain = self.plain.display().to_string();
        let (mut command, file) = match kind {
            Kind::Plain => (family.mpiexec(ranks), plain),
            Kind::Instance => {
                (self.servers.mpiexec(family, ranks), "unisono://bench.dat".to_owned())
            }
            Kind::InPlace => (self.servers.mpiexec(family, ranks), plain),
        };
        if kind == Kind::InPlace {
            command.env("UNISONO_IN_PLACE", &file);
        }
        command.arg(self.program(name, family)).arg(file).args(arguments);
        let (code, text) = limited(command, kind == Kind::Plain);
        // A new file each time, as with unisono files of another size.
        let _ = std::fs::remove_file(&self.plain);
        if code == Some(124) && kind == Kind::Plain {
            return Ok(None);
        }
        match (code, text.lines().find_map(parse)) {
            (Some(0), Some(parsed)) => Ok(Some(parsed)),
            _ => Err(format!(
                "{}: {name} {}: exit code {code:?}\n{text}",
                contender.name(),
                arguments.join(" ")
            )),
        }
    }

    /// Measures a contender in a case once.
    fn measure(&self, contender: Contender, case: &Case) -> Result<Times, String> {
        let Case { ranks, pattern, mode, direction, sync, record_bytes } = case;
        let count = repeats(*record_bytes);
        let (bytes, record, repeats) =
            (self.bytes.to_string(), record_bytes.to_string(), count.to_string());
        let words = [&bytes, *pattern, &record, mode, direction, sync, &repeats];
        let arguments = words.map(str::to_owned);
        let times = self.run(contender, ("hpf", *ranks), &arguments, parse)?;
        let bound = LIMIT_S as f64 / f64::from(count);
        Ok(times.unwrap_or(Times {
            total_s: bound,
            transfer_s: bound,
            cpu_s: bound,
            is_bound: true,
        }))
    }
}

/// Runs a command, which begins with `timeout`, with the limit of plain libraries.
fn limited(command: Command, is_plain: bool) -> (Option<i32>, String) {
    if !is_plain {
        return mpi::ended(command);
    }
    let mut limited = Command::new("timeout");
    limited.args(["-k", "5", &LIMIT_S.to_string()]).arg(command.get_program());
    limited.args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            limited.env(name, value);
        }
    }
    mpi::ended(limited)
}

/// Reads the line that hpf prints.
fn parse(line: &str) -> Option<Times> {
    let fields: Vec<&str> = line.split(',').collect();
    let number = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some(Times { total_s: number(7)?, transfer_s: number(8)?, cpu_s: number(9)?, is_bound: false })
}

fn keep_least(results: &mut Results, key: (Case, Contender), times: Times) {
    let kept = results.entry(key).or_insert(times);
    if times.total_s < kept.total_s {
        *kept = Times { transfer_s: kept.transfer_s.min(times.transfer_s), ..times };
    }
    kept.transfer_s = kept.transfer_s.min(times.transfer_s);
}

/// Times of all contenders in a case, in their order.
struct Row<'a> {
    case: &'a Case,
    times: Vec<Times>,
}

impl Row<'_> {
    fn rows<'a>(results: &'a Results, contenders: &[Contender]) -> Vec<Row<'a>> {
        let cases: BTreeSet<&Case> = results.keys().map(|(case, _)| case).collect();
        let row = |case: &'a Case| {
            let times = contenders.iter().map(|it| results.get(&(case.clone(), *it)).copied());
            Some(Row { case, times: times.collect::<Option<_>>()? })
        };
        cases.into_iter().filter_map(row).collect()
    }

    /// Total times.
    fn compared(&self) -> Compared {
        let seconds: Vec<f64> = self.times.iter().map(|times| times.total_s).collect();
        Compared::of(&seconds)
    }

    fn has_bound(&self) -> bool {
        self.times[0].is_bound && self.times[1].is_bound
    }
}

/// The results as a table in Markdown.
fn table(results: &Results, contenders: &[Contender], bytes: u64) -> String {
    let names: Vec<&str> = contenders.iter().map(|it| it.name()).collect();
    let with_in_place = contenders.iter().any(|it| it.kind == Kind::InPlace);
    let more = if with_in_place { "in place | in place to instance | " } else { "" };
    let mut text = format!(
        "| ranks | pattern | mode | direction | sync | record, B | {} | ratio | {more}processor time |\n",
        names.join(" | ")
    );
    let columns = text.matches('|').count() - 1;
    let _ = writeln!(text, "{}|", "|---".repeat(columns));
    let rate = |times: &Times| {
        let mib = bytes as f64 / 1048576.0 / times.total_s;
        format!("{}{mib:.0}", if times.is_bound { "< " } else { "" })
    };
    for row in Row::rows(results, contenders) {
        let Case { ranks, pattern, mode, direction, sync, record_bytes } = row.case;
        let rates: Vec<String> = row.times.iter().map(rate).collect();
        let at_least = if row.has_bound() { "> " } else { "" };
        let compared = row.compared();
        let in_place = match (compared.in_place(), compared.in_place_to_instance()) {
            (Some(to_peer), Some(to_instance)) => {
                format!("{at_least}{to_peer:.2} | {to_instance:.2} | ")
            }
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "| {ranks} | {pattern} | {mode} | {direction} | {sync} | {record_bytes} | {} \
             | {at_least}{:.2} | {in_place}{:.2} |",
            rates.join(" | "),
            compared.instance(),
            row.times[2].cpu_s / row.times[0].cpu_s,
        );
    }
    text
}

/// The results as comma-separated values.
fn values(results: &Results) -> String {
    let mut text = String::from(
        "ranks,pattern,mode,direction,sync,record_bytes,contender,total_s,transfer_s,cpu_s,is_bound\n",
    );
    for ((case, contender), times) in results {
        let Case { ranks, pattern, mode, direction, sync, record_bytes } = case;
        let Times { total_s, transfer_s, cpu_s, is_bound } = times;
        let _ = writeln!(
            text,
            "{ranks},{pattern},{mode},{direction},{sync},{record_bytes},{},{total_s},{transfer_s},\
             {cpu_s},{is_bound}",
            contender.plain_name(),
        );
    }
    text
}

/// Draws the ratios of cyclic transfers over the record size.
fn picture(results: &Results, contenders: &[Contender], ranks: u32) -> String {
    let rows = Row::rows(results, contenders);
    let kinds = [
        ("collective", "write", "nosync"),
        ("collective", "read", "nosync"),
        ("collective", "write", "sync"),
        ("independent", "write", "nosync"),
        ("independent", "read", "nosync"),
    ];
    let series = kinds.iter().enumerate().map(|(colour, &(mode, direction, sync))| {
        let is_shown = |case: &Case| {
            let Case { mode: m, direction: d, sync: s, .. } = case;
            case.ranks == ranks && case.pattern == "c" && (*m, *d, *s) == (mode, direction, sync)
        };
        let shown = rows.iter().filter(|row| is_shown(row.case));
        LineSeries {
            name: format!("{mode} {direction}{}", if sync == "sync" { ", sync" } else { "" }),
            style: Style::plain(colour),
            is_broken: mode == "independent",
            points: shown
                .map(|row| (row.case.record_bytes as f64, row.compared().instance().log10()))
                .collect(),
        }
    });
    let title = format!("Unisono against the better of MPICH and Open MPI, {ranks} ranks");
    let x_name = "record, bytes";
    Lines { title, x_name, y_name: "log10 of the ratio of rates", series: series.collect() }.draw()
}

/// Options of the command line.
struct Options {
    is_quick: bool,
    rounds: u32,
    ranks: Vec<u32>,
    /// Of the array.
    bytes: u64,
    /// Sizes of records, if not the usual ones.
    records: Option<Vec<u64>>,
    /// Memory of each server, in which its files are; those of the plain libraries are in memory
    /// then too.
    memory: Option<String>,
    /// The only part to run, if not all.
    only: Option<String>,
    output: PathBuf,
}

impl Options {
    fn read() -> Result<Self, String> {
        let output = mpi::built().parent().unwrap_or(Path::new(".")).join("bench-mpi");
        let (ranks, bytes) = (vec![4, 16], BYTES);
        let (records, memory, only) = (None, None, None);
        let mut options =
            Self { is_quick: false, rounds: 1, ranks, bytes, records, memory, only, output };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} takes a value"));
            match word.as_str() {
                "--quick" => options.is_quick = true,
                "--rounds" => {
                    options.rounds = value()?.parse().map_err(|_| "--rounds takes a number")?;
                }
                "--ranks" => {
                    let numbers = value()?;
                    let numbers = numbers.split(',').map(str::parse);
                    options.ranks =
                        numbers.collect::<Result<_, _>>().map_err(|_| "--ranks takes numbers")?;
                }
                "--records" => {
                    let sizes = value()?;
                    let sizes = sizes.split(',').map(interface::parse_size);
                    options.records = Some(sizes.collect::<Result<_, _>>()?);
                }
                "--memory" => options.memory = Some(value()?),
                "--size" => options.bytes = array_bytes(&value()?)?,
                "--only" => {
                    let part = value()?;
                    if !PARTS.contains(&part.as_str()) {
                        return Err(format!("--only takes one of {}", PARTS.join(", ")));
                    }
                    options.only = Some(part);
                }
                "--output" => options.output = value()?.into(),
                _ => return Err(format!("there is no option {word}")),
            }
        }
        Ok(options)
    }
}

/// Reads the size of the array.
fn array_bytes(word: &str) -> Result<u64, String> {
    let bytes = interface::parse_size(word)?;
    if bytes.is_power_of_two() && BYTES_LIMITS.contains(&bytes) {
        return Ok(bytes);
    }
    Err("--size takes a power of two from 1MiB to 2GiB".to_owned())
}

/// Measures the main table.
fn transfers(bench: &Bench, options: &Options) -> Result<String, String> {
    let told = |error: std::io::Error| error.to_string();
    let cases = cases(options);
    let mut results = Results::new();
    for round in 1..=options.rounds {
        for (number, case) in cases.iter().enumerate() {
            println!("round {round}, case {} of {}: {case:?}", number + 1, cases.len());
            for contender in bench.contenders {
                let times = bench.measure(*contender, case)?;
                keep_least(&mut results, (case.clone(), *contender), times);
            }
            std::fs::write(options.output.join("results.csv"), values(&results)).map_err(told)?;
        }
    }
    for &ranks in &options.ranks {
        let path = options.output.join(format!("ratios-{ranks}.svg"));
        std::fs::write(path, picture(&results, bench.contenders, ranks)).map_err(told)?;
    }
    Ok(table(&results, bench.contenders, bench.bytes))
}

fn run(options: &Options) -> Result<(), String> {
    std::fs::create_dir_all(&options.output).map_err(|error| error.to_string())?;
    println!("bench-mpi: programs of {}", prefix().display());
    let bench = Bench::new(options);
    for part in PARTS {
        if options.only.as_deref().is_some_and(|only| only != part) {
            continue;
        }
        let text = match part {
            "transfers" => transfers(&bench, options)?,
            "overlap" => overlap::measure(&bench, options.rounds)?,
            _ => many_calls::measure(&bench, options.rounds, options.is_quick)?,
        };
        println!("{text}");
    }
    println!("bench-mpi: results are in {}", options.output.display());
    Ok(())
}

fn main() -> std::process::ExitCode {
    let outcome = Options::read().and_then(|options| run(&options));
    let help = "options: --quick, --rounds N, --ranks 4,16, --size 1GiB, --records 8KiB,1MiB, \
                --memory SIZE, --output DIR, --only transfers|overlap|many-calls";
    mpi::ended_by("bench-mpi did not end", outcome, help)
}
