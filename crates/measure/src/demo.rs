//! The demo: a real file, treated as a matrix of records, is written and read by every strategy on
//! servers of this machine. The same transfers run on the simulated machine of 1994.

use crate::bench::{BenchPlan, Clients};
use crate::ranks::{CaseSpec, FileLife, Source, SourceSpec, bytes_max, parse_pattern};
use cluster::{Program, ServerOptions, TemporaryInstance};
use filesystem::collective::Strategy;
use interface::{ExitCode, Row, UserError, access_of};
use policy::{Access, Pattern};
use sha2::{Digest, Sha256};
use simulate::{Scenario, simulate};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use units::{ByteRange, MIB};

/// Number of client processes.
pub const DEMO_CLIENTS: u32 = 8;
/// Number of server processes, each with one directory as its disk.
pub const DEMO_SERVERS: u32 = 4;

/// Patterns of each write and of the read after it: another distribution each time.
const PATTERNS: [(&str, &str); 2] = [("wb", "rc"), ("wbc", "rcn")];

/// Bytes of a record: a number, a line of a table, a tile of an image.
const RECORDS: [u64; 3] = [8, 1024, 65_536];

/// Bytes of the file on the simulated machine, as in the papers.
const SIMULATED_BYTES: u64 = 10 * MIB;

/// The smallest default input, in bytes.
const INPUT_BYTES_MIN: u64 = 10_000_000;

/// A case of the demo: a write and a read by one strategy.
#[derive(Clone, Debug)]
pub struct DemoCase {
    /// Real write, then real read.
    pub real: [Row; 2],
    /// Simulated write, then simulated read.
    pub simulated: [Row; 2],
    /// True when the case moved the whole input, false when only its first part.
    pub is_whole: bool,
}

/// Progress of the demo, reported while it runs.
pub enum DemoEvent<'a> {
    /// The input is chosen and hashed, the servers run.
    Begun {
        /// The input.
        input: &'a Path,
        /// Its size in bytes.
        bytes: u64,
        /// Its SHA-256, in hexadecimal.
        sha256: &'a str,
    },
    /// A case is done, and its output equals the input.
    Case(&'a DemoCase),
}

