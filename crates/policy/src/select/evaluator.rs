//! An expression, computed for many records at a time.

use super::constant::Constant;
use super::expression::{Expression, Node, ValueKind};
use super::functions::{FailedFunction, RecordFunction, RecordFunctions, computed};
use super::number::Column;
use super::operator::RecordBatch;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// A checked expression for records of a size.
#[derive(Clone)]
pub(super) struct Evaluator {
    nodes: Vec<Node>,
    /// Functions of its nodes, by the positions of these.
    functions: BTreeMap<usize, Arc<dyn RecordFunction>>,
}

/// Function that the servers do not have with so many operands.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "the servers have no function custom.{name} of {operands} numbers; start them by a program \
     that adds it"
)]
pub struct UnknownFunction {
    name: String,
    operands: usize,
}

impl Evaluator {
    /// Makes the evaluator of an expression that passed its checks, which returned `kinds`.
    pub(super) fn new(
        expression: Expression,
        kinds: &[ValueKind],
        known: &RecordFunctions,
    ) -> Result<Self, UnknownFunction> {
        let mut nodes = expression.nodes;
        for node in &mut nodes {
            match node {
                Node::CompareConstant { of, with, .. } => {
                    *with = rounded(*with, kinds[usize::from(*of)]);
                }
                Node::In { of, set } => {
                    let kind = kinds[usize::from(*of)];
                    set.iter_mut().for_each(|value| *value = rounded(*value, kind));
                }
                _ => {}
            }
        }
        let mut functions = BTreeMap::new();
        for (at, node) in nodes.iter().enumerate() {
            let Node::Function { name, operands } = node else { continue };
            let operands = operands.len();
            let function = known.get(name).filter(|function| function.operands() == operands);
            let unknown = || UnknownFunction { name: name.clone(), operands };
            functions.insert(at, Arc::clone(function.ok_or_else(unknown)?));
        }
        Ok(Self { nodes, functions })
    }

    /// Its nodes, of which the last is the result.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Computes the result for a batch of records. `answers` are the numbers that an operator gave
    /// to them, if there is one.
    ///
    /// # Errors
    /// A function of the servers that has panicked.
    pub(super) fn evaluate(
        &self,
        records: RecordBatch<'_>,
        answers: &[i64],
    ) -> Result<Column, FailedFunction> {
        let count = records.count();
        let mut columns: Vec<Column> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let column = match node {
                Node::Function { name, operands } => {
                    self.function(name, operands, &columns, count)?
                }
                Node::Answer => Column::Signed(answers.to_vec()),
                node => evaluate_node(node, &columns, records),
            };
            columns.push(column);
        }
        Ok(columns.pop().unwrap_or(Column::Truth(vec![false; count])))
    }

    /// Computes a function of the servers, which is the next node.
    fn function(
        &self,
        name: &str,
        operands: &[u16],
        columns: &[Column],
        count: usize,
    ) -> Result<Column, FailedFunction> {
        let Some(function) = self.functions.get(&columns.len()) else {
            return Err(FailedFunction { name: name.to_owned() });
        };
        let floats = |operand: &u16| columns[usize::from(*operand)].as_floats().into_owned();
        let operands: Vec<Vec<f64>> = operands.iter().map(floats).collect();
        computed((name, &**function), &operands, count).map(Column::Float)
    }
}

/// Computes a node of the columns of those before it.
fn evaluate_node(node: &Node, columns: &[Column], records: RecordBatch<'_>) -> Column {
    let count = records.count();
    let at = |operand: u16| &columns[usize::from(operand)];
    match node {
        Node::Field(field) => field.read(records.bytes(), records.record_bytes()),
        Node::Always(is_true) => Column::Truth(vec![*is_true; count]),
        Node::Function { .. } => Column::Float(vec![f64::NAN; count]),
        Node::Answer => Column::Signed(vec![-1; count]),
        Node::IsTrue { of } => Column::Truth(truths(at(*of)).into_owned()),
        Node::CompareConstant { of, how, with } => Column::Truth(how.with_constant(at(*of), *with)),
        Node::Compare { of, how, with } => Column::Truth(how.of_columns(at(*of), at(*with))),
        Node::In { of, set } => Column::Truth(is_in(at(*of), set)),
        Node::And(operands) => Column::Truth(combined(operands, at, |left, right| left && right)),
        Node::Or(operands) => Column::Truth(combined(operands, at, |left, right| left || right)),
        Node::Not(operand) => {
            Column::Truth(truths(at(*operand)).iter().map(|value| !value).collect())
        }
        Node::Mask { of, mask } => match at(*of) {
            Column::Signed(values) => {
                let mask = *mask as i64;
                Column::Signed(values.iter().map(|value| value & mask).collect())
            }
            Column::Unsigned(values) => {
                Column::Unsigned(values.iter().map(|value| value & mask).collect())
            }
            other => other.clone(),
        },
        Node::Modulo { of, by } => Column::Unsigned(match at(*of) {
            Column::Signed(values) => {
                let by = i128::from(*by);
                values.iter().map(|value| i128::from(*value).rem_euclid(by) as u64).collect()
            }
            Column::Unsigned(values) => values.iter().map(|value| value % by).collect(),
            _ => vec![0; count],
        }),
        Node::Hash { of } => Column::Unsigned(hashes(at(*of))),
        Node::Bin { of, low, width } => {
            let values = at(*of).as_floats();
            Column::Signed(values.iter().map(|value| bin(*value, *low, *width)).collect())
        }
    }
}

