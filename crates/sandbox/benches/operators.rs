//! Speed of the three kinds of operators over the same records in memory: an expression, an
//! operator compiled into the program, and a module. Prints the fastest of interleaved rounds as
//! GB/s, which other programs disturb least, and the ratio of its time to that of the expression.
//!
//! ```sh
//! cargo bench -p sandbox
//! ```

#![allow(clippy::unwrap_used, reason = "a bench may panic")]
#![allow(clippy::disallowed_types, reason = "it measures time")]

use policy::{
    Answers, Comparison, Condition, Constant, Expression, Extensions, FailedOperator, FieldAt,
    Node, Number, NumberKind, Operator, RecordBatch, RecordGrid, RecordOperator, RecordOperators,
    Reduced, Reduction, Selected, Selection, Selector,
};
use sandbox::Modules;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of the records, in pieces as servers look at them.
const TOTAL_BYTES: usize = 64 << 20;
const BLOCK_BYTES: usize = 1 << 20;
const ROUNDS: usize = 15;

/// The condition of the example of docs/modules.md: an f8 behind a u4 is above 7.5.
#[derive(Clone)]
struct Above;

impl RecordOperator for Above {
    fn look_at(&mut self, records: RecordBatch<'_>) -> Result<Answers, FailedOperator> {
        Ok(Answers::of(records.records().map(|record| {
            let (id, energy) = (record.first_chunk::<4>()?, record.get(4..12)?);
            let energy = f64::from_le_bytes(*energy.first_chunk::<8>()?);
            (energy > 7.5).then_some(i64::from(u32::from_le_bytes(*id)))
        })))
    }
}

fn compare(limit: f64) -> Expression {
    let number = Number { kind: NumberKind::F64, is_big_endian: false };
    let (how, with) = (Comparison::Greater, Constant::Float(limit));
    let field = Node::Field(FieldAt { offset: 4, number });
    Expression { nodes: vec![field, Node::CompareConstant { of: 0, how, with }] }
}

/// Records with uniform energies from 0 to 10.
fn image(record_bytes: usize) -> Vec<u8> {
    let mut image = vec![0; TOTAL_BYTES / record_bytes * record_bytes];
    for (record, id) in image.chunks_exact_mut(record_bytes).zip(0_u32..) {
        let energy = f64::from(id.wrapping_mul(2_654_435_761)) / f64::from(u32::MAX) * 10.0;
        record[..4].copy_from_slice(&id.to_le_bytes());
        record[4..12].copy_from_slice(&energy.to_le_bytes());
    }
    image
}

fn main() {
    let module = wat::parse_str(include_str!("../../../docs/modules/above.wat")).unwrap();
    let operators = RecordOperators::default().with("above", Above).unwrap();
    let modules = Some(Arc::new(Modules::default()) as _);
    let extensions = Extensions { operators, modules, ..Extensions::default() };
    let own = Operator::Own("above".to_owned());
    let module = Operator::Module(module);
    for record_bytes in [12_usize, 64, 256] {
        let image = image(record_bytes);
        let records = RecordGrid { start: 0, record_bytes: record_bytes as u32, count: 1 << 30 };
        let selector = |predicate: Expression, operator: Option<Operator>| -> Selector {
            let condition = Condition { predicate, operator };
            let result = Selected::Number(Reduction::Count);
            let selection = Selection { records, condition, result };
            selection.check((1 << 40, BLOCK_BYTES as u64), &extensions).unwrap()
        };
        let all = Expression::always;
        let kinds = [
            ("expression", selector(compare(7.5), None)),
            ("compiled in", selector(all(), Some(own.clone()))),
            ("module", selector(all(), Some(module.clone()))),
            ("module after an expression, 1 %", selector(compare(9.9), Some(module.clone()))),
        ];
        measure(kinds, &image, record_bytes);
    }
}

fn measure(mut kinds: [(&str, Selector); 4], image: &[u8], record_bytes: usize) {
    let block = BLOCK_BYTES / record_bytes * record_bytes;
    let mut fastest = [f64::INFINITY; 4];
    for _ in 0..ROUNDS {
        for ((_, selector), fastest) in kinds.iter_mut().zip(&mut fastest) {
            let begun = Instant::now();
            for block in image.chunks(block) {
                black_box(selector.look_at(0, black_box(block)).unwrap());
            }
            *fastest = fastest.min(begun.elapsed().as_secs_f64());
        }
    }
    let count = |selector: &Selector| match selector.reduced() {
        Some(Reduced::Count(count)) => *count,
        _ => 0,
    };
    assert_eq!(count(&kinds[0].1), count(&kinds[1].1), "the operators select the same");
    assert_eq!(count(&kinds[0].1), count(&kinds[2].1), "the operators select the same");
    println!("records of {record_bytes} bytes");
    for ((name, _), seconds) in kinds.iter().zip(fastest) {
        let speed = image.len() as f64 / seconds / 1e9;
        println!("  {name:32} {speed:6.2} GB/s  {:6.1} x", seconds / fastest[0]);
    }
}
