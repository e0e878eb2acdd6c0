//! Selections, and their evaluation for the records of a block.

use super::bounds::{Bounds, SUMMARY_FIELDS_MAX};
use super::evaluator::{Evaluator, UnknownFunction};
use super::expression::{Expression, ExpressionError, ValueKind};
use super::functions::FUNCTION_NAME_BYTES_MAX;
use super::grid::{RecordGrid, RecordGridError};
use super::number::{Column, FieldAt};
use super::operator::{
    Answers, ApartOperator, FailedOperator, RecordBatch, RecordOperator, batch_records,
};
use super::programmed::{ExpressionOperator, FilteredOperator};
use super::reduction::{Needed, Reduced, Reducer, Reduction, ReductionError};
use crate::{CLIENTS_MAX, Extensions};
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// Largest number of bytes of a module.
pub const MODULE_BYTES_MAX: usize = 1 << 20;

/// Operator that looks at records besides a predicate.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// Operator that the program of the servers has added, by its name.
    Own(String),
    /// Module of WebAssembly, in its binary form.
    Module(Vec<u8>),
}

impl fmt::Debug for Operator {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(name) => write!(out, "Own({name:?})"),
            Self::Module(module) => write!(out, "Module({} bytes)", module.len()),
        }
    }
}

/// Condition for a record to match: a predicate is true, and an operator selects the record, if
/// there is one. The operator looks only at records for which the predicate is true.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Condition {
    /// Predicate.
    pub predicate: Expression,
    /// Operator.
    pub operator: Option<Operator>,
}

