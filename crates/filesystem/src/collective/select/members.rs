//! Selections of the members of a group, and of one client alone.
//!
//! The members agree that they want the same; the one of rank 0 begins the selection at the
//! servers, and ends it. Each member takes its records itself.
//!
//! Invariant: all members' calls end with the same fault, or none does.

use super::client::{RecordCounts, Selected};
use crate::client::{Client, Group};
use policy::{
    Condition, Destination, DiskOrder, Expression, FieldAt, RecordGrid, Reduced, Reduction,
    Selection,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::rc::Rc;
use units::ClientId;
use wire::{Fault, FileRecord, GATHER_BYTES_MAX, decode_record, encode_record};
use world::{Memory, World};

/// Distribution of the records that match over the members of a group.
#[derive(Clone, PartialEq, Debug)]
pub enum Share {
    /// Each member gets as many as the others, or one more, in the order of the file.
    Even,
    /// Each member gets those in an equal part of the file, in its order.
    Part,
    /// Each member gets those of which this integer is its rank, in the order of the file. Nobody
    /// gets one for which it is negative.
    Key(Expression),
}

/// Names of the agreements of a call. Members take them in the same order.
pub struct Agreements(Vec<String>);

/// Client that makes a call, alone or as a member of a group.
pub struct Selecting<'a, W: World> {
    client: &'a Client<W>,
    group: Option<&'a Group<W>>,
}

/// Records of one member that match. They stay at the servers until the selection ends.
pub struct FoundRecords<W: World> {
    selected: Rc<Selected<W>>,
    destination: u32,
    counts: RecordCounts,
    wanted: Range<u64>,
}

impl<W: World> Group<W> {
    /// Takes names for a call on records.
    pub fn begin_agreements(&self) -> Agreements {
        Agreements((0..3).map(|_| self.begin_all_gather()).collect())
    }
}

impl Agreements {
    /// Names for a client alone, which needs none.
    pub fn of_one() -> Self {
        Self(Vec::new())
    }
}

impl<'a, W: World> Selecting<'a, W> {
    /// Calls of a client, or of it as a member of a group.
    pub fn new(client: &'a Client<W>, group: Option<&'a Group<W>>) -> Self {
        Self { client, group }
    }

    fn rank(&self) -> u32 {
        self.group.map_or(0, |group| group.rank().0)
    }

    fn size(&self) -> u32 {
        self.group.map_or(1, Group::size)
    }

    /// Finds the records of an open file that match, and counts those of this member. A member
    /// that cannot take part passes the fault, so that no other waits for it.
    ///
    /// # Errors
    /// [`Fault::CallsDiffer`] if the members want different ones; those of [`Client::select`].
    pub async fn find(
        &self,
        agreements: &Agreements,
        file: Result<&FileRecord, Fault>,
        (records, condition): (RecordGrid, Condition),
        share: Share,
    ) -> Result<FoundRecords<W>, Fault> {
        let (rank, clients) = (self.rank(), self.size());
        let destination = match &share {
            Share::Even => Destination::One,
            Share::Part => Destination::Part { clients },
            Share::Key(key) => Destination::Key { key: key.clone(), clients },
        };
        let result = policy::Selected::Records(destination);
        let selection = Selection { records, condition, result };
        let selected = self.begin(agreements, file, selection).await?;
        let destination = if share == Share::Even { 0 } else { rank };
        let counted = selected.counts(destination).await;
        let outcome = counted.as_ref().map(|_| ()).map_err(Clone::clone);
        let agreed = self.agree(agreements.0.get(2), outcome).await;
        let counts = agreed.and(counted)?;
        let (total, rank, size) = (counts.total(), u64::from(rank), u64::from(clients));
        let wanted = match share {
            Share::Even => portion(total, rank, size)..portion(total, rank + 1, size),
            Share::Part | Share::Key(_) => 0..total,
        };
        Ok(FoundRecords { selected: Rc::new(selected), destination, counts, wanted })
    }

    /// Finds the records of an open file that match, and divides them into parts: a record goes to
    /// the part that `key` names. For a client alone.
    ///
    /// # Errors
    /// As for [`Client::select`].
    pub async fn divide(
        &self,
        file: &FileRecord,
        (records, condition): (RecordGrid, Condition),
        (key, parts): (Expression, u32),
    ) -> Result<Vec<FoundRecords<W>>, Fault> {
        let result = policy::Selected::Records(Destination::Key { key, clients: parts });
        let selection = Selection { records, condition, result };
        let selected = Rc::new(self.client.select(file, selection, DiskOrder::Sorted).await?);
        let mut found = Vec::with_capacity(parts as usize);
        for destination in 0..parts {
            let counts = selected.counts(destination).await?;
            let (selected, wanted) = (Rc::clone(&selected), 0..counts.total());
            found.push(FoundRecords { selected, destination, counts, wanted });
        }
        Ok(found)
    }

    /// Has the servers compute bounds of fields for each block of an open file, so that later
    /// selections of the same records leave out blocks in which nothing matches.
    ///
    /// # Errors
    /// As for [`Selecting::find`], and [`Fault::TransferFailed`] if the file changes meanwhile.
    pub async fn summarise(
        &self,
        agreements: &Agreements,
        file: Result<&FileRecord, Fault>,
        records: RecordGrid,
        fields: Vec<FieldAt>,
    ) -> Result<(), Fault> {
        let result = policy::Selected::Summary(fields);
        let selection = Selection { records, condition: Expression::always().into(), result };
        let selected = self.begin(agreements, file, selection).await?;
        let kept = if self.rank() == 0 { selected.keep().await } else { Ok(()) };
        self.agree(agreements.0.get(2), kept).await.map(|_| ())
    }

