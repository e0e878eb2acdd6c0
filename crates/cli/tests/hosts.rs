//! Proves: servers are started on the hosts of a file or a job by whatever starts programs there,
//! serve clients anywhere, and leave nothing behind, however they end. The hosts are loopback
//! addresses; what starts programs there is a script that gives them another directory and an
//! environment without anything.

use crate::support;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{
    DATA_CHECK, Ended, FAILED, NO_SERVER, Place, Running, USAGE, bytes, children_of, gone,
    is_running, processes_naming, run, signal, unisono, until,
};

const HOSTS: [&str; 2] = ["127.0.0.2", "127.0.0.3"];

/// First lines of a launcher script: record the arguments and remove the host from them.
const BEGIN: &str = "#!/bin/sh\necho \"$*\" >> %/calls\nhost=$1; shift\n\
                     case $host in 127.0.0.[23]) ;; *) echo \"no host $host\"; exit 9;; esac\n";

/// Last line of a launcher script: become the program.
const BECOME: &str = "cd / && exec env -i TMPDIR=%/scratch \"$@\"\n";

/// An instance on two hosts, started or not.
pub(crate) struct Site {
    place: Place,
    launcher: PathBuf,
}

impl Site {
    /// Makes a site whose launcher is a script, in which % stands for the directory of the test.
    fn new(script: &str) -> Self {
        let place = Place::new();
        std::fs::create_dir(place.path("scratch")).expect("a test must have room");
        place.file("hosts", b"# two\n127.0.0.2\n127.0.0.3 slots=1\n");
        let launcher = place.script("launcher", script);
        Self { place, launcher }
    }

    /// A site whose launchers become the servers.
    pub(crate) fn becoming() -> Self {
        Self::new(&[BEGIN, BECOME].concat())
    }

    /// A site whose launchers wait for their servers.
    pub(crate) fn waiting() -> Self {
        Self::new(&[BEGIN, "cd /\nTMPDIR=%/scratch \"$@\"\n"].concat())
    }

    /// Directory of the test, and its instance.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Command that starts the instance.
    pub(crate) fn start_command(&self, words: &[&str]) -> Command {
        let launcher = self.launcher.to_str().expect("a path in UTF-8");
        let hosts = ["start", "--json", "--hostfile", "hosts", "--launcher", launcher];
        self.place.command(&[&hosts, words].concat())
    }

    /// Starts the instance.
    pub(crate) fn start(&self, words: &[&str]) -> Ended {
        run(self.start_command(words))
    }

    /// Distinct calls of the script, with their arguments.
    fn calls(&self) -> BTreeSet<String> {
        let calls = std::fs::read_to_string(self.place.path("calls")).unwrap_or_default();
        calls.lines().map(str::to_owned).collect()
    }

    /// Proves that no process is left, and no file that names one.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        until("no process is left", || {
            processes_naming(&self.place.path("")).is_empty().then_some(())
        });
        assert!(!self.place.instance().join("instance.json").exists());
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// Process id of server `id`.
fn pid(status: &[Value], id: usize) -> u32 {
    status[id]["pid"].as_u64().expect("it has a process") as u32
}

