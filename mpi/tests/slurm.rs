//! Proves: in jobs of a real Slurm, on nodes that are namespaces of this machine, programs have
//! servers on all nodes of their job, beside other jobs; files are whole and staged out when a
//! program ends, when its time runs out, and when the job is cancelled; a node that fails is named;
//! nothing outlives a job.
//!
//! All jobs run side by side on one cluster, as most of them wait most of the time.

use super::newcomer::pages::{How, examples};
use mpi::{Family, ended, prefix, root};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest wait for anything that a job does. The longest takes a minute and a half.
const LIMIT: Duration = Duration::from_secs(240);

/// Pause between looks at a job.
const PAUSE: Duration = Duration::from_millis(100);

/// Exit code of the script of the cluster where the machine does not permit one.
const NO_CLUSTER: i32 = 2;

/// The MPICH whose programs run on several nodes. Those of MPICH 4.0 with UCX wait for ever in
/// MPI_Finalize at times, also without Unisono, when nodes are connected by TCP alone.
const SEVERAL_NODES: Family = Family::Mpich5;

const OPEN_MPI: (Family, &str) = (Family::OpenMpi, "app-openmpi");

/// Words that run `app` on several nodes by `mpiexec` with these arguments.
fn mpiexec(arguments: &str) -> String {
    format!("-- {} ./app {arguments}", SEVERAL_NODES.tool("mpiexec").display())
}

/// A cluster of five nodes, one of which fails, and the directory that all its jobs share.
struct Cluster {
    script: Child,
    /// Directory of the cluster's files.
    files: PathBuf,
    shared: TempDir,
}

impl Cluster {
    /// Starts a cluster; `None`, with a note that is always shown, where that cannot be.
    fn start() -> Option<Self> {
        let mut script = Command::new(root().join("scripts/slurm-cluster"));
        script.args(["--nodes", "5", "--", "sh", "-c", "echo \"$SLURM_CLUSTER\"; exec cat"]);
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut script = script.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(script.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            let ended = script.wait_with_output().unwrap();
            let errors = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.code(), Some(NO_CLUSTER), "{errors}");
            // Not by a macro, whose output belongs to the test.
            let note = format!("skipped: no test with Slurm: {errors}");
            std::io::stderr().write_all(note.as_bytes()).unwrap();
            return None;
        }
        let shared = tempfile::Builder::new().prefix("unisono-jobs-").tempdir().unwrap();
        let cluster = Self { script, files: PathBuf::from(line.trim_end()), shared };
        for (family, name) in [(SEVERAL_NODES, "app"), (Family::Mpich, "app-here"), OPEN_MPI] {
            family.compile(&root().join("mpi/tests/programs/job.c"), &cluster.path(name), &[]);
        }
        Some(cluster)
    }

    /// A path in the directory that all jobs share.
    fn path(&self, name: &str) -> PathBuf {
        self.shared.path().join(name)
    }

    /// A command of Slurm, beside the controller.
    fn command(&self, words: &[&str]) -> Command {
        let controller = std::fs::read_to_string(self.files.join("controller")).unwrap();
        let mut command = Command::new("nsenter");
        command.args(["--net", "--uts", "--mount", "--wd=.", "--target", controller.trim()]);
        command.args(words).current_dir(self.shared.path());
        command.env("SLURM_CONF", self.files.join("slurm.conf"));
        // Of a user on a login node: what `make install PREFIX=$HOME/.local` makes is found.
        let search = format!("{}/bin:/usr/bin:/bin", prefix().display());
        command.env("PATH", search).env("UNISONO_ALLOW_ROOT", "true");
        command.env("UNISONO_TIMEOUT", "20").env_remove("UNISONO_INSTANCE");
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command
    }

    /// Submits a job script with these options.
    #[track_caller]
    fn submit(&self, name: &str, options: &str, script: &str) -> Job<'_> {
        let (file, output) = (format!("{name}.sh"), format!("{name}.out"));
        std::fs::write(self.path(&file), script).unwrap();
        let mut words = vec!["sbatch", "--parsable", "--job-name", name, "--output", &output];
        words.extend(options.split_whitespace());
        words.push(&file);
        let (code, said) = ended(self.command(&words));
        assert_eq!(code, Some(0), "{said}");
        Job { cluster: self, id: said.trim().to_owned(), name: name.to_owned() }
    }

    /// Submits a job that runs a program with servers of its own, whose files are copied to
    /// `NAME.files`.
    #[track_caller]
    fn submit_run(&self, name: &str, options: &str, run: &str) -> Job<'_> {
        let lines = format!("trap : TERM\nunisono run --stage-out {name}.files {run}\n");
        self.submit(name, options, &format!("#!/bin/bash\n{lines}"))
    }

    /// Names of the data directories that runs have on a node.
    fn kept(&self, node: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.files.join(format!("nodes/{node}/tmp"))).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.to_string_lossy().contains("/unisono-0-")).collect()
    }

    /// Removes the data of the only run on these two nodes, which is kept. Proves that there is some.
    #[track_caller]
    fn remove_kept(&self, nodes: [&str; 2], output: &str) {
        let [one, other] = nodes.map(|node| self.kept(node));
        let name = |path: &PathBuf| path.file_name().map(std::ffi::OsStr::to_owned);
        let others: Vec<_> = other.iter().map(name).collect();
        let both: Vec<_> = one.iter().filter(|path| others.contains(&name(path))).collect();
        let [kept] = &both[..] else { panic!("{one:?}, {other:?}: {output}") };
        for path in one.iter().chain(&other).filter(|path| name(path) == name(kept)) {
            std::fs::remove_dir_all(path).unwrap();
        }
    }

    /// Ends the cluster. Proves that nothing has outlived its job.
    fn end(self) {
        let Self { mut script, files, .. } = self;
        // Whoever reads it ends.
        drop(script.stdin.take());
        let mut errors = String::new();
        script.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert!(script.wait().unwrap().success(), "{errors}");
        assert!(!files.exists(), "the files of the cluster are gone");
    }
}

