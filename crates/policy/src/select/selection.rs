//! Selections, and their evaluation for the records of a block.

use super::bounds::{Bounds, SUMMARY_FIELDS_MAX};
use super::evaluator::{Evaluator, UnknownFunction};
use super::expression::{Expression, ExpressionError};
use super::functions::{FailedFunction, RecordFunctions};
use super::grid::{RecordGrid, RecordGridError};
use super::number::{Column, FieldAt};
use super::reduction::{Reduced, Reducer, Reduction, ReductionError};
use crate::CLIENTS_MAX;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Number of records that are evaluated at a time: their columns fit a processor's first cache.
const BATCH_RECORDS: usize = 1_024;

/// Client that gets a record that matches.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Destination {
    /// All records have the destination 0.
    One,
    /// Client that has an equal part of all records, in the order of the file.
    Part {
        /// Number of clients.
        clients: u32,
    },
    /// Client that an integer of the record names. A negative one means that nobody gets it.
    Key {
        /// Integer.
        key: Expression,
        /// Number of clients.
        clients: u32,
    },
}

/// Records of a file that are wanted, and their use.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Selection {
    /// Records of the file.
    pub records: RecordGrid,
    /// Condition for a record to match.
    pub predicate: Expression,
    /// Use of the records that match.
    pub result: Selected,
}

/// Use of the records that match.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Selected {
    /// They go to clients.
    Records(Destination),
    /// A number is computed from them.
    Number(Reduction),
    /// Bounds of these fields are computed for each block, of all records.
    Summary(Vec<FieldAt>),
}

/// Reason for which a selection is refused.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SelectionError {
    /// The records do not fit the file.
    #[error(transparent)]
    Records(#[from] RecordGridError),
    /// The predicate cannot be evaluated.
    #[error("the predicate cannot be evaluated: {0}")]
    Predicate(ExpressionError),
    /// The key cannot be evaluated.
    #[error("the key cannot be evaluated: {0}")]
    Key(ExpressionError),
    /// The number cannot be computed.
    #[error("the number cannot be computed: {0}")]
    Number(#[from] ReductionError),
    /// A summary has no field, too many, or one that is not in a record.
    #[error("a summary needs 1 to {SUMMARY_FIELDS_MAX} fields that are in the records")]
    Summary,
    /// A function is not there.
    #[error(transparent)]
    Function(#[from] UnknownFunction),
    /// There are no clients, or too many.
    #[error("records for {clients} clients: there must be 1 to {CLIENTS_MAX}")]
    Clients {
        /// Number of clients.
        clients: u32,
    },
}

/// Record whose key names no client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error(
    "the key of record {record} is {key}, and there are {clients} clients (0 to {})",
    clients - 1
)]
pub struct KeyError {
    /// Number of the record in the file.
    pub record: u64,
    /// Its key.
    pub key: u64,
    /// Number of clients.
    pub clients: u32,
}

/// Reason for which records cannot be looked at.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum LookError {
    /// A key names no client.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A function of the servers has failed.
    #[error(transparent)]
    Function(#[from] FailedFunction),
}

/// Records of some that match, by their destinations.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Matches {
    /// Each destination with the number of its records, ascending. None is zero.
    pub destinations: Vec<(u32, u32)>,
    /// Position of each record, in the order of the destinations, ascending for each of them.
    pub positions: Vec<u32>,
}

/// A checked selection.
#[derive(Clone)]
pub struct Selector {
    records: RecordGrid,
    predicate: Evaluator,
    action: Action,
}

#[derive(Clone)]
enum Action {
    DeliverToOne,
    DeliverParts(u32),
    DeliverByKey(Evaluator, u32),
    Reduce(Reducer),
    Summarise(Vec<FieldAt>, Vec<Bounds>),
}

impl Selection {
    /// Checks the selection from a file of `file_bytes` bytes with blocks of `block_bytes`, for
    /// servers that have these functions.
    pub fn check(
        self,
        (file_bytes, block_bytes): (u64, u64),
        functions: &RecordFunctions,
    ) -> Result<Selector, SelectionError> {
        let Self { records, predicate, result } = self;
        records.validate(file_bytes, block_bytes)?;
        let bytes = records.record_bytes;
        predicate.validate_predicate(bytes).map_err(SelectionError::Predicate)?;
        let kinds = predicate.validate(bytes).map_err(SelectionError::Predicate)?;
        let predicate = Evaluator::new(predicate, &kinds, bytes, functions)?;
        let action = match result {
            Selected::Records(Destination::Part { clients } | Destination::Key { clients, .. })
                if clients == 0 || clients > CLIENTS_MAX =>
            {
                return Err(SelectionError::Clients { clients });
            }
            Selected::Records(Destination::One) => Action::DeliverToOne,
            Selected::Records(Destination::Part { clients }) => Action::DeliverParts(clients),
            Selected::Records(Destination::Key { key, clients }) => {
                key.validate_key(bytes).map_err(SelectionError::Key)?;
                let kinds = key.validate(bytes).map_err(SelectionError::Key)?;
                Action::DeliverByKey(Evaluator::new(key, &kinds, bytes, functions)?, clients)
            }
            Selected::Summary(fields) => {
                let is_inside = |field: &FieldAt| {
                    let end = field.offset.checked_add(field.number.kind.bytes());
                    end.is_some_and(|end| end <= bytes)
                };
                let fits = (1..=SUMMARY_FIELDS_MAX).contains(&fields.len());
                if !fits || !fields.iter().all(is_inside) {
                    return Err(SelectionError::Summary);
                }
                Action::Summarise(fields, Vec::new())
            }
            Selected::Number(reduction) => {
                Action::Reduce(Reducer::new(reduction, bytes, functions)?)
            }
        };
        Ok(Selector { records, predicate, action })
    }
}