#[test]
fn servers_on_hosts_live_and_end() {
    // Proves: start runs one server on each host by the launcher, which is given the host and a
    // command without the key; status shows host, address, load and files of each; files go in and
    // out, every byte, and bench works; what was held is there after a stop and a start; stop
    // leaves no process.
    let site = Site::new(&[BEGIN, BECOME].concat());
    let started = site.start(&[]).done();
    let said = &started.error;
    assert!(said.contains("hosts names 2 hosts") && said.contains("launcher"), "{said}");
    let key = std::fs::read(site.place.instance().join("key")).expect("there is one");
    let instance = site.place.instance().display().to_string();
    let command = format!("{} serve-told", env!("CARGO_BIN_EXE_unisono"));
    let call = |id: usize| format!("{} {command} --id {id} --instance {instance}", HOSTS[id]);
    assert_eq!(site.calls(), BTreeSet::from([call(0), call(1)]));
    let content = bytes(3_000_001);
    let local = site.place.file("local", &content);
    let copied = ["cp", "--block", "64KiB", local.to_str().unwrap(), "unisono://a"];
    site.place.run(&copied).done();
    let status = site.place.status();
    for (id, server) in status.iter().enumerate() {
        assert_eq!((&server["host"], &server["files"]), (&HOSTS[id].into(), &1.into()));
        let address = server["address"].as_str().unwrap();
        assert!(address.starts_with(&format!("tcp:{}:", HOSTS[id])), "{address}");
        assert!(server["bytes_moved"].as_u64() > Some(1_000_000), "{server}");
        assert_eq!(server["running"], true);
        let data = &started.json()["servers"][id]["data"][0];
        let data = Path::new(data.as_str().unwrap());
        assert!(data.starts_with(site.place.path("scratch")), "{data:?}");
        assert!(data.ends_with(format!("server-{id}")), "{data:?}");
        assert_eq!(mode(data), 0o700);
        let environment = std::fs::read(format!("/proc/{}/environ", pid(&status, id))).unwrap();
        let shown: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let environment = String::from_utf8_lossy(&environment);
        assert!(!environment.contains(&shown) && environment.contains("TMPDIR"));
    }
    let text = site.place.run(&["status"]).done();
    assert!(text.text().contains("server 1 on 127.0.0.3  running at tcp:"), "{}", text.text());
    site.place.run(&["bench", "--size", "1MiB", "--clients", "2", "--repeat", "1"]).done();
    site.start(&[]).refused(USAGE, &["is running"]);
    assert_eq!(site.place.run(&["stop", "--json"]).done().json()["stopped"], 2);
    site.assert_nothing_left();
    site.start(&[]).done();
    assert!(site.place.run(&["cat", "a"]).done().output == content);
    site.place.run(&["stop"]).done();
    site.assert_nothing_left();
}

#[test]
fn servers_have_directories_of_their_own() {
    // Proves: the servers of a host share the directories named, each with one of its own in each
    // of its disks; neighbours by number are on different hosts; another number is refused.
    let site = Site::new(&[BEGIN, BECOME].concat());
    let (x, y) = (site.place.path("x"), site.place.path("y"));
    let data = ["--data", x.to_str().unwrap(), "--data", y.to_str().unwrap()];
    let started = site.start(&[&["--servers-per-host", "2"], &data[..]].concat()).done().json();
    let servers = started["servers"].as_array().unwrap();
    for (id, server) in servers.iter().enumerate() {
        assert_eq!(server["host"], HOSTS[id % 2]);
        let disk = if id < 2 { &x } else { &y };
        assert_eq!(server["data"], json!([disk.join(format!("server-{id}"))]));
    }
    assert_eq!(servers.len(), 4);
    site.place.run(&["stop"]).done();
    site.start(&data)
        .refused(USAGE, &["of 2 on 127.0.0.", "its label is that of disk 0 of 1 of server"]);
    site.assert_nothing_left();
    site.start(&["--servers-per-host", "3", "--data", "x", "--data", "y"])
        .refused(USAGE, &["2 directories for 3 servers of 127.0.0.2"]);
    let other = site.place.path("z");
    let started = site.start(&["--servers", "3", "--data", other.to_str().unwrap()]).done().json();
    let hosts: Vec<&Value> = started["servers"].as_array().unwrap().iter().collect();
    assert_eq!(
        hosts.iter().map(|one| &one["host"]).collect::<Vec<_>>(),
        [HOSTS[0], HOSTS[1], HOSTS[0]]
    );
}

#[test]
fn hosts_whose_catalogue_is_lost_start_no_new_one() {
    // Proves: data on one host is not taken for new when the catalogue on the other is gone.
    let site = Site::new(&[BEGIN, BECOME].concat());
    let started = site.start(&[]).done().json();
    site.place.run(&["layout", "set", "/", "--pool", "1"]).done();
    let local = site.place.file("local", &bytes(100_000));
    site.place.run(&["put", local.to_str().unwrap(), "kept"]).done();
    site.place.run(&["stop"]).done();
    let data = Path::new(started["servers"][0]["data"][0].as_str().unwrap());
    let (records, away) = (data.join("catalogue/records.redb"), site.place.path("away"));
    std::fs::rename(&records, &away).unwrap();
    site.start(&[]).refused(DATA_CHECK, &["catalogue is lost", "server 1"]);
    site.assert_nothing_left();
    std::fs::rename(&away, &records).unwrap();
    site.start(&[]).done();
    assert_eq!(site.place.files(), ["kept"]);
}

