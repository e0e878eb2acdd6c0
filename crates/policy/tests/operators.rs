//! Proves: an operator of a program looks at the records for which the predicate is true, its
//! numbers serve as keys and values, and one that fails ends its call with a cause.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use policy::{
    Answers, BATCH_RECORDS_MAX, Comparison, Condition, Constant, Destination, Expression,
    Extensions, FailedOperator, FieldAt, LookError, Matches, ModuleCompiler, Node, Number,
    NumberKind, Operator, RecordBatch, RecordGrid, RecordOperator, RecordOperators, Reduced,
    Reduction, Selected, Selection, Selector,
};
use std::sync::Arc;

/// Selects records of which the sum of the bytes is even, with that sum.
#[derive(Clone)]
struct EvenSum;

impl RecordOperator for EvenSum {
    fn look_at(&mut self, records: RecordBatch<'_>) -> Result<Answers, FailedOperator> {
        assert!(records.count() <= BATCH_RECORDS_MAX, "a call has a bounded number of records");
        let sum = |record: &[u8]| record.iter().map(|byte| i64::from(*byte)).sum();
        Ok(Answers::of(records.records().map(sum).map(|sum: i64| (sum % 2 == 0).then_some(sum))))
    }
}

/// Fails in the way that the first byte says.
#[derive(Clone)]
struct Failing;

impl RecordOperator for Failing {
    fn look_at(&mut self, records: RecordBatch<'_>) -> Result<Answers, FailedOperator> {
        match records.bytes()[0] {
            0 => panic!("on purpose"),
            1 => Ok(Answers::of([])),
            2 => Err(FailedOperator { cause: "a cause".to_owned() }),
            _ => Ok(Answers::of(records.records().map(|_| Some(-5)))),
        }
    }
}

/// Makes of any bytes the operator above.
struct AnyModule;

impl ModuleCompiler for AnyModule {
    fn compile(&self, module: &[u8], _: u32) -> Result<Box<dyn RecordOperator>, FailedOperator> {
        match module {
            [] => Err(FailedOperator { cause: "it is empty".to_owned() }),
            _ => Ok(Box::new(EvenSum)),
        }
    }
}

fn extensions() -> Extensions {
    let operators = RecordOperators::default().with("even_sum", EvenSum).unwrap();
    let operators = operators.with("failing", Failing).unwrap();
    Extensions { operators, modules: Some(Arc::new(AnyModule)), ..Extensions::default() }
}

fn own(name: &str) -> Option<Operator> {
    Some(Operator::Own(name.to_owned()))
}

/// Selects of records of 3 bytes.
fn selector(
    predicate: Expression,
    operator: Option<Operator>,
    result: Selected,
) -> Result<Selector, String> {
    let records = RecordGrid { start: 0, record_bytes: 3, count: 1 << 20 };
    let condition = Condition { predicate, operator };
    let selection = Selection { records, condition, result };
    selection.check((1 << 30, 1 << 20), &extensions()).map_err(|error| error.to_string())
}

fn by_answer(by: u64, clients: u32) -> Selected {
    let nodes = vec![Node::Answer, Node::Modulo { of: 0, by }];
    Selected::Records(Destination::Key { key: Expression { nodes }, clients })
}

