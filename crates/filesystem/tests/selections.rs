//! Proves: a selection finds the records that a scan of the whole file finds, in the order of the
//! file, whatever the blocks, servers, caches and the room for records. A client that leaves ends
//! it; a lost server, a cut and a change end it with a fault; nothing that is left over is kept.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::sizes::{TestClient, overwrite, write};
use crate::support;

use filesystem::collective::{Agreements, Selecting, Share};
use filesystem::{Fault, Group};
use policy::{
    Comparison, Constant, Destination, DiskOrder, Expression, FieldAt, Node, Number, NumberKind,
    Protection, RecordGrid, Reduced, Reduction, Selected, Selection,
};
use std::cell::Cell;
use std::rc::Rc;
use support::{
    Cluster, JOIN_TIMEOUT, Kill, Numbers, Program, Shape, Start, create_alone, for_each_seed, image,
};
use units::{ClientId, Duration, Instant, ServerId};
use wire::FileRecord;
use world::payload::Bytes;
use world::{Clock, Memory, Payloads};
use world_simulated::SimulatedWorld;

type Chosen = filesystem::collective::Selected<SimulatedWorld<Bytes>>;

/// The byte at an offset of each record.
pub(crate) fn byte(offset: u32) -> Node {
    Node::Field(FieldAt { offset, number: Number { kind: NumberKind::U8, is_big_endian: false } })
}

/// Records whose byte at `offset` is less than `limit`.
pub(crate) fn less(offset: u32, limit: u64) -> Expression {
    let (how, with) = (Comparison::Less, Constant::Unsigned(limit));
    Expression { nodes: vec![byte(offset), Node::CompareConstant { of: 0, how, with }] }
}

/// Client that the last byte of each record names.
fn by_last_byte(record_bytes: u32, clients: u32) -> Destination {
    let by = u64::from(clients);
    let key = Expression { nodes: vec![byte(record_bytes - 1), Node::Modulo { of: 0, by }] };
    Destination::Key { key, clients }
}

/// Records of a file, and the condition for them.
#[derive(Clone, Debug)]
struct Case {
    grid: RecordGrid,
    limit: u64,
}

impl Case {
    fn random(numbers: &mut Numbers, file_bytes: u64, block_bytes: u64) -> Self {
        let record_bytes = 1 + numbers.below(block_bytes.min(30)) as u32;
        let start = numbers.below(file_bytes.min(200));
        let count = (file_bytes - start) / u64::from(record_bytes);
        let count = if numbers.below(3) == 0 { numbers.below(count + 1) } else { count };
        let limit = [0, 3, 100, 256][numbers.below(4) as usize];
        Self { grid: RecordGrid { start, record_bytes, count }, limit }
    }

    /// The records of a file that match.
    fn matching<'a>(&'a self, file: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + 'a {
        let RecordGrid { start, record_bytes, count } = self.grid;
        let bytes = record_bytes as usize;
        let records = file[start as usize..].chunks_exact(bytes).take(count as usize);
        records.filter(|record| u64::from(record[0]) < self.limit)
    }

    fn selection(&self, result: Selected) -> Selection {
        Selection { records: self.grid, condition: less(0, self.limit).into(), result }
    }
}

fn shape(seed: u64) -> Shape {
    let (servers, default) = (1 + (seed % 4) as u32, Shape::default());
    Shape {
        servers,
        protection: if servers > 1 { default.protection } else { Protection::None },
        disks_per_server: 1 + (seed / 4 % 2) as u32,
        clients: 4,
        block_bytes: 30 + seed % 50,
        cache_blocks: seed / 8 % 20,
        client_caches: false,
        // Every third one has hardly room, and reads blocks again.
        buffer_bytes: if seed.is_multiple_of(3) { 100 } else { u64::MAX },
        seed,
        ..default
    }
}