#[test]
fn one_host_that_fails_ends_all() {
    // Proves: when a host refuses, does nothing within the timeout, or has no such program, start
    // fails with code 3 and names the host and what it said; those that had begun are ended.
    let refuses = "[ $host = 127.0.0.3 ] && { echo 'the node is closed' >&2; exit 7; }\n";
    let site = Site::new(&[BEGIN, refuses, BECOME].concat());
    site.start(&[]).refused(NO_SERVER, &["server 1", "127.0.0.3", "the node is closed", "7"]);
    site.assert_nothing_left();
    let idles = "[ $host = 127.0.0.3 ] && { echo 'I am waiting'; exec sleep 1000; }\n";
    let site = Site::new(&[BEGIN, idles, BECOME].concat());
    let words = ["127.0.0.3", "I am waiting", "within 1 s"];
    site.start(&["--patience", "1"]).refused(NO_SERVER, &words);
    site.assert_nothing_left();
    let site = Site::new(&[BEGIN, BECOME].concat());
    site.start(&["--remote-program", "/nowhere/unisono"]).refused(NO_SERVER, &["/nowhere/unisono"]);
    site.assert_nothing_left();
    let launched = ["start", "--hostfile", "hosts", "--launcher", "/nowhere/launcher"];
    site.place.run(&launched).refused(NO_SERVER, &["/nowhere/launcher", "127.0.0.2"]);
    site.assert_nothing_left();
    // 192.0.2.0/24 is for documentation (RFC 5737): no machine has such an address.
    site.place.file("hosts", b"127.0.0.2\n192.0.2.1\n");
    site.start(&[]).refused(NO_SERVER, &["192.0.2.1", "no host 192.0.2.1"]);
    site.assert_nothing_left();
    site.place.run(&["status"]).refused(NO_SERVER, &["no instance"]);
}

#[test]
fn a_start_that_is_interrupted_leaves_nothing() {
    // Proves: when the command is killed while a host takes its time, the supervisor ends what
    // it had started.
    let idles = "[ $host = 127.0.0.3 ] && exec sleep 1000 > %/idle\n";
    let site = Site::new(&[BEGIN, idles, BECOME].concat());
    let launcher = site.launcher.to_str().unwrap();
    let words = ["start", "--hostfile", "hosts", "--launcher", launcher];
    let start = Running::start(site.place.command(&words));
    until("a host takes its time", || site.place.path("idle").exists().then_some(()));
    signal(start.pid(), Signal::KILL);
    site.assert_nothing_left();
}

#[test]
fn a_server_that_loses_its_launcher_writes_back_and_ends() {
    // Proves: when a launcher is killed, its server writes back what it holds and ends; here its
    // directory is away, so that it says why it cannot. The other server goes on; stop tells which
    // one had ended and waits for nothing; the files are there after a start.
    let site = Site::new(&[BEGIN, "cd /\nTMPDIR=%/scratch \"$@\"\n"].concat());
    site.start(&[]).done();
    let content = bytes(2_500_000);
    let local = site.place.file("local", &content);
    site.place.run(&["cp", local.to_str().unwrap(), "unisono://kept"]).done();
    let mut clients = support::group(&site.place, 2);
    clients.iter_mut().for_each(|client| client.order(&support::FRAGMENTS, "endless"));
    let holds = |server: &Value| server["dirty_bytes"].as_u64() > Some(0);
    let lost = until("a block is held", || site.place.status().iter().position(holds));
    clients.iter().for_each(|client| signal(client.pid(), Signal::STOP));
    let started = std::fs::read(site.place.instance().join("instance.json")).unwrap();
    let started: Value = serde_json::from_slice(&started).unwrap();
    let server = started["servers"][lost].clone();
    let supervisor = started["keeper"]["pid"].as_u64().unwrap() as u32;
    let (data, away) = (server["data"][0].as_str().unwrap(), site.place.path("away"));
    std::fs::rename(data, &away).unwrap();
    let launcher = children_of(supervisor, HOSTS[lost]);
    assert_eq!(launcher.len(), 1);
    signal(launcher[0], Signal::KILL);
    gone(server["pid"].as_u64().unwrap() as u32);
    let log = site.place.instance().join(format!("server-{lost}.log"));
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains(&format!("server {lost} failed")) && log.contains(data), "{log}");
    std::fs::rename(&away, data).unwrap();
    drop(clients);
    let whose = format!("server {lost} on {}", HOSTS[lost]);
    let status = site.place.run(&["status", "--json"]).failed(NO_SERVER, &[&whose]).json();
    assert_eq!(status["servers"][lost]["running"], false);
    assert_eq!(status["servers"][1 - lost]["running"], true);
    let stopped = site.place.run(&["stop", "--json"]).done();
    assert_eq!((&stopped.json()["stopped"], &stopped.json()["gone"]), (&1.into(), &json!([lost])));
    assert!(stopped.error.contains(&format!("{whose} had already ended")), "{}", stopped.error);
    site.assert_nothing_left();
    site.start(&[]).done();
    assert!(site.place.run(&["cat", "kept"]).done().output == content);
}