/// Records of 3 bytes: 5 batches, and the start of one.
fn image() -> Vec<u8> {
    let bytes = 3 * (5 * BATCH_RECORDS_MAX + 17);
    (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn first_byte_below(limit: u64) -> Expression {
    let number = Number { kind: NumberKind::U8, is_big_endian: false };
    let (how, with) = (Comparison::Less, Constant::Unsigned(limit));
    let field = Node::Field(FieldAt { offset: 0, number });
    Expression { nodes: vec![field, Node::CompareConstant { of: 0, how, with }] }
}

#[test]
fn an_operator_selects_among_records_that_match() {
    let (image, result) = (image(), Selected::Records(Destination::One));
    for limit in [0, 1, 100, 256] {
        let mut selector =
            selector(first_byte_below(limit), own("even_sum"), result.clone()).unwrap();
        let expected = image.chunks(3).zip(0_u32..).filter(|(record, _)| {
            let sum: u64 = record.iter().map(|byte| u64::from(*byte)).sum();
            u64::from(record[0]) < limit && sum.is_multiple_of(2)
        });
        let expected: Vec<u32> = expected.map(|(_, at)| at).collect();
        assert_eq!(selector.look_at(0, &image).unwrap().positions, expected, "{limit}");
    }
}

#[test]
fn numbers_of_an_operator_are_keys_and_values() {
    let image = image();
    let sums = image.chunks(3).map(|record| record.iter().map(|byte| i64::from(*byte)).sum());
    let even = || sums.clone().zip(0_u32..).filter(|(sum, _): &(i64, u32)| sum % 2 == 0);
    let mut by = selector(Expression::always(), own("even_sum"), by_answer(4, 4)).unwrap();
    let found = by.look_at(0, &image).unwrap();
    let of = |client: i64| even().filter(move |(sum, _)| sum % 4 == client).map(|(_, at)| at);
    let expected: Vec<u32> = of(0).chain(of(2)).collect();
    assert_eq!(found.positions, expected);
    assert_eq!(found.destinations, [(0, of(0).count() as u32), (2, of(2).count() as u32)]);
    let sum = Selected::Number(Reduction::Sum(Expression::answer()));
    let mut sum = selector(Expression::always(), own("even_sum"), sum).unwrap();
    assert_eq!(sum.look_at(0, &image), Ok(Matches::default()));
    let expected = even().map(|(sum, _)| i128::from(sum)).sum();
    assert_eq!(sum.reduced(), Some(&Reduced::IntegerSum(expected)));
}

#[test]
fn an_operator_in_another_place_gives_the_same_answers() {
    let (image, module) = (image(), Some(Operator::Module(vec![1])));
    for result in [Selected::Records(Destination::One), by_answer(3, 3)] {
        let mut here = selector(first_byte_below(99), own("even_sum"), result.clone()).unwrap();
        let mut there = selector(first_byte_below(99), module.clone(), result).unwrap();
        assert!(here.apart().is_none(), "a program's own operator is part of it");
        let answers = there.apart().unwrap().look_at(&image).unwrap();
        assert_eq!(there.act(7, &answers), Ok(here.look_at(7, &image).unwrap()));
    }
}

#[test]
fn failures_and_wrong_answers_end_the_call() {
    let fails = |first: u8| {
        let result = Selected::Records(Destination::One);
        let mut selector = selector(Expression::always(), own("failing"), result).unwrap();
        selector.look_at(0, &[first, 0, 0]).map_err(|error| error.to_string())
    };
    assert_eq!(fails(0).unwrap_err(), "the operator \"failing\" of the servers has failed");
    assert!(fails(1).unwrap_err().contains("has not answered for each record"));
    assert_eq!(fails(2).unwrap_err(), "a cause");
    assert_eq!(fails(3).unwrap().positions, [0]);
    let key = Selected::Records(Destination::Key { key: Expression::answer(), clients: 4 });
    let mut even = selector(Expression::always(), own("even_sum"), key.clone()).unwrap();
    assert_eq!(even.look_at(0, &[1, 0, 1]).unwrap().destinations, [(2, 1)]);
    let beyond = even.look_at(9, &[2, 0, 2]);
    assert!(matches!(beyond, Err(LookError::Key(error)) if error.record == 9 && error.key == 4));
    // Nobody gets a record with a negative number.
    let mut none = selector(Expression::always(), own("failing"), key).unwrap();
    assert_eq!(none.look_at(0, &[3, 0, 0]), Ok(Matches::default()));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let one = || Selected::Records(Destination::One);
    let always = Expression::always;
    let refused = |predicate, operator, result| {
        selector(predicate, operator, result).map(|_| ()).unwrap_err()
    };
    let with = Constant::Signed(0);
    let compared = Node::CompareConstant { of: 0, how: Comparison::Less, with };
    let condition = Expression { nodes: vec![Node::Answer, compared] };
    assert!(refused(condition, own("even_sum"), one()).contains("answer() is the number"));
    assert!(refused(always(), None, by_answer(2, 2)).contains("answer() is the number"));
    assert!(refused(always(), own("other"), one()).contains("no operator \"other\""));
    let module = |module| Some(Operator::Module(module));
    let empty = refused(always(), module(Vec::new()), one());
    assert_eq!(empty, "the module cannot be used: it is empty");
    assert!(refused(always(), module(vec![1; (1 << 20) + 1]), one()).contains("the limit is"));
    let records = RecordGrid { start: 0, record_bytes: 3, count: 1 };
    let condition = Condition { predicate: always(), operator: module(vec![1]) };
    let none = Selection { records, condition, result: one() };
    let none = none.check((3, 3), &Extensions::default()).map(|_| ()).unwrap_err();
    assert!(none.to_string().contains("run no modules"), "{none}");
    assert!(RecordOperators::default().with("a b", EvenSum).is_err());
}
