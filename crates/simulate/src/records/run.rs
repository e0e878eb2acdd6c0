//! The run of a case: servers and clients on a fresh machine.

use super::case::{RecordCase, RecordDelivery, RecordOutcome};
use super::data;
use super::network::NetworkBytes;
use crate::ranks::{Ended, Mailboxes, Node, Stage, new_file, on_stage};
use filesystem::collective::{Part, Selecting, Share};
use filesystem::{Client, Fault, Group};
use futures_util::future::try_join_all;
use interface::{ExitCode, UserError};
use policy::{Access, Direction, DiskOrder, OwnPart};
use program::{Manner, Stream};
use std::cell::RefCell;
use std::rc::Rc;
use units::{ClientId, Duration, Instant};
use wire::{CollectiveCall, FileRecord};
use world::payload::{Bytes, BytesMemory};
use world::{Address, Clock, Payloads, Processor};
use world_simulated::{Engine, SimulatedWorld};

/// Name of the file.
const NAME: &str = "records";

/// Time-out of members: never, as the simulation would deadlock first.
const TIMEOUT: Duration = Duration::from_ms(1 << 40);

/// Stream of the records that clients send one another.
const EXCHANGED: Stream = Stream { communicator: 0, tag: 0, manner: Manner::Data };

/// Simulates a case. `seed` is of the records, the layout of the disks, and everything else that
/// varies.
///
/// # Errors
/// Fails when the case makes no sense, or the file system reports a fault.
pub fn simulate_records(case: &RecordCase, seed: u64) -> Result<RecordOutcome, UserError> {
    case.check()?;
    let network = Rc::new(RefCell::new(NetworkBytes::default()));
    let engine = Engine::recorded(network.clone());
    let case = Rc::new(case.clone());
    on_stage::<Bytes, _>(&case.scenario, seed, engine, |stage| {
        let measured = run_on(&case, stage, seed)?;
        let begun = measured.iter().map(|one| one.start).min();
        let ended = measured.iter().map(|one| one.end).max();
        let (begun, ended) = begun.zip(ended).ok_or_else(|| never("there is no client"))?;
        stage.machine.stop_recording();
        Ok(RecordOutcome {
            seconds: ended.since(begun).as_seconds(),
            network_bytes: network.borrow().since(begun),
            records: measured.iter().map(|one| one.records).sum(),
            digest: stage.engine.digest(),
        })
    })
}

/// Result of one client.
struct Measured {
    start: Instant,
    end: Instant,
    records: u64,
}

fn run_on(
    case: &Rc<RecordCase>,
    stage: &Stage<Bytes>,
    seed: u64,
) -> Result<Vec<Measured>, UserError> {
    let (servers, clients) = (stage.server_addresses(), case.scenario.clients);
    let mailboxes = Mailboxes::of(clients);
    let ranks = (0..clients).map(|rank| {
        let (case, servers, world) = (Rc::clone(case), Rc::clone(&servers), stage.rank_world(rank));
        let node = Node::new((rank, case.scenario.servers), world, mailboxes.clone());
        async move {
            let rank = RecordRank::start(case, servers, node, seed).await?;
            Ok((rank.measure().await?, rank))
        }
    });
    stage.run_ranks(ranks).map_err(|ended| match ended {
        Ended::Failed(fault) => UserError::of_fault("the simulated selection failed", &fault),
        Ended::Never(cause) => never(&cause),
    })
}

fn never(cause: &str) -> UserError {
    let help = "this is a defect of unisono; please report it with the command line";
    UserError::new(ExitCode::Failed, "the simulated selection does not end", cause, help)
}

/// One client that wants records.
struct RecordRank {
    case: Rc<RecordCase>,
    node: Node<Bytes>,
    client: Client<SimulatedWorld<Bytes>>,
    group: Group<SimulatedWorld<Bytes>>,
    file: FileRecord,
}

impl RecordRank {
    /// Connects, and opens the file, which the client of rank 0 has made.
    async fn start(
        case: Rc<RecordCase>,
        servers: Rc<[Address]>,
        node: Node<Bytes>,
        seed: u64,
    ) -> Result<Self, Fault> {
        let costs = case.scenario.machine.costs;
        let client = Client::connect(node.world.clone(), &servers, costs).await?;
        let place = (ClientId(node.rank), case.scenario.clients);
        let group = Group::register(client.clone(), 1, place, TIMEOUT).await?;
        if node.rank == 0 {
            make(&case, &client, seed).await?;
        }
        group.all_gather(Vec::new()).await?;
        let file = client.open(NAME).await?;
        Ok(Self { case, node, client, group, file })
    }

    async fn measure(&self) -> Result<Measured, Fault> {
        self.group.all_gather(Vec::new()).await?;
        let start = self.node.world.now();
        let records = match self.case.delivery.is_by_clients() {
            true => self.look().await?,
            false => self.select().await?,
        };
        Ok(Measured { start, end: self.node.world.now(), records })
    }

    /// Reads a part of the file with all others, looks at it, and exchanges records. Returns the
    /// number of records that this client then has and wants.
    async fn look(&self) -> Result<u64, Fault> {
        let (case, world) = (&self.case, &self.node.world);
        let records = data::part_of(case, self.node.rank);
        let record_bytes = u64::from(case.record_bytes);
        let bytes = (records.end - records.start) * record_bytes;
        let part = OwnPart::contiguous(records.start * record_bytes, bytes);
        let part = if bytes == 0 { OwnPart::NOTHING } else { part };
        let memory = Payloads::memory(world, bytes);
        let (direction, order) = (Direction::Read, case.scenario.order);
        let call = CollectiveCall { direction, file: self.file.file, order, sync: false };
        let number = self.group.begin_call();
        self.group.transfer(number, &self.file, call, Ok(part), &memory).await?;
        world.compute(case.scenario.machine.costs.look(bytes)).await;
        let wanted = data::wanted(case, self.node.rank, &memory.to_vec());
        match case.delivery.has_owners() {
            true => self.exchange(&wanted).await,
            false => Ok(wanted.iter().sum()),
        }
    }

