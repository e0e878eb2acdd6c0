//! Proves: a trace has what each rank of a program did, in C, Fortran and Python, for plain files and
//! those of an instance; it is readable after a rank was killed, and says what it does not have.

use mpi::{Family, Servers, done, ended, prefix, root};
use policy::Access;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use trace::{Collective, Direction, Event, Message, Operation, RankTrace, RequestNumber, Trace};
use units::ClientId;

/// Ranks of the recorded programs.
const RANKS: u32 = 4;

/// A program that is recorded, and its trace.
struct Recording {
    directory: tempfile::TempDir,
    family: Family,
}

impl Recording {
    fn new(family: Family) -> Self {
        let directory = tempfile::Builder::new().prefix("unisono-record-").tempdir().unwrap();
        Self { directory, family }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Compiles a program of `tests/programs`.
    fn compile(&self, source: &str, flags: &[&str]) -> PathBuf {
        let program = self.path(&format!("{source}.program"));
        self.family.compile(&root().join("mpi/tests/programs").join(source), &program, flags);
        program
    }

    /// `unisono record` of `mpiexec`; the program is to be added.
    fn record(&self, ranks: u32) -> Command {
        let launcher = self.family.mpiexec(ranks);
        let mut words = launcher.get_args();
        // The words of `timeout`, which comes first.
        let limit: Vec<_> = words.by_ref().take(3).collect();
        let mut command = Command::new(launcher.get_program());
        command.args(limit).arg(prefix().join("bin/unisono"));
        command.args(["record", "--force", "-o"]).arg(self.path("trace")).arg("--").args(words);
        command.envs(launcher.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("UNISONO_ALLOW_ROOT", "true").env("UNISONO_TIMEOUT", "30");
        // Its default way of collective transfers fails for many processes on few processors.
        command.env("OMPI_MCA_fcoll", "two_phase");
        command
    }

    fn trace(&self) -> Trace {
        Trace::open(&self.path("trace")).unwrap()
    }

    /// Compares the trace with what the ranks say that they did.
    #[track_caller]
    fn compare(&self, said: &Path) {
        let trace = self.trace();
        trace.check().unwrap();
        assert_eq!(trace.header().ranks, RANKS);
        assert_eq!(trace.header().not_recorded, Vec::<String>::new());
        for (rank, events) in trace.ranks.iter().enumerate() {
            let expected = std::fs::read_to_string(format!("{}.{rank}", said.display())).unwrap();
            let found = shown(events);
            for (line, (expected, found)) in expected.lines().zip(&found).enumerate() {
                let place = format!("{:?}, rank {rank}, event {line}", self.family);
                assert_eq!(expected.trim_end(), found, "{place}");
            }
            assert_eq!(expected.lines().count(), found.len(), "{:?}, rank {rank}", self.family);
        }
    }
}

/// Events of a rank in words. Operations that begin are counted.
fn shown(rank: &RankTrace) -> Vec<String> {
    let (mut begun, mut numbers) = (0, BTreeMap::new());
    rank.events.iter().map(|event| line(rank, event, &mut begun, &mut numbers)).collect()
}

fn line(
    rank: &RankTrace,
    event: &Event,
    begun: &mut u32,
    numbers: &mut BTreeMap<RequestNumber, u32>,
) -> String {
    let (mut text, request) = words(rank, event, numbers);
    if let Some(request) = request {
        numbers.insert(request, *begun);
        text += &format!(" begins {begun}");
        *begun += 1;
    }
    if event.depends_on_timing {
        text += " timing";
    }
    text
}

fn words(
    rank: &RankTrace,
    event: &Event,
    numbers: &BTreeMap<RequestNumber, u32>,
) -> (String, Option<RequestNumber>) {
    let name = |file: &trace::FileNumber| &rank.files[file.0 as usize];
    let text = match &event.operation {
        Operation::Begin => "begin".to_owned(),
        Operation::End => "end".to_owned(),
        Operation::Send { message, is_synchronous, request } => {
            let how = if *is_synchronous { " sync" } else { "" };
            return (format!("send {}{how}", envelope(message)), *request);
        }
        Operation::Receive { message, request } => {
            return (format!("receive {}", envelope(message)), *request);
        }
        Operation::Wait { requests } => {
            let each = requests.iter().map(|request| format!(" {}", numbers[request]));
            format!("wait{}", each.collect::<String>())
        }
        Operation::Collective { kind, communicator, root, bytes, request } => {
            let kind = kind_word(*kind);
            return (format!("collective {kind} {} {root} {bytes}", communicator.0), *request);
        }
        Operation::Open { file, communicator, creates, is_fresh, bytes } => {
            let creates = if *creates { "creates " } else { "" };
            let fresh = if *is_fresh { "fresh " } else { "" };
            let name = name(file);
            format!("open {} {} {name} {creates}{fresh}{bytes}", file.0, communicator.0)
        }
        Operation::Close { file } => format!("close {}", file.0),
        Operation::Delete { name } => format!("delete {name}"),
        Operation::Transfer { file, direction, is_collective, part, shift, request } => {
            let direction = if *direction == Direction::Read { "read" } else { "write" };
            let all = if *is_collective { " all" } else { "" };
            let pieces = match part {
                Some(part) => pieces(&rank.parts[part.0 as usize], *shift),
                None => " -".to_owned(),
            };
            return (format!("{direction} {}{all}{pieces}", file.0), *request);
        }
        Operation::Sync { file } => format!("sync {}", file.0),
        Operation::SetSize { file, bytes, only_grows } => {
            format!("{} {} {bytes}", if *only_grows { "grow" } else { "size" }, file.0)
        }
        Operation::GetSize { file } => format!("get size {}", file.0),
    };
    (text, None)
}

fn envelope(message: &Message) -> String {
    let Message { communicator, peer, tag, bytes } = message;
    format!("{} {peer} {tag} {bytes}", communicator.0)
}

fn kind_word(kind: Collective) -> &'static str {
    match kind {
        Collective::Barrier => "barrier",
        Collective::Broadcast => "broadcast",
        Collective::Reduce => "reduce",
        Collective::AllReduce => "all-reduce",
        Collective::Gather => "gather",
        Collective::Scatter => "scatter",
        Collective::AllGather => "all-gather",
        Collective::AllToAll => "all-to-all",
        Collective::Scan => "scan",
        Collective::ReduceScatter => "reduce-scatter",
        Collective::Agree => "agree",
    }
}

/// Contiguous pieces of a file: their first byte and their length.
fn pieces(part: &policy::OwnPart, shift: u64) -> String {
    let access = Access::of_parts(vec![part.clone()]);
    let pieces = access.chunks(ClientId(0));
    pieces.map(|piece| format!(" {}+{}", piece.file_offset + shift, piece.length)).collect()
}

/// Records the program that makes every kind of call.
fn record_every_call(family: Family, file: &str, instance: Option<&Servers>) -> Recording {
    let recording = Recording::new(family);
    let program = recording.compile("record.c", &[]);
    let mut command = recording.record(RANKS);
    command.arg(program).arg(file).arg(recording.path("said"));
    if let Some(servers) = instance {
        command.env("UNISONO_INSTANCE", servers.path("instance"));
    }
    let text = done(command);
    assert!(text.contains("unisono: recorded 4 ranks"), "{family:?}: {text}");
    recording
}

#[test]
fn every_call_of_a_program_is_an_event_of_its_rank() {
    let servers = Servers::start();
    for family in Family::OF_DEBIAN {
        let plain = servers.path("plain");
        let recording = record_every_call(family, plain.to_str().unwrap(), None);
        recording.compare(&recording.path("said"));
        let recording = record_every_call(family, "unisono://recorded", Some(&servers));
        recording.compare(&recording.path("said"));
        let instance = recording.trace().header().instance.clone();
        assert_eq!(instance.map(|it| (it.servers, it.disks_per_server)), Some((2, 1)));
    }
}

#[test]
fn the_report_of_a_run_has_a_prediction() {
    // The screen has a line of it if other servers are worth it; --json always has it.
    let recording = Recording::new(Family::Mpich);
    let program = recording.path("kernels");
    let source = root().join("mpi/bench/accuracy/kernels.c");
    recording.family.compile(&source, &program, &["-lm"]);
    let record = recording.record(RANKS);
    // The words of `timeout` come first: the run has them too.
    let words: Vec<_> = record.get_args().collect();
    let mut run = Command::new(record.get_program());
    run.args(&words[..3]).arg(words[3]).args(["run", "--json", "--servers", "2", "--discard"]);
    run.arg("--no-limit");
    run.arg("--").args(&words[3..]).arg(program);
    run.args(["unisono://kernels", "vector", "write", "collective", "1024", "2"]);
    run.envs(record.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let text = done(run);
    for field in ["\"what_if\"", "\"gain\"", "\"is_calibrated\""] {
        assert!(text.contains(field), "{field}: {text}");
    }
}

#[test]
fn the_standard_interface_and_newer_libraries_are_recorded_too() {
    for family in [Family::Mpich5, Family::Abi] {
        let place = tempfile::tempdir().unwrap();
        let plain = place.path().join("plain");
        let recording = record_every_call(family, plain.to_str().unwrap(), None);
        recording.compare(&recording.path("said"));
    }
}

/// Nanoseconds of a kind in all events of a rank.
fn total(rank: &RankTrace, part: impl Fn(&Event) -> u64) -> u64 {
    rank.events.iter().map(part).sum()
}

/// Waiting, in whatever way, is no work: a rank that waits while another computes has computed less
/// than half of that. Bounds are of processor time, which does not depend on the load of the machine.
#[test]
fn computation_is_kept_and_waiting_is_not() {
    for family in Family::OF_DEBIAN {
        let recording = Recording::new(family);
        let program = recording.compile("record_times.c", &[]);
        let said = recording.path("said");
        let mut command = recording.record(2);
        command.arg(program).arg(&said);
        done(command);
        let trace = recording.trace();
        let ms = |ns: u64| ns / 1_000_000;
        let computed = |rank: usize| ms(total(&trace.ranks[rank], |event| event.computed_ns));
        let spent = |rank: u32| -> u64 {
            let text = std::fs::read_to_string(format!("{}.{rank}", said.display())).unwrap();
            text.trim().parse().unwrap()
        };
        assert!((450..=spent(1)).contains(&computed(1)), "{family:?}: {}", computed(1));
        assert!(computed(0) < 225, "{family:?}: rank 0 computed {} ms", computed(0));
        // The sleep, and nothing of the sleeps in the loop of probes.
        let blocked = ms(total(&trace.ranks[0], |event| event.blocked_ns));
        assert!((90..300).contains(&blocked), "{family:?}: rank 0 was blocked for {blocked} ms");
        assert!(computed(0) < spent(0), "{family:?}");
    }
}

#[test]
fn a_killed_rank_leaves_what_it_did_before() {
    for family in Family::OF_DEBIAN {
        let recording = Recording::new(family);
        let program = recording.compile("record_not.c", &["-lpthread"]);
        let mut command = recording.record(3);
        command.arg(program).arg("killed");
        let (code, text) = ended(command);
        assert!(!matches!(code, Some(0 | 124)), "{family:?}: {code:?} {text}");
        assert!(text.contains("did not end"), "{family:?}: {text}");
        let trace = recording.trace();
        assert!(trace.ranks[1].is_cut, "{family:?}");
        assert_eq!(
            shown(&trace.ranks[1]),
            ["begin", "send 0 0 5 4", "receive 0 0 6 4"],
            "{family:?}"
        );
        assert_eq!(shown(&trace.ranks[0])[..2], ["begin", "receive 0 1 5 4"], "{family:?}");
        trace.check().unwrap_err();
    }
}

#[test]
fn what_is_not_recorded_is_named() {
    for family in Family::OF_DEBIAN {
        let recording = Recording::new(family);
        let program = recording.compile("record_not.c", &["-lpthread"]);
        for (what, name) in [
            ("window", "MPI_Win_create"),
            ("threads", "calls of two threads that overlap"),
            ("cancelled", "messages that were cancelled"),
        ] {
            let mut command = recording.record(2);
            command.arg(&program).arg(what);
            let text = done(command);
            assert!(text.contains(&format!("NOT recorded: {name}")), "{family:?}: {text}");
            let trace = recording.trace();
            assert_eq!(trace.header().not_recorded, [name], "{family:?}");
            assert!(trace.check().unwrap_err().cause.contains(name), "{family:?}");
        }
        let mut command = recording.record(2);
        command.arg(&program).arg("abort");
        let (code, text) = ended(command);
        assert_ne!(code, Some(0), "{family:?}: {text}");
        let events = shown(&recording.trace().ranks[1]);
        assert_eq!(events, ["begin"], "{family:?}");
    }
}

#[test]
fn fortran_programs_are_recorded() {
    let servers = Servers::start();
    for family in Family::OF_DEBIAN {
        for (source, expected) in [
            ("mpif_h.f", "write 0 all 400+400"),
            ("mpi_f08.f90", "write 0 all 8000+8000 begins 0"),
            ("use_mpi.f90", "end"),
        ] {
            let recording = Recording::new(family);
            let program = recording.compile(source, &[]);
            let mut command = recording.record(2);
            command.arg(program).env("UNISONO_INSTANCE", servers.path("instance"));
            done(command);
            let trace = recording.trace();
            trace.check().unwrap();
            let events = shown(&trace.ranks[1]);
            let opens = events.iter().filter(|event| event.starts_with("open ")).count();
            assert!(opens >= 1, "{family:?}, {source}: {events:?}");
            assert!(
                events.iter().any(|event| event == expected),
                "{family:?}, {source}: {events:?}"
            );
        }
    }
}

/// The example of the README: messages by mpi4py, and views that are parts of an array.
#[test]
fn python_programs_are_recorded() {
    let servers = Servers::start();
    for family in Family::OF_DEBIAN {
        let recording = Recording::new(family);
        let mut command = recording.record(RANKS);
        command.arg("env");
        super::mpi4py::add_python(&mut command, &servers, family);
        command.arg(root().join("examples/heat.py")).arg("unisono://heat.dat");
        command.env("UNISONO_INSTANCE", servers.path("instance"));
        done(command);
        let trace = recording.trace();
        trace.check().unwrap();
        for rank in &trace.ranks {
            let writes = shown(rank).iter().filter(|line| line.starts_with("write 0 all")).count();
            assert_eq!((writes, rank.parts.len()), (10, 1), "{family:?}");
            let computed = total(rank, |event| event.computed_ns);
            assert!(computed > 1_000_000, "{family:?}: {computed}");
        }
        let (bytes, events) = trace
            .ranks
            .iter()
            .zip(trace.bytes())
            .fold((0, 0), |(bytes, events), (rank, stream)| {
                (bytes + stream, events + rank.events.len())
            });
        assert!(bytes < 20 * events as u64, "{family:?}: {bytes} B for {events} events");
    }
}

/// mpi4py prefers functions with large counts, which the recorder has and older libraries have not.
#[test]
fn large_counts_work_with_libraries_that_lack_them() {
    let servers = Servers::start();
    for family in Family::OF_DEBIAN {
        let recording = Recording::new(family);
        let mut command = recording.record(RANKS);
        command.arg("env");
        super::mpi4py::add_python(&mut command, &servers, family);
        command.arg(root().join("mpi/tests/programs/record_counts.py"));
        command.arg(recording.path("plain"));
        let text = done(command);
        assert!(text.contains("record_counts: passed"), "{family:?}: {text}");
        let trace = recording.trace();
        trace.check().unwrap();
        let events = shown(&trace.ranks[1]);
        for expected in [
            "collective gather 0 2 16",
            "collective scatter 0 2 16",
            "collective all-gather 0 0 16",
            "collective all-to-all 0 0 32",
            "collective reduce-scatter 0 0 80",
            "write 0 all 64+64",
        ] {
            let count = events.iter().filter(|event| event.starts_with(expected)).count();
            assert!(count >= 1, "{family:?}, {expected}: {events:#?}");
        }
    }
}

/// Servers of its own and a recording, in both orders.
#[test]
fn run_and_record_work_together() {
    for family in Family::OF_DEBIAN {
        let recording = Recording::new(family);
        let program = recording.compile("mpif_h.f", &[]);
        let unisono = prefix().join("bin/unisono");
        let run = ["run", "--servers", "2", "--discard", "--"];
        let record = ["record", "--force", "-o", "trace", "--"];
        for order in [[&run[..], &record], [&record, &run]] {
            let launcher = family.mpiexec(2);
            let mut command = Command::new(launcher.get_program());
            command.args(launcher.get_args().take(3)).arg(&unisono).args(order[0]);
            command.arg(&unisono).args(order[1]).args(launcher.get_args().skip(3)).arg(&program);
            command.envs(launcher.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.env("UNISONO_ALLOW_ROOT", "true").current_dir(recording.directory.path());
            let text = done(command);
            let trace = recording.trace();
            trace.check().unwrap();
            let events = shown(&trace.ranks[0]);
            assert!(events.iter().any(|event| event == "write 0 all 0+400"), "{events:?}");
            assert!(text.contains("mpif_h: passed"), "{family:?}: {text}");
        }
    }
}

#[test]
fn a_program_that_is_not_recorded_is_explained() {
    let recording = Recording::new(Family::Mpich);
    let unisono = |words: &[&str]| {
        let mut command = Command::new(prefix().join("bin/unisono"));
        command.args(["record", "-o"]).arg(recording.path("none")).args(words);
        ended(command)
    };
    let (code, text) = unisono(&["--", "true"]);
    assert_eq!(code, Some(1), "{text}");
    for words in ["error: nothing was recorded", "cause: ", "help: "] {
        assert!(text.contains(words), "{words:?}: {text}");
    }
    assert!(!recording.path("none").exists());
    let (code, text) = unisono(&["--", "sh", "-c", "exit 9"]);
    assert_eq!(code, Some(9), "{text}");
    let (code, text) = unisono(&["--", "/no/such/program"]);
    assert_eq!(code, Some(127), "{text}");
    std::fs::create_dir(recording.path("none")).unwrap();
    std::fs::write(recording.path("none/trace.json"), "{}").unwrap();
    let (code, text) = unisono(&["--", "true"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--force"), "{text}");
}