/// Takes some records of a destination.
async fn take(
    client: &TestClient,
    selected: &Chosen,
    destination: u32,
    record_bytes: u32,
    part: (u64, u64),
) -> Result<Vec<u8>, Fault> {
    let counts = selected.counts(destination).await?;
    let total = counts.total();
    let wanted = total * part.0 / part.1..total * (part.0 + 1) / part.1;
    let bytes = (wanted.end - wanted.start) * u64::from(record_bytes);
    let memory = client.world().thaw(vec![0xee; bytes as usize].into());
    selected.take(destination, &counts, wanted, &memory).await?;
    Ok(memory.freeze().to_vec())
}

#[test]
fn records_are_found_as_by_a_scan_of_the_file() {
    let test = "records_are_found_as_by_a_scan_of_the_file";
    for_each_seed("selections", test, 400, |seed| {
        let cluster = Cluster::new(shape(seed));
        cluster.run_alone(0, |start| async move {
            let mut numbers = Numbers::new(seed);
            let client = start.connect().await.unwrap();
            let bytes = 1 + numbers.below(3_000);
            let file = create_alone(&client, &start.shape, "f", bytes).await.unwrap();
            let mut contents = image(seed, bytes);
            write(&client, &file, 0, &contents).await;
            for round in 0..6 {
                // Some bytes are in the caches of servers, or still at the client.
                let at = numbers.below(bytes);
                let new = image(round, numbers.below(bytes - at).min(70));
                overwrite(&mut contents, at, &new);
                write(&client, &file, at, &new).await;
                if numbers.below(3) == 0 {
                    summarise(&client, &file, &mut numbers).await;
                }
                check(&client, &file, &contents, &mut numbers).await;
            }
        });
    });
}

/// Has the servers compute bounds, of records that later selections may want.
async fn summarise(client: &TestClient, file: &FileRecord, numbers: &mut Numbers) {
    let case = Case::random(numbers, file.bytes, file.stripe.block_bytes);
    let Node::Field(field) = byte(0) else { unreachable!("it is a field") };
    let fields = vec![field];
    let selecting = Selecting::new(client, None);
    let agreements = Agreements::of_one();
    selecting.summarise(&agreements, Ok(file), case.grid, fields).await.unwrap();
    // The same records, so that the summary counts.
    let contents = crate::sizes::read(client, file).await;
    for limit in [0, 1, 5, 60, 256] {
        let case = Case { limit, ..case.clone() };
        let one = case.selection(Selected::Records(Destination::One));
        let selected = client.select(file, one, DiskOrder::Sorted).await.unwrap();
        let found = take(client, &selected, 0, case.grid.record_bytes, (0, 1)).await.unwrap();
        assert_eq!(found, case.matching(&contents).collect::<Vec<_>>().concat(), "{case:?}");
        let (read, skipped) = selected.blocks();
        assert!(limit > 0 || read == 0, "no byte is less than 0: {read} {skipped}");
        selected.end().await;
    }
}

/// Selects some records, by one and by several destinations, and numbers.
async fn check(client: &TestClient, file: &FileRecord, contents: &[u8], numbers: &mut Numbers) {
    let case = Case::random(numbers, file.bytes, file.stripe.block_bytes);
    let record_bytes = case.grid.record_bytes;
    let order = DiskOrder::Sorted;
    let all: Vec<&[u8]> = case.matching(contents).collect();
    let one = case.selection(Selected::Records(Destination::One));
    let selected = client.select(file, one, order).await.unwrap();
    let (mut found, parts) = (Vec::new(), 1 + numbers.below(3));
    for part in 0..parts {
        found.extend(take(client, &selected, 0, record_bytes, (part, parts)).await.unwrap());
    }
    assert_eq!(found, all.concat(), "{case:?}");
    selected.end().await;
    let clients = 1 + numbers.below(4) as u32;
    let by_key = case.selection(Selected::Records(by_last_byte(record_bytes, clients)));
    let selected = client.select(file, by_key, order).await.unwrap();
    for destination in 0..clients {
        let found = take(client, &selected, destination, record_bytes, (0, 1)).await.unwrap();
        let wanted =
            all.iter().filter(|record| u32::from(*record.last().unwrap()) % clients == destination);
        assert_eq!(found, wanted.copied().collect::<Vec<_>>().concat(), "{case:?}");
    }
    selected.end().await;
    let last = Expression { nodes: vec![byte(record_bytes - 1)] };
    let values = || all.iter().map(|record| *record.last().unwrap());
    let extreme = |value: Option<u8>| value.map(|value| Constant::Unsigned(value.into()));
    for (reduction, wanted) in [
        (Reduction::Count, Reduced::Count(all.len() as u64)),
        (Reduction::Sum(last.clone()), Reduced::IntegerSum(values().map(i128::from).sum())),
        (Reduction::Minimum(last.clone()), Reduced::Minimum(extreme(values().min()))),
        (Reduction::Maximum(last), Reduced::Maximum(extreme(values().max()))),
    ] {
        let number = case.selection(Selected::Number(reduction));
        let selected = client.select(file, number, order).await.unwrap();
        assert_eq!(selected.reduced().await.unwrap(), wanted, "{case:?}");
        selected.end().await;
    }
}

