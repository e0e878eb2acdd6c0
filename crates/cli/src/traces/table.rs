//! A trace as a table: one row for each call, with typed columns.

use std::iter::once;
use trace::{Direction, Event, Message, Operation, PartNumber, RankTrace};

/// One call.
pub(super) struct Row<'a> {
    pub(super) rank: u32,
    /// Number of the event in its rank.
    pub(super) number: usize,
    pub(super) event: &'a Event,
    /// Begin of the call, in nanoseconds from the begin of the trace.
    pub(super) begin_ns: u64,
    ranks: &'a RankTrace,
    parts: &'a [PartSize],
}

/// Bytes of a part.
pub(super) struct PartSize {
    bytes: u64,
    /// First byte in the file, and one past the last one.
    extent: (u64, u64),
}

/// Sizes of the parts of a rank.
pub(super) fn part_sizes(rank: &RankTrace) -> Vec<PartSize> {
    let sizes = rank.parts.iter().map(|part| PartSize {
        bytes: part.bytes(),
        extent: part.file_extent().map_or((0, 0), |extent| (extent.start, extent.end)),
    });
    sizes.collect()
}

/// Calls of a rank. Its first call ends at `begun_ns`.
pub(super) fn rows<'a>(
    rank: u32,
    trace: &'a RankTrace,
    parts: &'a [PartSize],
    begun_ns: u64,
) -> impl Iterator<Item = Row<'a>> {
    let first = trace.events.first().map_or(0, before_end);
    let mut now = begun_ns.saturating_sub(first);
    trace.events.iter().enumerate().map(move |(number, event)| {
        let begin_ns = now.saturating_add(event.computed_ns).saturating_add(event.blocked_ns);
        now = begin_ns.saturating_add(event.took_ns);
        Row { rank, number, event, begin_ns, ranks: trace, parts }
    })
}

/// End of the first call of the rank that took longest to come there, in nanoseconds. As MPI_Init
/// synchronises, it ends at about one time; clocks of hosts are not compared.
pub(super) fn begun_ns(ranks: &[RankTrace]) -> u64 {
    ranks.iter().filter_map(|rank| rank.events.first()).map(before_end).max().unwrap_or(0)
}

fn before_end(event: &Event) -> u64 {
    event.computed_ns.saturating_add(event.blocked_ns).saturating_add(event.took_ns)
}

/// Column: its name, and a function for its values, which may be missing.
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) values: Values,
}

