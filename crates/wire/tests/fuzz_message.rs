//! Proves: whatever bytes reach a server or a client, decoding them ends well or with an error, and
//! an access that passes its checks can be used. A fuzzing target: `cargo test` runs the corpus and
//! some thousand inputs made of it; with `cargo install cargo-bolero`,
//! `cargo bolero test -p wire any_bytes_decode_or_fail` goes on for as long as you like.

#![allow(clippy::disallowed_methods, reason = "the corpus is in files of the repository")]

use policy::{
    Access, Buffering, Comparison, Condition, Constant, Destination, Dimension, Direction,
    DiskOrder, Distribution, Expression, Extensions, FieldAt, ListEntry, LockKind, Node, Number,
    NumberKind, Operator, PageMap, Pool, Protection, RecordGrid, Reduction, Selected, Selection,
    Stripe,
};
use std::path::Path;
use units::{ByteRange, ClientId, FileId, RegionId, ServerId, Timestamp};
use wire::{
    AttributeChanges, Attributes, CacheCommand, CacheRequest, CallId, CatalogueChange,
    CatalogueRequest, ClientKey, CollectiveCall, CollectiveRequest, CounterChange, CounterRequest,
    Entry, EntryKind, Fault, FileRecord, FileRequest, FileSize, GroupMessage, GroupRequest,
    JoinRequest, LeaveRequest, LineName, LineReader, LockRequest, Made, MemberRun, Message,
    NewKind, NewNode, NodeEntry, NodeRequest, PROTOCOL_VERSION, PartRequest, Place, ReadRequest,
    RegisterRequest, RenameManner, Reply, Request, RequestId, SelectRequest, ServerRequest,
    Special, UnlockRequest, decode, encode,
};

/// A file that accesses are checked against.
const FILE_BYTES: u64 = 1 << 20;

#[test]
fn any_bytes_decode_or_fail() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let Ok(message) = decode(bytes) else { return };
        // What was decoded says the same when it is sent on.
        let again: Vec<u8> = encode(&message);
        assert_eq!(decode(&again).map(|message| encode(&message)), Ok(again));
        use_message(&message);
    });
}

#[test]
fn damaged_messages_decode_or_fail() {
    let messages: Vec<Vec<u8>> =
        some_messages().iter().map(|(_, message)| encode(message)).collect();
    bolero::check!().with_type::<(u8, Vec<(u16, u8)>)>().for_each(|(number, damages)| {
        let mut bytes = messages[usize::from(*number) % messages.len()].clone();
        for (at, value) in damages {
            let at = usize::from(*at) % bytes.len();
            bytes[at] = *value;
        }
        if let Ok(message) = decode(&bytes) {
            use_message(&message);
        }
    });
}

/// The corpus holds a message of each kind, as it is encoded today. With `WRITE_CORPUS` in the
/// environment this writes it instead.
#[test]
fn the_corpus_is_of_today() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/__fuzz__/any_bytes_decode_or_fail/corpus");
    for (name, message) in some_messages() {
        let bytes: Vec<u8> = encode(&message);
        let path = corpus.join(name);
        if std::env::var_os("WRITE_CORPUS").is_some() {
            std::fs::create_dir_all(&corpus).expect("the corpus must be writable");
            std::fs::write(&path, &bytes).expect("the corpus must be writable");
        }
        let kept = std::fs::read(&path).unwrap_or_default();
        assert!(kept == bytes, "{name} is stale: WRITE_CORPUS=1 cargo test -p wire the_corpus");
    }
}

/// Returns a message of each kind, with the name of its file in the corpus.
fn some_messages() -> Vec<(&'static str, Message)> {
    let id = RequestId(7);
    let hello = Message::Hello { version: PROTOCOL_VERSION, key: ClientKey(1) };
    let mut messages = vec![("hello", hello)];
    let requests = some_requests().into_iter().chain(transfer_requests()).chain(node_requests());
    for (name, request) in requests {
        messages.push((name, Message::Request { id, request }));
    }
    let made = Made { owner: 1000, at_s: 1 << 31 };
    let known = Entry {
        name: "a/b".to_owned(),
        made,
        modified: made.at(),
        kind: EntryKind::File(file_record()),
    };
    let fault = Fault::NoSpace { server: ServerId(1), cause: "full".to_owned() };
    let values = vec![(ClientId(1), 1), (ClientId(2), u64::MAX)];
    let agree = GroupMessage::Agree { number: 1, round: 2, values, fault: Some(fault.clone()) };
    let attributes = Attributes {
        mode: 0o644,
        owner: Some(1000),
        group: None,
        accessed: made.at(),
        changed: Timestamp::from_ns(u64::MAX),
    };
    let node = NodeEntry { node: FileId(9), is_named: true, entry: known.clone(), attributes };
    let line = LineName { file: FileId(9), line: 1 << 40 };
    let reader = LineReader { address: "node:3".to_owned(), ticket: u64::MAX, id };
    let send_line = CacheCommand::Send { number: 7, line, reader, moves: true };
    messages.extend([
        ("entry", Message::Reply { id, result: Ok(Reply::Entry(known)) }),
        ("node", Message::Reply { id, result: Ok(Reply::Node(Box::new(node))) }),
        ("fault", Message::Reply { id, result: Err(fault) }),
        ("agree", Message::Group(agree)),
        ("send_line", Message::CacheCommand(send_line)),
    ]);
    messages
}

