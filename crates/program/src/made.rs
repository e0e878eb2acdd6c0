//! Programs that were made, not recorded: each rank opens one file together with all others.

use crate::run::Program;
use crate::streams::Known;
use policy::{Access, Direction, OwnPart};
use std::collections::BTreeMap;
use std::sync::Arc;
use trace::{Collective, Communicator, Event, FileNumber, Operation, PartNumber, RankTrace};
use units::{ByteRange, ClientId};

/// Name of the file: the papers move matrices.
const NAME: &str = "matrix";

const FILE: FileNumber = FileNumber(0);
const ALL: Communicator = Communicator(0);

/// Events of one rank, from its begin to its end.
pub struct MadeRank {
    events: Vec<Operation>,
    parts: Vec<OwnPart>,
    /// Parts of contiguous bytes from the start of the file, by their length.
    contiguous: BTreeMap<u64, PartNumber>,
}

impl MadeRank {
    /// The rank begins, and opens a new file of `bytes` bytes.
    pub fn opening(bytes: u64) -> Self {
        let (file, communicator) = (FILE, ALL);
        let open = Operation::Open { file, communicator, creates: true, is_fresh: true, bytes };
        let events = vec![Operation::Begin, open];
        Self { events, parts: Vec::new(), contiguous: BTreeMap::new() }
    }

    /// All ranks meet.
    pub fn barrier(&mut self) {
        let (kind, communicator) = (Collective::Barrier, ALL);
        let barrier =
            Operation::Collective { kind, communicator, root: 0, bytes: 0, request: None };
        self.events.push(barrier);
    }

    /// All ranks move their parts together.
    pub fn transfer_together(&mut self, direction: Direction, part: OwnPart) {
        let number = (part.bytes() > 0).then(|| self.add(part));
        self.transfer((direction, true), number, 0);
    }

    /// The rank moves some bytes alone.
    pub fn transfer_alone(&mut self, direction: Direction, range: ByteRange) {
        let known = self.contiguous.get(&range.length()).copied();
        let number = known.unwrap_or_else(|| {
            let number = self.add(OwnPart::contiguous(0, range.length()));
            self.contiguous.insert(range.length(), number);
            number
        });
        self.transfer((direction, false), Some(number), range.start);
    }

    fn add(&mut self, part: OwnPart) -> PartNumber {
        self.parts.push(part);
        PartNumber(self.parts.len() as u32 - 1)
    }

    fn transfer(
        &mut self,
        (direction, is_collective): (Direction, bool),
        part: Option<PartNumber>,
        shift: u64,
    ) {
        let (file, request) = (FILE, None);
        let transfer = Operation::Transfer { file, direction, is_collective, part, shift, request };
        self.events.push(transfer);
    }

    fn ended(mut self) -> RankTrace {
        self.events.push(Operation::End);
        let event = |operation| Event {
            computed_ns: 0,
            blocked_ns: 0,
            took_ns: 0,
            depends_on_timing: false,
            operation,
        };
        RankTrace {
            events: self.events.into_iter().map(event).collect(),
            // Known to the program: a list of all ranks at each rank takes too much memory.
            communicators: Vec::new(),
            files: vec![NAME.to_owned()],
            parts: self.parts,
            is_cut: false,
        }
    }
}

impl Program {
    /// Makes a program of what each rank does. `rules` has the access of each collective transfer,
    /// in their order.
    pub fn made(ranks: impl IntoIterator<Item = MadeRank>, rules: Vec<Arc<Access>>) -> Self {
        let ranks: Vec<RankTrace> = ranks.into_iter().map(MadeRank::ended).collect();
        let members: Arc<[u32]> = (0..ranks.len() as u32).collect();
        let known = |place| vec![Known { number: 0, members: Arc::clone(&members), place }];
        let communicators = (0..ranks.len() as u32).map(known).collect();
        Self::of(ranks, communicators, rules)
    }

    /// Makes the program of one collective transfer: the ranks open a new file of `bytes` bytes,
    /// meet, and move it by one access.
    pub fn of_access(direction: Direction, access: &Arc<Access>, bytes: u64) -> Self {
        let rank = |rank| {
            let mut made = MadeRank::opening(bytes);
            made.barrier();
            made.transfer_together(direction, access.own_part(ClientId(rank)));
            made
        };
        Self::made((0..access.clients()).map(rank), vec![Arc::clone(access)])
    }
}

#[cfg(test)]
mod tests {
    //! Proves: the program of an access has the part of each rank, and its memory.
    use super::*;
    use policy::ListEntry;

    #[test]
    fn each_rank_has_its_part() {
        let entry = |file_offset, length| ListEntry { file_offset, memory_offset: 0, length };
        let lists = vec![vec![entry(0, 5)], vec![], vec![entry(5, 3), entry(20, 4)]];
        let access = Arc::new(Access::lists(lists));
        let program = Program::of_access(Direction::Write, &access, 24);
        assert_eq!((program.ranks(), program.events()), (3, 3 * 5));
        let memories: Vec<u64> = (0..3).map(|rank| program.memory_bytes(rank)).collect();
        let expected: Vec<u64> = (0..3).map(|rank| access.memory_bytes(ClientId(rank))).collect();
        assert_eq!((memories, program.moved_extent_bytes()), (expected, 24));
        assert_eq!(program.collective_share(), 1.0);
    }
}