/// Records of 7 bytes in a file of 4 servers with blocks of 64 bytes.
const GRID: RecordGrid = RecordGrid { start: 3, record_bytes: 7, count: 400 };

fn all_records() -> Selection {
    let result = Selected::Records(Destination::One);
    Selection { records: GRID, condition: Expression::always().into(), result }
}

fn small(seed: u64) -> Shape {
    Shape { servers: 4, client_caches: false, seed, ..Shape::default() }
}

async fn open_full(start: &Start) -> (TestClient, FileRecord, Vec<u8>) {
    let client = start.connect().await.unwrap();
    let bytes = GRID.extent().end + 5;
    let file = create_alone(&client, &start.shape, "f", bytes).await.unwrap();
    let contents = image(9, bytes);
    write(&client, &file, 0, &contents).await;
    (client, file, contents)
}

#[test]
fn clients_share_a_selection_that_ends_with_the_one_that_began_it() {
    let cluster = Cluster::new(small(1));
    let name = Rc::new(Cell::new(None));
    let taken = Rc::new(Cell::new(0));
    let told = (Rc::clone(&name), Rc::clone(&taken));
    let got = cluster.run(0..2, move |start| {
        let (name, taken) = told.clone();
        async move {
            if start.rank.0 == 0 {
                let (client, file, contents) = open_full(&start).await;
                let selected =
                    client.select(&file, all_records(), DiskOrder::Sorted).await.unwrap();
                name.set(Some(selected.number()));
                while taken.get() == 0 {
                    start.world.sleep(Duration::from_us(50)).await;
                }
                return contents[3..3 + 2_800].to_vec();
            }
            while name.get().is_none() {
                start.world.sleep(Duration::from_us(50)).await;
            }
            let client = start.connect().await.unwrap();
            let file = client.open("f").await.unwrap();
            let number = name.get().unwrap();
            let selected = client.selected(&file, number, GRID.record_bytes);
            let records = take(&client, &selected, 0, GRID.record_bytes, (0, 1)).await.unwrap();
            // Not this client's: it goes on.
            selected.end().await;
            assert_eq!(selected.counts(0).await.unwrap().total(), 400);
            taken.set(1);
            let ended = loop {
                match selected.counts(0).await {
                    Ok(_) => start.world.sleep(Duration::from_us(50)).await,
                    Err(fault) => break fault,
                }
            };
            assert!(matches!(ended, Fault::TransferFailed { .. }), "{ended:?}");
            records
        }
    });
    assert_eq!(got[0], got[1]);
}

