//! The run of a case: servers and clients on a fresh machine.

use super::case::{ProtectedCall, ProtectedCase, ProtectedOutcome};
use crate::ranks::{Ended, Stage, new_file, on_stage};
use filesystem::{Client, Fault, Group};
use interface::{ExitCode, UserError};
use policy::Direction;
use std::rc::Rc;
use units::{ClientId, Duration, Instant};
use wire::{CollectiveCall, FileRecord};
use world::payload::Phantom;
use world::{Address, Clock, Payloads};
use world_simulated::{Engine, SimulatedWorld};

/// Name of the file.
const NAME: &str = "protected";

/// Time-out of members: never, as the simulation would deadlock first.
const TIMEOUT: Duration = Duration::from_ms(1 << 40);

/// Server whose data is lost. Server 0 has the catalogue.
const LOST: u32 = 1;

/// Pause before a server that was replaced is asked again whether it knows what it lacks.
const LISTING_PAUSE: Duration = Duration::from_ms(10);

/// Simulates a case. `seed` is of the layout of the disks, and everything else that varies.
///
/// # Errors
/// Fails when the case makes no sense, or the file system reports a fault.
pub fn simulate_protected(case: &ProtectedCase, seed: u64) -> Result<ProtectedOutcome, UserError> {
    case.check()?;
    let case = Rc::new(case.clone());
    on_stage::<Phantom, _>(&case.scenario, seed, Engine::new(), |stage| {
        if case.call != ProtectedCall::WriteNew {
            run_all(&case, stage, 1, async |rank| rank.write_before().await)?;
        }
        let lost_at = stage.engine.now();
        if case.call.loses_server() {
            let refills = case.call == ProtectedCall::Refill;
            stage.lose_server(&case.scenario, LOST, refills);
            if refills {
                run_all(&case, stage, 2, async |rank| rank.until_filled().await)?;
                return Ok(ProtectedOutcome {
                    seconds: stage.engine.now().since(lost_at).as_seconds(),
                    bytes: case.bytes_of_server(),
                    digest: stage.engine.digest(),
                });
            }
        }
        let measured = run_all(&case, stage, 2, async |rank| rank.measure().await)?;
        let begun = measured.iter().map(|one| one.start).min();
        let ended = measured.iter().map(|one| one.end).max();
        let (begun, ended) = begun.zip(ended).ok_or_else(|| never("there is no client"))?;
        Ok(ProtectedOutcome {
            seconds: ended.since(begun).as_seconds(),
            bytes: measured.iter().map(|one| one.bytes).sum(),
            digest: stage.engine.digest(),
        })
    })
}

/// Result of one client.
struct Measured {
    start: Instant,
    end: Instant,
    bytes: u64,
}

/// Has all clients connect, as a group of this number, and do something with the file.
fn run_all<T: 'static>(
    case: &Rc<ProtectedCase>,
    stage: &Stage<Phantom>,
    group: u64,
    act: impl AsyncFn(&ProtectedRank) -> Result<T, Fault> + Copy + 'static,
) -> Result<Vec<T>, UserError> {
    let (servers, clients) = (stage.server_addresses(), case.scenario.clients);
    let ranks = (0..clients).map(|rank| {
        let (case, servers, world) = (Rc::clone(case), Rc::clone(&servers), stage.rank_world(rank));
        async move {
            let rank = ProtectedRank::start(case, servers, world, (rank, group)).await?;
            let result = act(&rank).await?;
            rank.client.close(&rank.file).await?;
            Ok((result, rank.group))
        }
    });
    stage.run_ranks(ranks).map_err(|ended| match ended {
        Ended::Failed(fault) => UserError::of_fault("the simulated call failed", &fault),
        Ended::Never(cause) => never(&cause),
    })
}

fn never(cause: &str) -> UserError {
    let help = "this is a defect of unisono; please report it with the command line";
    UserError::new(ExitCode::Failed, "the simulated call does not end", cause, help)
}

/// One client.
struct ProtectedRank {
    case: Rc<ProtectedCase>,
    number: u32,
    world: SimulatedWorld<Phantom>,
    client: Client<SimulatedWorld<Phantom>>,
    group: Group<SimulatedWorld<Phantom>>,
    file: FileRecord,
}

impl ProtectedRank {
    /// Connects, and opens the file, which the client of rank 0 makes if it is not there.
    async fn start(
        case: Rc<ProtectedCase>,
        servers: Rc<[Address]>,
        world: SimulatedWorld<Phantom>,
        (number, group): (u32, u64),
    ) -> Result<Self, Fault> {
        let costs = case.scenario.machine.costs;
        let client = Client::connect(world.clone(), &servers, costs).await?;
        let place = (ClientId(number), case.scenario.clients);
        let group = Group::register(client.clone(), group, place, TIMEOUT).await?;
        if number == 0 {
            match client.stat_file(NAME).await {
                Err(Fault::NoSuchFile { .. }) => {
                    let file = new_file(&case.scenario, NAME, case.scenario.file_bytes);
                    client.close(&client.create_as(file).await?).await?;
                }
                known => _ = known?,
            }
            // Nothing is read before servers know what they lack.
            while has_unlisted(&client).await? {
                world.sleep(LISTING_PAUSE).await;
            }
        }
        group.all_gather(Vec::new()).await?;
        let file = client.open(NAME).await?;
        Ok(Self { case, number, world, client, group, file })
    }

    /// Writes the whole file with all others.
    async fn write_before(&self) -> Result<(), Fault> {
        self.transfer(ProtectedCall::WriteNew).await.map(|_| ())
    }

