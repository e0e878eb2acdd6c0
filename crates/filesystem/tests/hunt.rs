//! Proves, for any combination of crashes, torn and lost writes, slow and failing disks, lost and
//! cut connections, stopped servers, killed and stopped clients, and of disks of mirrored files
//! that are lost and replaced by empty ones:
//! - Every operation soon ends, by success or by a fault that names the cause.
//! - Data that a sync has acknowledged is there after any crash, byte for byte.
//! - No read returns a value that was never written there.
//! - An acknowledged change of a name is never undone.
//!
//! Clients work in teams, each on files of its own, round by round: the members of a team make one
//! collective transfer together, or each works alone, and any team reads the files of any other.
//! All teams write one common file, each its own bytes (not by two-phase: where a segment has bytes
//! of others, it writes back what it read of them). [`model`] has the possible bytes and names,
//! [`plan`] the faults.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod model;
mod plan;
mod team;

use crate::support;
use futures_util::FutureExt;
use model::{GRACE, Model};
use plan::SILENT_MAX;
use policy::Protection;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use support::{
    Cluster, Numbers, Shape, Start, create_alone, fast_disk, for_each_seed, replace_server,
    start_replaced,
};
use team::{Member, Team, TestClient};
use units::{Duration, Instant, ServerId};
use wire::{Fault, FileRecord};
use world::{RecordTable, Records};
use world_simulated::models::ssd::SsdSpec;
use world_simulated::{DiskKind, Disruption, FaultPlan, PlannedFault, TaskHandle};

/// Number of seeds of one run of the suite.
const SEEDS: u64 = 5000;

/// Time after which every copy must be equal again.
const RENEWAL_MAX: Duration = Duration::from_ms(5_000);

/// Number of rounds of each team.
const ROUNDS: u64 = 14;

/// Events that must occur in a worthwhile hunt.
const WANTED: [&str; 22] = [
    "crash of a client",
    "crash of a server",
    "cut",
    "cut of a connection",
    "failing disk",
    "fault: a client left",
    "fault: a disk failed",
    "fault: a server left",
    "fault: a server stalled",
    "gathered write",
    "lost connection",
    "lost piece of rows",
    "read of a kept page",
    "replaced disk",
    "restart",
    "slow disk",
    "stop of a client",
    "stop of a server",
    "sync",
    "wait for a lost server",
    "write",
    "write with sync",
];

/// State of a run besides the machine.
pub(crate) struct Run {
    pub(crate) seed: u64,
    logs: bool,
    pub(crate) shape: Shape,
    pub(crate) model: RefCell<Model>,
    pub(crate) teams: Vec<RefCell<Team>>,
    /// File that all teams write, in turns of this many bytes.
    pub(crate) common: FileRecord,
    pub(crate) turn_bytes: u64,
    /// Nodes that a fault may name so far.
    pub(crate) blamed: RefCell<Blamed>,
    /// End of the last silence. Operations that failed before may still take effect until then.
    pub(crate) silent_until: Cell<Instant>,
    /// Time of the last event by which a client may lose its connections.
    troubled: Cell<Instant>,
    servers: RefCell<Vec<TaskHandle>>,
    /// Servers whose disks were replaced, with the number of the new ones.
    replaced: RefCell<BTreeMap<u32, u64>>,
    /// Faults that happen.
    plan: FaultPlan,
    /// Number of occurrences of each kind of event.
    pub(crate) counts: RefCell<BTreeMap<&'static str, u64>>,
}

/// Causes that a fault may name.
#[derive(Default, Debug)]
pub(crate) struct Blamed {
    /// Nodes that crashed, lost a connection, or are silent.
    left: BTreeSet<u32>,
    /// Nodes that stopped, or one of whose connections was cut.
    silent: BTreeSet<u32>,
    failed: BTreeSet<u32>,
}

impl Blamed {
    fn go_silent(&mut self, nodes: &[u32]) {
        self.left.extend(nodes);
        self.silent.extend(nodes);
    }
}