#[test]
fn bad_selections_are_refused_with_a_cause() {
    Cluster::new(small(1)).run_alone(0, |start| async move {
        let (client, file, _) = open_full(&start).await;
        let refused = async |change: fn(&mut Selection)| {
            let mut selection = all_records();
            change(&mut selection);
            match client.select(&file, selection, DiskOrder::Sorted).await {
                Err(Fault::BadSelection { cause }) => cause,
                Err(other) => panic!("{other:?}"),
                Ok(_) => panic!("it was not refused"),
            }
        };
        let cause = refused(|it| it.records.record_bytes = 65).await;
        assert!(cause.contains("longer than a block of the file (64 bytes)"), "{cause}");
        let cause = refused(|it| it.records.count = 402).await;
        assert!(cause.contains("beyond the file"), "{cause}");
        let cause = refused(|it| it.records.count = u64::MAX).await;
        assert!(cause.contains("beyond the file"), "{cause}");
        let cause = refused(|it| it.condition = less(7, 1).into()).await;
        assert!(cause.contains("outside a record of 7 bytes"), "{cause}");
        let cause = refused(|it| {
            let key = Expression { nodes: vec![byte(0)] };
            it.result = Selected::Records(Destination::Key { key, clients: 2 });
        });
        let cause = cause.await;
        assert!(cause.contains("the key of record ") && cause.contains("2 clients"), "{cause}");
        // Nothing of these is left.
        let memory = client.world().memory(10);
        let selected = client.select(&file, all_records(), DiskOrder::Sorted).await.unwrap();
        let counts = selected.counts(0).await.unwrap();
        let small = selected.take(0, &counts, 0..400, &memory).await;
        let Err(Fault::BadSelection { cause }) = small else { panic!("{small:?}") };
        assert_eq!(cause, "400 records match, and there is memory for 1");
        selected.end().await;
    });
}

/// Without room the block is read again, and is not what it was.
#[test]
fn a_change_is_noticed_when_records_are_read_again() {
    let shape = Shape { buffer_bytes: 0, ..small(1) };
    Cluster::new(shape).run_alone(0, |start| async move {
        let (client, file, contents) = open_full(&start).await;
        let selection = Selection { condition: less(0, 128).into(), ..all_records() };
        let selected = client.select(&file, selection, DiskOrder::Sorted).await.unwrap();
        let found = take(&client, &selected, 0, 7, (0, 1)).await.unwrap();
        let case = Case { grid: GRID, limit: 128 };
        assert_eq!(found, case.matching(&contents).collect::<Vec<_>>().concat());
        write(&client, &file, 0, &vec![255; 500]).await;
        let changed = take(&client, &selected, 0, 7, (0, 1)).await.unwrap_err();
        let Fault::TransferFailed { cause } = changed else { panic!("{changed:?}") };
        assert!(cause.contains("was changed while records of it were selected"), "{cause}");
        selected.end().await;
    });
}

/// Blocks of a sorted field are left out, until the file changes.
#[test]
fn a_summary_leaves_blocks_out_until_the_file_changes() {
    Cluster::new(small(1)).run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let file = create_alone(&client, &start.shape, "f", 2_800).await.unwrap();
        let sorted: Vec<u8> = (0..2_800).map(|at| (at / 14) as u8).collect();
        write(&client, &file, 0, &sorted).await;
        let records = RecordGrid { start: 0, record_bytes: 7, count: 400 };
        let count = async |limit| {
            let selecting = Selecting::new(&client, None);
            let wanted = (records, less(0, limit).into());
            let agreements = Agreements::of_one();
            let reduced = selecting.reduce(&agreements, Ok(&file), wanted, Reduction::Count).await;
            let (Reduced::Count(count), blocks) = reduced.unwrap() else { panic!("a count") };
            (count, blocks)
        };
        let all = 2_800_u64.div_ceil(64);
        assert_eq!(count(20).await, (40, (all, 0)));
        let Node::Field(field) = byte(0) else { unreachable!("it is a field") };
        let selecting = Selecting::new(&client, None);
        let agreements = Agreements::of_one();
        selecting.summarise(&agreements, Ok(&file), records, vec![field]).await.unwrap();
        // 40 records of 7 bytes are in the first five blocks.
        assert_eq!(count(20).await, (40, (5, all - 5)));
        assert_eq!(count(0).await, (0, (0, all)));
        // A time that is set back hides no change.
        let before = client.stat("f").await.unwrap().modified;
        write(&client, &file, 2_793, &[3]).await;
        client.set_modified(&file, before).await.unwrap();
        let (found, (_, skipped)) = count(20).await;
        assert_eq!(found, 41);
        assert!(skipped < all - 5, "servers of the change read their blocks again");
    });
}

