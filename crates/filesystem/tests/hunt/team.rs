//! A team of clients, and the work of its members in each round, alone or together.

use super::Run;
use super::model::{GRACE, Values};
use super::plan::SILENT_MAX;
use crate::support::{
    JOIN_TIMEOUT, Numbers, Start, address, create_alone, memory_of, read_back, transfer,
    write_image,
};
use filesystem::collective::{Part, Strategy};
use filesystem::{Client, Fault, PeerMesh, SmallCalls};
use futures_util::future::{Either, select};
use policy::{Access, Direction, DiskOrder, ListEntry, OwnPart};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::rc::Rc;
use units::{ClientId, Duration, FileId, Instant, ServerId};
use wire::FileRecord;
use world::payload::Bytes;
use world::{Clock, Memory, Payloads};
use world_simulated::SimulatedWorld;

pub(crate) type TestClient = Client<SimulatedWorld<Bytes>>;

/// Time-out of clients for silent peers.
pub(super) const TIMEOUT: Duration = JOIN_TIMEOUT;

/// Maximum time of an operation. A longer one hangs.
const OPERATION_MAX: Duration = Duration::from_ms(5_000);

const _: () = assert!(OPERATION_MAX.as_ns() < SILENT_MAX.as_ns(), "waits must end by themselves");

/// Time for which a client waits for a lost server, if it does.
const PATIENCE: Duration = Duration::from_ms(1_000);

/// Interval at which a member polls a condition.
const LOOK: Duration = Duration::from_us(200);

/// Maximum number of files of a team.
const FILES_MAX: usize = 3;

/// Returns the team of a name, which begins with the team's number.
pub(crate) fn team_of(name: &str) -> usize {
    name.split('-').next().unwrap().parse().unwrap()
}

/// Knowledge that the members of a team share without the network.
pub(crate) struct Team {
    pub(crate) members: Vec<u32>,
    /// Number of rounds that each member has ended, without killed members.
    ended: BTreeMap<u32, u64>,
    /// True when an operation of the round failed, so that the team must wait for late effects.
    failed: bool,
    round: Option<(u64, Rc<Round>)>,
}

/// One round, equal at all members.
struct Round {
    number: u64,
    members: Vec<u32>,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    List,
    Create {
        name: String,
        bytes: u64,
    },
    Rename {
        from: String,
        to: String,
    },
    Remove {
        name: String,
    },
    /// Cuts a file; its next user grows it back.
    Cut {
        name: String,
        file: usize,
        bytes: u64,
    },
    /// Grows a file.
    Grow {
        name: String,
        file: usize,
        by: u64,
    },
    Together {
        name: String,
        file: usize,
        access: Access,
        strategy: Strategy,
        write: bool,
        sync: bool,
        node_group_size: u32,
    },
    /// Each member works alone on its own bytes.
    Alone {
        name: String,
        file: usize,
        access: Access,
    },
}

impl Team {
    pub(crate) fn new(members: Vec<u32>) -> Self {
        let ended = members.iter().map(|member| (*member, 0)).collect();
        Self { members, ended, failed: false, round: None }
    }

    /// Removes a killed client.
    pub(crate) fn lose(&mut self, client: u32) {
        self.failed |= self.ended.remove(&client).is_some();
    }

    pub(crate) fn is_done(&self, rounds: u64) -> bool {
        self.ended.values().all(|ended| *ended >= rounds)
    }
}

/// Reads a whole file, alone.
pub(crate) async fn read_all(client: &TestClient, file: &FileRecord) -> Result<Values, Fault> {
    let all = Access::All { bytes: file.bytes, clients: 1 };
    let memory = client.world().thaw(vec![0xee; file.bytes as usize].into());
    let part = part(Direction::Read, file, &all, 0, false);
    client.transfer_part(&part, &memory).await?;
    Ok((0..).zip(memory.freeze().iter().copied()).collect())
}

fn part(direction: Direction, file: &FileRecord, access: &Access, client: u32, sync: bool) -> Part {
    let (file, access, client) = (file.clone(), access.clone(), ClientId(client));
    Part { direction, file, access, client, order: DiskOrder::Sorted, sync }
}