impl Run {
    /// Logs an event when one seed is repeated.
    pub(crate) fn log(&self, now: Instant, what: impl FnOnce() -> String) {
        if self.logs {
            eprintln!("{:>8} us  {}", now.as_ns() / 1000, what());
        }
    }

    pub(crate) fn count(&self, what: &'static str) {
        *self.counts.borrow_mut().entry(what).or_default() += 1;
    }

    /// True if a client may not know yet that it has lost a connection.
    pub(crate) fn is_troubled(&self, now: Instant) -> bool {
        now < self.silent_until.get() || now < self.troubled.get() + GRACE
    }

    /// Panics unless a fault names a node that an event concerned.
    pub(crate) fn judge(&self, fault: &Fault, what: &str) {
        let blamed = self.blamed.borrow();
        let is_just = match fault {
            Fault::ServerLeft { server, .. } => blamed.left.contains(&server.0),
            Fault::ServerStalled { server, .. } => blamed.silent.contains(&server.0),
            Fault::WritesLost { .. } => !blamed.left.is_empty(),
            // A new disk that is being filled, while the disk with the copy does not work.
            Fault::Corrupt { server, .. } => {
                self.replaced.borrow().contains_key(&server.0) && !blamed.failed.is_empty()
            }
            Fault::DiskFailed { server, .. } => blamed.failed.contains(&server.0),
            // A member that got a fault leaves its group.
            Fault::ClientLeft { .. } => !blamed.left.is_empty() || !blamed.failed.is_empty(),
            _ => false,
        };
        self.count(match fault {
            Fault::ServerLeft { .. } => "fault: a server left",
            Fault::ServerStalled { .. } => "fault: a server stalled",
            Fault::DiskFailed { .. } | Fault::Corrupt { .. } => "fault: a disk failed",
            Fault::WritesLost { .. } => "fault: writes were lost",
            _ => "fault: a client left",
        });
        assert!(is_just, "{what}: not a fault of anyone in {blamed:?}: {fault}");
    }

    /// Servers with disks that are not filled again.
    fn refilling(&self, cluster: &Cluster) -> Vec<u32> {
        let is_whole = |(server, number): &(&u32, &u64)| {
            let numbers = vec![**number; self.shape.disks_per_server as usize];
            let listed = vec![(0, wire::encode_record(&numbers))];
            records(cluster, **server, RecordTable::Lacking) == listed
        };
        let replaced = self.replaced.borrow();
        replaced.iter().filter(|one| !is_whole(one)).map(|(server, _)| *server).collect()
    }

    /// True if the disks of a server, which is down, are to be lost now, and everything that a sync
    /// has acknowledged is elsewhere.
    fn may_lose(&self, cluster: &Cluster, node: u32) -> bool {
        let is_wanted = (self.seed ^ cluster.engine.now().as_ns()).is_multiple_of(3);
        let behind = (1 << 63) + u64::from(node);
        let is_behind = || {
            let catalogue = records(cluster, 0, RecordTable::Catalogue);
            catalogue.iter().any(|(key, _)| *key == behind)
        };
        self.shape.protection.is_redundant()
            && is_wanted
            && !is_behind()
            && self.refilling(cluster).iter().all(|server| *server == node)
            && (self.shape.protection == Protection::Mirror || self.are_rows_whole(cluster, node))
    }

    /// True if all rows of all files are whole without a server, and no fault is to come before it
    /// is filled again: a row with a lost piece has nothing against a second fault.
    fn are_rows_whole(&self, cluster: &Cluster, node: u32) -> bool {
        let mut others = (0..self.shape.servers).filter(|server| *server != node);
        let is_marked = |server| {
            let marks = records(cluster, server, RecordTable::Mirrors);
            marks.iter().any(|(key, _)| *key != 0)
        };
        let now = cluster.engine.now();
        let is_soon = |fault: &PlannedFault| fault.at > now && fault.at < now + RENEWAL_MAX;
        !others.any(is_marked) && !self.plan.faults.iter().any(is_soon)
    }

