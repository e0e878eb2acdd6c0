//! Programs whose predictions are checked.

use mpi::Family;

/// A program, and how it is carried out.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Name.
    pub(crate) name: String,
    /// Origin of its trace.
    pub(crate) source: Source,
    /// True if servers read and write past the page cache.
    pub(crate) is_direct: bool,
    /// Other servers and strategies for which its trace is used.
    pub(crate) others: [Setting; 2],
}

/// Origin of a trace.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// `kernels.c` with these arguments after the name of the file.
    C(&'static str),
    /// `kernels.py` likewise.
    Python(&'static str),
    /// `unisono trace pattern`: a program that only moves a pattern, as `unisono bench` does.
    Pattern(&'static str),
}

impl Source {
    /// MPI library of the program. Debian builds h5py for Open MPI.
    pub(crate) fn family(&self) -> Family {
        match self {
            Self::C(_) | Self::Pattern(_) => Family::Mpich,
            Self::Python(_) => Family::OpenMpi,
        }
    }
}

/// Servers and strategy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Setting {
    pub(crate) servers: u32,
    pub(crate) strategy: &'static str,
}

/// Servers and strategy under which programs are recorded.
pub(crate) const RECORDED: Setting = Setting { servers: 2, strategy: "disk-directed" };

const TWO_PHASE: Setting = Setting { strategy: "two-phase", ..RECORDED };
const ONE: Setting = Setting { servers: 1, ..RECORDED };
const FOUR: Setting = Setting { servers: 4, ..RECORDED };

/// Ranks of the programs.
pub(crate) const RANKS: u32 = 4;

/// Programs that are recorded, each with two what-ifs.
pub(crate) fn recorded() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |source: Source, others: [Setting; 2]| {
        let (Source::C(words) | Source::Python(words) | Source::Pattern(words)) = source;
        cases.push(Case { name: words.to_owned(), source, is_direct: false, others });
    };
    let collective = [TWO_PHASE, FOUR];
    let independent = [ONE, FOUR];
    for words in [
        "vector write collective 8 40",
        "vector read collective 8 60",
        "vector write collective 1024 40",
        "vector read collective 1024 60",
        "vector write collective 65536 40",
        "vector read collective 1048576 80",
        "vector write collective 65536 20 sync",
        "btio collective 24 0",
        "btio collective 12 20000",
        "transpose collective 2048",
        "checkpoint 4194304 24 5000 sync",
        "checkpoint 1048576 40 10000",
    ] {
        add(Source::C(words), collective);
    }
    for words in [
        // By two-phase I/O, each of these calls would move the whole file.
        "ior contiguous collective 1048576 96",
        "ior strided collective 262144 300",
        "vector write independent 65536 6",
        "vector read independent 8192 2",
        "ior contiguous independent 1048576 96",
        "ior strided independent 262144 200",
        "btio independent 1 0",
        "matmul 1024 8",
    ] {
        add(Source::C(words), independent);
    }
    for words in ["heat 16", "overlap 40", "h5write 16"] {
        add(Source::Python(words), collective);
    }
    for words in ["blocks 100", "h5read 40"] {
        add(Source::Python(words), independent);
    }
    let direct = Source::C("vector write collective 65536 12");
    let name = "vector write collective 65536 12, direct".to_owned();
    cases.push(Case { name, source: direct, is_direct: true, others: collective });
    cases
}

/// Patterns, as `unisono bench` measures them, with their strategies.
pub(crate) fn patterns() -> Vec<(Case, Setting)> {
    let case = |words: &'static str, strategy: &'static str, is_direct: bool| {
        let source = Source::Pattern(words);
        let name = format!("{words}{}", if is_direct { ", direct" } else { "" });
        let setting = Setting { strategy, ..RECORDED };
        (Case { name, source, is_direct, others: [setting; 2] }, setting)
    };
    vec![
        case("rb 1MiB 160", "disk-directed", false),
        case("rc 8 90", "disk-directed", false),
        case("rc 64KiB 160", "disk-directed", false),
        case("wb 1MiB 90", "disk-directed", false),
        case("wc 8 70", "disk-directed", false),
        case("wc 8KiB 90", "disk-directed", false),
        case("wc 8KiB 40 --sync", "disk-directed", false),
        case("wb 1MiB 40", "disk-directed", true),
        case("rb 1MiB 60", "two-phase", false),
        case("rc 8 50", "two-phase", false),
        case("wc 8KiB 50", "two-phase", false),
        case("rc 64KiB 40", "caching", false),
    ]
}
