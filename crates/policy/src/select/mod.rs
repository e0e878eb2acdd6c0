//! Selections: which records of a file match a predicate, which client gets each, and sums of them.
//!
//! A record has a fixed size. An [`Expression`] is a list of nodes, each of which uses earlier
//! ones, so it has no depth that could overflow a stack, and its time is proportional to the bytes
//! that are looked at. It is computed for a batch of records, one node after the other (column by
//! column), as NumPy does: comparisons follow IEEE 754, and integers are compared exactly.
//!
//! | file | what |
//! |---|---|
//! | `number.rs` | scalars that a record can have, and columns of their values |
//! | `constant.rs` | constants of expressions |
//! | `expression.rs` | predicates and keys, and their checks |
//! | `comparison.rs` | comparisons of columns with constants and with one another |
//! | `functions.rs` | functions that a program adds to its servers |
//! | `evaluator.rs` | an expression, computed for many records at a time |
//! | `operator.rs` | what looks at records: the trait of expressions and all others |
//! | `programmed.rs` | operators that are made of expressions |
//! | `bounds.rs` | bounds of fields, by which blocks are known in which nothing matches |
//! | `reduction.rs` | counts, extremes, sums and histograms |
//! | `grid.rs` | which records begin in a block |
//! | `selection.rs` | all of it together: what a server does with the records of a block |

mod bounds;
mod comparison;
mod constant;
mod evaluator;
mod expression;
mod functions;
mod grid;
mod number;
mod operator;
mod programmed;
mod reduction;
mod selection;

pub use bounds::{Bounds, SUMMARY_FIELDS_MAX};
pub use comparison::Comparison;
pub use constant::Constant;
pub use evaluator::UnknownFunction;
pub use expression::{
    EXPRESSION_NODES_MAX, EXPRESSION_OPERANDS_MAX, Expression, ExpressionError, Node,
    SET_VALUES_MAX, ValueKind,
};
pub use functions::{
    FUNCTION_NAME_BYTES_MAX, FUNCTION_OPERANDS_MAX, RecordFunction, RecordFunctions,
    RefusedFunction,
};
pub use grid::{RECORD_BYTES_MAX, RecordGrid, RecordGridError};
pub use number::{FieldAt, Number, NumberKind};
pub use operator::{
    Answers, ApartOperator, BATCH_RECORDS_MAX, FailedOperator, ModuleCompiler, RecordBatch,
    RecordOperator, RecordOperators, batch_records,
};
pub use reduction::{HISTOGRAM_EDGES_MAX, Reduced, Reduction, ReductionError};
pub use selection::{
    Condition, Destination, KeyError, LookError, MODULE_BYTES_MAX, Matches, Operator, Selected,
    Selection, SelectionError, Selector,
};
