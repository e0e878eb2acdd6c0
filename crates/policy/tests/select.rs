//! Proves: expressions are evaluated as the field's arithmetic says, records reach the clients that
//! their keys name, in the order of the file, and numbers do not depend on how records are cut.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use policy::{
    Comparison, Constant, Destination, Expression, ExpressionError, Extensions, FieldAt, KeyError,
    LookError, Matches, Node, Number, NumberKind, RecordFunction, RecordFunctions, RecordGrid,
    Reduced, Reduction, Selected, Selection, SelectionError, Selector,
};
use proptest::prelude::*;

fn field(offset: u32, kind: NumberKind) -> Node {
    Node::Field(FieldAt { offset, number: Number { kind, is_big_endian: false } })
}

fn expression(nodes: Vec<Node>) -> Expression {
    Expression { nodes }
}

fn compare(kind: NumberKind, how: Comparison, with: Constant) -> Expression {
    expression(vec![field(0, kind), Node::CompareConstant { of: 0, how, with }])
}

fn selector(predicate: Expression, record_bytes: u32, count: u64, result: Selected) -> Selector {
    let records = RecordGrid { start: 0, record_bytes, count };
    Selection { records, condition: predicate.into(), result }
        .check((1 << 40, 1 << 20), &Extensions::default())
        .unwrap()
}

fn matches(predicate: Expression, record_bytes: u32, records: &[u8]) -> Vec<u32> {
    let count = records.len() as u64 / u64::from(record_bytes);
    let mut selector =
        selector(predicate, record_bytes, count, Selected::Records(Destination::One));
    selector.look_at(0, records).unwrap().positions
}

/// Positions of the records of a destination.
fn of_destination(found: &Matches, destination: u32) -> &[u32] {
    let mut before = 0;
    for (other, count) in &found.destinations {
        let end = before + *count as usize;
        if *other == destination {
            return &found.positions[before..end];
        }
        before = end;
    }
    &[]
}

fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn floats_are_compared_as_ieee_says() {
    let values = doubles(&[f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1.0]);
    let of = |how, with| matches(compare(NumberKind::F64, how, Constant::Float(with)), 8, &values);
    assert_eq!(of(Comparison::Equal, 0.0), [1, 2]);
    assert_eq!(of(Comparison::NotEqual, 0.0), [0, 3, 4, 5]);
    assert_eq!(of(Comparison::Less, 1.0), [1, 2, 4]);
    assert_eq!(of(Comparison::GreaterOrEqual, 1.0), [3, 5]);
    assert_eq!(of(Comparison::NotEqual, f64::NAN), [0, 1, 2, 3, 4, 5]);
    assert_eq!(of(Comparison::Equal, f64::NAN), [0; 0]);
}

#[test]
fn constants_are_rounded_for_fields_of_four_bytes() {
    let values: Vec<u8> = [0.1_f32, 0.2].iter().flat_map(|value| value.to_le_bytes()).collect();
    let equal = compare(NumberKind::F32, Comparison::Equal, Constant::Float(0.1));
    assert_eq!(matches(equal, 4, &values), [0]);
    let many = (0..20).map(|number| Constant::Float(f64::from(number) / 10.0)).collect();
    let of_many = expression(vec![field(0, NumberKind::F32), Node::In { of: 0, set: many }]);
    assert_eq!(matches(of_many, 4, &values), [0, 1]);
}

#[test]
fn integers_are_compared_exactly() {
    let large = (1_u64 << 63) + 1;
    let values: Vec<u8> =
        [0, 5, large].iter().flat_map(|value: &u64| value.to_le_bytes()).collect();
    let of = |how, with| matches(compare(NumberKind::U64, how, with), 8, &values);
    assert_eq!(of(Comparison::Greater, Constant::Signed(-1)), [0, 1, 2]);
    assert_eq!(of(Comparison::Equal, Constant::Unsigned(large)), [2]);
    assert_eq!(of(Comparison::GreaterOrEqual, Constant::Unsigned(large + 1)), [0; 0]);
    // The same bytes with a sign: the last one is negative.
    let signed = compare(NumberKind::I64, Comparison::Less, Constant::Unsigned(u64::MAX));
    assert_eq!(matches(signed, 8, &values), [0, 1, 2]);
    let mixed = vec![
        field(0, NumberKind::U64),
        field(0, NumberKind::I64),
        Node::Compare { of: 0, how: Comparison::Equal, with: 1 },
    ];
    assert_eq!(matches(expression(mixed), 8, &values), [0, 1]);
}