/// Returns requests about names, sizes and groups.
fn some_requests() -> Vec<(&'static str, Request)> {
    let record = file_record();
    let file = record.file;
    let made = Made { owner: 1000, at_s: 1 << 31 };
    let (from, to, replace) = ("a/b".to_owned(), "c".to_owned(), true);
    let rename = CatalogueRequest::Rename { from, to, replace };
    let list = CatalogueRequest::List { directory: "a".to_owned(), after: Some("b".to_owned()) };
    let members = (0..4).map(|rank| (ClientId(rank), ClientKey(u64::MAX))).collect();
    let register = RegisterRequest { group: 7, size: 4, members };
    let (group, rank, number) = (7, ClientId(1), 3);
    let (kind, start, end, timeout_ms) = (LockKind::Exclusive, 100, 1 << 40, 60_000);
    let lock = LockRequest { group, rank, number, kind, start, end, timeout_ms };
    let line = LineName { file, line: 3 };
    let dropped = vec![line; 3];
    let write_line =
        CacheRequest::Write { line, offset: 1 << 19, keeps: true, dropped: dropped.clone() };
    let read_line = CacheRequest::Read { line, dropped };
    let counter = CounterRequest { group, rank, change: CounterChange::Add(1 << 40) };
    let unlock = UnlockRequest { group, rank, number };
    vec![
        ("read_line", read_line.into()),
        ("write_line", write_line.into()),
        ("counter", GroupRequest::Counter(counter).into()),
        ("lock", GroupRequest::Lock(lock).into()),
        ("unlock", GroupRequest::Unlock(unlock).into()),
        ("register", GroupRequest::Register(Box::new(register)).into()),
        ("leave", GroupRequest::Leave(LeaveRequest { group, first: rank, count: 2 }).into()),
        ("create", CatalogueRequest::Create { record: record.clone(), made }.into()),
        ("list", list.into()),
        ("rename", rename.into()),
        ("measure", FileRequest::Measure(record.clone()).into()),
        ("open", FileRequest::Open(record).into()),
        ("resize", FileRequest::Resize { file, size: FileSize { cuts: 1, bytes: 1 << 40 } }.into()),
        ("nameless", CatalogueRequest::Nameless { after: Some(file) }.into()),
        ("forget", CatalogueRequest::Forget { file }.into()),
        (
            "copy",
            CatalogueRequest::Copy(CatalogueChange {
                from: Some(1),
                to: 2,
                records: vec![(3, Some(vec![4; 5])), (6, None)],
            })
            .into(),
        ),
        ("catalogue_copy", ServerRequest::CatalogueCopy { after: Some(1 << 40) }.into()),
        ("open_sizes", FileRequest::OpenSizes { after: Some(file) }.into()),
    ]
}