/// Cuts, writes and summaries of one client meet the selections of another. Whatever comes of
/// these, no server stops.
#[test]
fn a_file_may_change_while_records_are_selected() {
    let test = "a_file_may_change_while_records_are_selected";
    for_each_seed("selections", test, 120, |seed| {
        let cluster = Cluster::new(Shape { client_caches: false, ..shape(seed) });
        let ended = cluster.run(0..2, move |start| async move {
            let mut numbers = Numbers::new(seed * 2 + u64::from(start.rank.0));
            let client = start.connect().await.unwrap();
            if start.rank.0 == 0 {
                let mut file = create_alone(&client, &start.shape, "f", 2_000).await.unwrap();
                write(&client, &file, 0, &image(seed, 2_000)).await;
                for _ in 0..40 {
                    start.world.sleep(Duration::from_us(numbers.below(500))).await;
                    match numbers.below(3) {
                        0 => client.set_size(&mut file, numbers.below(2_000)).await.unwrap(),
                        1 => client.grow(&mut file, 2_000).await.unwrap(),
                        _ if file.bytes > 0 => {
                            let at = numbers.below(file.bytes);
                            write(&client, &file, at, &image(at, (file.bytes - at).min(90))).await;
                        }
                        _ => {}
                    }
                }
                return 0;
            }
            start.world.sleep(Duration::from_ms(20)).await;
            let mut found = 0;
            for _ in 0..40 {
                let Ok(file) = client.open("f").await else { continue };
                let case = Case::random(&mut numbers, file.bytes.max(1), start.shape.block_bytes);
                let one = case.selection(Selected::Records(Destination::One));
                if let Ok(selected) = client.select(&file, one, DiskOrder::Sorted).await {
                    let bytes = case.grid.record_bytes;
                    found += u64::from(take(&client, &selected, 0, bytes, (0, 1)).await.is_ok());
                }
                let Node::Field(field) = byte(0) else { unreachable!("it is a field") };
                let selecting = Selecting::new(&client, None);
                let agreements = Agreements::of_one();
                let _ = selecting.summarise(&agreements, Ok(&file), case.grid, vec![field]).await;
                client.close(&file).await.unwrap();
            }
            found
        });
        assert!(ended[1] > 0, "some selections succeed");
    });
}

/// A server is killed at any time; the selection ends with a fault, or with all records.
#[test]
fn a_lost_server_ends_a_selection_with_a_fault() {
    let outcomes = Cell::new((0, 0));
    let test = "a_lost_server_ends_a_selection_with_a_fault";
    for_each_seed("selections", test, 60, |seed| {
        let shape = Shape { protection: Protection::None, ..small(seed) };
        let cluster = Cluster::new(shape);
        let ready = Rc::new(Cell::new(0));
        let node = (seed % 4) as u32;
        let after = Duration::from_us(seed * 31 % 1_500);
        let at = Rc::new(Cell::new(Instant::START));
        let kill = Kill { node, after, ready: Rc::clone(&ready), ready_min: 1, at };
        let start = cluster.start(0);
        let program: Program<Result<(), Fault>> = Box::pin(async move {
            let (client, file, contents) = open_full(&start).await;
            ready.set(1);
            let selected = client.select(&file, all_records(), DiskOrder::Sorted).await?;
            let records = take(&client, &selected, 0, 7, (0, 1)).await?;
            assert_eq!(records, contents[3..3 + 2_800]);
            Ok(())
        });
        let ended = cluster.run_on(vec![(cluster.shape.node_of(0), program)], Some(kill));
        let (found, lost) = outcomes.get();
        match ended[0].as_ref().unwrap() {
            Ok(()) => outcomes.set((found + 1, lost)),
            Err(Fault::ServerLeft { server, .. }) => {
                assert_eq!(*server, ServerId(node));
                outcomes.set((found, lost + 1));
            }
            Err(other) => panic!("seed {seed}: {other:?}"),
        }
    });
    let (found, lost) = outcomes.get();
    if support::only_seed().is_none() {
        assert!(found > 5 && lost > 5, "both happen: {found} and {lost}");
    }
}

