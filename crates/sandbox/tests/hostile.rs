//! Proves: a module that is none, that loops, recurses, traps, grows or lies ends in an error of
//! its call, in every profile, and a module that behaves gives what an expression of the same
//! meaning gives.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "the corpus is in files of the repository")]

use policy::{
    Comparison, Condition, Constant, Destination, Expression, Extensions, FailedOperator, FieldAt,
    ModuleCompiler, Node, Number, NumberKind, Operator, RecordBatch, RecordGrid, Selected,
    Selection,
};
use sandbox::{MEMORY_BYTES_MAX, Modules, TABLE_ELEMENTS_MAX};
use std::path::Path;
use std::sync::Arc;

/// The example of docs/modules.md.
const ABOVE: &str = include_str!("../../../docs/modules/above.wat");

const SIGNATURE: &str = "(param $records i32) (param $count i32) (param $record_bytes i32) \
                         (param $answers i32) (result i32)";

/// A module whose function has this body.
fn with_body(body: &str) -> String {
    format!("(module (memory (export \"memory\") 1) (func (export \"select\") {SIGNATURE} {body}))")
}

fn binary(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Compiles a module for records of 16 bytes. Returns the cause if it is refused.
fn refusal(module: &[u8]) -> String {
    match Modules::default().compile(module, 16) {
        Ok(_) => panic!("it is not refused"),
        Err(FailedOperator { cause }) => cause,
    }
}

/// Has a module look at some records. Returns the cause of its failure, which it repeats.
fn failure(text: &str) -> String {
    let mut operator = Modules::default().compile(&binary(text), 16).unwrap();
    let records = [7; 16 * 100];
    let failed = operator.look_at(RecordBatch::new(&records, 16)).unwrap_err();
    assert_eq!(operator.look_at(RecordBatch::new(&records, 16)), Err(failed.clone()));
    failed.cause
}

#[test]
fn what_is_no_module_is_refused() {
    // Without names, which a module may lack.
    let whole = binary(
        "(module (memory (export \"memory\") 1) \
         (func (export \"select\") (param i32 i32 i32 i32) (result i32) i32.const 0))",
    );
    for length in 0..whole.len() {
        // A prefix that ends with a section is a module, which lacks something.
        refusal(&whole[..length]);
    }
    for (text, cause) in [
        ("(module)", "exports no memory"),
        ("(module (memory (export \"other\") 1))", "exports no memory"),
        ("(module (memory (export \"memory\") 1))", "exports no function \"select\""),
        (
            "(module (memory (export \"memory\") 1) (func (export \"select\") (param i32)))",
            "exports no function \"select\"",
        ),
        (
            "(module (memory (export \"memory\") 1) (global (export \"select\") i32 \
             (i32.const 0)))",
            "exports no function \"select\"",
        ),
        ("(module (import \"env\" \"now\" (func)))", "imports \"env.now\""),
        ("(module (import \"env\" \"memory\" (memory 1)))", "imports \"env.memory\""),
        ("(module (memory 1) (memory 1))", "limit of 1 memories"),
    ] {
        let told = refusal(&binary(text));
        assert!(told.contains(cause), "{text}: {told}");
        assert!(told.starts_with("the module has failed: "), "{told}");
    }
}

#[test]
fn what_would_take_too_much_is_refused() {
    let pages = MEMORY_BYTES_MAX / 65_536;
    let elements = TABLE_ELEMENTS_MAX + 1;
    let select = format!("(func (export \"select\") {SIGNATURE} i32.const 0)");
    for text in [
        format!("(module (memory (export \"memory\") {}) {select})", pages + 1),
        format!("(module (memory (export \"memory\") 65536) {select})"),
        format!("(module (memory (export \"memory\") {pages}) {select})"),
        format!("(module (memory (export \"memory\") 1 1) {select})"),
        format!("(module (memory (export \"memory\") 1) (table {elements} funcref) {select})"),
        format!("(module (memory (export \"memory\") 1) (table 4294967295 funcref) {select})"),
        format!(
            "(module (memory (export \"memory\") 1) (data (i32.const 65530) \"1234567\") {select})"
        ),
        format!("(module (memory (export \"memory\") 1) (data (i32.const -1) \"1\") {select})"),
        format!(
            "(module (memory (export \"memory\") 1) {select} (func $start (loop br 0)) \
             (start $start))"
        ),
        format!("(module (memory (export \"memory\") 1) {} {select})", "(func)".repeat(10_001)),
        format!(
            "(module (memory (export \"memory\") 1) {select} (func (param {})))",
            "i32 ".repeat(33)
        ),
    ] {
        let shown: String = text.chars().take(200).collect();
        println!("{shown}: {}", refusal(&binary(&text)));
    }
}

#[test]
fn what_does_not_end_is_ended() {
    let limit = "which is the limit";
    for (body, cause) in [
        ("(loop $again br $again) i32.const 0", limit),
        // Work that one instruction begins counts by its bytes.
        (
            "(loop $again (memory.fill (i32.const 0) (i32.const 1) (i32.const 60000)) br $again) \
             i32.const 0",
            limit,
        ),
        ("(loop $again (drop (memory.grow (i32.const 0))) br $again) i32.const 0", limit),
        ("(drop (memory.grow (i32.const 100))) (loop $again br $again) i32.const 0", limit),
        ("unreachable", "unreachable"),
        ("(i32.div_u (i32.const 1) (i32.const 0))", "zero"),
        ("(i32.load (i32.const -4))", "out of bounds"),
        ("(i32.store (i32.const 0x7ffffff0) (i32.const 1)) i32.const 0", "out of bounds"),
        ("i32.const 1", "has returned the error 1"),
        ("i32.const -7", "has returned the error -7"),
    ] {
        let told = failure(&with_body(body));
        assert!(told.contains(cause), "{body}: {told}");
    }
    let recursion = format!(
        "(module (memory (export \"memory\") 1) (func $deep (export \"select\") {SIGNATURE} \
         (i32.add (i32.const 1) (call $deep (local.get 0) (local.get 1) (local.get 2) \
         (local.get 3)))))"
    );
    assert!(failure(&recursion).contains("stack"));
    let tail = format!(
        "(module (memory (export \"memory\") 1) (func $deep (export \"select\") {SIGNATURE} \
         (return_call $deep (local.get 0) (local.get 1) (local.get 2) (local.get 3))))"
    );
    assert!(failure(&tail).contains(limit));
    let many = "i64 ".repeat(10_000);
    let wide = format!(
        "(module (memory (export \"memory\") 1) (func $deep (export \"select\") {SIGNATURE} \
         (local {many}) (i32.add (i32.const 1) (call $deep (local.get 0) (local.get 1) \
         (local.get 2) (local.get 3)))))"
    );
    assert!(failure(&wide).contains("stack"));
}

#[test]
fn memory_grows_up_to_the_limit_only() {
    // Grows page by page until that is refused, and returns 0 if it has 256.
    let text = with_body(
        "(block $full (loop $again (br_if $full (i32.eq (memory.grow (i32.const 1)) \
         (i32.const -1))) br $again)) (i32.sub (memory.size) (i32.const 256))",
    );
    let mut operator = Modules::default().compile(&binary(&text), 16).unwrap();
    let answers = operator.look_at(RecordBatch::new(&[0; 16 * 1_000], 16));
    assert_eq!(answers, Ok(policy::Answers::of([None; 1_000])), "16 MiB are 256 pages");
}

#[test]
fn answers_of_a_module_are_those_of_an_expression() {
    let records = RecordGrid { start: 0, record_bytes: 12, count: 3_000 };
    let image: Vec<u8> = (0..3_000_u32)
        .flat_map(|id| {
            let energy = f64::from(id.wrapping_mul(2_654_435_761)) / f64::from(u32::MAX);
            [&id.to_le_bytes()[..], &(energy * 10.0).to_le_bytes()].concat()
        })
        .collect();
    let number = |kind| Number { kind, is_big_endian: false };
    let field = |offset, kind| Node::Field(FieldAt { offset, number: number(kind) });
    let compare =
        Node::CompareConstant { of: 0, how: Comparison::Greater, with: Constant::Float(7.5) };
    let above = Expression { nodes: vec![field(4, NumberKind::F64), compare] };
    let id = Expression { nodes: vec![field(0, NumberKind::U32), Node::Modulo { of: 0, by: 4 }] };
    let answer = Expression { nodes: vec![Node::Answer, Node::Modulo { of: 0, by: 4 }] };
    let module = Some(Operator::Module(binary(ABOVE)));
    let extensions =
        Extensions { modules: Some(Arc::new(Modules::default())), ..Extensions::default() };
    let select = |condition: Condition, key| {
        let result = Selected::Records(Destination::Key { key, clients: 4 });
        let selection = Selection { records, condition, result };
        let mut selector = selection.check((1 << 20, 1 << 20), &extensions).unwrap();
        selector.look_at(0, &image).unwrap()
    };
    let expected = select(above.into(), id);
    assert!(expected.positions.len() > 500);
    let condition = Condition { predicate: Expression::always(), operator: module };
    assert_eq!(select(condition, answer), expected);
}

/// Compiles bytes, and has what they are look at records.
fn try_any(module: &[u8]) {
    if let Ok(mut operator) = Modules::default().compile(module, 12) {
        let _ = operator.look_at(RecordBatch::new(&[7; 120], 12));
    }
}

/// Any bytes are compiled or refused, and what is compiled ends. A fuzzing target:
/// `cargo bolero test -p sandbox any_bytes_are_refused_or_end` goes on for as long as you like.
#[test]
fn any_bytes_are_refused_or_end() {
    bolero::check!().for_each(|bytes: &[u8]| try_any(bytes));
}

#[test]
fn damaged_modules_are_refused_or_end() {
    let whole = binary(ABOVE);
    bolero::check!().with_type::<Vec<(u16, u8)>>().for_each(|damages| {
        let mut module = whole.clone();
        for (at, value) in damages {
            let at = usize::from(*at) % module.len();
            module[at] = *value;
        }
        try_any(&module);
    });
}

/// The corpus holds the example, which is there in its binary form too. With `WRITE_CORPUS` in the
/// environment this writes both.
#[test]
fn the_corpus_is_of_today() {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let module = binary(ABOVE);
    for path in [
        "tests/__fuzz__/any_bytes_are_refused_or_end/corpus/above",
        "../../docs/modules/above.wasm",
    ] {
        let path = crate_directory.join(path);
        if std::env::var_os("WRITE_CORPUS").is_some() {
            std::fs::write(&path, &module).expect("the corpus must be writable");
        }
        let kept = std::fs::read(&path).unwrap_or_default();
        assert!(kept == module, "stale: WRITE_CORPUS=1 cargo test -p sandbox the_corpus");
    }
}