#[test]
fn remainders_bins_and_masks() {
    let values: Vec<u8> = [-7_i32, 7, 0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let modulo = vec![
        field(0, NumberKind::I32),
        Node::Modulo { of: 0, by: 4 },
        Node::CompareConstant { of: 1, how: Comparison::Equal, with: Constant::Signed(1) },
    ];
    assert_eq!(matches(expression(modulo), 4, &values), [0], "-7 = -2 * 4 + 1");
    let mask =
        vec![field(0, NumberKind::I32), Node::Mask { of: 0, mask: 1 }, Node::IsTrue { of: 1 }];
    assert_eq!(matches(expression(mask), 4, &values), [0, 1]);
    let bins = doubles(&[-0.5, 0.0, 2.5, f64::NAN, 1e300]);
    let bin = |bin| {
        let nodes = vec![
            field(0, NumberKind::F64),
            Node::Bin { of: 0, low: 0.0, width: 1.0 },
            Node::CompareConstant { of: 1, how: Comparison::Equal, with: Constant::Signed(bin) },
        ];
        matches(expression(nodes), 8, &bins)
    };
    assert_eq!((bin(-1), bin(0), bin(2), bin(i64::MAX)), (vec![0, 3], vec![1], vec![2], vec![4]));
}

#[test]
fn what_cannot_be_evaluated_is_refused() {
    let refused = |nodes: Vec<Node>| expression(nodes).validate_predicate(8).unwrap_err();
    assert_eq!(refused(Vec::new()), ExpressionError::Empty);
    assert!(matches!(
        refused(vec![Node::Not(0)]),
        ExpressionError::NotBefore { node: 0, operand: 0 }
    ));
    let outside = vec![field(u32::MAX, NumberKind::F64), Node::IsTrue { of: 0 }];
    assert!(matches!(refused(outside), ExpressionError::OutsideRecord { .. }));
    assert!(matches!(
        refused(vec![field(1, NumberKind::F64), Node::IsTrue { of: 0 }]),
        ExpressionError::OutsideRecord { offset: 1, bytes: 8, record_bytes: 8 }
    ));
    let float = field(0, NumberKind::F64);
    for node in [Node::Mask { of: 0, mask: 1 }, Node::Modulo { of: 0, by: 2 }, Node::Not(0)] {
        let nodes = vec![float.clone(), node];
        assert!(matches!(refused(nodes), ExpressionError::OfAnotherKind { node: 1, .. }));
    }
    let by_zero = vec![field(0, NumberKind::U8), Node::Modulo { of: 0, by: 0 }];
    assert!(matches!(refused(by_zero), ExpressionError::BadParameter { node: 1, .. }));
    for (low, width) in [(f64::NAN, 1.0), (0.0, 0.0), (0.0, f64::INFINITY), (0.0, -1.0)] {
        let bin = vec![float.clone(), Node::Bin { of: 0, low, width }];
        assert!(matches!(refused(bin), ExpressionError::BadParameter { .. }));
    }
    let nodes = vec![Node::Always(true); 257];
    assert!(matches!(refused(nodes), ExpressionError::TooManyNodes { nodes: 257 }));
    let many = vec![Node::Always(true), Node::And(vec![0; 256]), Node::Or(vec![1; 256])];
    assert!(expression(many.clone()).validate_predicate(8).is_ok());
    let nodes = [many.clone(), many[1..].to_vec(), many[1..].to_vec()].concat();
    assert!(matches!(refused(nodes), ExpressionError::TooManyOperands { .. }));
    let set = vec![Constant::Signed(1); 1_025];
    let large = vec![float.clone(), Node::In { of: 0, set }];
    assert!(matches!(refused(large), ExpressionError::TooManyValues { values: 1_025 }));
    assert!(matches!(refused(vec![float]), ExpressionError::OfAnotherKind { .. }), "no truth");
}

#[test]
fn a_key_names_the_client_nobody_or_an_error() {
    let values: Vec<u8> =
        [1_i32, 0, -1, 1, 0, -9].iter().flat_map(|value| value.to_le_bytes()).collect();
    let key = expression(vec![field(0, NumberKind::I32)]);
    let by = |clients| Selected::Records(Destination::Key { key: key.clone(), clients });
    let found = selector(Expression::always(), 4, 6, by(2)).look_at(0, &values).unwrap();
    let expected = Matches { destinations: vec![(0, 2), (1, 2)], positions: vec![1, 4, 0, 3] };
    assert_eq!(found, expected);
    assert_eq!(of_destination(&found, 1), [0, 3]);
    assert_eq!(of_destination(&found, 7), [0; 0]);
    let refused = selector(Expression::always(), 4, 6, by(1)).look_at(100, &values);
    let expected = KeyError { record: 100, key: 1, clients: 1 };
    assert_eq!(refused, Err(LookError::Key(expected)));
    let records = RecordGrid { start: 0, record_bytes: 4, count: 6 };
    let none = Selection { records, condition: Expression::always().into(), result: by(0) };
    let none = none.check((24, 1_024), &Extensions::default()).map(|_| ());
    assert_eq!(none, Err(SelectionError::Clients { clients: 0 }));
}

fn reduce(reduction: Reduction, parts: &[&[f64]]) -> Reduced {
    let merge = |mut one: Reduced, other: Reduced| {
        assert!(one.merge(other));
        one
    };
    let reduced = parts.iter().map(|part| {
        let result = Selected::Number(reduction.clone());
        let mut selector = selector(Expression::always(), 8, part.len() as u64, result);
        assert_eq!(selector.look_at(0, &doubles(part)), Ok(Matches::default()));
        selector.reduced().cloned().unwrap()
    });
    reduced.reduce(merge).unwrap()
}

#[test]
fn numbers_are_those_of_numpy() {
    let value = || expression(vec![field(0, NumberKind::F64)]);
    let parts: [&[f64]; 3] = [&[3.0, -1.0], &[], &[7.5, -0.0]];
    let constant = |value| Some(Constant::Float(value));
    assert_eq!(reduce(Reduction::Count, &parts), Reduced::Count(4));
    assert_eq!(reduce(Reduction::Minimum(value()), &parts), Reduced::Minimum(constant(-1.0)));
    assert_eq!(reduce(Reduction::Maximum(value()), &parts), Reduced::Maximum(constant(7.5)));
    assert_eq!(reduce(Reduction::Sum(value()), &parts), Reduced::FloatSum(9.5, 0.0));
    assert_eq!(reduce(Reduction::Maximum(value()), &[&[]]), Reduced::Maximum(None));
    let Reduced::Minimum(Some(Constant::Float(least))) =
        reduce(Reduction::Minimum(value()), &[&[1.0, f64::NAN], &[-5.0]])
    else {
        panic!("a minimum of floats");
    };
    assert!(least.is_nan());
    let histogram = |edges: &[f64]| Reduction::Histogram { of: value(), edges: edges.to_vec() };
    // numpy.histogram([0, 1, 1.5, 2, 3, nan], [0, 1, 2]): the last bin has its upper edge.
    let counted = reduce(histogram(&[0.0, 1.0, 2.0]), &[&[0.0, 1.0, 1.5], &[2.0, 3.0, f64::NAN]]);
    assert_eq!(counted, Reduced::Histogram(vec![1, 3]));
    let records = RecordGrid { start: 0, record_bytes: 8, count: 0 };
    for edges in [&[][..], &[1.0], &[1.0, 1.0], &[0.0, f64::NAN], &[0.0, f64::INFINITY]] {
        let result = Selected::Number(histogram(edges));
        let refused = Selection { records, condition: Expression::always().into(), result };
        assert!(
            matches!(refused.check((0, 8), &Extensions::default()), Err(SelectionError::Number(_))),
            "{edges:?}"
        );
    }
    assert!(!Reduced::Count(1).merge(Reduced::Minimum(None)), "of another reduction");
}

/// Bins of nearly equal width are found without a search, and are the same.
#[test]
fn bins_are_those_between_their_edges() {
    let value = || expression(vec![field(0, NumberKind::F64)]);
    let values: Vec<f64> = (-5..1_300).map(|number| f64::from(number) / 128.0).collect();
    let tenths: Vec<f64> = (0..=100).map(|number| f64::from(number) / 10.0).collect();
    let uneven = vec![0.0, 0.4, 0.7, 2.0, 2.2, 9.9];
    let huge = vec![-f64::MAX, 0.0, 5.0, f64::MAX];
    for edges in [tenths, uneven, huge] {
        let reduction = Reduction::Histogram { of: value(), edges: edges.clone() };
        let last = edges.len() - 2;
        let in_bin = |bin: usize| {
            let is_in = |value: &f64| {
                let below = *value < edges[bin + 1] || bin == last && *value == edges[bin + 1];
                *value >= edges[bin] && below
            };
            values.iter().filter(|value| is_in(value)).count() as u64
        };
        let expected = (0..=last).map(in_bin).collect();
        assert_eq!(reduce(reduction, &[&values]), Reduced::Histogram(expected), "{edges:?}");
    }
}

/// 1e100 hides the small numbers from a sum of doubles, in any order.
#[test]
fn sums_of_floats_keep_small_values() {
    let sum = Reduction::Sum(expression(vec![field(0, NumberKind::F64)]));
    let (one, other): (&[f64], &[f64]) = (&[1.0, 1e17, 1.0], &[-1e17, 0.5]);
    assert_eq!(reduce(sum.clone(), &[one, other]), Reduced::FloatSum(2.5, 0.0));
    assert_eq!(reduce(sum, &[other, one]), Reduced::FloatSum(2.5, 0.0));
}

/// Distance from the origin; it fails for a negative one.
struct Distance;

impl RecordFunction for Distance {
    fn operands(&self) -> usize {
        2
    }

    fn evaluate(&self, operands: &[Vec<f64>], results: &mut [f64]) {
        let places = operands[0].iter().zip(&operands[1]);
        for (result, (x, y)) in results.iter_mut().zip(places) {
            assert!(*x >= 0.0, "no such place");
            *result = x.hypot(*y);
        }
    }
}

#[test]
fn functions_of_the_servers_are_computed() {
    let functions = RecordFunctions::default().with("distance", Distance).unwrap();
    let extensions = Extensions { functions, ..Extensions::default() };
    let nodes = |name: &str, operands: Vec<u16>| {
        vec![
            field(0, NumberKind::F64),
            field(8, NumberKind::F64),
            Node::Function { name: name.to_owned(), operands },
            Node::CompareConstant { of: 2, how: Comparison::Less, with: Constant::Float(6.0) },
        ]
    };
    let select = |nodes: Vec<Node>, places: &[f64]| {
        let records = RecordGrid { start: 0, record_bytes: 16, count: places.len() as u64 / 2 };
        let (predicate, result) = (expression(nodes), Selected::Records(Destination::One));
        let checked = Selection { records, condition: predicate.into(), result }
            .check((1 << 20, 1 << 20), &extensions);
        checked.map(|mut selector| selector.look_at(0, &doubles(places)))
    };
    let found = select(nodes("distance", vec![0, 1]), &[3.0, 4.0, 5.0, 5.0, 0.0, 1.0]);
    assert_eq!(found.unwrap().unwrap().positions, [0, 2]);
    let failed = select(nodes("distance", vec![0, 1]), &[-1.0, 0.0]).unwrap().unwrap_err();
    assert_eq!(failed.to_string(), "the function custom.distance has failed");
    for (name, operands) in [("distance", vec![0]), ("other", vec![0, 1])] {
        let unknown = select(nodes(name, operands), &[]).map(|_| ()).unwrap_err();
        assert!(unknown.to_string().contains(&format!("no function custom.{name}")), "{unknown}");
    }
    assert!(expression(nodes("", vec![0, 1])).validate_predicate(16).is_err());
    assert!(expression(nodes("f", vec![0; 17])).validate_predicate(16).is_err());
    for name in ["", "a b", "é", &"a".repeat(65)] {
        assert!(RecordFunctions::default().with(name, Distance).is_err(), "{name}");
    }
}

proptest! {
    /// Batches, and the cuts of servers, change nothing.
    #[test]
    fn cuts_change_nothing(
        values in prop::collection::vec(-20_i32..20, 0..5_000),
        cut in 0_usize..5_000,
        limit in -20_i32..20,
    ) {
        let bytes = |values: &[i32]| -> Vec<u8> {
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        };
        let with = Constant::Signed(i64::from(limit));
        let predicate = compare(NumberKind::I32, Comparison::Less, with);
        let key = vec![field(0, NumberKind::I32), Node::Modulo { of: 0, by: 3 }];
        let result =
            Selected::Records(Destination::Key { key: expression(key), clients: 3 });
        let mut all = selector(predicate.clone(), 4, values.len() as u64, result);
        let found = all.look_at(0, &bytes(&values)).unwrap();
        for client in 0..3_u32 {
            let expected = values.iter().zip(0_u32..).filter(|(value, _)| {
                **value < limit && value.rem_euclid(3) as u32 == client
            });
            let expected: Vec<u32> = expected.map(|(_, at)| at).collect();
            prop_assert_eq!(of_destination(&found, client), &expected[..]);
        }
        let sum = Reduction::Sum(expression(vec![field(0, NumberKind::I32)]));
        let mut parts = selector(predicate, 4, values.len() as u64, Selected::Number(sum));
        let (before, after) = values.split_at(cut.min(values.len()));
        parts.look_at(0, &bytes(before)).unwrap();
        parts.look_at(before.len() as u64, &bytes(after)).unwrap();
        let less = values.iter().filter(|value| **value < limit);
        let expected = less.map(|value| i128::from(*value)).sum();
        prop_assert_eq!(parts.reduced(), Some(&Reduced::IntegerSum(expected)));
    }

    /// Bounds of records of which one matches say that some may; and bounds do exclude.
    #[test]
    fn bounds_never_exclude_a_match(
        values in prop::collection::vec((-6_i8..6, prop::sample::select(vec![
            0.0, -0.0, 1.5, f64::NAN, f64::INFINITY, -3.0,
        ])), 1..12),
        picks in prop::collection::vec((0_u8..7, 0_u16..6, -7_i64..7, 0_usize..6), 1..9),
    ) {
        let records: Vec<u8> = values
            .iter()
            .flat_map(|(integer, float)| [&[*integer as u8][..], &float.to_le_bytes()].concat())
            .collect();
        let node = |(at, (which, of, number, how)): (u16, (u8, u16, i64, usize))| {
            let (how, float) = (Comparison::ALL[how], Constant::Float(number as f64 / 2.0));
            // One of the nodes that are true or false.
            let truth = 2 + of % (at - 2);
            match which {
                0 => Node::CompareConstant { of: 0, how, with: Constant::Signed(number) },
                1 | 2 => Node::CompareConstant { of: 1, how, with: float },
                3 => Node::In { of: of % 2, set: vec![Constant::Signed(number), float] },
                4 => Node::And(vec![truth, 2]),
                5 => Node::Or(vec![truth, 2]),
                _ => Node::Not(truth),
            }
        };
        let mut nodes = vec![field(0, NumberKind::I8), field(1, NumberKind::F64)];
        nodes.push(Node::IsTrue { of: 0 });
        nodes.extend((3..).zip(picks).map(node));
        let predicate = expression(nodes);
        assert_eq!(predicate.validate_predicate(9), Ok(()));
        let fields: Vec<FieldAt> = predicate.nodes[..2].iter().map(|node| match node {
            Node::Field(field) => *field,
            _ => unreachable!(),
        }).collect();
        let count = values.len() as u64;
        let mut summary =
            selector(Expression::always(), 9, count, Selected::Summary(fields.clone()));
        summary.look_at(0, &records).unwrap();
        let bounds = summary.take_bounds();
        let mut selector =
            selector(predicate, 9, count, Selected::Records(Destination::One));
        let found = selector.look_at(0, &records).unwrap();
        let may_match = selector.may_match(&fields, &bounds);
        prop_assert!(may_match || found.positions.is_empty(), "{:?}", bounds);
        // Bounds of one record are that record, if no operation hides it.
        if values.len() == 1 {
            prop_assert_eq!(may_match, !found.positions.is_empty());
        }
    }

    /// Nothing that anyone sends makes an evaluation panic.
    #[test]
    fn hostile_expressions_are_refused_or_evaluated(
        bytes in prop::collection::vec(any::<u8>(), 160),
        picks in prop::collection::vec((0_u8..12, 0_u16..6, any::<u64>(), any::<f64>()), 1..8),
    ) {
        let kinds = [NumberKind::Bool, NumberKind::I8, NumberKind::U64, NumberKind::F32];
        let node = |(which, of, integer, float): (u8, u16, u64, f64)| match which {
            0 | 1 => field((integer % 20) as u32, kinds[(integer / 32 % 4) as usize]),
            2 => Node::Always(integer % 2 == 0),
            3 => Node::IsTrue { of },
            4 => Node::CompareConstant {
                of,
                how: Comparison::ALL[(integer % 6) as usize],
                with: Constant::Float(float),
            },
            5 => Node::Compare { of, how: Comparison::Less, with: (integer % 6) as u16 },
            6 => Node::In { of, set: vec![Constant::Unsigned(integer); (integer % 12) as usize] },
            7 => Node::And(vec![of, (integer % 6) as u16]),
            8 => Node::Mask { of, mask: integer },
            9 => Node::Modulo { of, by: integer },
            10 => Node::Hash { of },
            _ => Node::Bin { of, low: float, width: 0.25 },
        };
        let nodes = picks.into_iter().map(node).collect();
        let predicate = expression(nodes);
        let records = RecordGrid { start: 0, record_bytes: 16, count: 10 };
        let key = Destination::Key { key: predicate.clone(), clients: 5 };
        for (predicate, result) in [
            (predicate.clone(), Selected::Records(Destination::One)),
            (Expression::always(), Selected::Records(key)),
            (Expression::always(), Selected::Number(Reduction::Sum(predicate))),
        ] {
            let selection = Selection { records, condition: predicate.into(), result };
            let checked = selection.check((160, 64), &Extensions::default());
            if let Ok(mut selector) = checked {
                let _ = selector.look_at(0, &bytes);
            }
        }
    }
}