impl From<Expression> for Condition {
    fn from(predicate: Expression) -> Self {
        Self { predicate, operator: None }
    }
}

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
    pub condition: Condition,
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
    #[error(
        "a summary needs 1 to {SUMMARY_FIELDS_MAX} fields that are in the records, and no operator"
    )]
    Summary,
    /// A function is not there.
    #[error(transparent)]
    Function(#[from] UnknownFunction),
    /// An operator is not there.
    #[error("the servers have no operator {name:?}; start them by a program that adds it")]
    UnknownOperator {
        /// Name of the operator, as far as it is short.
        name: String,
    },
    /// The servers run no modules.
    #[error(
        "these servers run no modules: their program was built without the feature \"modules\""
    )]
    NoModules,
    /// A module is refused.
    #[error("the module cannot be used: {0}")]
    Module(FailedOperator),
    /// There is no operator whose answer could be used.
    #[error(
        "answer() is the number that an operator or a module gave to a record: it stands in keys \
         and values of selections that have one"
    )]
    NoAnswer,
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
    /// A function of the servers, an operator or a module has failed.
    #[error(transparent)]
    Operator(#[from] FailedOperator),
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
pub struct Selector {
    records: RecordGrid,
    predicate: Evaluator,
    operator: Seat,
    action: Action,
}

/// Place of an operator.
enum Seat {
    Here(Box<dyn RecordOperator>),
    Apart(ApartOperator),
}

enum Action {
    DeliverToOne,
    DeliverParts(u32),
    DeliverByNumber(u32),
    Reduce(Reducer),
    Summarise(Vec<FieldAt>, Vec<Bounds>),
}

impl Selection {
    /// Checks the selection from a file of `file_bytes` bytes with blocks of `block_bytes`, for
    /// servers that have these extensions. Compiles the module, if there is one.
    pub fn check(
        self,
        (file_bytes, block_bytes): (u64, u64),
        extensions: &Extensions,
    ) -> Result<Selector, SelectionError> {
        let Self { records, condition: Condition { predicate, operator }, result } = self;
        records.validate(file_bytes, block_bytes)?;
        let bytes = records.record_bytes;
        predicate.validate_predicate(bytes).map_err(SelectionError::Predicate)?;
        let has_operator = operator.is_some();
        if predicate.uses_answer() {
            return Err(SelectionError::NoAnswer);
        }
        let evaluator = |expression: Expression, kinds: &[ValueKind]| {
            Evaluator::new(expression, kinds, &extensions.functions)
        };
        let kinds = predicate.validate(bytes).map_err(SelectionError::Predicate)?;
        let predicate = evaluator(predicate, &kinds)?;
        if has_operator && matches!(result, Selected::Summary(_)) {
            return Err(SelectionError::Summary);
        }
        let (action, number) = Action::of(result, bytes)?;
        if !has_operator && number.as_ref().is_some_and(|(number, _)| number.uses_answer()) {
            return Err(SelectionError::NoAnswer);
        }
        let number = number.map(|(number, kinds)| evaluator(number, &kinds)).transpose()?;
        let filtered = |operator| {
            let predicate = predicate.clone();
            Box::new(FilteredOperator { predicate, operator, number: number.clone() })
        };
        let operator = match operator {
            None => {
                let predicate = predicate.clone();
                Seat::Here(Box::new(ExpressionOperator { predicate, number }))
            }
            Some(Operator::Own(name)) => {
                let unknown = || SelectionError::UnknownOperator {
                    name: name.chars().take(FUNCTION_NAME_BYTES_MAX).collect(),
                };
                let own = extensions.operators.make(&name).ok_or_else(unknown)?;
                Seat::Here(filtered(own))
            }
            Some(Operator::Module(module)) => {
                let modules = extensions.modules.as_ref().ok_or(SelectionError::NoModules)?;
                let compiled = compiled(&**modules, &module, bytes)?;
                Seat::Apart(ApartOperator::new(filtered(compiled), bytes as usize))
            }
        };
        Ok(Selector { records, predicate, operator, action })
    }
}

/// Compiles a module of a bounded size.
fn compiled(
    modules: &dyn super::operator::ModuleCompiler,
    module: &[u8],
    record_bytes: u32,
) -> Result<Box<dyn RecordOperator>, SelectionError> {
    let compiled = match module.len() {
        length if length > MODULE_BYTES_MAX => Err(FailedOperator {
            cause: format!("it has {length} bytes, and the limit is {MODULE_BYTES_MAX}"),
        }),
        _ => modules.compile(module, record_bytes),
    };
    compiled.map_err(SelectionError::Module)
}

impl Action {
    /// Returns the action for the use of records, and the number that it needs.
    fn of(result: Selected, record_bytes: u32) -> Result<(Self, Needed), SelectionError> {
        Ok(match result {
            Selected::Records(Destination::Part { clients } | Destination::Key { clients, .. })
                if clients == 0 || clients > CLIENTS_MAX =>
            {
                return Err(SelectionError::Clients { clients });
            }
            Selected::Records(Destination::One) => (Self::DeliverToOne, None),
            Selected::Records(Destination::Part { clients }) => (Self::DeliverParts(clients), None),
            Selected::Records(Destination::Key { key, clients }) => {
                key.validate_key(record_bytes).map_err(SelectionError::Key)?;
                let kinds = key.validate(record_bytes).map_err(SelectionError::Key)?;
                (Self::DeliverByNumber(clients), Some((key, kinds)))
            }
            Selected::Summary(fields) => {
                let is_inside = |field: &FieldAt| {
                    let end = field.offset.checked_add(field.number.kind.bytes());
                    end.is_some_and(|end| end <= record_bytes)
                };
                let fits = (1..=SUMMARY_FIELDS_MAX).contains(&fields.len());
                if !fits || !fields.iter().all(is_inside) {
                    return Err(SelectionError::Summary);
                }
                (Self::Summarise(fields, Vec::new()), None)
            }
            Selected::Number(reduction) => {
                let (reducer, number) = Reducer::new(reduction, record_bytes)?;
                (Self::Reduce(reducer), number)
            }
        })
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

    /// The operator, if it may take long: it looks at the records in another place, and
    /// [`Selector::act`] uses its answers.
    pub fn apart(&self) -> Option<ApartOperator> {
        match &self.operator {
            Seat::Apart(operator) => Some(operator.clone()),
            Seat::Here(_) => None,
        }
    }

    /// Looks at records that follow one another, of which the first is number `first` of the file.
    /// Returns those that match, if they are to be delivered; otherwise adds them to the number.
    ///
    /// # Errors
    /// A record whose key names no client, and a function or operator that has failed.
    pub fn look_at(&mut self, first: u64, records: &[u8]) -> Result<Matches, LookError> {
        let record_bytes = self.records.record_bytes as usize;
        if let Action::Summarise(fields, bounds) = &mut self.action {
            bounds.resize(fields.len(), Bounds::default());
            for (field, bounds) in fields.iter().zip(bounds) {
                bounds.merge(field.bounds(records, record_bytes));
            }
            return Ok(Matches::default());
        }
        let operator = match &mut self.operator {
            Seat::Here(operator) => operator,
            Seat::Apart(operator) => {
                let answers = operator.look_at(records)?;
                return Ok(self.act(first, &answers)?);
            }
        };
        let mut found = Vec::new();
        for (number, batch) in RecordBatch::batches(records, record_bytes).enumerate() {
            let before = number * batch_records(record_bytes);
            let answers = operator.look_at(batch)?;
            self.action.take((first, before, self.records.count), &answers, &mut found)?;
        }
        Ok(Matches::of(found))
    }

    /// Does with records what [`Selector::look_at`] does, of which an operator in another place has
    /// given the answers.
    ///
    /// # Errors
    /// A record whose key names no client.
    pub fn act(&mut self, first: u64, answers: &[Answers]) -> Result<Matches, KeyError> {
        let (mut found, mut before) = (Vec::new(), 0);
        for answers in answers {
            self.action.take((first, before, self.records.count), answers, &mut found)?;
            before += answers.selected.len();
        }
        Ok(Matches::of(found))
    }
}

impl Action {
    /// Takes in the answers for a batch. Its first record is the one of position `before` of those
    /// that are looked at, which begin with the one of number `first` of `all` in the file.
    fn take(
        &mut self,
        (first, before, all): (u64, usize, u64),
        answers: &Answers,
        found: &mut Vec<(u32, u32)>,
    ) -> Result<(), KeyError> {
        let here = positions(&answers.selected);
        match self {
            Self::Summarise(..) => {}
            Self::Reduce(reducer) => reducer.add(answers),
            Self::DeliverToOne => found.extend(here.map(|at| (0, (before + at) as u32))),
            Self::DeliverParts(clients) => {
                let part_of = |at: usize| {
                    let record = u128::from(first + (before + at) as u64);
                    // Part p begins with record `all * p / clients`.
                    (((record + 1) * u128::from(*clients) - 1) / u128::from(all).max(1)) as u32
                };
                found.extend(here.map(|at| (part_of(at), (before + at) as u32)));
            }
            Self::DeliverByNumber(clients) => {
                let Some(keys) = &answers.numbers else { return Ok(()) };
                for at in here {
                    let record = first + (before + at) as u64;
                    if let Some(client) = client_of(keys, at, *clients, record)? {
                        found.push((client, (before + at) as u32));
                    }
                }
            }
        }
        Ok(())
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