/// Returns the bytes of a client, with their values in its memory.
fn values_of(access: &Access, rank: u32, memory: &[u8]) -> Values {
    let chunks = access.chunks(ClientId(rank));
    let bytes = chunks.flat_map(|chunk| {
        (0..chunk.length).map(move |at| (chunk.file_offset + at, chunk.memory_offset + at))
    });
    bytes.map(|(offset, at)| (offset, memory[at as usize])).collect()
}

/// Runs of random lengths that belong to random clients or to none.
fn some_access(numbers: &mut Numbers, clients: usize, bytes: u64) -> Access {
    let holes = numbers.below(2);
    let longest = numbers.pick(&[8, 40, 150, 1000]);
    let mut lists = vec![Vec::new(); clients];
    let mut ends = vec![0; clients];
    let mut file_offset = 0;
    while file_offset < bytes {
        let length = (1 + numbers.below(longest)).min(bytes - file_offset);
        let owner = numbers.below(clients as u64 + holes) as usize;
        if owner < clients {
            lists[owner].push(ListEntry { file_offset, memory_offset: ends[owner], length });
            ends[owner] += length;
        }
        file_offset += length;
    }
    Access::lists(lists)
}

/// Returns the part of an access by lists that belongs to team `team` of `teams` where they take
/// turns.
fn turns_of(access: &Access, (team, teams): (u64, u64), turn_bytes: u64) -> Access {
    let Access::Parts(parts) = access else { return access.clone() };
    let own = |part: &OwnPart| {
        let OwnPart::List(list) = part else { return part.clone() };
        let mut own: Vec<ListEntry> = Vec::new();
        let bytes = list.iter().flat_map(|it| it.file_offset..it.file_offset + it.length);
        for (memory_offset, file_offset) in
            (0..).zip(bytes.filter(|offset| offset / turn_bytes % teams == team))
        {
            match own.last_mut() {
                Some(last) if last.file_offset + last.length == file_offset => last.length += 1,
                _ => own.push(ListEntry { file_offset, memory_offset, length: 1 }),
            }
        }
        OwnPart::List(own)
    };
    Access::Parts(parts.iter().map(own).collect())
}

/// An open file, and its small calls.
struct SmallFile(Rc<RefCell<FileRecord>>, SmallCalls<SimulatedWorld<Bytes>>);

/// One client of a team.
pub(crate) struct Member {
    run: Rc<Run>,
    team: usize,
    client: u32,
    start: Start,
    connection: Option<TestClient>,
    /// Small calls of the files that were opened on the connection.
    small: BTreeMap<FileId, Rc<SmallFile>>,
    /// Number of connections so far, which also counts the times that files were opened, and that
    /// servers were lost for which the client waits.
    session: u64,
    /// Number of losses of servers that the session knows of.
    losses: u64,
    numbers: Numbers,
}

impl Member {
    pub(crate) fn new(run: Rc<Run>, team: usize, client: u32, start: Start) -> Self {
        let numbers = Numbers::new(run.seed.wrapping_mul(1_000_003) + u64::from(client) + 17);
        let session = u64::from(client) << 32;
        let (connection, small, losses) = (None, BTreeMap::new(), 0);
        Self { run, team, client, start, connection, small, session, losses, numbers }
    }

    /// True if the client waits for lost servers.
    fn is_patient(&self) -> bool {
        (self.run.seed / 5 + self.team as u64).is_multiple_of(2)
    }

    /// Instant until which a write that begins now goes on at the latest.
    fn write_ends(&self) -> Instant {
        self.now() + OPERATION_MAX
    }

    /// Number of losses of servers.
    fn losses_of(&self, client: &TestClient) -> u64 {
        client.losses((0..client.servers()).map(ServerId))
    }

    /// Begins a new session if a server was lost: what it had acknowledged may be lost.
    fn notice_losses(&mut self) {
        let losses = self.connection.as_ref().map_or(0, |client| self.losses_of(client));
        if losses != self.losses {
            self.run.count("wait for a lost server");
            self.losses = losses;
            self.session += 1;
        }
    }