    /// Computes a number from the records of an open file that match. Returns the numbers of
    /// blocks, too ([`FoundRecords::blocks`]).
    ///
    /// # Errors
    /// As for [`Selecting::find`].
    pub async fn reduce(
        &self,
        agreements: &Agreements,
        file: Result<&FileRecord, Fault>,
        (records, condition): (RecordGrid, Condition),
        reduction: Reduction,
    ) -> Result<(Reduced, (u64, u64)), Fault> {
        let result = policy::Selected::Number(reduction);
        let selection = Selection { records, condition, result };
        let selected = self.begin(agreements, file, selection).await?;
        let reduced = selected.reduced().await;
        let outcome = reduced.as_ref().map(|_| ()).map_err(Clone::clone);
        self.agree(agreements.0.get(2), outcome).await?;
        Ok((reduced?, selected.blocks()))
    }

    /// Has the member of rank 0 begin a selection that all want.
    async fn begin(
        &self,
        agreements: &Agreements,
        file: Result<&FileRecord, Fault>,
        selection: Selection,
    ) -> Result<Selected<W>, Fault> {
        let Agreements(names) = agreements;
        let record_bytes = selection.records.record_bytes;
        let own = file.clone().map(|file| (file.file, digest(&selection)));
        let all = self.agree(names.first(), own).await?;
        let file = file?;
        if let Some(rank) = all.iter().position(|other| *other != all[0]) {
            let cause = format!("ranks 0 and {rank} want different records");
            return Err(Fault::CallsDiffer { cause });
        }
        if self.rank() > 0 {
            let begun = self.agree(names.get(1), Ok(0_u64)).await?;
            return Ok(self.client.selected(file, begun[0], record_bytes));
        }
        let begun = self.client.select(file, selection, DiskOrder::Sorted).await;
        let number = begun.as_ref().map(Selected::number).map_err(Clone::clone);
        self.agree(names.get(1), number).await.and(begun)
    }

    /// Takes records of this member into a memory: those of the numbers `range` among its own.
    ///
    /// # Errors
    /// [`Fault::BadSelection`] if a member's memory is too small, or if it has no such records;
    /// then nothing has moved. Faults of the servers.
    pub async fn take(
        &self,
        agreements: &Agreements,
        found: &FoundRecords<W>,
        range: Range<u64>,
        memory: &W::Memory,
    ) -> Result<(), Fault> {
        let Agreements(names) = agreements;
        let room = found.check_room(self.rank(), &range, memory);
        self.agree(names.first(), room).await?;
        let FoundRecords { selected, destination, counts, wanted } = found;
        let wanted = wanted.start + range.start..wanted.start + range.end;
        let taken = selected.take(*destination, counts, wanted, memory).await;
        self.agree(names.get(1), taken).await.map(|_| ())
    }

    /// Ends with the smallest fault of all members, or with what each of them brought, by rank.
    async fn agree<T: Serialize + DeserializeOwned>(
        &self,
        name: Option<&String>,
        own: Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let (Some(group), Some(name)) = (self.group, name) else {
            return own.map(|own| vec![own]);
        };
        let mut bytes = encode_record(&own);
        if bytes.len() > GATHER_BYTES_MAX {
            let cause = "the fault of a member is too long to be told".to_owned();
            bytes = encode_record(&Err::<T, _>(Fault::TransferFailed { cause }));
        }
        let brought = group.all_gather_as(name, bytes).await?;
        let (mut values, mut fault) = (Vec::with_capacity(brought.len()), None::<Fault>);
        for bytes in brought {
            match decode_record::<Result<T, Fault>>(&bytes) {
                Ok(Ok(value)) => values.push(value),
                Ok(Err(other)) => fault = Some(fault.map_or(other.clone(), |one| one.min(other))),
                Err(_) => {
                    let cause = "the members make different calls on records".to_owned();
                    return Err(Fault::CallsDiffer { cause });
                }
            }
        }
        fault.map_or(Ok(values), Err)
    }
}

impl<W: World> FoundRecords<W> {
    /// Number of records of this member.
    pub fn count(&self) -> u64 {
        self.wanted.end - self.wanted.start
    }

    /// Numbers of blocks that were read, and that were left out, at the member that began.
    pub fn blocks(&self) -> (u64, u64) {
        self.selected.blocks()
    }

    fn check_room(&self, rank: u32, range: &Range<u64>, memory: &W::Memory) -> Result<(), Fault> {
        let room = memory.length() / self.selected.record_bytes().max(1);
        let (count, all) = (range.end.saturating_sub(range.start), self.count());
        let bad = |cause| Err(Fault::BadSelection { cause });
        match room >= count {
            true if range.end <= all => Ok(()),
            true => bad(format!("{all} records are for {}, and no more", ClientId(rank))),
            false => bad(format!(
                "{count} records are for {}, and its memory has room for {room}",
                ClientId(rank)
            )),
        }
    }
}

fn portion(total: u64, rank: u64, size: u64) -> u64 {
    (u128::from(total) * u128::from(rank) / u128::from(size.max(1))) as u64
}

/// A hash (64-bit FNV-1a) of what is selected.
fn digest(selection: &Selection) -> u64 {
    let bytes = encode_record(selection);
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
    })
}