/// Runs the demo. All processes and files that it starts and makes are gone when it returns.
///
/// # Errors
/// Fails when there is no input, a transfer fails, or the output differs from the input.
pub fn demo(
    program: &Program,
    input: Option<&Path>,
    directory: Option<&Path>,
    mut tell: impl FnMut(DemoEvent<'_>),
) -> Result<Vec<DemoCase>, UserError> {
    let input = match input {
        Some(named) => named.to_owned(),
        None => default_input()?,
    };
    let bytes = input_bytes(&input)?;
    let source = SourceSpec::File(input.clone());
    let (whole, _) = hash_input(&source, bytes, bytes)?;
    let plan = BenchPlan { clients: DEMO_CLIENTS, block_bytes: MIB, ..BenchPlan::default() };
    let options = ServerOptions::default();
    let started = TemporaryInstance::start(program, DEMO_SERVERS, &[], directory, &options)?;
    let clients = Clients::start(started.instance(), program, &plan)?;
    tell(DemoEvent::Begun { input: &input, bytes, sha256: &whole });
    let mut demo = Demo { clients, source, bytes, directory: started.directory().join("read") };
    std::fs::create_dir(&demo.directory).map_err(|error| unusable(&demo.directory, &error))?;
    let mut cases = Vec::new();
    for (write, read) in PATTERNS {
        for record_bytes in RECORDS {
            for strategy in Strategy::ALL {
                let case = demo.case(write, read, record_bytes, strategy)?;
                tell(DemoEvent::Case(&case));
                cases.push(case);
            }
        }
    }
    Ok(cases)
}

struct Demo {
    clients: Clients,
    source: SourceSpec,
    /// Bytes of the input.
    bytes: u64,
    /// Directory in which clients leave the data that they read.
    directory: PathBuf,
}

impl Demo {
    fn case(
        &mut self,
        write: &str,
        read: &str,
        record_bytes: u64,
        strategy: Strategy,
    ) -> Result<DemoCase, UserError> {
        let used = self.bytes.min(bytes_max(strategy, record_bytes));
        // The last record is filled up with zeros.
        let file_bytes = matrix_bytes(used, record_bytes);
        let spec = |pattern: &str| CaseSpec {
            strategy: strategy.to_string(),
            pattern: pattern.to_owned(),
            record_bytes,
            file_bytes,
            repeat: 1,
            sync: false,
            outstanding_per_disk: 4,
            node_group_size: 0,
        };
        let name = format!("{write}-{record_bytes}-{strategy}");
        let source = self.source.clone();
        let written =
            self.clients.measure(&spec(write), &name, source.clone(), FileLife::Kept, None)?;
        let out = self.directory.clone();
        let reading =
            self.clients.measure(&spec(read), &name, source, FileLife::Existing, Some(&out))?;
        self.prove(&spec(read), used)?;
        let simulated =
            [simulated(write, record_bytes, strategy)?, simulated(read, record_bytes, strategy)?];
        Ok(DemoCase { real: [written, reading], simulated, is_whole: used == self.bytes })
    }

    /// Assembles the data that the clients read and compares its hash with that of the input.
    fn prove(&self, case: &CaseSpec, used: u64) -> Result<(), UserError> {
        let pattern = parse_pattern(&case.pattern)?;
        let access = access_of(&pattern, DEMO_CLIENTS, case.record_bytes, case.file_bytes)?;
        let (_, went_in) = hash_input(&self.source, self.bytes, used)?;
        let came_out = hash_output(&self.directory, &access, used)?;
        if came_out != went_in {
            return Err(UserError::new(
                ExitCode::DataCheck,
                format!(
                    "the data read back differs from the input ({} by {})",
                    case.pattern, case.strategy
                ),
                format!("SHA-256 of the input is {went_in}, and of the data read back {came_out}"),
                "this is a defect of unisono; please report it",
            ));
        }
        Ok(())
    }
}

/// Returns the bytes of the smallest matrix of records that holds `bytes`. The matrix has 1024, 16
/// or 1 columns, depending on the number of records.
fn matrix_bytes(bytes: u64, record_bytes: u64) -> u64 {
    let columns = match bytes.div_ceil(record_bytes) {
        records if records >= 1 << 16 => 1024,
        records if records >= 1 << 8 => 16,
        _ => 1,
    };
    bytes.div_ceil(record_bytes * columns) * record_bytes * columns
}

fn simulated(pattern: &str, record_bytes: u64, strategy: Strategy) -> Result<Row, UserError> {
    let scenario = Scenario {
        pattern: Pattern::from_str(pattern)
            .map_err(|error| UserError::usage("no such pattern", error.to_string(), "-"))?,
        record_bytes,
        file_bytes: SIMULATED_BYTES,
        clients: DEMO_CLIENTS,
        servers: DEMO_SERVERS,
        strategy,
        trials: 1,
        ..Scenario::default()
    };
    let mut report = simulate(&scenario)?;
    Ok(report.results.pop().unwrap_or_default())
}

/// Returns the SHA-256 of the whole input, and of its first `used` bytes, in hexadecimal.
fn hash_input(source: &SourceSpec, bytes: u64, used: u64) -> Result<(String, String), UserError> {
    let failed = |error: &std::io::Error| match source {
        SourceSpec::File(path) => unusable(path, error),
        SourceSpec::Generated(_) => unusable(Path::new("the generated input"), error),
    };
    let opened = Source::open(source).map_err(|error| failed(&error))?;
    let (mut hash, mut part) = (Sha256::new(), String::new());
    let mut window = vec![0; MIB as usize];
    let parts = [ByteRange::new(0, used), ByteRange::new(used, bytes)];
    for range in parts.into_iter().flat_map(|part| part.windows(MIB)) {
        if range.start == used {
            part = hex(&hash.clone().finalize());
        }
        let window = &mut window[..range.length() as usize];
        opened.read(range.start, window).map_err(|error| failed(&error))?;
        hash.update(window);
    }
    let whole = hex(&hash.finalize());
    if used == bytes {
        part.clone_from(&whole);
    }
    Ok((whole, part))
}

/// Returns the SHA-256 of the first `used` bytes of the file that the clients' memories in
/// `directory` make up.
fn hash_output(directory: &Path, access: &Access, used: u64) -> Result<String, UserError> {
    let mut memories = Vec::new();
    for rank in 0..access.clients() {
        let path = directory.join(rank.to_string());
        memories.push(File::open(&path).map_err(|error| unusable(&path, &error))?);
    }
    let mut hash = Sha256::new();
    let mut window = vec![0; MIB as usize];
    let mut packed = Vec::new();
    for range in ByteRange::new(0, used).windows(MIB) {
        for client in access.clients_in(range) {
            for run in access.pieces(client, range) {
                packed.resize(run.bytes() as usize, 0);
                let read =
                    memories[client.0 as usize].read_exact_at(&mut packed, run.memory_offset);
                read.map_err(|error| unusable(directory, &error))?;
                let offsets = run.file_side().offsets().map(|offset| offset - range.start);
                spread(&packed, run.length as usize, &mut window, offsets);
            }
        }
        hash.update(&window[..range.length() as usize]);
    }
    Ok(hex(&hash.finalize()))
}

/// Copies packed pieces of `length` bytes to their offsets in a window.
fn spread(packed: &[u8], length: usize, window: &mut [u8], offsets: impl Iterator<Item = u64>) {
    for (piece, offset) in packed.chunks_exact(length).zip(offsets) {
        let at = offset as usize;
        window[at..at + length].copy_from_slice(piece);
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn input_bytes(input: &Path) -> Result<u64, UserError> {
    let metadata = std::fs::metadata(input).map_err(|error| unusable(input, &error))?;
    if !metadata.is_file() || metadata.len() == 0 {
        let cause = std::io::Error::other("it is empty or not a regular file");
        return Err(unusable(input, &cause));
    }
    Ok(metadata.len())
}

fn unusable(path: &Path, error: &std::io::Error) -> UserError {
    UserError::usage(
        format!("cannot use {}", path.display()),
        error.to_string(),
        "name a large file that you may read with --input FILE (make demo INPUT=FILE)",
    )
}

/// Returns a large file that exists on this machine anyway: the largest library of a Rust
/// toolchain or of the system, or this command, which is large enough.
fn default_input() -> Result<PathBuf, UserError> {
    let rustup = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".rustup"));
    let toolchains = rustup.or(home).map(|home| home.join("toolchains"));
    let toolchains = toolchains.and_then(|path| std::fs::read_dir(path).ok());
    let libraries =
        toolchains.into_iter().flatten().flatten().map(|entry| entry.path().join("lib"));
    let system =
        ["/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/bin"];
    let folders = libraries.chain(system.into_iter().map(PathBuf::from));
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let sizes = files.filter_map(|entry| {
        let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((metadata.len(), entry.path()))
    });
    let own = std::env::current_exe().ok().and_then(|path| {
        let bytes = std::fs::metadata(&path).ok()?.len();
        Some((bytes, path))
    });
    let sizes = sizes.chain(own);
    let largest = sizes.max_by(|one, other| one.0.cmp(&other.0).then(other.1.cmp(&one.1)));
    match largest {
        Some((bytes, path)) if bytes >= INPUT_BYTES_MIN => Ok(path),
        _ => Err(UserError::usage(
            "there is no default input for the demo",
            "no library of more than 10 MB was found on this machine",
            "name a large file with --input FILE (make demo INPUT=FILE)",
        )),
    }
}