/// A job of the cluster.
struct Job<'a> {
    cluster: &'a Cluster,
    id: String,
    name: String,
}

impl Job<'_> {
    /// Output of the job so far.
    fn output(&self) -> String {
        let path = self.cluster.path(&format!("{}.out", self.name));
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// A property of the job, as `scontrol` shows it.
    fn property(&self, name: &str) -> String {
        let (_, shown) = ended(self.cluster.command(&["scontrol", "show", "job", &self.id]));
        let mut words = shown.split_whitespace();
        let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_default().to_owned()
    }

    /// Waits until something is so.
    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            let said = || format!("{}: {what} is not so\n{}", self.name, self.output());
            assert!(begun.elapsed() < LIMIT, "{}", said());
            std::thread::sleep(PAUSE);
        }
    }

    /// Waits until its program has written something.
    #[track_caller]
    fn until_it_writes(&self) {
        self.until("it writes", || self.output().contains("job: the first step is written"));
    }

    /// Cancels the job.
    fn cancel(&self) {
        assert_eq!(ended(self.cluster.command(&["scancel", &self.id])).0, Some(0));
    }

    /// Waits for the end of the job, which must have this state. Returns its output.
    #[track_caller]
    fn end(&self, state: &str) -> String {
        let goes_on = ["PENDING", "RUNNING", "COMPLETING"];
        // Of the nodes, too: until then it is listed.
        let listed = ["squeue", "--noheader", "--job", &self.id];
        let has_ended = || {
            !goes_on.contains(&self.property("JobState").as_str())
                && ended(self.cluster.command(&listed)).1.trim().is_empty()
        };
        self.until("it has ended", has_ended);
        let output = self.output();
        assert_eq!(self.property("JobState"), state, "{}: {output}", self.name);
        output
    }

    /// Proves that a file that a job has written is whole: number k is k, and there are as many as
    /// its program says, after a number of steps.
    #[track_caller]
    fn assert_whole(&self, file: &Path, output: &str) {
        let said =
            output.lines().find_map(|line| line.strip_prefix("job: ")?.strip_suffix(" ranks"));
        let said = said.unwrap_or_else(|| panic!("{}: no steps: {output}", self.name));
        let numbers: Vec<u64> = said.split(" steps by ").map(|it| it.parse().unwrap()).collect();
        let content = std::fs::read(file).unwrap_or_else(|error| panic!("{error}: {output}"));
        assert_eq!(content.len() as u64, numbers[0] * numbers[1] * (8 << 13), "{output}");
        let has = content.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        assert!((0..).zip(has).all(|(k, number)| k == number), "{}: {output}", self.name);
    }

    /// [`Job::assert_whole`] for the file that a run has staged out under the name of the job.
    #[track_caller]
    fn assert_staged(&self, output: &str) {
        let file = self.cluster.path(&format!("{0}.files/{0}", self.name));
        self.assert_whole(&file, output);
    }
}

