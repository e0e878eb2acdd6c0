//! Proves: a module that a client sends finds the records that an expression of the same meaning
//! finds; one that fails ends the call of all members with the same fault, and nothing else.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::selections::{byte, less};
use crate::sizes::{TestClient, write};
use crate::support;

use filesystem::collective::{Agreements, Selecting, Share};
use filesystem::{Costs, Fault, Group};
use policy::{
    Condition, Destination, DiskOrder, Expression, Node, Operator, RecordGrid, Reduced, Reduction,
    Selected, Selection,
};
use support::{Cluster, JOIN_TIMEOUT, Numbers, Shape, create_alone, for_each_seed, image};
use units::Duration;
use wire::FileRecord;
use world::{Clock, Memory, Payloads};

/// A module with this start of the body of its function, which sees `$record`, `$record_bytes` and
/// `$answer` of each record, and answers if `$is_wanted` is then 1: with the last byte.
fn module(each: &str) -> Option<Operator> {
    let text = format!(
        "(module (memory (export \"memory\") 1) (func (export \"select\")
           (param $record i32) (param $count i32) (param $record_bytes i32) (param $answer i32)
           (result i32) (local $is_wanted i32)
           (block $all (loop $next
             (br_if $all (i32.eqz (local.get $count)))
             {each}
             (if (local.get $is_wanted) (then (i64.store (local.get $answer)
               (i64.load8_u (i32.sub (i32.add (local.get $record) (local.get $record_bytes))
                 (i32.const 1))))))
             (local.set $record (i32.add (local.get $record) (local.get $record_bytes)))
             (local.set $answer (i32.add (local.get $answer) (i32.const 8)))
             (local.set $count (i32.sub (local.get $count) (i32.const 1)))
             (br $next)))
           (i32.const 0)))"
    );
    Some(Operator::Module(wat::parse_str(text).unwrap()))
}

/// A module that selects records whose first byte is less than a limit.
fn first_below(limit: u64) -> Option<Operator> {
    module(&format!(
        "(local.set $is_wanted (i32.lt_u (i32.load8_u (local.get $record)) (i32.const {limit})))"
    ))
}

/// A module that does not end, once a record has this first byte.
fn endless_at(first: u8) -> Option<Operator> {
    module(&format!(
        "(loop $again (br_if $again (i32.eq (i32.load8_u (local.get $record)) (i32.const {first}))))
         (local.set $is_wanted (i32.const 1))"
    ))
}

/// Time that a module takes, so that the processor of a server is occupied by some.
const COSTS: Costs = Costs { module_ps_per_byte: 5_000_000, ..Costs::FREE };

fn shape(seed: u64) -> Shape {
    Shape {
        servers: 1 + (seed % 4) as u32,
        protection: policy::Protection::None,
        block_bytes: 30 + seed % 50,
        client_caches: false,
        costs: if seed.is_multiple_of(2) { COSTS } else { Costs::FREE },
        buffer_bytes: if seed.is_multiple_of(3) { 100 } else { u64::MAX },
        seed,
        ..Shape::default()
    }
}

/// Result of a selection: records of each destination, and numbers.
async fn results(
    client: &TestClient,
    file: &FileRecord,
    records: RecordGrid,
    (condition, number): (Condition, Expression),
) -> (Vec<Vec<u8>>, Vec<Reduced>) {
    let begin = async |result| {
        let selection = Selection { records, condition: condition.clone(), result };
        client.select(file, selection, DiskOrder::Sorted).await.unwrap()
    };
    let mut found = Vec::new();
    let by = number.nodes.len() as u16 - 1;
    let key = [&number.nodes[..], &[Node::Modulo { of: by, by: 3 }]].concat();
    let key = Destination::Key { key: Expression { nodes: key }, clients: 3 };
    for (destination, of) in
        [(Destination::One, 1), (Destination::Part { clients: 2 }, 2), (key, 3)]
    {
        let selected = begin(Selected::Records(destination)).await;
        for destination in 0..of {
            let counts = selected.counts(destination).await.unwrap();
            let bytes = counts.total() * u64::from(records.record_bytes);
            let memory = client.world().thaw(vec![0xee; bytes as usize].into());
            selected.take(destination, &counts, 0..counts.total(), &memory).await.unwrap();
            found.push(memory.freeze().to_vec());
        }
        selected.end().await;
    }
    let mut numbers = Vec::new();
    for reduction in [Reduction::Count, Reduction::Sum(number)] {
        let selected = begin(Selected::Number(reduction)).await;
        numbers.push(selected.reduced().await.unwrap());
        selected.end().await;
    }
    (found, numbers)
}