    /// Starts a server again, which may have lost its disks.
    fn restart(&self, cluster: &Cluster, node: u32) -> TaskHandle {
        let number = self.replaced.borrow().get(&node).copied().unwrap_or(0);
        if !self.may_lose(cluster, node) {
            return start_replaced(&cluster.machine, &self.shape, node, number);
        }
        let now = cluster.engine.now();
        self.count("replaced disk");
        if self.shape.protection != Protection::Mirror {
            self.count("lost piece of rows");
        }
        self.log(now, || format!("the disks of server {node} are replaced"));
        let number = now.as_ns().max(1);
        self.replaced.borrow_mut().insert(node, number);
        replace_server(&cluster.machine, &self.shape, node, number)
    }

    /// Notes an event of the machine.
    fn happened(self: &Rc<Self>, cluster: &Cluster, what: Disruption) {
        let now = cluster.engine.now();
        self.log(now, || format!("{what:?}"));
        self.count(match what {
            Disruption::Crash { node } if node >= self.shape.servers => "crash of a client",
            Disruption::Crash { .. } => "crash of a server",
            Disruption::Restart { .. } => "restart",
            Disruption::DiskFails { .. } => "failing disk",
            Disruption::Disconnect { .. } => "lost connection",
            Disruption::DiskIsSlow { .. } => "slow disk",
            Disruption::Stop { node } if node >= self.shape.servers => "stop of a client",
            Disruption::Stop { .. } => "stop of a server",
            Disruption::Cut { .. } => "cut of a connection",
        });
        let (mut model, mut blamed) = (self.model.borrow_mut(), self.blamed.borrow_mut());
        if !matches!(what, Disruption::DiskIsSlow { .. } | Disruption::Restart { .. }) {
            self.troubled.set(now);
            model.lose_gathered(None, now);
        }
        match what {
            Disruption::Crash { node } => {
                blamed.left.insert(node);
                if node < self.shape.servers {
                    model.crashed(node, now);
                    // It may have been all that others are filled from.
                    self.refilling(cluster).into_iter().for_each(|it| model.crashed(it, now));
                } else {
                    let client = node - self.shape.servers;
                    self.teams.iter().for_each(|team| team.borrow_mut().lose(client));
                    (0..model.files.len()).for_each(|file| model.disturb(file, now));
                }
            }
            Disruption::Restart { node } => {
                let server = self.restart(cluster, node);
                self.servers.borrow_mut().push(server);
            }
            Disruption::DiskFails { node, fails, .. } => {
                blamed.failed.insert(node);
                model.failing(node, fails, now);
                self.refilling(cluster).into_iter().for_each(|it| model.crashed(it, now));
            }
            Disruption::Disconnect { nodes: (one, other) } => {
                blamed.left.extend([one, other]);
                (0..model.files.len()).for_each(|file| model.disturb(file, now));
            }
            Disruption::DiskIsSlow { .. } => {}
            Disruption::Stop { node } => {
                blamed.go_silent(&[node]);
                self.silent_until.set(now + SILENT_MAX);
                if node >= self.shape.servers {
                    let client = node - self.shape.servers;
                    self.teams.iter().for_each(|team| team.borrow_mut().lose(client));
                }
                (0..model.files.len()).for_each(|file| model.disturb(file, now));
            }
            Disruption::Cut { nodes: (one, other) } => {
                blamed.go_silent(&[one, other]);
                self.silent_until.set(now + SILENT_MAX);
                (0..model.files.len()).for_each(|file| model.disturb(file, now));
            }
        }
    }
}

/// The records of a server.
fn records(cluster: &Cluster, server: u32, table: RecordTable) -> Vec<(u64, Vec<u8>)> {
    let records = cluster.machine.world(server).records(table).now_or_never();
    records.expect("reading takes no time").expect("they can be read")
}