    pub(crate) async fn work(mut self, rounds: u64) {
        for number in 0..rounds {
            self.connect().await;
            self.wait_for(number).await;
            let round = self.round(number);
            self.log(|| format!("begins {number}: {:?}", round.action));
            let taken = self.take_part(&round).await;
            self.notice_losses();
            if let Err(fault) = taken {
                self.log(|| format!("fails: {fault}"));
                let what = format!("{} in {:?}", self.client, round.action);
                self.run.judge(&fault, &what);
                self.team(|team| team.failed = true);
                // A lost connection is useless, and what was gathered on it is lost.
                self.run.model.borrow_mut().lose_gathered(Some(self.session), self.now());
                self.small.clear();
                self.connection = None;
            } else {
                self.run.count("round of a member");
            }
            let last = number + 1 == rounds;
            if last && self.close_all().await.is_err() {
                self.run.model.borrow_mut().lose_gathered(Some(self.session), self.now());
            }
            self.team(|team| team.ended.insert(self.client, number + 1));
        }
    }

    /// Flushes what was gathered, as a program does before it ends.
    async fn close_all(&mut self) -> Result<(), Fault> {
        let Some(client) = self.connection.clone() else { return Ok(()) };
        for small in std::mem::take(&mut self.small).into_values() {
            let record = small.0.borrow().clone();
            client.flush(&record, false).await?;
        }
        Ok(())
    }

    fn team<R>(&self, act: impl FnOnce(&mut Team) -> R) -> R {
        act(&mut self.run.teams[self.team].borrow_mut())
    }

    fn log(&self, what: impl FnOnce() -> String) {
        self.run.log(self.now(), || format!("client {} {}", self.client, what()));
    }

    fn now(&self) -> Instant {
        self.start.now()
    }

    async fn connect(&mut self) {
        let mut pause = LOOK * 5;
        while self.connection.is_none() {
            match self.start.connect().await {
                Ok(connection) => {
                    connection.watch(TIMEOUT);
                    if self.is_patient() {
                        connection.await_lost_servers(PATIENCE, |_, _| true);
                    }
                    self.losses = 0;
                    self.connection = Some(connection);
                }
                Err(fault) => self.run.judge(&fault, "connecting"),
            }
            self.session += 1;
            self.start.world.sleep(pause).await;
            pause = (pause * 2).min(GRACE);
        }
    }

    /// Waits until all members have ended the previous round, and late effects of its failures are
    /// over.
    async fn wait_for(&self, number: u64) {
        while !self.team(|team| team.is_done(number)) {
            self.start.world.sleep(LOOK).await;
        }
        if self.team(|team| team.failed) {
            let settled = self.now().max(self.run.silent_until.get());
            self.start.world.sleep_until(settled + GRACE).await;
        }
    }

    /// Returns the team's work of this round. The first member draws it.
    fn round(&self, number: u64) -> Rc<Round> {
        let known = self.team(|team| team.round.clone());
        if let Some((_, round)) = known.filter(|(known, _)| *known == number) {
            return round;
        }
        let members: Vec<u32> = self.team(|team| {
            team.failed = false;
            team.ended.keys().copied().collect()
        });
        let action = match self.some_action(number, members.len()) {
            // Meshes of members end with the first server that is lost.
            Action::Together { name, file, access, .. } if self.is_patient() => {
                Action::Alone { name, file, access }
            }
            other => other,
        };
        let round = Rc::new(Round { number, members, action });
        self.team(|team| team.round = Some((number, Rc::clone(&round))));
        round
    }