/// Returns requests of a mount.
fn node_requests() -> [(&'static str, Request); 4] {
    let place = || Place { directory: FileId(9), part: "b".to_owned() };
    let made = Made { owner: 1000, at_s: 1 << 31 };
    let link = NewKind::Special(Special::Link { target: "../a".to_owned() });
    let make = |kind| {
        let new = NewNode { place: place(), made, group: 1000, mode: 0o644, kind };
        NodeRequest::Make(Box::new(new)).into()
    };
    let changes = AttributeChanges {
        mode: Some(0o7777),
        modified: Some(Timestamp::from_ns(u64::MAX)),
        ..AttributeChanges::default()
    };
    let manner = RenameManner::Exchange;
    [
        ("make_link", make(link)),
        ("make_file", make(NewKind::File(file_record()))),
        ("change_node", NodeRequest::Change { node: FileId(9), changes }.into()),
        ("rename_node", NodeRequest::Rename { from: place(), to: place(), manner }.into()),
    ]
}

/// Returns requests that move data, of one client and of groups.
fn transfer_requests() -> [(&'static str, Request); 5] {
    let (direction, order, file) = (Direction::Read, DiskOrder::Sorted, file_record().file);
    let (block, region) = (1 << 40, RegionId(5));
    let read = ReadRequest { file, block, offset: 8, length: 8, region, region_offset: 64 };
    let selection = Box::new(selection());
    let by_module = Selection {
        condition: Condition {
            predicate: Expression::always(),
            operator: Some(Operator::Module(b"\0asm\x01\0\0\0".to_vec())),
        },
        result: Selected::Number(Reduction::Sum(Expression::answer())),
        ..(*selection).clone()
    };
    let select = SelectRequest::Begin { number: u64::MAX, file, selection, order };
    let module = SelectRequest::Begin { number: 7, file, selection: Box::new(by_module), order };
    let distribution = Access::Distribution(Distribution {
        shape: vec![128, 1024],
        record_bytes: 8,
        dimensions: vec![Dimension::Block, Dimension::Cyclic(3)],
        grid: vec![2, 2],
        clients: 4,
    });
    let members = [(0, 3), (1, 3), (2, u64::MAX), (3, 3)];
    let members = members.map(|(rank, region)| (ClientId(rank), RegionId(region)));
    let join = JoinRequest {
        call: CallId { group: 7, number: 5 },
        parameters: CollectiveCall { direction, file, order, sync: true },
        members: MemberRun::of(members),
        access: Ok(distribution),
        timeout_ms: 60_000,
    };
    let entry = ListEntry { file_offset: 100, memory_offset: 0, length: 1000 };
    let (client, region) = (ClientId(0), RegionId(4));
    let access = Access::lists(vec![vec![entry]]);
    let part = PartRequest { number: 6, direction, file, access, client, region, order };
    [
        ("read", read.into()),
        ("join", CollectiveRequest::Join(Box::new(join)).into()),
        ("part", CollectiveRequest::Part(Box::new(part)).into()),
        ("select", CollectiveRequest::Select(Box::new(select)).into()),
        ("select_by_module", CollectiveRequest::Select(Box::new(module)).into()),
    ]
}

fn file_record() -> FileRecord {
    let map = PageMap::try_from(vec![0, 1, 1]).ok();
    FileRecord {
        file: FileId(9),
        name: "a/b".to_owned(),
        bytes: FILE_BYTES,
        cuts: 3,
        stripe: Stripe { placement: map.into(), ..Stripe::round_robin(1 << 16, 2, 2) },
        pool: Pool::Named(vec![ServerId(3), ServerId(1)]),
        buffering: Buffering { blocks_max: 7, ..Buffering::default() },
        protection: Protection::Mirror,
    }
}

/// Does with a message what its receiver does before it asks anyone.
fn use_message(message: &Message) {
    match message {
        Message::Request { request, .. } => match request {
            Request::Collective(CollectiveRequest::Join(join)) => {
                if let Ok(access) = &join.access {
                    use_access(access, ClientId(0));
                }
                for run in &join.members {
                    assert!(run.ranks().take(1000).all(|rank| u64::from(rank.0) < run.end()));
                }
            }
            Request::Collective(CollectiveRequest::Part(request)) => {
                use_access(&request.access, request.client);
            }
            Request::Collective(CollectiveRequest::Select(request)) => use_selection(request),
            Request::File(FileRequest::Open(record) | FileRequest::Measure(record))
            | Request::Catalogue(CatalogueRequest::Create { record, .. })
                if record.stripe.validate().is_ok()
                    && record.pool.validate(record.stripe.servers, 8).is_ok()
                    && record.stripe.servers <= 8 =>
            {
                assert!(record.servers().all(|server| server.0 < 8));
                let block = record.stripe.blocks_in(ByteRange::new(0, record.bytes)).end;
                assert!(record.server_of(block).0 < 8);
            }
            _ => {}
        },
        Message::Reply { result: Err(fault), .. } => {
            assert!(!fault.to_string().is_empty() && !fault.help().is_empty());
        }
        Message::Reply { result: Ok(Reply::Entry(entry)), .. } => drop(entry.file()),
        _ => {}
    }
}

fn use_access(access: &Access, client: ClientId) {
    if access.validate(FILE_BYTES).is_err() || client.0 >= access.clients() {
        return;
    }
    let extent = access.extent_of(client);
    assert!(extent.end <= FILE_BYTES);
    let piece = access.pieces(client, extent).next();
    assert_eq!(piece.is_some(), !extent.is_empty());
}

/// Looks at some records, if the selection passes its checks.
fn use_selection(request: &SelectRequest) {
    let SelectRequest::Begin { selection, .. } = request else { return };
    let record_bytes = selection.records.record_bytes as usize;
    if let Ok(mut selector) =
        (**selection).clone().check((FILE_BYTES, FILE_BYTES), &Extensions::default())
    {
        let records: Vec<u8> = (0..record_bytes * 20).map(|byte| byte as u8).collect();
        let _ = selector.look_at(0, &records);
    }
}

/// Selection of records whose numbers, and a bin of them, are between limits.
fn selection() -> Selection {
    let field = |offset, kind| {
        Node::Field(FieldAt { offset, number: Number { kind, is_big_endian: offset > 0 } })
    };
    let (how, with) = (Comparison::Less, Constant::Float(0.5));
    let predicate = Expression {
        nodes: vec![
            field(0, NumberKind::F32),
            Node::CompareConstant { of: 0, how, with },
            field(4, NumberKind::U64),
            Node::In { of: 2, set: vec![Constant::Unsigned(u64::MAX), Constant::Signed(-1)] },
            Node::Not(3),
            Node::Mask { of: 2, mask: 255 },
            Node::IsTrue { of: 5 },
            Node::Or(vec![4, 6]),
            Node::And(vec![1, 7]),
        ],
    };
    let bin = Node::Bin { of: 0, low: -1.0, width: 0.25 };
    let key = Expression { nodes: vec![field(0, NumberKind::F32), bin] };
    let records = RecordGrid { start: 128, record_bytes: 12, count: 1_000 };
    let result = Selected::Records(Destination::Key { key, clients: 8 });
    Selection { records, condition: predicate.into(), result }
}