#[test]
fn nothing_outlives_the_supervisor() {
    // Proves: when the process that keeps the launchers is killed, all launchers and servers end;
    // status and stop say so; a start works again.
    let site = Site::new(&[BEGIN, BECOME].concat());
    site.start(&[]).done();
    let processes: Vec<u32> = processes_naming(&site.place.instance());
    let status = site.place.status();
    let servers = [pid(&status, 0), pid(&status, 1)];
    let supervisor: Vec<u32> = processes.into_iter().filter(|one| !servers.contains(one)).collect();
    assert_eq!(supervisor.len(), 1);
    signal(supervisor[0], Signal::KILL);
    servers.into_iter().for_each(gone);
    site.place.run(&["status"]).failed(NO_SERVER, &["server 0 on 127.0.0.2"]);
    let stopped = site.place.run(&["stop", "--json"]).done().json();
    assert_eq!((&stopped["stopped"], &stopped["gone"]), (&0.into(), &json!([0, 1])));
    site.assert_nothing_left();
    site.start(&[]).done();
    site.place.run(&["stop"]).done();
    site.assert_nothing_left();
}

#[test]
fn a_copy_of_the_directory_serves_clients_and_stops_nothing() {
    // Proves: with a copy of the directory, even of all of it, files and status work, and stop is
    // refused; from the directory itself stop works.
    let site = Site::new(&[BEGIN, BECOME].concat());
    site.start(&[]).done();
    let copied = site.place.path("copy");
    let mut all = std::process::Command::new("cp");
    all.arg("-a").arg(site.place.instance()).arg(&copied);
    assert!(all.status().expect("there is a cp").success());
    let command = |words: &[&str]| {
        let mut command = unisono(words);
        command.arg("--instance").arg(&copied);
        run(command)
    };
    let local = site.place.file("local", b"from afar");
    command(&["cp", local.to_str().unwrap(), "unisono://a"]).done();
    assert_eq!(command(&["cat", "a"]).done().output, b"from afar");
    command(&["ls"]).done();
    command(&["bench", "--size", "1MiB", "--clients", "2", "--repeat", "1"]).done();
    command(&["stop"]).refused(USAGE, &["server 0", copied.to_str().unwrap()]);
    let status = site.place.status();
    assert!(is_running(pid(&status, 0)) && is_running(pid(&status, 1)));
    site.place.run(&["stop"]).done();
    assert!(!is_running(pid(&status, 0)) && !is_running(pid(&status, 1)));
    site.assert_nothing_left();
}

#[test]
fn malformed_files_of_hosts_are_refused() {
    // Proves: a file of hosts that is not there or makes no sense is refused with code 2, by its
    // name and line, and nothing is made.
    let site = Site::new(&[BEGIN, BECOME].concat());
    for (text, line, named) in [
        ("", 1, "no host"),
        ("127.0.0.2\nb slots=x\n", 2, "slots=x"),
        ("127.0.0.2 cores=2\n", 1, "cores=2"),
        ("\n# x\n-oProxyCommand=x\n", 3, "ProxyCommand"),
    ] {
        let path = site.place.file("hosts", text.as_bytes());
        let file = path.file_name().unwrap().to_str().unwrap();
        site.start(&[]).refused(USAGE, &[file, &format!("line {line}"), named]);
    }
    std::fs::remove_file(site.place.path("hosts")).unwrap();
    site.start(&[]).refused(USAGE, &["hosts", "No such file"]);
    site.place.file("hosts", b"127.0.0.2\n");
    site.place
        .run(&["start", "--hostfile", "hosts", "--launcher", "local"])
        .refused(USAGE, &["hosts", "local"]);
    site.place.run(&["start", "--launcher", "srun"]).refused(USAGE, &["srun", "--hostfile"]);
    site.place.run(&["start", "--hostfile", "hosts", "--tcp", "x"]).refused(USAGE, &["--tcp"]);
    assert!(!site.place.instance().exists());
}

