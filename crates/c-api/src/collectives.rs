//! Collective transfers.

use crate::arguments::{Array, Bytes, Options, Out, extensible};
use crate::border::{Failure, exported};
use crate::handles::{FileHandle, GroupHandle, OpHandle, PartHandle, make};
use crate::operations::Op;
use crate::parts::copy;
use client::{
    CollectiveOptions, Direction, DiskOrder, FILE_TRANSFERS_MAX, Operation, RawFileTransfer,
    Strategy,
};
use std::ffi::c_int;

extensible! {
    /// `unisono_collective_options_t`.
    struct CollectiveView {
        size: usize,
        strategy: u32,
        order: u32,
        sync: u32,
        outstanding_per_disk: u32,
        node_group_size: u64,
        relaxed: u64,
    }
}

/// Strategies by their number in the header.
const STRATEGIES: [Strategy; 6] = [
    Strategy::DiskDirected,
    Strategy::TwoPhase,
    Strategy::Caching,
    Strategy::Noncollective,
    Strategy::GlobalBarrier,
    Strategy::NodeGrouping,
];

/// Orders by their number in the header.
const ORDERS: [DiskOrder; 3] = [DiskOrder::Sorted, DiskOrder::AsAsked, DiskOrder::Staggered];

/// Most requests of a member that are under way at one disk.
const OUTSTANDING_MAX: u32 = 1024;

impl CollectiveView {
    /// The options with strategy, size of node groups, order and synchronisation of others.
    pub(crate) fn with(self, chosen: &CollectiveOptions) -> Self {
        let number = |place: Option<usize>| place.map_or(u32::MAX, |place| place as u32);
        Self {
            strategy: number(STRATEGIES.iter().position(|known| *known == chosen.strategy)),
            order: number(ORDERS.iter().position(|known| *known == chosen.order)),
            sync: u32::from(chosen.sync),
            node_group_size: chosen.node_group_size.into(),
            ..self
        }
    }

    fn resolved(&self) -> Result<CollectiveOptions, Failure> {
        let unknown = |field: &str, value: u64| {
            Failure::argument("options", format!("has {field} {value}, which is not possible"))
        };
        let strategy = STRATEGIES.get(self.strategy as usize);
        let order = ORDERS.get(self.order as usize);
        if self.outstanding_per_disk > OUTSTANDING_MAX {
            return Err(unknown("outstanding_per_disk", self.outstanding_per_disk.into()));
        }
        let node_group_size = u32::try_from(self.node_group_size)
            .map_err(|_| unknown("node_group_size", self.node_group_size))?;
        Ok(CollectiveOptions {
            strategy: *strategy.ok_or_else(|| unknown("strategy", self.strategy.into()))?,
            order: *order.ok_or_else(|| unknown("order", self.order.into()))?,
            node_group_size,
            outstanding_per_disk: self.outstanding_per_disk.max(1),
            sync: self.sync != 0,
            relaxed: self.relaxed != 0,
        })
    }
}

/// Arguments of a collective transfer.
struct Call<'a> {
    group: &'a GroupHandle,
    file: &'a FileHandle,
    part: &'a PartHandle,
    memory: &'a Bytes,
    memory_bytes: u64,
    options: &'a Options<CollectiveView>,
}

impl Call<'_> {
    fn begin(self, direction: Direction) -> Result<Operation<u64>, Failure> {
        let (group, file) = (self.group.get("group")?, self.file.get("file")?);
        let (part, options) = (copy(self.part)?.own, self.options.read("options")?.resolved()?);
        let memory = self.memory.memory(self.memory_bytes, "memory")?;
        Ok(group.start_memory(direction, options, file, part, memory))
    }
}

/// `unisono_transfer_t`.
#[repr(C)]
pub(crate) struct TransferView {
    direction: u64,
    file: FileHandle,
    part: PartHandle,
    memory: Bytes,
    memory_bytes: u64,
}

/// Directions by their number in the header.
const DIRECTIONS: [Direction; 2] = [Direction::Read, Direction::Write];