fn shape(seed: u64, numbers: &mut Numbers) -> Shape {
    // Rows of several blocks need more servers.
    let servers = 2 + numbers.below(2) as u32 + 2 * u32::from(seed % 6 == 1);
    let usual = Shape::default();
    let map = support::some_map(numbers, servers);
    Shape {
        servers,
        map: map.clone(),
        disks_per_server: 1 + numbers.below(2) as u32,
        // The last of them inspects the result.
        clients: 3 + numbers.below(3) as u32,
        cache_blocks: numbers.below(9),
        mechanism: match numbers.below(6) {
            0 => DiskKind::of(SsdSpec::NVME),
            _ => fast_disk(),
        },
        dirty_percent: [0, 20, 50, 100][(seed / 3 % 4) as usize],
        buffer_bytes: [u64::MAX, 0, 200][(seed / 7 % 3) as usize],
        copies: seed % 5 < 2,
        protection: match seed % 3 {
            0 => Protection::Mirror,
            1 if map.is_none() => Protection::Parity { blocks: 0 },
            _ => usual.protection,
        },
        // With such caches, servers give no leases.
        client_caches: (seed / 2).is_multiple_of(2),
        seed,
        ..usual
    }
}

/// Some teams of the clients that work.
fn teams(shape: &Shape, numbers: &mut Numbers) -> Vec<RefCell<Team>> {
    let mut teams: Vec<Vec<u32>> = Vec::new();
    for client in 0..shape.clients - 1 {
        match teams.last_mut() {
            Some(last) if numbers.below(3) > 0 => last.push(client),
            _ => teams.push(vec![client]),
        }
    }
    teams.into_iter().map(|members| RefCell::new(Team::new(members))).collect()
}

fn hunt(seed: u64) -> BTreeMap<&'static str, u64> {
    let mut numbers = Numbers::new(seed);
    let shape = shape(seed, &mut numbers);
    let teams = teams(&shape, &mut numbers);
    let plan = plan::draw(&shape, &mut numbers);
    let cluster = Rc::new(Cluster::new(shape.clone()));
    // Its name is as if of a team behind the last, which never changes it.
    let (name, bytes) = (format!("{}-common", teams.len()), 1 + numbers.below(64 * 12));
    let common = cluster.run_alone(shape.clients - 1, |start| {
        let name = name.clone();
        async move {
            let client = start.connect().await.unwrap();
            create_alone(&client, &start.shape, &name, bytes).await.unwrap()
        }
    });
    let mut model = Model::new(teams.len() + 1);
    let file = model.add_file(bytes, shape.stripe());
    model.identify(file, common.file);
    model.names[teams.len()][0].insert(name, file);
    let run = Rc::new(Run {
        seed,
        common,
        turn_bytes: numbers.pick(&[1, 7, 40, 64, 200]),
        logs: support::only_seed().is_some(),
        shape: shape.clone(),
        model: RefCell::new(model),
        teams,
        blamed: RefCell::default(),
        silent_until: Cell::new(Instant::START),
        troubled: Cell::new(Instant::START),
        servers: RefCell::default(),
        replaced: RefCell::default(),
        plan: plan.clone(),
        counts: RefCell::default(),
    });
    let (told, watched) = (Rc::clone(&run), Rc::downgrade(&cluster));
    cluster.machine.plan(&plan, move |what| {
        if let Some(cluster) = watched.upgrade() {
            told.happened(&cluster, what);
        }
    });
    let _members = start_members(&cluster, &run);
    cluster.engine.run(watch(Rc::clone(&cluster), Rc::clone(&run), plan)).unwrap();
    run.counts.take()
}

fn start_members(cluster: &Cluster, run: &Rc<Run>) -> Vec<TaskHandle> {
    let mut tasks = Vec::new();
    for (team, of_team) in run.teams.iter().enumerate() {
        for &client in &of_team.borrow().members {
            let member = Member::new(Rc::clone(run), team, client, cluster.start(client));
            let node = run.shape.node_of(client);
            tasks.push(cluster.engine.spawn(node, member.work(ROUNDS)));
        }
    }
    tasks
}