    fn some_action(&self, number: u64, members: usize) -> Action {
        let seed = self.run.seed * 7919 + self.team as u64 * 101 + number;
        let numbers = &mut Numbers::new(seed.wrapping_mul(0x9e37_79b9));
        let model = self.run.model.borrow();
        let Some(names) = model.known_names(self.team) else { return Action::List };
        let free = |numbers: &mut Numbers| format!("{}-{}", self.team, numbers.below(6));
        let bytes = 1 + numbers.below(64 * 12);
        let kind = numbers.below(22);
        if numbers.below(4) == 0 {
            return self.some_action_on_common(numbers, members);
        }
        let mut there: Vec<(&String, usize)> = names.iter().map(|(it, file)| (it, *file)).collect();
        if there.is_empty() || kind == 0 && there.len() < FILES_MAX {
            return Action::Create { name: free(numbers), bytes };
        }
        let (name, file) = there.swap_remove(numbers.below(there.len() as u64) as usize);
        let name = name.clone();
        if model.files[file].condemned || kind == 1 {
            return Action::Remove { name };
        }
        match kind {
            2 => Action::List,
            3 => Action::Rename { from: name, to: free(numbers) },
            20 => Action::Cut { name, file, bytes: numbers.below(model.length(file) + 1) },
            21 => Action::Grow { name, file, by: numbers.below(200) },
            4..=12 => Action::Together {
                name,
                file,
                access: some_access(numbers, members, model.length(file)),
                strategy: numbers.pick(&Strategy::NAMED),
                write: numbers.below(3) > 0,
                sync: numbers.below(2) == 0,
                node_group_size: numbers.below(4) as u32,
            },
            _ => {
                let access = some_access(numbers, members, model.length(file));
                Action::Alone { name, file, access }
            }
        }
    }

    /// A transfer of the team's own bytes in the common file.
    fn some_action_on_common(&self, numbers: &mut Numbers, members: usize) -> Action {
        let (run, file) = (&self.run, 0);
        let name = run.common.name.clone();
        let access = some_access(numbers, members, run.common.bytes);
        let teams = (self.team as u64, run.teams.len() as u64);
        let access = turns_of(&access, teams, run.turn_bytes);
        if numbers.below(2) == 0 {
            return Action::Alone { name, file, access };
        }
        let strategy = numbers.pick(&Strategy::NAMED);
        let write = strategy != Strategy::TwoPhase && numbers.below(3) > 0;
        let (sync, node_group_size) = (numbers.below(2) == 0, numbers.below(4) as u32);
        Action::Together { name, file, access, strategy, write, sync, node_group_size }
    }