/// Blocks of the page about jobs.
fn scripts_of_the_page() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/run.md")).unwrap();
    let all = examples(&page).into_iter().filter(|example| example.how == How::RunInJob);
    all.map(|example| example.commands).collect()
}

/// The job scripts of the page run as they are there: one with a server of its own on each node,
/// and one with servers that several programs use.
fn scripts_run_as_printed(cluster: &Cluster) {
    let [run, start] = &scripts_of_the_page()[..] else { panic!("the page has two job scripts") };
    let (run, start) = (
        cluster.submit("page-run", "--exclude n5", run),
        cluster.submit("page-start", "--exclude n5", start),
    );
    let output = run.end("COMPLETED");
    assert!(output.contains("4 servers, 8 ranks, MPICH"), "{output}");
    run.assert_whole(&cluster.path("results/out.dat"), &output);
    let output = start.end("COMPLETED");
    for name in ["first.dat", "second.dat"] {
        start.assert_whole(&cluster.path("files").join(name), &output);
    }
    assert!(output.contains("4 servers stopped"), "{output}");
}

/// Programs that either MPI library starts, on two nodes, and on one.
fn programs_are_started_by_mpiexec(cluster: &Cluster) {
    let several = "--nodes 2 --ntasks 4 --exclude n5";
    let openmpi = "-- mpiexec.openmpi ./app-openmpi unisono://openmpi";
    let here = "-- mpiexec.mpich ./app-here unisono://one-node";
    let jobs = [
        cluster.submit_run("mpich", several, &mpiexec("unisono://mpich")),
        cluster.submit_run("openmpi", several, openmpi),
        cluster.submit_run("one-node", "--nodes 1 --ntasks 2 --exclude n5", here),
    ];
    for job in jobs {
        let output = job.end("COMPLETED");
        job.assert_staged(&output);
        assert!(output.contains("servers stopped"), "{output}");
    }
}

/// The program is asked to end before its time is over, by `run`, or by Slurm because the script
/// says so.
fn files_are_staged_out_before_the_time_limit(cluster: &Cluster) {
    let options = "--nodes 2 --ntasks 4 --exclude n5 --time 2";
    let by_run = cluster.submit_run("limit", options, &mpiexec("unisono://limit signal"));
    // Servers get this signal, too.
    let options = format!("{options} --signal=TERM@80");
    let srun = "-- srun --mpi=pmi2 ./app unisono://asked signal";
    let by_slurm = cluster.submit_run("asked", &options, srun);
    by_slurm.assert_staged(&by_slurm.end("COMPLETED"));
    let output = by_run.end("COMPLETED");
    assert!(output.contains("the time of the job ran short"), "{output}");
    by_run.assert_staged(&output);
}

/// A script whose servers write everything back and end when Slurm ends the job, although it goes
/// on. Then they have what was put there.
const STARTED: &str = "#!/bin/bash
trap : TERM
unisono start --data $PWD/$SLURM_JOB_NAME.data
echo content >$SLURM_JOB_NAME.put; unisono put $SLURM_JOB_NAME.put written
echo job: the first step is written
sleep 1000 & wait
until ! unisono status; do sleep 1; done >/dev/null 2>&1
unisono stop
";

/// Proves that the servers of such a script have ended well, and have kept what was put there.
fn assert_kept(cluster: &Cluster, options: &str, started: &Job<'_>, output: &str) {
    for server in [0, 1] {
        assert!(output.contains(&format!("server {server} on")), "{output}");
    }
    let data = format!("$PWD/{}.data", started.name);
    let again =
        format!("#!/bin/bash\nunisono start --data {data} && unisono cat written && unisono stop");
    let again = cluster.submit(&format!("{}-again", started.name), options, &again);
    let output = again.end("COMPLETED");
    assert!(output.lines().any(|line| line == "content"), "{output}");
}

/// The limit of a job arrives while its program goes on.
fn servers_end_well_at_the_time_limit(cluster: &Cluster) {
    let options = "--nodes 2 --ntasks 4 --exclude n5";
    let started = cluster.submit("at-limit", &format!("{options} --time 1"), STARTED);
    let output = started.end("TIMEOUT");
    assert_kept(cluster, options, &started, &output);
}