#[test]
fn a_job_of_slurm_has_servers_on_its_hosts() {
    // Proves: in a job of Slurm, start says what it does and calls srun with these words, once for
    // each host of the list; --launcher local starts servers here as ever, and so does a job that
    // has only this host. What srun is here is a script.
    let place = Place::new();
    std::fs::create_dir(place.path("scratch")).expect("a test must have room");
    place.script(
        "srun",
        "#!/bin/sh\necho \"$*\" >> %/calls\n\
         while [ \"${1#--}\" != \"$1\" ]; do shift; done\n\
         cd / && exec env -i SLURM_TMPDIR=%/scratch TMPDIR=/nowhere \"$@\"\n",
    );
    let in_job = |hosts: &str, words: &[&str]| {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = place.command(words);
        command.env("PATH", format!("{}:{path}", place.path("").display()));
        command.env("SLURM_JOB_ID", "7").env("SLURM_JOB_NODELIST", hosts);
        run(command)
    };
    let started = in_job("127.0.0.[2-3]", &["start", "--json"]).done();
    let said = &started.error;
    assert!(
        said.contains("Slurm job 7 has 2 hosts") && said.contains("srun starts servers"),
        "{said}"
    );
    let instance = place.instance().display().to_string();
    let program = env!("CARGO_BIN_EXE_unisono");
    let call = |id: usize| {
        format!(
            "--nodes=1 --ntasks=1 --overlap --cpu-bind=none --nodelist={} {program} serve-told \
             --id {id} --instance {instance}",
            HOSTS[id]
        )
    };
    let calls = std::fs::read_to_string(place.path("calls")).unwrap();
    let calls: BTreeSet<&str> = calls.lines().collect();
    assert_eq!(calls, BTreeSet::from([call(0).as_str(), call(1).as_str()]));
    let data = started.json()["servers"][0]["data"][0].as_str().unwrap().to_owned();
    assert!(Path::new(&data).starts_with(place.path("scratch")), "{data}");
    let local = place.file("local", &bytes(100_000));
    place.run(&["cp", local.to_str().unwrap(), "unisono://a"]).done();
    let scratch = place.path("scratch").display().to_string();
    let words = ["doctor", "--directory", &scratch];
    assert_eq!(in_job("127.0.0.[2-3]", &words).done().text().matches("ok ").count(), 7);
    place.run(&["stop"]).done();
    assert_eq!(processes_naming(&place.path("")), [0; 0]);
    for (hosts, words) in [("127.0.0.[2-3]", &["--launcher", "local"][..]), ("localhost", &[])] {
        std::fs::remove_dir_all(place.instance()).unwrap();
        let started = in_job(hosts, &[&["start", "--servers", "1", "--json"], words].concat());
        let started = started.done();
        assert_eq!(started.error.contains("has only this host"), hosts == "localhost");
        let address = started.json()["servers"][0]["address"].as_str().unwrap().to_owned();
        assert!(address.starts_with("unix:"), "{address}");
        place.run(&["stop"]).done();
    }
    in_job("n[1-", &["start"]).refused(USAGE, &["SLURM_JOB_NODELIST", "bracket"]);
}

#[test]
fn the_doctor_looks_at_the_hosts() {
    // Proves: with hosts, the doctor also runs a program on each by the launcher, and asks which
    // version is there; a host that refuses is named, with what it said.
    let refuses = "[ -e %/closed ] && { echo 'the node is closed'; exit 7; }\n";
    let site = Site::new(&[BEGIN, refuses, BECOME].concat());
    let launcher = site.launcher.to_str().unwrap();
    let words = ["doctor", "--json", "--hostfile", "hosts", "--launcher", launcher];
    let found = site.place.run(&words).done().json();
    assert!(found["findings"].as_array().unwrap().iter().all(|one| one["ok"] == true), "{found}");
    assert!(found.to_string().contains("on 2 hosts"), "{found}");
    site.place.file("closed", b"");
    let ill = site.place.run(&words).failed(FAILED, &["127.0.0.2", "the node is closed"]);
    assert_eq!(ill.json()["findings"][4]["what"], "launcher");
    assert_eq!(ill.json()["findings"][4]["ok"], false);
}
