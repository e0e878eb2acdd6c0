//! Smallest and largest values of fields, by which blocks without a record that matches are known.
//!
//! Invariant: an answer that no record of a block matches holds for any records within the bounds.

use super::comparison::Comparison;
use super::constant::Constant;
use super::evaluator::Evaluator;
use super::expression::Node;
use super::number::{Column, FieldAt};
use super::reduction::{extreme, merge_extreme};

/// Largest number of fields of a summary.
pub const SUMMARY_FIELDS_MAX: usize = 16;

/// Bounds of the values of a field in some records.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Bounds {
    /// Smallest and largest value that is a number.
    range: Option<(Constant, Constant)>,
    has_nan: bool,
}

/// Truth of a condition for the records of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Truth {
    Never,
    Sometimes,
    Always,
}

impl Bounds {
    /// Adds the values of more records.
    pub fn merge(&mut self, other: Self) {
        self.has_nan |= other.has_nan;
        let (mut least, mut most) = (self.range.map(|it| it.0), self.range.map(|it| it.1));
        merge_extreme(&mut least, other.range.map(|it| it.0), true);
        merge_extreme(&mut most, other.range.map(|it| it.1), false);
        self.range = least.zip(most);
    }

    /// Bounds of the values of a column.
    fn of(column: &Column) -> Self {
        let (values, is_number) = match column {
            Column::Truth(values) => {
                let values = values.iter().map(|value| u64::from(*value)).collect();
                (Column::Unsigned(values), vec![true; column.length()])
            }
            Column::Float(values) => {
                (column.clone(), values.iter().map(|value| !value.is_nan()).collect())
            }
            other => (other.clone(), vec![true; column.length()]),
        };
        let (least, most) =
            (extreme(&values, &is_number, true), extreme(&values, &is_number, false));
        Self { range: least.zip(most), has_nan: is_number.contains(&false) }
    }

    /// Truth of a comparison of the values with a constant.
    fn compare(&self, how: Comparison, with: Constant) -> Truth {
        let Some((least, most)) = self.range else {
            return match (self.has_nan, how) {
                (true, Comparison::NotEqual) => Truth::Always,
                _ => Truth::Never,
            };
        };
        let holds = |how: Comparison, value: Constant| {
            how.with_constant(&Column::of_constant(value), with).contains(&true)
        };
        let of = |any: bool, all: bool| match (any, all) {
            (false, _) => Truth::Never,
            (true, true) => Truth::Always,
            (true, false) => Truth::Sometimes,
        };
        let is_inside =
            holds(Comparison::LessOrEqual, least) && holds(Comparison::GreaterOrEqual, most);
        let is_one = holds(Comparison::Equal, least) && holds(Comparison::Equal, most);
        match how {
            Comparison::Less | Comparison::LessOrEqual => {
                of(holds(how, least), holds(how, most) && !self.has_nan)
            }
            Comparison::Greater | Comparison::GreaterOrEqual => {
                of(holds(how, most), holds(how, least) && !self.has_nan)
            }
            Comparison::Equal => of(is_inside, is_one && !self.has_nan),
            Comparison::NotEqual => of(self.has_nan || !is_one, !is_inside),
        }
    }
}

impl FieldAt {
    /// Bounds of the values of the field in records that follow one another.
    pub(super) fn bounds(&self, records: &[u8], record_bytes: usize) -> Bounds {
        Bounds::of(&self.read(records, record_bytes))
    }
}

impl Column {
    fn of_constant(constant: Constant) -> Self {
        match constant {
            Constant::Signed(value) => Self::Signed(vec![value]),
            Constant::Unsigned(value) => Self::Unsigned(vec![value]),
            Constant::Float(value) => Self::Float(vec![value]),
        }
    }
}

impl Evaluator {
    /// False if the result is false for all records whose fields have these bounds.
    pub(super) fn may_be_true(&self, fields: &[FieldAt], bounds: &[Bounds]) -> bool {
        let bounds_of = |node: &Node| match node {
            Node::Field(field) => {
                let known = fields.iter().position(|known| known == field);
                known.and_then(|known| bounds.get(known))
            }
            _ => None,
        };
        let mut truths: Vec<Truth> = Vec::with_capacity(self.nodes().len());
        for node in self.nodes() {
            let compared = |of: u16, how, with| {
                let bounds = bounds_of(&self.nodes()[usize::from(of)]);
                bounds.map_or(Truth::Sometimes, |bounds| bounds.compare(how, with))
            };
            let is_not_zero = |of: u16| compared(of, Comparison::NotEqual, Constant::Signed(0));
            let at = |operand: &u16| truths[usize::from(*operand)];
            truths.push(match node {
                Node::Always(true) => Truth::Always,
                Node::Always(false) => Truth::Never,
                // Of what is true or false. Other nodes ask for the bounds of a number.
                Node::Field(_) => is_not_zero(truths.len() as u16),
                Node::IsTrue { of } => match &self.nodes()[usize::from(*of)] {
                    Node::Field(_) => is_not_zero(*of),
                    _ => Truth::Sometimes,
                },
                Node::CompareConstant { of, how, with } => compared(*of, *how, *with),
                Node::In { of, set } => {
                    let equal = |with: &Constant| compared(*of, Comparison::Equal, *with);
                    let all = set.iter().map(equal);
                    all.max_by_key(|truth| truth.rank()).unwrap_or(Truth::Never)
                }
                Node::And(operands) => {
                    let all = operands.iter().map(at);
                    all.min_by_key(|truth| truth.rank()).unwrap_or(Truth::Always)
                }
                Node::Or(operands) => {
                    let all = operands.iter().map(at);
                    all.max_by_key(|truth| truth.rank()).unwrap_or(Truth::Never)
                }
                Node::Not(operand) => match at(operand) {
                    Truth::Never => Truth::Always,
                    Truth::Sometimes => Truth::Sometimes,
                    Truth::Always => Truth::Never,
                },
                Node::Compare { .. }
                | Node::Mask { .. }
                | Node::Modulo { .. }
                | Node::Hash { .. }
                | Node::Bin { .. }
                | Node::Function { .. }
                | Node::Answer => Truth::Sometimes,
            });
        }
        truths.last() != Some(&Truth::Never)
    }
}

impl Truth {
    fn rank(self) -> u8 {
        match self {
            Self::Never => 0,
            Self::Sometimes => 1,
            Self::Always => 2,
        }
    }
}