#[test]
fn modules_select_as_expressions_do() {
    let test = "modules_select_as_expressions_do";
    for_each_seed("modules", test, 60, |seed| {
        let cluster = Cluster::new(shape(seed));
        cluster.run_alone(0, |start| async move {
            let mut numbers = Numbers::new(seed);
            let client = start.connect().await.unwrap();
            let bytes = 1 + numbers.below(2_000);
            let file = create_alone(&client, &start.shape, "f", bytes).await.unwrap();
            write(&client, &file, 0, &image(seed, bytes)).await;
            let record_bytes = 1 + numbers.below(start.shape.block_bytes.min(30)) as u32;
            let offset = numbers.below(bytes.min(100));
            let count = (bytes - offset) / u64::from(record_bytes);
            let records = RecordGrid { start: offset, record_bytes, count };
            let limit = [0, 3, 100, 256][numbers.below(4) as usize];
            let last = Expression { nodes: vec![byte(record_bytes - 1)] };
            let expected = (Condition::from(less(0, limit)), last);
            let expected = results(&client, &file, records, expected).await;
            // All of it by the module, and some by an expression before.
            for before in [Expression::always(), less(0, 120.max(limit))] {
                let operator = first_below(limit);
                let by_module = (Condition { predicate: before, operator }, Expression::answer());
                let found = results(&client, &file, records, by_module).await;
                assert_eq!(found, expected, "{records:?} {limit}");
            }
        });
    });
}

const GRID: RecordGrid = RecordGrid { start: 3, record_bytes: 7, count: 400 };

fn condition(operator: Option<Operator>) -> Condition {
    Condition { predicate: Expression::always(), operator }
}

fn cause(ended: Result<(), Fault>) -> String {
    match ended {
        Err(Fault::BadSelection { cause }) => cause,
        other => panic!("it ends with {other:?}"),
    }
}

#[test]
fn a_module_that_fails_ends_the_call_of_all_members() {
    let cluster = Cluster::new(Shape { client_caches: false, ..Shape::default() });
    let contents = image(9, GRID.extent().end + 5);
    // One of the first bytes of records, so that the module fails at one server.
    let rare = contents[3 + 7 * 200];
    let ended = cluster.run(0..3, move |start| {
        let contents = contents.clone();
        async move {
            let client = start.connect().await.unwrap();
            if start.rank.0 == 0 {
                let bytes = contents.len() as u64;
                let file = create_alone(&client, &start.shape, "f", bytes).await.unwrap();
                write(&client, &file, 0, &contents).await;
            }
            if start.rank.0 > 0 {
                start.world.sleep(Duration::from_ms(500)).await;
            }
            let file = client.open("f").await.unwrap();
            let place = (start.rank, 3);
            let group = Group::register(client.clone(), 77, place, JOIN_TIMEOUT).await.unwrap();
            group.all_gather(Vec::new()).await.unwrap();
            let selecting = Selecting::new(&client, Some(&group));
            let find = async |operator, share| {
                let agreements: Agreements = group.begin_agreements();
                let wanted = (GRID, condition(operator));
                selecting.find(&agreements, Ok(&file), wanted, share).await
            };
            let key = || Share::Key(Expression::answer());
            let mut causes = Vec::new();
            for (operator, share) in [
                (endless_at(rare), Share::Even),
                (module("unreachable"), Share::Part),
                (Some(Operator::Module(b"\0asm".to_vec())), Share::Even),
                (first_below(256), key()),
            ] {
                causes.push(cause(find(operator, share).await.map(|_| ())));
            }
            // Nothing else has failed.
            let found = find(first_below(100), Share::Even).await.unwrap();
            (causes, found.count())
        }
    });
    for (causes, _) in &ended {
        assert_eq!(causes, &ended[0].0, "all members end with the same fault");
        assert!(causes[0].contains("it has not ended after"), "{}", causes[0]);
        assert!(causes[1].contains("unreachable"), "{}", causes[1]);
        assert!(causes[2].contains("the module cannot be used"), "{}", causes[2]);
        assert!(causes[3].contains("and there are 3 clients"), "{}", causes[3]);
    }
    let contents = image(9, GRID.extent().end);
    let expected = contents[3..].chunks(7).filter(|record| record[0] < 100).count() as u64;
    assert_eq!(ended.iter().map(|(_, count)| count).sum::<u64>(), expected);
}

#[test]
fn the_number_of_modules_of_a_server_is_bounded() {
    let cluster = Cluster::new(Shape { servers: 1, client_caches: false, ..Shape::default() });
    cluster.run_alone(0, |start| async move {
        let client: TestClient = start.connect().await.unwrap();
        let bytes = GRID.extent().end;
        let file = create_alone(&client, &start.shape, "f", bytes).await.unwrap();
        let select = async || {
            let result = Selected::Records(Destination::One);
            let condition = condition(first_below(5));
            let selection = Selection { records: GRID, condition, result };
            client.select(&file, selection, DiskOrder::Sorted).await
        };
        let mut all = Vec::new();
        for _ in 0..32 {
            all.push(select().await.unwrap());
        }
        let told = cause(select().await.map(|_| ()));
        assert!(told.contains("32 modules"), "{told}");
        all.pop().unwrap().end().await;
        assert!(select().await.is_ok(), "one that has ended makes room");
    });
}