/// Slurm sends SIGTERM to every process of a job that is cancelled. The servers outlast it.
fn files_of_cancelled_jobs_are_staged_out(cluster: &Cluster) {
    let options = "--nodes 2 --ntasks 4 --exclude n5";
    let srun = "-- srun --mpi=pmi2 ./app unisono://by-srun signal";
    let in_memory = format!("--memory 64MiB {}", mpiexec("unisono://in-memory signal"));
    let here = "-- mpiexec.mpich ./app-here unisono://here signal";
    let jobs = [
        cluster.submit_run("by-srun", options, srun),
        cluster.submit_run("in-memory", options, &in_memory),
        cluster.submit_run("here", "--nodes 1 --ntasks 2 --exclude n5", here),
    ];
    // A program that goes on is killed while there is time to copy what it has written.
    let script = "trap : TERM; echo content >kept; unisono put kept goes-on; \
                  echo job: the first step is written; while :; do sleep 1; done";
    let goes_on = cluster.submit_run("goes-on", options, &format!("-- sh -c '{script}'"));
    let mounted = "trap : TERM; echo content >$UNISONO_MOUNT/mounted; \
                   echo job: the first step is written; while :; do sleep 1; done";
    std::fs::create_dir(cluster.path("mnt")).unwrap();
    let mounted = format!("--mount mnt -- sh -c '{mounted}'");
    let mounted = cluster.submit_run("mounted", options, &mounted);
    let started = cluster.submit("started", options, STARTED);
    for job in &jobs {
        job.until_it_writes();
        job.cancel();
    }
    for job in [&goes_on, &mounted, &started] {
        job.until_it_writes();
        job.cancel();
    }
    for job in jobs {
        job.assert_staged(&job.end("CANCELLED"));
    }
    for job in [goes_on, mounted] {
        let output = job.end("CANCELLED");
        assert!(output.contains("ended by signal 9"), "{output}");
        let staged = std::fs::read(cluster.path(&format!("{0}.files/{0}", job.name)));
        assert_eq!(staged.unwrap(), b"content\n", "{output}");
    }
    let output = started.end("CANCELLED");
    assert_kept(cluster, options, &started, &output);
}

/// A node fails with all its processes: the run ends with an error that names its server, and keeps
/// what the other node has. Slurm cancels a job that does not forbid it.
fn a_node_that_fails_is_named(cluster: &Cluster) {
    let options = "--nodes 2 --ntasks 4 --no-requeue";
    let program = |name: &str| mpiexec(&format!("unisono://{name} signal"));
    let goes_on = format!("{options} --nodelist n3,n5 --no-kill");
    let ends = format!("{options} --nodelist n2,n5");
    let jobs = [
        (cluster.submit_run("goes-on-without", &goes_on, &program("goes-on-without")), "FAILED"),
        (cluster.submit_run("ends-with-it", &ends, &program("ends-with-it")), "NODE_FAIL"),
    ];
    jobs.iter().for_each(|(job, _)| job.until_it_writes());
    let node = std::fs::read_to_string(cluster.files.join("nodes/n5/pid")).unwrap();
    let mut kill = Command::new("kill");
    kill.args(["-KILL", node.trim()]);
    assert_eq!(ended(kill).0, Some(0));
    // In a job that Slurm ends, the time may be over before it is certain that the server is lost.
    let words = [
        &["error: not all files are staged out", "server 1 ", "the data is kept: "][..],
        &["is kept: unisono start"],
    ];
    for (((job, state), kept_at), words) in jobs.into_iter().zip(["n3", "n2"]).zip(words) {
        let output = job.end(state);
        for words in words {
            assert!(output.contains(words), "{words:?} is missing: {output}");
        }
        cluster.remove_kept([kept_at, "n5"], &output);
    }
}

#[test]
fn jobs_of_slurm_have_servers_and_leave_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let cases: [fn(&Cluster); 6] = [
        servers_end_well_at_the_time_limit,
        files_are_staged_out_before_the_time_limit,
        a_node_that_fails_is_named,
        files_of_cancelled_jobs_are_staged_out,
        scripts_run_as_printed,
        programs_are_started_by_mpiexec,
    ];
    let mut failures = String::new();
    std::thread::scope(|scope| {
        let running: Vec<_> = cases.iter().map(|case| scope.spawn(|| case(&cluster))).collect();
        for case in running {
            if let Err(panic) = case.join() {
                let said = panic.downcast_ref::<String>().map_or("", String::as_str);
                writeln!(failures, "{said}").unwrap();
            }
        }
    });
    cluster.end();
    assert!(failures.is_empty(), "{failures}");
}