    /// Waits until the server that was lost has all that it had.
    async fn until_filled(&self) -> Result<(), Fault> {
        while self.number == 0 && lacks_some(&self.client).await? {
            self.world.sleep(LISTING_PAUSE).await;
        }
        Ok(())
    }

    async fn measure(&self) -> Result<Measured, Fault> {
        self.group.all_gather(Vec::new()).await?;
        let start = self.world.now();
        let bytes = self.transfer(self.case.call).await?;
        Ok(Measured { start, end: self.world.now(), bytes })
    }

    /// Transfers its part with all others; what is written is stored then. Returns its bytes.
    async fn transfer(&self, call: ProtectedCall) -> Result<u64, Fault> {
        let scenario = &self.case.scenario;
        let sizes = (scenario.file_bytes, scenario.block_bytes);
        let part = call.part((self.number, scenario.clients), sizes);
        let bytes = part.bytes();
        let memory = Payloads::memory(&self.world, part.memory_bytes());
        let direction = call.direction();
        let (order, sync) = (scenario.order, direction == Direction::Write);
        let together = CollectiveCall { direction, file: self.file.file, order, sync };
        let number = self.group.begin_call();
        self.group.transfer(number, &self.file, together, Ok(part), &memory).await?;
        Ok(bytes)
    }
}

/// True while a server does not know yet what its new disks lack.
async fn has_unlisted(client: &Client<SimulatedWorld<Phantom>>) -> Result<bool, Fault> {
    let statuses = client.status().await.into_iter();
    let unlisted = statuses.map(|status| Ok(status?.refill.unlisted_disks));
    Ok(unlisted.collect::<Result<Vec<u32>, Fault>>()?.into_iter().any(|disks| disks > 0))
}

/// True while a server lacks what it had, or copies or parity elsewhere are not equal.
async fn lacks_some(client: &Client<SimulatedWorld<Phantom>>) -> Result<bool, Fault> {
    let statuses = client.status().await.into_iter();
    let lacking = statuses.map(|status| {
        let status = status?;
        Ok(status.refill.unlisted_disks > 0 || status.refill.files > 0 || status.files_behind > 0)
    });
    Ok(lacking.collect::<Result<Vec<bool>, Fault>>()?.contains(&true))
}

#[cfg(test)]
mod tests {
    //! Proves: a call moves the bytes that it names, whatever the protection, and repeats; what a
    //! lost server had is read too, in more time; and what makes no sense is refused.
    use super::*;
    use crate::scenario::Scenario;
    use policy::Protection;
    use units::KIB;

    const FILE_BYTES: u64 = 8 * KIB * 96;

    fn case(call: ProtectedCall, protection: Protection) -> ProtectedCase {
        let scenario = Scenario {
            clients: 4,
            servers: 5,
            block_bytes: 8 * KIB,
            file_bytes: FILE_BYTES,
            protection,
            ..Scenario::default()
        };
        ProtectedCase { scenario, call }
    }

    const PROTECTIONS: [Protection; 3] =
        [Protection::None, Protection::Mirror, Protection::Parity { blocks: 3 }];

    #[test]
    fn a_call_moves_what_it_names_and_repeats() {
        for protection in PROTECTIONS {
            for call in ProtectedCall::ALL {
                let case = case(call, protection);
                if case.check().is_err() {
                    assert!(call.loses_server() && protection == Protection::None, "{call}");
                    continue;
                }
                let outcome = simulate_protected(&case, 3).unwrap();
                assert_eq!(outcome, simulate_protected(&case, 3).unwrap(), "{call}: it repeats");
                let is_part = [ProtectedCall::WriteBlocks, ProtectedCall::WriteRecords];
                let parts = if is_part.contains(&call) { 3 } else { 1 };
                let bytes = match (call, protection) {
                    (ProtectedCall::Refill, Protection::Mirror) => 2 * FILE_BYTES / 5,
                    (ProtectedCall::Refill, _) => FILE_BYTES / 3 * 4 / 5,
                    _ => FILE_BYTES / parts,
                };
                assert_eq!(outcome.bytes, bytes, "{call}");
                let least = if call == ProtectedCall::Refill { 0.2 } else { 0.5 };
                assert!(case.bound() <= 1.0 && case.bound() >= least, "{call}");
            }
        }
    }

    #[test]
    fn protection_costs_writes_and_reads_without_a_server() {
        let seconds =
            |call, protection| simulate_protected(&case(call, protection), 1).unwrap().seconds;
        for protection in &PROTECTIONS[1..] {
            let ratio = |call| seconds(call, *protection) / seconds(call, Protection::None);
            for call in [ProtectedCall::WriteNew, ProtectedCall::WriteAgain] {
                assert!(ratio(call) > 1.5, "{call} with {protection}");
            }
            assert!(ratio(ProtectedCall::Read) < 1.05, "with {protection}");
            let [with, without] = [ProtectedCall::Read, ProtectedCall::ReadWithout]
                .map(|call| seconds(call, *protection));
            assert!(without > 1.2 * with, "{without} s, and {with} s with {protection}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let sound = case(ProtectedCall::Read, Protection::Mirror);
        for change in [
            (|scenario| scenario.file_bytes += 1) as fn(&mut Scenario),
            |scenario| scenario.file_bytes = 0,
            |scenario| scenario.servers = 1,
            |scenario| scenario.protection = Protection::Parity { blocks: 5 },
        ] {
            let mut case = sound.clone();
            change(&mut case.scenario);
            assert!(simulate_protected(&case, 1).is_err(), "{:?}", case.scenario);
        }
    }
}