    /// Sends each other client its records. Returns the number of those that this one then has.
    async fn exchange(&self, wanted: &[u64]) -> Result<u64, Fault> {
        let (rank, clients) = (self.node.rank, self.case.scenario.clients);
        let record_bytes = u64::from(self.case.record_bytes);
        // To its successor first: no client is that of all others.
        let others = || (1..clients).map(|distance| (rank + distance) % clients);
        let sent =
            others().map(|to| self.node.send(to, EXCHANGED, wanted[to as usize] * record_bytes));
        let received = others().map(|from| self.node.receive_bytes(from, EXCHANGED));
        let (_, received) = futures_util::try_join!(try_join_all(sent), try_join_all(received))?;
        Ok(wanted[rank as usize] + received.iter().sum::<u64>() / record_bytes)
    }

    /// Has the servers select. Returns the number of records that this client got.
    async fn select(&self) -> Result<u64, Fault> {
        let case = &self.case;
        let selecting = Selecting::new(&self.client, Some(&self.group));
        let share = match case.delivery {
            RecordDelivery::ServersDeliver => Share::Key(data::key(case)),
            _ => Share::Even,
        };
        let wanted = (data::grid(case), data::condition(case).into());
        let agreements = self.group.begin_agreements();
        let found = selecting.find(&agreements, Ok(&self.file), wanted, share).await?;
        let count = found.count();
        let bytes = count * u64::from(case.record_bytes);
        let memory: BytesMemory = Payloads::memory(&self.node.world, bytes);
        let agreements = self.group.begin_agreements();
        selecting.take(&agreements, &found, 0..count, &memory).await?;
        let got = data::wanted(case, self.node.rank, &memory.to_vec());
        let is_right = got[self.node.rank as usize] == count;
        debug_assert!(is_right, "servers deliver what matches, each to its client");
        Ok(count)
    }
}

/// Makes the file, with all of its records on the disks and none in the caches.
async fn make(
    case: &RecordCase,
    client: &Client<SimulatedWorld<Bytes>>,
    seed: u64,
) -> Result<(), Fault> {
    let bytes = case.scenario.file_bytes;
    let file = client.create_as(new_file(&case.scenario, NAME, bytes)).await?;
    let memory = Payloads::thaw(client.world(), data::contents(case, seed).into());
    let access = Access::Parts(vec![OwnPart::contiguous(0, bytes)]);
    let (direction, order) = (Direction::Write, DiskOrder::Sorted);
    let (own, sync) = (ClientId(0), true);
    let part = Part { direction, file: file.clone(), access, client: own, order, sync };
    client.transfer_part(&part, &memory).await?;
    client.close(&file).await
}

#[cfg(test)]
mod tests {
    //! Proves: all deliveries give clients the same number of records; clients that exchange move
    //! nearly every byte twice, servers that deliver move it once; fewer records that match are
    //! fewer bytes on the network.
    use super::*;
    use crate::machine::Machine;
    use crate::names::MachineName;
    use crate::scenario::Scenario;
    use units::{KIB, MIB};

    fn outcome(delivery: RecordDelivery, matching_of_1000: u32) -> RecordOutcome {
        let scenario = Scenario {
            machine: Machine::of(MachineName::Tocs97),
            clients: 4,
            servers: 3,
            block_bytes: 8 * KIB,
            file_bytes: MIB,
            ..Scenario::default()
        };
        let case = RecordCase { scenario, record_bytes: 64, matching_of_1000, delivery };
        let outcome = simulate_records(&case, 5).unwrap();
        assert_eq!(outcome, simulate_records(&case, 5).unwrap(), "{delivery}: it repeats");
        outcome
    }

    #[test]
    fn deliveries_give_the_same_records() {
        for matching in [0, 10, 500, 1_000] {
            let outcomes = RecordDelivery::ALL.map(|delivery| outcome(delivery, matching));
            let records = outcomes.map(|outcome| outcome.records);
            assert_eq!(records, [records[0]; 4], "{matching} of 1000");
            let expected = MIB / 64 * u64::from(matching) / 1_000;
            assert!(records[0].abs_diff(expected) <= 80, "{records:?}");
        }
    }

    #[test]
    fn servers_move_what_is_wanted_and_once() {
        let bytes = |delivery, matching| outcome(delivery, matching).network_bytes as f64;
        let file = MIB as f64;
        let read = bytes(RecordDelivery::ClientsLook, 10);
        assert!((1.0..1.1).contains(&(read / file)), "{read}");
        let selected = bytes(RecordDelivery::ServersLook, 10);
        assert!((0.01..0.08).contains(&(selected / file)), "{selected}");
        let exchanged = bytes(RecordDelivery::ClientsExchange, 1_000);
        assert!((1.75..1.9).contains(&(exchanged / file)), "three of four go on: {exchanged}");
        let delivered = bytes(RecordDelivery::ServersDeliver, 1_000);
        assert!((1.0..1.1).contains(&(delivered / file)), "{delivered}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let scenario = Scenario { file_bytes: MIB, ..Scenario::default() };
        let delivery = RecordDelivery::ServersLook;
        for (record_bytes, matching_of_1000) in [(8, 1), (100, 1), (64, 1_001)] {
            let scenario = scenario.clone();
            let case = RecordCase { scenario, record_bytes, matching_of_1000, delivery };
            assert!(simulate_records(&case, 1).is_err());
        }
    }
}
