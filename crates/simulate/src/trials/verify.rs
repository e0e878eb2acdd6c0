//! Check that every byte of a trial is where the access says, as far as the kind of data can tell.

use crate::scenario::Scenario;
use interface::UserError;
use policy::{Access, Direction};
use std::rc::Rc;
use units::{ClientId, FileId, Run};
use world::payload::{Kind, Origin, Phantom, Traced, TracedMemory};
use world::{Disk, Disks, Memory, Payload};
use world_simulated::{Engine, Machine};

/// A kind of data that may be able to tell if it is in its place.
pub(crate) trait Verify: Kind {
    /// Returns a client's memory before the transfer.
    fn client_memory(client: ClientId, length: u64) -> Self::Memory;

    /// True if a payload equals `expected` in every byte; `None` if this kind of data cannot tell.
    fn is(&self, expected: &Traced) -> Option<bool>;
}

impl Verify for Phantom {
    fn client_memory(_client: ClientId, length: u64) -> Self::Memory {
        Self::memory(length)
    }

    fn is(&self, _expected: &Traced) -> Option<bool> {
        None
    }
}

impl Verify for Traced {
    fn client_memory(client: ClientId, length: u64) -> TracedMemory {
        TracedMemory::of(Origin::Client(client.0), length)
    }

    fn is(&self, expected: &Traced) -> Option<bool> {
        Some(self.segments() == expected.segments())
    }
}

/// File of a trial: the first that a catalogue numbers.
const FILE: FileId = FileId(1);

/// Checks the clients' memories after a read, or the disks after a write.
pub(crate) fn verify<P: Verify>(
    scenario: &Scenario,
    access: &Access,
    engine: &Engine,
    machine: &Rc<Machine<P>>,
    memories: Vec<P::Memory>,
) -> Result<bool, UserError> {
    if !P::REMEMBERED {
        return Ok(false);
    }
    match scenario.pattern.direction {
        Direction::Read => {
            let places = memories.into_iter().enumerate();
            Ok(places.into_iter().all(|(rank, memory)| {
                let expected = memory_after_read(scenario, access, ClientId(rank as u32));
                memory.freeze().is(&expected) == Some(true)
            }))
        }
        Direction::Write => {
            let blocks = scenario.file_bytes.div_ceil(scenario.block_bytes);
            let (machine, scenario, access) =
                (Rc::clone(machine), scenario.clone(), access.clone());
            let checked = engine.run(async move {
                for block in 0..blocks {
                    if !block_is_right(&scenario, &access, &machine, block).await {
                        return false;
                    }
                }
                true
            });
            Ok(checked.unwrap_or(false))
        }
    }
}

/// Expected memory of a client after it has read its part of a file that was never written.
fn memory_after_read(scenario: &Scenario, access: &Access, client: ClientId) -> Traced {
    let length = access.memory_bytes(client);
    let memory = TracedMemory::of(Origin::Client(client.0), length);
    let stripe = scenario.stripe();
    for block in stripe.blocks_in(access.file_extent()) {
        let range = stripe.block_range(block, scenario.file_bytes);
        let at = stripe.locate(block);
        let disk = at.server.0 * stripe.disks_per_server + at.disk.0;
        let offset = at.slot * stripe.block_bytes;
        let data = Traced::unwritten(disk, FILE.0, offset, range.length());
        for piece in access.pieces(client, range) {
            let from = Run { offset: piece.offset - range.start, ..piece.file_side() };
            memory.scatter(&[piece.memory_side()], &data.gather(&[from]));
        }
    }
    memory.freeze()
}

/// True if a block on its disk holds the data that the clients wrote, and elsewhere its earlier
/// data.
async fn block_is_right<P: Verify>(
    scenario: &Scenario,
    access: &Access,
    machine: &Rc<Machine<P>>,
    block: u64,
) -> bool {
    let stripe = scenario.stripe();
    let range = stripe.block_range(block, scenario.file_bytes);
    let at = stripe.locate(block);
    let number = at.server.0 * stripe.disks_per_server + at.disk.0;
    let offset = at.slot * stripe.block_bytes;
    let expected = Traced::unwritten(number, FILE.0, offset, range.length()).thaw();
    for client in access.clients_in(range) {
        let memory = TracedMemory::of(Origin::Client(client.0), access.memory_bytes(client));
        for piece in access.pieces(client, range) {
            let to = Run { offset: piece.offset - range.start, ..piece.file_side() };
            expected.scatter(&[to], &memory.gather(&[piece.memory_side()]));
        }
    }
    let world = machine.world(at.server.0);
    let Some(disk) = world.disks().get(at.disk.0 as usize) else { return false };
    match disk.read(FILE, offset, range.length()).await {
        Ok(data) => data.is(&expected.freeze()) == Some(true),
        Err(_) => false,
    }
}
