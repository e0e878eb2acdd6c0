//! Predicates and keys: small total expressions over the fields of a record.
//!
//! Invariant: a node uses earlier nodes only, so an expression has no cycle, and no recursion
//! is needed for one that comes from anyone.

use super::comparison::Comparison;
use super::constant::Constant;
use super::functions::{FUNCTION_NAME_BYTES_MAX, FUNCTION_OPERANDS_MAX};
use super::number::{FieldAt, NumberKind};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Largest number of nodes of an expression.
pub const EXPRESSION_NODES_MAX: usize = 256;

/// Largest number of operands of all nodes of an expression.
pub const EXPRESSION_OPERANDS_MAX: usize = 1_024;

/// Largest number of values of all sets of an expression.
pub const SET_VALUES_MAX: usize = 1_024;

/// Node of an expression. Operands are named by their positions in the list of nodes.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Node {
    /// Value of a field.
    Field(FieldAt),
    /// Truth that no record changes.
    Always(bool),
    /// True if a number is not zero. NaN is true, as in NumPy.
    IsTrue {
        /// Number.
        of: u16,
    },
    /// Compares a value with a constant.
    CompareConstant {
        /// Value on the left.
        of: u16,
        /// Comparison.
        how: Comparison,
        /// Constant on the right. For a field of 4 bytes it is rounded to such a number first.
        with: Constant,
    },
    /// Compares two values.
    Compare {
        /// Value on the left.
        of: u16,
        /// Comparison.
        how: Comparison,
        /// Value on the right.
        with: u16,
    },
    /// True if a value equals one of some constants.
    In {
        /// Value.
        of: u16,
        /// Constants.
        set: Vec<Constant>,
    },
    /// True if all operands are.
    And(Vec<u16>),
    /// True if one of the operands is.
    Or(Vec<u16>),
    /// True if the operand is false.
    Not(u16),
    /// Bits of an integer that a mask has too.
    Mask {
        /// Integer.
        of: u16,
        /// Mask, as two's complement for a negative one.
        mask: u64,
    },
    /// Remainder of an integer, from 0 to `by - 1`.
    Modulo {
        /// Integer.
        of: u16,
        /// Divisor; at least 1.
        by: u64,
    },
    /// Number of 64 bits that equal values have in common, and that spreads different ones: the
    /// finaliser of SplitMix64 over the value as 64 bits. Zeros of both signs are equal.
    Hash {
        /// Value.
        of: u16,
    },
    /// Number of the bin that a value is in: `floor((value - low) / width)`. NaN is in none: -1.
    Bin {
        /// Value.
        of: u16,
        /// Start of bin 0; finite.
        low: f64,
        /// Width of each bin; finite and positive.
        width: f64,
    },
    /// Number that a function of the servers computes of numbers.
    Function {
        /// Name, as the program of the servers has added it.
        name: String,
        /// Numbers.
        operands: Vec<u16>,
    },
    /// Number that the operator of the selection gave to the record.
    Answer,
}

/// Kind of the values of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ValueKind {
    /// True or false.
    Truth,
    /// Integer of 64 bits with a sign.
    Signed,
    /// Integer of 64 bits without one.
    Unsigned,
    /// Number that fits IEEE 754 binary32.
    Single,
    /// IEEE 754 binary64.
    Double,
}

/// Nodes, of which the last is the result.
// Sent: append only, pinned by wire/tests/pinned_bytes.rs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Expression {
    /// At least one node.
    pub nodes: Vec<Node>,
}