/// Waits for the teams and for the end of the plan; then inspects everything, crashes all servers,
/// and inspects it again.
async fn watch(cluster: Rc<Cluster>, run: Rc<Run>, plan: FaultPlan) {
    let engine = &cluster.engine;
    while !run.teams.iter().all(|team| team.borrow().is_done(ROUNDS)) {
        engine.sleep(Duration::from_ms(1)).await;
        assert!(engine.now() < Instant::START + run.shape.bound, "the teams must come to an end");
    }
    let last = plan.faults.iter().map(|fault| fault.at).max().unwrap_or(Instant::START);
    engine.sleep_until(last.max(engine.now()) + GRACE).await;
    let start = cluster.start(run.shape.clients - 1);
    check_all(&run, &start, "in the end").await;
    for node in 0..run.shape.servers {
        cluster.machine.kill(node);
        run.happened(&cluster, Disruption::Crash { node });
    }
    engine.sleep(Duration::from_ms(1)).await;
    for node in 0..run.shape.servers {
        cluster.machine.restart(node);
        run.happened(&cluster, Disruption::Restart { node });
    }
    engine.sleep(GRACE + GRACE).await;
    check_all(&run, &start, "after the last crash").await;
    check_all(&run, &start, "after the last crash, again").await;
    if run.shape.protection.is_redundant() {
        engine.sleep(RENEWAL_MAX).await;
        check_copies(&cluster, &start).await;
    }
}

/// Compares every file with its copy.
async fn check_copies(cluster: &Cluster, start: &Start) {
    let client: TestClient = start.connect().await.unwrap();
    for entry in client.list("").await.unwrap() {
        let file = entry.file().unwrap();
        // What the check has opened is still in the cache.
        if let Ok(opened) = client.open(&file.name).await {
            client.flush(&opened, true).await.unwrap();
            client.close(&opened).await.unwrap();
            support::expect_copies_equal(cluster, &opened).await;
        }
    }
    for (server, status) in client.status().await.into_iter().enumerate() {
        let status = status.unwrap();
        assert_eq!((status.files_behind, status.behind), (0, Vec::new()), "server {server}");
        let unprotected = client.unprotected_at(ServerId(server as u32)).await.unwrap();
        assert_eq!(unprotected, Some(Vec::new()), "server {server}");
    }
}

/// Lists every name and reads every file.
async fn check_all(run: &Rc<Run>, start: &Start, what: &str) {
    let client: TestClient = start.connect().await.unwrap();
    // A server may wait for a client that has stopped.
    client.watch(team::TIMEOUT);
    let mut found: Vec<BTreeMap<_, _>> = vec![BTreeMap::new(); run.teams.len() + 1];
    for entry in client.list("").await.unwrap() {
        let team = team::team_of(&entry.name);
        found[team].insert(entry.name.clone(), entry.file().unwrap().file);
    }
    for (team, found) in found.iter().enumerate() {
        run.model.borrow_mut().listed(team, found, what);
        for name in found.keys() {
            let begun = start.now();
            let file = match client.open(name).await {
                Ok(file) => file,
                Err(fault) => {
                    // Its removal was interrupted after the data was gone and before the name was.
                    let condemned = run.model.borrow().is_condemned(found[name]);
                    assert!(condemned && matches!(fault, Fault::NoSuchFile { .. }), "{fault}");
                    continue;
                }
            };
            let index = run.model.borrow().file_of(file.file).unwrap();
            let values = team::read_all(&client, &file).await.unwrap();
            let when = (begun, start.now());
            run.model.borrow_mut().check_all(index, values, when, &format!("{name} {what}"));
        }
    }
}

#[test]
fn acknowledged_data_survives() {
    let counts = RefCell::new(BTreeMap::<&str, u64>::new());
    for_each_seed("hunt", "acknowledged_data_survives", SEEDS, |seed| {
        for (what, count) in hunt(seed) {
            *counts.borrow_mut().entry(what).or_default() += count;
        }
    });
    let counts = counts.into_inner();
    println!("{counts:#?}");
    if support::only_seed().is_none() {
        for what in WANTED {
            assert!(counts.contains_key(what), "a hunt without {what} proves little: {counts:?}");
        }
    }
}