impl Selector {
    /// Records of the file.
    pub fn records(&self) -> &RecordGrid {
        &self.records
    }

    /// Result of the reduction, of the records that were looked at; `None` for a selection that
    /// delivers records.
    pub fn reduced(&self) -> Option<&Reduced> {
        match &self.action {
            Action::Reduce(reducer) => Some(reducer.reduced()),
            _ => None,
        }
    }

    /// Fields of which bounds are computed; `None` for another selection.
    pub fn summarised(&self) -> Option<&[FieldAt]> {
        match &self.action {
            Action::Summarise(fields, _) => Some(fields),
            _ => None,
        }
    }

    /// Returns the bounds of the records that were looked at since the last call.
    pub fn take_bounds(&mut self) -> Vec<Bounds> {
        match &mut self.action {
            Action::Summarise(_, bounds) => std::mem::take(bounds),
            _ => Vec::new(),
        }
    }

    /// False if no record matches whose fields have these bounds.
    pub fn may_match(&self, fields: &[FieldAt], bounds: &[Bounds]) -> bool {
        self.summarised().is_some() || self.predicate.may_be_true(fields, bounds)
    }

    /// Looks at records that follow one another, of which the first is number `first` of the file.
    /// Returns those that match, if they are to be delivered; otherwise adds them to the number.
    ///
    /// # Errors
    /// A record whose key names no client, and a function that has failed.
    pub fn look_at(&mut self, first: u64, records: &[u8]) -> Result<Matches, LookError> {
        let record_bytes = self.records.record_bytes as usize;
        let mut found = Vec::new();
        if let Action::Summarise(fields, bounds) = &mut self.action {
            bounds.resize(fields.len(), Bounds::default());
            for (field, bounds) in fields.iter().zip(bounds) {
                bounds.merge(field.bounds(records, record_bytes));
            }
            return Ok(Matches::default());
        }
        let batches = records.chunks(BATCH_RECORDS * record_bytes);
        for (number, batch) in batches.enumerate() {
            let Column::Truth(matches) = self.predicate.evaluate(batch)? else {
                continue;
            };
            let before = number * BATCH_RECORDS;
            match &mut self.action {
                Action::Summarise(..) => {}
                Action::Reduce(reducer) => reducer.add(batch, &matches)?,
                Action::DeliverToOne => {
                    found.extend(positions(&matches).map(|at| (0, (before + at) as u32)));
                }
                Action::DeliverParts(clients) => {
                    let all = u128::from(self.records.count);
                    let part_of = |at: usize| {
                        let record = u128::from(first + (before + at) as u64);
                        // Part p begins with record `all * p / clients`.
                        (((record + 1) * u128::from(*clients) - 1) / all.max(1)) as u32
                    };
                    let found_here = positions(&matches);
                    found.extend(found_here.map(|at| (part_of(at), (before + at) as u32)));
                }
                Action::DeliverByKey(key, clients) => {
                    if !matches.contains(&true) {
                        continue;
                    }
                    let keys = key.evaluate(batch)?;
                    for at in positions(&matches) {
                        let record = first + (before + at) as u64;
                        if let Some(client) = client_of(&keys, at, *clients, record)? {
                            found.push((client, (before + at) as u32));
                        }
                    }
                }
            }
        }
        Ok(Matches::of(found))
    }
}

/// Positions of the values that are true.
fn positions(values: &[bool]) -> impl Iterator<Item = usize> + '_ {
    values.iter().enumerate().filter(|(_, value)| **value).map(|(at, _)| at)
}

/// Client that the key at a position names.
fn client_of(keys: &Column, at: usize, clients: u32, record: u64) -> Result<Option<u32>, KeyError> {
    let key = match keys {
        Column::Signed(keys) => match u64::try_from(keys[at]) {
            Ok(key) => key,
            Err(_) => return Ok(None),
        },
        Column::Unsigned(keys) => keys[at],
        Column::Truth(_) | Column::Float(_) => return Ok(None),
    };
    match u32::try_from(key) {
        Ok(client) if client < clients => Ok(Some(client)),
        _ => Err(KeyError { record, key, clients }),
    }
}

impl Matches {
    fn of(mut found: Vec<(u32, u32)>) -> Self {
        // Stable: the positions of each destination ascend.
        if !found.is_sorted_by_key(|(destination, _)| *destination) {
            found.sort_by_key(|(destination, _)| *destination);
        }
        let mut destinations: Vec<(u32, u32)> = Vec::new();
        for (destination, _) in &found {
            match destinations.last_mut() {
                Some((last, count)) if last == destination => *count += 1,
                _ => destinations.push((*destination, 1)),
            }
        }
        Self { destinations, positions: found.into_iter().map(|(_, at)| at).collect() }
    }
}