/// A constant, as it is compared with values of a kind: NumPy rounds it to a float of 4 bytes for
/// a field that has 4.
fn rounded(constant: Constant, kind: ValueKind) -> Constant {
    match kind {
        ValueKind::Single => Constant::Float(f64::from(constant.as_float() as f32)),
        _ => constant,
    }
}

fn truths(column: &Column) -> Cow<'_, [bool]> {
    match column {
        Column::Truth(values) => Cow::Borrowed(values),
        Column::Signed(values) => values.iter().map(|value| *value != 0).collect(),
        Column::Unsigned(values) => values.iter().map(|value| *value != 0).collect(),
        Column::Float(values) => values.iter().map(|value| *value != 0.0).collect(),
    }
}

fn combined<'a>(
    operands: &[u16],
    at: impl Fn(u16) -> &'a Column,
    both: impl Fn(bool, bool) -> bool,
) -> Vec<bool> {
    let mut operands = operands.iter().map(|operand| truths(at(*operand)));
    let mut all = operands.next().map(Cow::into_owned).unwrap_or_default();
    for others in operands {
        all.iter_mut().zip(others.iter()).for_each(|(one, other)| *one = both(*one, *other));
    }
    all
}

/// Tells which values are in a set. A few constants are compared one by one, which has no branches.
fn is_in(column: &Column, set: &[Constant]) -> Vec<bool> {
    use super::comparison::Comparison::Equal;
    const FEW: usize = 8;
    match column {
        Column::Signed(values) if set.len() > FEW => {
            let integer = |constant: &Constant| match constant {
                Constant::Signed(value) => Some(*value),
                Constant::Unsigned(value) => i64::try_from(*value).ok(),
                // As `values` are compared with floats: by their nearest ones.
                Constant::Float(_) => None,
            };
            if set.iter().all(|constant| !matches!(constant, Constant::Float(_))) {
                return is_in_sorted(values, set.iter().filter_map(integer).collect());
            }
        }
        Column::Unsigned(values) if set.len() > FEW => {
            let integer = |constant: &Constant| match constant {
                Constant::Signed(value) => u64::try_from(*value).ok(),
                Constant::Unsigned(value) => Some(*value),
                Constant::Float(_) => None,
            };
            if set.iter().all(|constant| !matches!(constant, Constant::Float(_))) {
                return is_in_sorted(values, set.iter().filter_map(integer).collect());
            }
        }
        Column::Float(values) if set.len() > FEW => {
            let numbers = set.iter().map(|constant| constant.as_float());
            let mut numbers: Vec<f64> = numbers.filter(|number| !number.is_nan()).collect();
            numbers.sort_by(f64::total_cmp);
            return values
                .iter()
                .map(|value| {
                    let from = numbers.partition_point(|number| number < value);
                    numbers.get(from).is_some_and(|number| number == value)
                })
                .collect();
        }
        _ => {}
    }
    let mut found = vec![false; column.length()];
    for constant in set {
        let equal = Equal.with_constant(column, *constant);
        found.iter_mut().zip(equal).for_each(|(found, equal)| *found |= equal);
    }
    found
}

fn is_in_sorted<T: Ord>(values: &[T], mut set: Vec<T>) -> Vec<bool> {
    set.sort_unstable();
    values.iter().map(|value| set.binary_search(value).is_ok()).collect()
}

fn hashes(column: &Column) -> Vec<u64> {
    match column {
        Column::Truth(values) => values.iter().map(|it| spread(u64::from(*it))).collect(),
        Column::Signed(values) => values.iter().map(|it| spread(*it as u64)).collect(),
        Column::Unsigned(values) => values.iter().map(|it| spread(*it)).collect(),
        Column::Float(values) => values
            .iter()
            .map(|value| match value {
                value if value.is_nan() => spread(f64::NAN.to_bits()),
                // Zeros of both signs are equal.
                value => spread((value + 0.0).to_bits()),
            })
            .collect(),
    }
}

/// Finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// OOPSLA 2014).
fn spread(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

fn bin(value: f64, low: f64, width: f64) -> i64 {
    match ((value - low) / width).floor() {
        bin if bin.is_nan() => -1,
        // A bin that no integer numbers becomes the last one.
        bin => bin as i64,
    }
}

impl Column {
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Truth(values) => values.len(),
            Self::Signed(values) => values.len(),
            Self::Unsigned(values) => values.len(),
            Self::Float(values) => values.len(),
        }
    }
}