/// Records of a member, a number that all get, and the faults of two calls that cannot be.
type Shared = (Vec<u8>, Reduced, Result<Reduced, Fault>, Result<(), Fault>);

/// Program of a member: takes its share, and makes calls that end with a fault for all.
async fn share(start: Start, size: u32, share: Share) -> Shared {
    let rank = start.rank.0;
    let (client, file) = if rank == 0 {
        let (client, file, _) = open_full(&start).await;
        (client, file)
    } else {
        let client = start.connect().await.unwrap();
        start.world.sleep(Duration::from_ms(500)).await;
        let file = client.open("f").await.unwrap();
        (client, file)
    };
    let place = (ClientId(rank), size);
    let group = Group::register(client.clone(), 77, place, JOIN_TIMEOUT).await.unwrap();
    group.all_gather(Vec::new()).await.unwrap();
    let selecting = Selecting::new(&client, Some(&group));
    let wanted = || (GRID, less(0, 100).into());
    let agreements = group.begin_agreements();
    let found = selecting.find(&agreements, Ok(&file), wanted(), share).await.unwrap();
    let memory = client.world().thaw(vec![0xee; found.count() as usize * 7].into());
    selecting.take(&group.begin_agreements(), &found, 0..found.count(), &memory).await.unwrap();
    let count = async |wanted| {
        let agreements = group.begin_agreements();
        let counted = selecting.reduce(&agreements, Ok(&file), wanted, Reduction::Count).await;
        counted.map(|(count, _)| count)
    };
    let counted = count(wanted()).await.unwrap();
    // One member wants something else.
    let differ = count((GRID, less(0, 100 + u64::from(rank / (size - 1).max(1))).into())).await;
    // The memory of one is too small, and nobody gets anything.
    let agreements = group.begin_agreements();
    let found = selecting.find(&agreements, Ok(&file), wanted(), Share::Even).await.unwrap();
    let bytes = found.count() as usize * 7 - usize::from(rank + 1 == size);
    let small = client.world().thaw(vec![0xee; bytes].into());
    let refused = selecting.take(&group.begin_agreements(), &found, 0..found.count(), &small).await;
    assert_eq!(small.freeze().to_vec(), vec![0xee; bytes]);
    (memory.freeze().to_vec(), counted, differ, refused)
}

/// Members of a group get all records, each its own, or the same fault.
#[test]
fn members_of_a_group_share_the_records() {
    let test = "members_of_a_group_share_the_records";
    for_each_seed("selections", test, 60, |seed| {
        let cluster = Cluster::new(shape(seed));
        let (size, how) = (1 + (seed % 4) as u32, seed / 4 % 3);
        let got = cluster.run(0..size, move |start| {
            let Destination::Key { key, .. } = by_last_byte(7, size) else { unreachable!() };
            let shares = [Share::Even, Share::Part, Share::Key(key)];
            share(start, size, shares[how as usize].clone())
        });
        let contents = image(9, GRID.extent().end + 5);
        let case = Case { grid: GRID, limit: 100 };
        let mut expected: Vec<&[u8]> = case.matching(&contents).collect();
        for (_, counted, differ, refused) in &got {
            assert_eq!(*counted, Reduced::Count(expected.len() as u64));
            match size {
                1 => assert!(differ.is_ok()),
                _ => assert!(matches!(differ, Err(Fault::CallsDiffer { .. })), "{differ:?}"),
            }
            let Err(Fault::BadSelection { cause }) = refused else { panic!("{refused:?}") };
            assert!(cause.contains(&format!("for client {}", size - 1)), "{cause}");
        }
        let together: Vec<u8> = got.iter().flat_map(|(bytes, ..)| bytes.clone()).collect();
        if how == 2 {
            expected.sort_by_key(|record| u32::from(*record.last().unwrap()) % size);
        }
        assert_eq!(together, expected.concat());
        if how == 0 {
            let counts = got.iter().map(|(bytes, ..)| bytes.len() / 7);
            assert!(counts.clone().max().unwrap() <= counts.min().unwrap() + 1);
        }
    });
}