impl TransferView {
    fn read(&self) -> Result<RawFileTransfer, Failure> {
        let direction = usize::try_from(self.direction).ok();
        let direction = direction.and_then(|number| DIRECTIONS.get(number)).ok_or_else(|| {
            Failure::argument("transfers", format!("has the direction {}", self.direction))
        })?;
        Ok(RawFileTransfer {
            direction: *direction,
            file: self.file.get("transfers")?.clone(),
            part: copy(&self.part)?.own,
            memory: self.memory.memory(self.memory_bytes, "transfers")?,
        })
    }
}

/// Begins a transfer of several files.
fn begin_transfers(
    group: &GroupHandle,
    (transfers, count): (&Array<TransferView>, usize),
    options: &Options<CollectiveView>,
) -> Result<Operation<u64>, Failure> {
    let (group, options) = (group.get("group")?, options.read("options")?.resolved()?);
    let transfers = transfers.values(count, FILE_TRANSFERS_MAX, "transfers")?;
    let transfers = transfers.iter().map(TransferView::read).collect::<Result<_, _>>()?;
    Ok(group.start_files(options, transfers))
}

exported! {
    /// Reads and writes parts of several files together with all members.
    fn unisono_transfer_all(
        group: GroupHandle,
        transfers: Array<TransferView>,
        count: usize,
        options: Options<CollectiveView>,
    ) -> i64 {
        Ok(begin_transfers(&group, (&transfers, count), &options)?.wait()?)
    }

    /// Begins to read and write parts of several files together with all members.
    fn unisono_start_transfer_all(
        group: GroupHandle,
        transfers: Array<TransferView>,
        count: usize,
        options: Options<CollectiveView>,
        op: Out<OpHandle>,
    ) -> c_int {
        make(&op, "op", || {
            let begun = begin_transfers(&group, (&transfers, count), &options)?;
            Ok(Op::new(begun, |bytes| bytes))
        })
    }

    /// Reads together with all members.
    fn unisono_read_all(
        group: GroupHandle,
        file: FileHandle,
        part: PartHandle,
        memory: Bytes,
        memory_bytes: u64,
        options: Options<CollectiveView>,
    ) -> i64 {
        let (group, file, part) = (&group, &file, &part);
        let call = Call { group, file, part, memory: &memory, memory_bytes, options: &options };
        Ok(call.begin(Direction::Read)?.wait()?)
    }

    /// Writes together with all members.
    fn unisono_write_all(
        group: GroupHandle,
        file: FileHandle,
        part: PartHandle,
        memory: Bytes,
        memory_bytes: u64,
        options: Options<CollectiveView>,
    ) -> i64 {
        let (group, file, part) = (&group, &file, &part);
        let call = Call { group, file, part, memory: &memory, memory_bytes, options: &options };
        Ok(call.begin(Direction::Write)?.wait()?)
    }

    /// Begins to read together with all members.
    fn unisono_start_read_all(
        group: GroupHandle,
        file: FileHandle,
        part: PartHandle,
        memory: Bytes,
        memory_bytes: u64,
        options: Options<CollectiveView>,
        op: Out<OpHandle>,
    ) -> c_int {
        let (group, file, part) = (&group, &file, &part);
        let call = Call { group, file, part, memory: &memory, memory_bytes, options: &options };
        make(&op, "op", || Ok(Op::new(call.begin(Direction::Read)?, |bytes| bytes)))
    }

    /// Begins to write together with all members.
    fn unisono_start_write_all(
        group: GroupHandle,
        file: FileHandle,
        part: PartHandle,
        memory: Bytes,
        memory_bytes: u64,
        options: Options<CollectiveView>,
        op: Out<OpHandle>,
    ) -> c_int {
        let (group, file, part) = (&group, &file, &part);
        let call = Call { group, file, part, memory: &memory, memory_bytes, options: &options };
        make(&op, "op", || Ok(Op::new(call.begin(Direction::Write)?, |bytes| bytes)))
    }
}