    async fn take_part(&mut self, round: &Round) -> Result<(), Fault> {
        let client = self.connection.clone().unwrap();
        let is_leader = round.members.first() == Some(&self.client);
        let bound = self.start.world.sleep(OPERATION_MAX);
        let what = format!("{} in {:?}", self.client, round.action);
        let action = async {
            match &round.action {
                Action::Together { .. } => self.together(&client, round).await,
                Action::Alone { .. } => self.alone(&client, round).await,
                change if is_leader => self.change(&client, change).await,
                _ => self.visit(&client).await,
            }
        };
        match select(pin!(action), pin!(bound)).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => panic!("{what} must end within {OPERATION_MAX}"),
        }
    }

    /// Changes or lists names.
    async fn change(&self, client: &TestClient, action: &Action) -> Result<(), Fault> {
        let (run, team) = (&self.run, self.team);
        let names = run.model.borrow().names[team][0].clone();
        let apply = |changed: BTreeMap<String, usize>, made: Result<(), Fault>, fits: bool| {
            let all = &mut run.model.borrow_mut().names[team];
            match made {
                Ok(()) => {
                    assert!(fits, "{action:?} must be refused with {names:?}");
                    *all = vec![changed];
                    Ok(())
                }
                Err(Fault::FileExists { .. }) if !fits => {
                    *all = vec![names.clone()];
                    Ok(())
                }
                Err(fault) => Err(fault),
            }
        };
        match action {
            Action::Create { name, bytes } => {
                let stripe = run.shape.stripe();
                let (file, changed) = {
                    let mut model = run.model.borrow_mut();
                    let file = model.add_file(*bytes, stripe.clone());
                    let insert = |names: &mut BTreeMap<_, _>| {
                        names.insert(name.clone(), file);
                    };
                    (file, model.begin_change(team, insert))
                };
                let made = create_alone(client, &self.run.shape, name, *bytes).await;
                let made = made.map(|record| run.model.borrow_mut().identify(file, record.file));
                apply(changed, made, !names.contains_key(name))
            }
            Action::Rename { from, to } => {
                let rename = |names: &mut BTreeMap<_, _>| {
                    if let Some(file) = names.remove(from) {
                        names.insert(to.clone(), file);
                    }
                };
                let changed = run.model.borrow_mut().begin_change(team, rename);
                let made = client.rename(from, to).await;
                apply(changed, made, !names.contains_key(to))
            }
            Action::Remove { name } => {
                let changed = {
                    let mut model = run.model.borrow_mut();
                    model.condemn(names[name], self.now());
                    model.begin_change(team, |names| {
                        names.remove(name);
                    })
                };
                let made = client.remove(name).await;
                apply(changed, made, true)
            }
            Action::Cut { name, file, bytes } => self.cut(client, name, *file, *bytes).await,
            Action::Grow { name, file, by } => {
                run.model.borrow_mut().grow(*file, *by);
                self.open_whole(client, name, *file).await.map(|_| ())
            }
            _ => self.list(client).await,
        }
    }

    /// Lists the files of the team, and compares them with the model.
    async fn list(&self, client: &TestClient) -> Result<(), Fault> {
        let mut found = BTreeMap::new();
        for entry in client.list("").await? {
            if team_of(&entry.name) == self.team {
                found.insert(entry.name.clone(), entry.file().unwrap().file);
            }
        }
        self.run.model.borrow_mut().listed(self.team, &found, "a list");
        Ok(())
    }

    /// Opens a file and makes it as long as the model says, if it was cut.
    async fn open_whole(
        &self,
        client: &TestClient,
        name: &str,
        file: usize,
    ) -> Result<FileRecord, Fault> {
        let mut record = client.open(name).await?;
        let bytes = self.run.model.borrow().length(file);
        client.grow(&mut record, bytes).await?;
        Ok(record)
    }

    /// Cuts a file. The cut-off bytes are zero from then on, whenever they can be seen again.
    async fn cut(
        &self,
        client: &TestClient,
        name: &str,
        file: usize,
        bytes: u64,
    ) -> Result<(), Fault> {
        let mut record = client.open(name).await?;
        if record.bytes <= bytes {
            // It has not become longer again since the last cut.
            return Ok(());
        }
        let begun = self.now();
        let zeros: Values = {
            let mut model = self.run.model.borrow_mut();
            let zeros = (bytes..model.length(file)).map(|offset| (offset, 0)).collect();
            model.files[file].was_cut = true;
            model.begin_write(file, &zeros, self.write_ends());
            zeros
        };
        let cut = client.set_size(&mut record, bytes).await;
        if cut.is_ok() {
            self.run.count("cut");
        }
        self.end_patient_write((file, &zeros), begun, &cut, true);
        cut
    }

    /// Reads a file of any team, which others may change or remove meanwhile.
    async fn visit(&mut self, client: &TestClient) -> Result<(), Fault> {
        let name = {
            let model = self.run.model.borrow();
            let names = model.names.iter().flat_map(|of_team| of_team[0].keys());
            let names: BTreeSet<String> = names.cloned().collect();
            match names.len() as u64 {
                0 => return Ok(()),
                some => names.into_iter().nth(self.numbers.below(some) as usize).unwrap(),
            }
        };
        let begun = self.now();
        let opened = Cell::new(None);
        let read = async {
            let file = client.open(&name).await?;
            opened.set(Some(file.file));
            read_all(client, &file).await.map(|values| (file, values))
        };
        match read.await {
            Ok((file, values)) => {
                let model = &mut self.run.model.borrow_mut();
                let index = model.file_of(file.file);
                if let Some(index) = index {
                    model.check_all(index, values, (begun, self.now()), "a visit");
                }
                Ok(())
            }
            // It was made shorter meanwhile.
            Err(Fault::PastEnd { .. }) if self.was_cut(opened.get()) => Ok(()),
            // It was renamed or removed, or is about to be.
            Err(Fault::NoSuchFile { .. } | Fault::BadRequest { .. }) if self.may_vanish(&name) => {
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    fn was_cut(&self, file: Option<FileId>) -> bool {
        let model = self.run.model.borrow();
        let file = file.and_then(|file| model.file_of(file));
        file.is_some_and(|file| model.files[file].was_cut)
    }

    /// Tells if another client may be changing or removing this name.
    fn may_vanish(&self, name: &str) -> bool {
        let model = self.run.model.borrow();
        let is_leader = self.team(|team| {
            team.round
                .as_ref()
                .is_some_and(|(_, round)| round.members.first() == Some(&self.client))
        });
        let file = model.known_names(team_of(name)).and_then(|names| names.get(name));
        let is_stable = file.is_some_and(|file| !model.files[*file].condemned);
        !(is_stable && is_leader && team_of(name) == self.team)
    }

    /// Makes new bytes for a part of a file, and enters them into the model.
    fn begin_write(&mut self, file: usize, access: &Access, rank: u32) -> (Vec<u8>, Values) {
        let write = 1 + self.numbers.below(u64::MAX - 1);
        let length = self.run.model.borrow().length(file);
        let mut bytes = Numbers::new(write);
        let image: Vec<u8> = (0..length).map(|_| 1 + bytes.below(255) as u8).collect();
        let values = values_of(access, rank, &memory_of(access, ClientId(rank), &image));
        self.run.model.borrow_mut().begin_write(file, &values, self.write_ends());
        (image, values)
    }

    /// One transfer by all members.
    async fn together(&mut self, client: &TestClient, round: &Round) -> Result<(), Fault> {
        let Action::Together { name, file, access, strategy, write, sync, node_group_size } =
            &round.action
        else {
            return Ok(());
        };
        let rank = round.members.iter().position(|member| *member == self.client).unwrap() as u32;
        let nodes = round.members.iter().map(|member| self.run.shape.node_of(*member));
        let addresses: Rc<[_]> = nodes.map(address).collect();
        let number = self.team as u64 * 1000 + round.number;
        let group =
            PeerMesh::join(client.clone(), number, ClientId(rank), addresses, JOIN_TIMEOUT).await?;
        let opened = self.open_whole(client, name, *file).await;
        group.agree(opened.clone().map(|_| ())).await?;
        let record = opened?;
        let begun = self.now();
        if *write {
            let (image, values) = self.begin_write(*file, access, rank);
            let mut transfer = transfer(Direction::Write, &record, access, *strategy);
            (transfer.sync, transfer.node_group_size) = (*sync, *node_group_size);
            let written = write_image(&group, &transfer, &image).await;
            self.end_write((*file, &values), begun, &written, *sync);
            written?;
        } else {
            let mut transfer = transfer(Direction::Read, &record, access, *strategy);
            transfer.node_group_size = *node_group_size;
            let memory = read_back(&group, &transfer).await?;
            let values = values_of(access, rank, &memory);
            let when = (begun, self.now());
            let what = format!("a collective read by {strategy}");
            self.run.model.borrow_mut().check(*file, &values, when, &what);
        }
        group.leave().await;
        Ok(())
    }

    fn end_write(
        &self,
        (file, values): (usize, &Values),
        begun: Instant,
        outcome: &Result<(), Fault>,
        sync: bool,
    ) {
        let (mut model, now) = (self.run.model.borrow_mut(), self.now());
        self.log(|| format!("has written {file} since {begun:?}, sync {sync}: {outcome:?}"));
        match outcome {
            Ok(()) if sync => {
                self.run.count("write with sync");
                model.acknowledge((file, self.session), values, (begun, now), sync);
            }
            Ok(()) => {
                self.run.count("write");
                model.acknowledge((file, self.session), values, (begun, now), sync);
            }
            Err(_) => model.fail_write(file, values, now),
        }
    }

    /// As [`end_write`](Self::end_write), for a client that may have waited for a lost server: what
    /// that had acknowledged may be lost.
    fn end_patient_write(
        &self,
        write: (usize, &Values),
        begun: Instant,
        outcome: &Result<(), Fault>,
        sync: bool,
    ) {
        let losses = self.connection.as_ref().map_or(0, |client| self.losses_of(client));
        match losses == self.losses {
            true => self.end_write(write, begun, outcome, sync),
            false => self.run.model.borrow_mut().fail_write(write.0, write.1, self.now()),
        }
    }

    /// A few operations on one file, with this member's own bytes.
    async fn alone(&mut self, client: &TestClient, round: &Round) -> Result<(), Fault> {
        let Action::Alone { name, file, access } = &round.action else { return Ok(()) };
        let rank = round.members.iter().position(|member| *member == self.client).unwrap() as u32;
        let record = self.open_whole(client, name, *file).await?;
        for _ in 0..1 + self.numbers.below(4) {
            self.notice_losses();
            let begun = self.now();
            match self.numbers.below(if self.run.shape.client_caches { 8 } else { 12 }) {
                8.. => self.small_calls(client, *file, &record, (access, rank)).await?,
                0..=3 => {
                    let (image, values) = self.begin_write(*file, access, rank);
                    let memory = memory_of(access, ClientId(rank), &image);
                    let memory = client.world().thaw(memory.into());
                    let sync = self.numbers.below(3) == 0;
                    let part = part(Direction::Write, &record, access, rank, sync);
                    let written = client.transfer_part(&part, &memory).await;
                    self.end_patient_write((*file, &values), begun, &written, sync);
                    written?;
                }
                4..=5 => {
                    client.flush(&record, true).await?;
                    if self.losses_of(client) != self.losses {
                        continue;
                    }
                    let when = (begun, self.now());
                    self.log(|| format!("has synced {file} since {begun:?}"));
                    self.run.count("sync");
                    self.run.model.borrow_mut().synced(*file, self.session, when);
                }
                6 => {
                    let values = read_all(client, &record).await?;
                    let when = (begun, self.now());
                    self.run.model.borrow_mut().check(*file, &values, when, "a read alone");
                }
                _ => self.visit(client).await?,
            }
        }
        Ok(())
    }

    /// Small writes of this member's own bytes, and small reads of any, which its client may carry
    /// out in its memory.
    async fn small_calls(
        &mut self,
        client: &TestClient,
        file: usize,
        record: &FileRecord,
        (access, rank): (&Access, u32),
    ) -> Result<(), Fault> {
        let small = self.small.entry(record.file).or_insert_with(|| {
            let record = Rc::new(RefCell::new(record.clone()));
            Rc::new(SmallFile(Rc::clone(&record), SmallCalls::new(client, record)))
        });
        let small = Rc::clone(small);
        let SmallFile(_, small) = &*small;
        let own: Vec<_> = access.chunks(ClientId(rank)).filter(|own| own.length > 0).collect();
        for _ in 0..4 + self.numbers.below(8) {
            self.notice_losses();
            let begun = self.now();
            if own.is_empty() || self.numbers.below(3) == 0 {
                let offset = self.numbers.below(record.bytes);
                let length = 1 + self.numbers.below((record.bytes - offset).min(100));
                if let Some(bytes) = small.read(offset, length).await? {
                    self.run.count("read of a kept page");
                    let values = (offset..).zip(bytes.iter().copied()).collect();
                    let when = (begun, self.now());
                    let what = "a read of a kept page";
                    self.run.model.borrow_mut().check(file, &values, when, what);
                }
                continue;
            }
            let chunk = &own[self.numbers.below(own.len() as u64) as usize];
            let skipped = self.numbers.below(chunk.length);
            let offset = chunk.file_offset + skipped;
            let length = 1 + self.numbers.below((chunk.length - skipped).min(60));
            let bytes: Vec<u8> = (0..length).map(|_| 1 + self.numbers.below(255) as u8).collect();
            let values: Values = (offset..).zip(bytes.iter().copied()).collect();
            self.run.model.borrow_mut().begin_write(file, &values, self.write_ends());
            let payload: Bytes = bytes.clone().into();
            let gathered = small.write(offset, &payload).await;
            let written = match gathered {
                Ok(true) => {
                    self.run.count("gathered write");
                    self.run.model.borrow_mut().gathered((file, self.session), &values);
                    Ok(())
                }
                Ok(false) => {
                    let access = Access::Parts(vec![OwnPart::contiguous(offset, length)]);
                    let part = part(Direction::Write, record, &access, 0, false);
                    client.transfer_part(&part, &client.world().thaw(payload)).await
                }
                Err(fault) => Err(fault),
            };
            self.end_patient_write((file, &values), begun, &written, false);
            if self.run.is_troubled(self.now()) {
                self.run.model.borrow_mut().lose_gathered(Some(self.session), self.now());
            }
            written?;
        }
        Ok(())
    }
}