/// Reason for which an expression is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ExpressionError {
    /// There is no node.
    #[error("it is empty")]
    Empty,
    /// There are too many nodes.
    #[error("it has {nodes} parts, and the limit is {EXPRESSION_NODES_MAX}")]
    TooManyNodes {
        /// Number of nodes.
        nodes: usize,
    },
    /// Its nodes have too many operands.
    #[error("its parts have {operands} operands, and the limit is {EXPRESSION_OPERANDS_MAX}")]
    TooManyOperands {
        /// Number of operands.
        operands: usize,
    },
    /// Its sets have too many values.
    #[error("its sets have {values} values, and the limit is {SET_VALUES_MAX}")]
    TooManyValues {
        /// Number of values.
        values: usize,
    },
    /// A node names a later one as its operand, or itself.
    #[error("part {node} uses part {operand}, which does not come before it")]
    NotBefore {
        /// Position of the node.
        node: usize,
        /// Position of the operand.
        operand: u16,
    },
    /// A field is not inside a record.
    #[error(
        "a field of {bytes} bytes at byte {offset} is outside a record of {record_bytes} bytes"
    )]
    OutsideRecord {
        /// Offset of the field.
        offset: u32,
        /// Bytes of the field.
        bytes: u32,
        /// Bytes of a record.
        record_bytes: u32,
    },
    /// An operand has another kind than the node needs.
    #[error("part {node} needs {needed}")]
    OfAnotherKind {
        /// Position of the node.
        node: usize,
        /// Kind that it needs.
        needed: &'static str,
    },
    /// A parameter of a node makes no sense.
    #[error("part {node}: {cause}")]
    BadParameter {
        /// Position of the node.
        node: usize,
        /// Reason.
        cause: &'static str,
    },
}

impl ValueKind {
    fn is_integer(self) -> bool {
        matches!(self, Self::Signed | Self::Unsigned)
    }
}

impl FieldAt {
    fn kind(&self) -> ValueKind {
        use NumberKind::{Bool, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
        match self.number.kind {
            Bool => ValueKind::Truth,
            I8 | I16 | I32 | I64 => ValueKind::Signed,
            U8 | U16 | U32 | U64 => ValueKind::Unsigned,
            F32 => ValueKind::Single,
            F64 => ValueKind::Double,
        }
    }
}

impl Node {
    /// Kind of its values, where `kinds` are those of the nodes before it.
    fn kind(
        &self,
        node: usize,
        kinds: &[ValueKind],
        record_bytes: u32,
    ) -> Result<ValueKind, ExpressionError> {
        let at = |operand: u16| {
            let before = kinds.get(usize::from(operand)).copied();
            before.ok_or(ExpressionError::NotBefore { node, operand })
        };
        let other = |needed| ExpressionError::OfAnotherKind { node, needed };
        let truth = |operand: u16| match at(operand)? {
            ValueKind::Truth => Ok(()),
            _ => Err(other("what is true or false, for example a comparison")),
        };
        let number = |operand: u16| match at(operand)? {
            ValueKind::Truth => Err(other("a number, not what is true or false")),
            kind => Ok(kind),
        };
        let integer = |operand: u16| match number(operand)? {
            kind if kind.is_integer() => Ok(kind),
            _ => Err(other("an integer")),
        };
        let bad = |cause| Err(ExpressionError::BadParameter { node, cause });
        match self {
            Self::Field(field) => {
                let (offset, bytes) = (field.offset, field.number.kind.bytes());
                if offset.checked_add(bytes).is_none_or(|end| end > record_bytes) {
                    return Err(ExpressionError::OutsideRecord { offset, bytes, record_bytes });
                }
                Ok(field.kind())
            }
            Self::Always(_) => Ok(ValueKind::Truth),
            Self::Answer => Ok(ValueKind::Signed),
            // What is true or false is compared as 0 and 1.
            Self::IsTrue { of } | Self::CompareConstant { of, .. } | Self::In { of, .. } => {
                at(*of).map(|_| ValueKind::Truth)
            }
            Self::Compare { of, with, .. } => {
                at(*of)?;
                at(*with).map(|_| ValueKind::Truth)
            }
            Self::And(operands) | Self::Or(operands) => {
                if operands.is_empty() || operands.len() > EXPRESSION_NODES_MAX {
                    return bad("it combines nothing, or too much");
                }
                operands.iter().try_for_each(|operand| truth(*operand))?;
                Ok(ValueKind::Truth)
            }
            Self::Not(operand) => truth(*operand).map(|()| ValueKind::Truth),
            Self::Mask { of, .. } => integer(*of),
            Self::Modulo { by: 0, .. } => bad("a remainder of a division by zero"),
            Self::Modulo { of, .. } => integer(*of).map(|_| ValueKind::Unsigned),
            Self::Function { name, operands } => {
                let is_named = !name.is_empty() && name.len() <= FUNCTION_NAME_BYTES_MAX;
                if !is_named || operands.len() > FUNCTION_OPERANDS_MAX {
                    return bad("a function has a name of up to 64 bytes and up to 16 operands");
                }
                operands.iter().try_for_each(|operand| at(*operand).map(|_| ()))?;
                Ok(ValueKind::Double)
            }
            Self::Hash { of } => at(*of).map(|_| ValueKind::Unsigned),
            Self::Bin { of, low, width } => {
                if !low.is_finite() || !width.is_finite() || *width <= 0.0 {
                    return bad("bins need a finite start and a positive width");
                }
                number(*of).map(|_| ValueKind::Signed)
            }
        }
    }