/// Values of a column, by type.
#[derive(Clone, Copy)]
pub(super) enum Values {
    Text(fn(&Row<'_>) -> Option<String>),
    Integer(fn(&Row<'_>) -> Option<i64>),
    Flag(fn(&Row<'_>) -> Option<bool>),
}

const fn text(name: &'static str, value: fn(&Row<'_>) -> Option<String>) -> Column {
    Column { name, values: Values::Text(value) }
}

const fn integer(name: &'static str, value: fn(&Row<'_>) -> Option<i64>) -> Column {
    Column { name, values: Values::Integer(value) }
}

const fn flag(name: &'static str, value: fn(&Row<'_>) -> Option<bool>) -> Column {
    Column { name, values: Values::Flag(value) }
}

/// Number as a signed one; the largest for what does not fit.
fn number(value: u64) -> Option<i64> {
    Some(i64::try_from(value).unwrap_or(i64::MAX))
}

/// All columns, from left to right.
pub(super) static COLUMNS: [Column; 28] = [
    integer("rank", |row| Some(row.rank.into())),
    integer("event", |row| number(row.number as u64)),
    text("call", |row| Some(row.event.operation.name().to_owned())),
    integer("begin_ns", |row| number(row.begin_ns)),
    integer("computed_ns", |row| number(row.event.computed_ns)),
    integer("blocked_ns", |row| number(row.event.blocked_ns)),
    integer("took_ns", |row| number(row.event.took_ns)),
    flag("depends_on_timing", |row| Some(row.event.depends_on_timing)),
    integer("communicator", |row| row.communicator()),
    integer("communicator_ranks", |row| {
        let communicator = usize::try_from(row.communicator()?).ok()?;
        number(row.ranks.communicators.get(communicator)?.len() as u64)
    }),
    integer("peer", |row| {
        let known = row.message().filter(|message| message.peer != Message::UNKNOWN_PEER);
        Some(known?.peer.into())
    }),
    integer("tag", |row| {
        let known = row.message().filter(|message| message.peer != Message::UNKNOWN_PEER);
        Some(known?.tag.into())
    }),
    flag("is_synchronous", |row| match row.event.operation {
        Operation::Send { is_synchronous, .. } => Some(is_synchronous),
        _ => None,
    }),
    integer("root", |row| match row.event.operation {
        Operation::Collective { kind, root, .. } if kind.has_root() => Some(root.into()),
        _ => None,
    }),
    integer("bytes", |row| row.bytes()),
    integer("request", |row| row.request()),
    text("waits_for", |row| match &row.event.operation {
        Operation::Wait { requests } => {
            let numbers: Vec<String> = requests.iter().map(|it| it.0.to_string()).collect();
            Some(numbers.join(" "))
        }
        _ => None,
    }),
    integer("file", |row| row.file().map(i64::from)),
    text("name", |row| match &row.event.operation {
        Operation::Delete { name } => Some(name.clone()),
        _ => row.ranks.files.get(row.file()? as usize).cloned(),
    }),
    flag("writes", |row| match row.event.operation {
        Operation::Transfer { direction, .. } => Some(direction == Direction::Write),
        _ => None,
    }),
    flag("is_collective", |row| match row.event.operation {
        Operation::Transfer { is_collective, .. } => Some(is_collective),
        _ => None,
    }),
    integer("part", |row| row.part().map(|(part, _)| part.0.into())),
    integer("shift", |row| row.part().and_then(|(_, shift)| number(shift))),
    integer("first_byte", |row| {
        let (part, shift) = row.part()?;
        number(shift.saturating_add(row.parts.get(part.0 as usize)?.extent.0))
    }),
    integer("end_byte", |row| {
        let (part, shift) = row.part()?;
        number(shift.saturating_add(row.parts.get(part.0 as usize)?.extent.1))
    }),
    flag("creates", |row| match row.event.operation {
        Operation::Open { creates, .. } => Some(creates),
        _ => None,
    }),
    flag("is_fresh", |row| match row.event.operation {
        Operation::Open { is_fresh, .. } => Some(is_fresh),
        _ => None,
    }),
    flag("only_grows", |row| match row.event.operation {
        Operation::SetSize { only_grows, .. } => Some(only_grows),
        _ => None,
    }),
];

impl Row<'_> {
    fn message(&self) -> Option<Message> {
        match self.event.operation {
            Operation::Send { message, .. } | Operation::Receive { message, .. } => Some(message),
            _ => None,
        }
    }

    fn communicator(&self) -> Option<i64> {
        match self.event.operation {
            Operation::Collective { communicator, .. } | Operation::Open { communicator, .. } => {
                Some(communicator.0.into())
            }
            _ => Some(self.message()?.communicator.0.into()),
        }
    }

    fn request(&self) -> Option<i64> {
        let request = match self.event.operation {
            Operation::Send { request, .. }
            | Operation::Receive { request, .. }
            | Operation::Collective { request, .. }
            | Operation::Transfer { request, .. } => request,
            _ => None,
        };
        Some(request?.0.into())
    }

    fn file(&self) -> Option<u32> {
        match self.event.operation {
            Operation::Open { file, .. }
            | Operation::Close { file }
            | Operation::Sync { file }
            | Operation::SetSize { file, .. }
            | Operation::GetSize { file }
            | Operation::Transfer { file, .. } => Some(file.0),
            _ => None,
        }
    }

    fn part(&self) -> Option<(PartNumber, u64)> {
        match self.event.operation {
            Operation::Transfer { part, shift, .. } => Some((part?, shift)),
            _ => None,
        }
    }

    /// Bytes of a message, of an operation, of data, or of a file.
    fn bytes(&self) -> Option<i64> {
        match self.event.operation {
            Operation::Collective { bytes, .. }
            | Operation::Open { bytes, .. }
            | Operation::SetSize { bytes, .. } => number(bytes),
            Operation::Transfer { part, .. } => {
                number(part.map_or(0, |part| bytes_of(self.parts, part)))
            }
            _ => number(self.message()?.bytes),
        }
    }

    /// Values of the columns that have one, by name, but for the first ones.
    pub(super) fn details(&self) -> serde_json::Map<String, serde_json::Value> {
        let values = COLUMNS.iter().skip(7).filter_map(|column| {
            let value = match column.values {
                Values::Text(of) => of(self)?.into(),
                Values::Integer(of) => of(self)?.into(),
                Values::Flag(of) => of(self)?.into(),
            };
            Some((column.name.to_owned(), value))
        });
        let first = once(("event".to_owned(), self.number.into()));
        first.chain(values).collect()
    }
}

/// Bytes of a part.
pub(super) fn bytes_of(parts: &[PartSize], part: PartNumber) -> u64 {
    parts.get(part.0 as usize).map_or(0, |part| part.bytes)
}