    /// Number of its operands.
    fn operands(&self) -> usize {
        match self {
            Self::And(operands) | Self::Or(operands) | Self::Function { operands, .. } => {
                operands.len()
            }
            _ => 1,
        }
    }

    /// Number of values of its set.
    fn values(&self) -> usize {
        if let Self::In { set, .. } = self { set.len() } else { 0 }
    }
}

impl Expression {
    /// Expression that is true for all records.
    pub fn always() -> Self {
        Self { nodes: vec![Node::Always(true)] }
    }

    /// Number that the operator of the selection gave to the record.
    pub fn answer() -> Self {
        Self { nodes: vec![Node::Answer] }
    }

    /// True if it uses the number that an operator gave.
    pub(super) fn uses_answer(&self) -> bool {
        self.nodes.contains(&Node::Answer)
    }

    /// Checks that it can be evaluated for records of `record_bytes` bytes. Returns the kind of
    /// each node.
    pub fn validate(&self, record_bytes: u32) -> Result<Vec<ValueKind>, ExpressionError> {
        let nodes = self.nodes.len();
        if nodes == 0 {
            return Err(ExpressionError::Empty);
        }
        if nodes > EXPRESSION_NODES_MAX {
            return Err(ExpressionError::TooManyNodes { nodes });
        }
        let operands = self.nodes.iter().map(Node::operands).sum();
        if operands > EXPRESSION_OPERANDS_MAX {
            return Err(ExpressionError::TooManyOperands { operands });
        }
        let values = self.nodes.iter().map(Node::values).sum();
        if values > SET_VALUES_MAX {
            return Err(ExpressionError::TooManyValues { values });
        }
        let mut kinds = Vec::with_capacity(nodes);
        for (number, node) in self.nodes.iter().enumerate() {
            kinds.push(node.kind(number, &kinds, record_bytes)?);
        }
        Ok(kinds)
    }

    /// Checks that it is a predicate: its result is true or false.
    pub fn validate_predicate(&self, record_bytes: u32) -> Result<(), ExpressionError> {
        match self.validate(record_bytes)?.last() {
            Some(ValueKind::Truth) => Ok(()),
            _ => Err(ExpressionError::OfAnotherKind {
                node: self.nodes.len() - 1,
                needed: "a result that is true or false, for example a comparison",
            }),
        }
    }

    /// Checks that its result is an integer.
    pub fn validate_key(&self, record_bytes: u32) -> Result<(), ExpressionError> {
        match self.validate(record_bytes)?.last() {
            Some(kind) if kind.is_integer() => Ok(()),
            _ => Err(ExpressionError::OfAnotherKind {
                node: self.nodes.len() - 1,
                needed: "a result that is an integer: the number of a client",
            }),
        }
    }

    /// Checks that its result is a number. Returns its kind.
    pub(super) fn validate_number(&self, record_bytes: u32) -> Result<ValueKind, ExpressionError> {
        match self.validate(record_bytes)?.last() {
            Some(ValueKind::Truth) | None => Err(ExpressionError::OfAnotherKind {
                node: self.nodes.len() - 1,
                needed: "a result that is a number",
            }),
            Some(kind) => Ok(*kind),
        }
    }
}
