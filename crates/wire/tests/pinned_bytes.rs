//! Proves: every variant of every enum that is stored or sent keeps its exact bytes.
//!
//! Postcard numbers the variants of an enum by their position, so a variant that is inserted in the
//! middle, or moved, changes the meaning of bytes that are stored in catalogues. A new variant goes
//! to the end. It does not compile until it has a row here. ([`Fault`] is sent only: see there.)
//! Requests are numbered in each part ([`Request`]).
//!
//! A row has the variant, an example of it and the bytes in hexadecimal. The first byte, before the
//! bar, is the number of the variant. Behind it are the fields: integers as LEB128, texts and
//! lists behind their length, options and results behind a byte.

#[macro_use]
mod pins;

use policy::{
    Access, Buffering, Cooperation, Declared, Dimension, Direction, DiskOrder, Distribution,
    GatheredWrite, Level, ListEntry, LockKind, Nested, OwnPart, Placement, Pool, Prefetch,
    Protection, Reduced, Replacement, Stripe, Unprotected,
};
use units::{ClientId, DiskId, FileId, RegionId, ServerId, Timestamp};
use wire::{
    AllGatherRequest, AttributeChanges, Attributes, BlockRequest, BufferStatistics, CacheAnswer,
    CacheCommand, CacheRegistration, CacheRequest, CallId, CatalogueChange, CatalogueRequest,
    ClientKey, CollectiveCall, CollectiveRequest, CounterChange, CounterRequest, DigestsRequest,
    Entry, EntryKind, Fault, FileDefaults, FileRecord, FileRequest, FileSize, FlushRequest,
    GroupMessage, GroupRequest, JoinRequest, LeaveRequest, LineName, LineReader, LineTaker,
    LockRequest, Made, MemberRun, Message, NewKind, NewNode, NodeEntry, NodeRequest, ObjectRequest,
    PartRequest, Place, PlanRequest, PlannedBlock, ProcessorUse, PullRequest, ReadRequest,
    RefillStatus, RegisterRequest, RenameManner, Reply, Request, RequestId, RowRequest,
    ScrubRequest, Scrubbed, SelectReply, SelectRequest, SentLine, ServerRequest, ServerStatus,
    Special, TransferName, UnlockRequest, UnprotectedFiles, WriteGathered, WriteRequest,
    encode_record,
};

pinned!(direction: Direction {
    Direction::Read, Direction::Read, "00";
    Direction::Write, Direction::Write, "01";
});

pinned!(disk_order: DiskOrder {
    DiskOrder::AsAsked, DiskOrder::AsAsked, "00";
    DiskOrder::Sorted, DiskOrder::Sorted, "01";
    DiskOrder::Staggered, DiskOrder::Staggered, "02";
});

pinned!(lock_kind: LockKind {
    LockKind::Shared, LockKind::Shared, "00";
    LockKind::Exclusive, LockKind::Exclusive, "01";
});

pinned!(counter_change: CounterChange {
    CounterChange::Get, CounterChange::Get, "00";
    CounterChange::Set(_), CounterChange::Set(300), "01 | ac 02";
    CounterChange::Add(_), CounterChange::Add(300), "02 | ac 02";
});

pinned!(declared: Declared {
    Declared::Unknown, Declared::Unknown, "00";
    Declared::Sequential, Declared::Sequential, "01";
    Declared::LoopingSequential, Declared::LoopingSequential, "02";
    Declared::LoopingRandom, Declared::LoopingRandom, "03";
    Declared::Random, Declared::Random, "04";
    Declared::GlobalSequential, Declared::GlobalSequential, "05";
});

pinned!(placement: Placement {
    Placement::RoundRobin, Placement::RoundRobin, "00";
    Placement::Map(_), Placement::Map(vec![0, 1].try_into().expect("it is a map")), "01 | 02 00 01";
    Placement::InPlace { .. }, Placement::InPlace { inode: 300 }, "02 | ac 02";
});

pinned!(replacement: Replacement {
    Replacement::Lru, Replacement::Lru, "00";
    Replacement::Mru, Replacement::Mru, "01";
    Replacement::TossImmediate, Replacement::TossImmediate, "02";
    Replacement::LoopAware, Replacement::LoopAware, "03";
    Replacement::Random, Replacement::Random, "04";
    Replacement::Custom(_), Replacement::Custom("fifo".parse().expect("it is a name")),
        "05 | 04 66 69 66 6f";
});

pinned!(prefetch: Prefetch {
    Prefetch::Nothing, Prefetch::Nothing, "00";
    Prefetch::Next, Prefetch::Next, "01";
    Prefetch::Window(_), Prefetch::Window(16), "02 | 10";
});

pinned!(dimension: Dimension {
    Dimension::None, Dimension::None, "00";
    Dimension::Block, Dimension::Block, "01";
    Dimension::Cyclic(_), Dimension::Cyclic(3), "02 | 03";
});

pinned!(protection: Protection {
    Protection::None, Protection::None, "00";
    Protection::Mirror, Protection::Mirror, "01";
    Protection::Parity { .. }, Protection::Parity { blocks: 4 }, "02 | 04";
});

pinned!(pool: Pool {
    Pool::Consecutive { .. }, Pool::Consecutive { first: 1, of: 4 }, "00 | 01 04";
    Pool::Named(_), Pool::Named(vec![ServerId(3), ServerId(1)]), "01 | 02 03 01";
});

pinned!(access: Access {
    Access::All { .. }, Access::All { bytes: 1 << 20, clients: 4 }, "00 | 80 80 40 04";
    Access::Distribution(_), Access::Distribution(distribution()),
        "01 | 02 04 05 08 02 01 00 02 02 01 03";
    Access::Parts(_), Access::lists(vec![vec![list_entry()]]), "02 | 01 02 01 01 02 03";
});

pinned!(own_part: OwnPart {
    OwnPart::Nested(_), OwnPart::Nested(vec![nested()]), "00 | 01 01 02 03 01 04 05 06";
    OwnPart::Dealt { .. }, dealt(), "01 | 02 04 05 08 02 01 00 02 02 01 03 02 ac 02";
    OwnPart::List(_), OwnPart::List(vec![list_entry()]), "02 | 01 01 02 03";
});

pinned!(entry_kind: EntryKind {
    EntryKind::Directory(_), EntryKind::Directory(defaults()),
        "00 | 01 40 01 02 01 04 01 05 01 01 01 01 01 02 03 01 01";
    EntryKind::File(_), EntryKind::File(record()),
        "01 | 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01";
    EntryKind::Special(_), EntryKind::Special(Special::Fifo), "02 | 01";
});

pinned!(special: Special {
    Special::Link { .. }, Special::Link { target: b() }, "00 | 01 62";
    Special::Fifo, Special::Fifo, "01";
    Special::Socket, Special::Socket, "02";
});

pinned!(new_kind: NewKind {
    NewKind::Directory, NewKind::Directory, "00";
    NewKind::File(_), NewKind::File(record()),
        "01 | 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01";
    NewKind::Special(_), NewKind::Special(Special::Socket), "02 | 02";
});

pinned!(rename_manner: RenameManner {
    RenameManner::Replace, RenameManner::Replace, "00";
    RenameManner::Keep, RenameManner::Keep, "01";
    RenameManner::Exchange, RenameManner::Exchange, "02";
});

pinned!(message: Message {
    Message::Hello { .. }, Message::Hello { version: 10, key: ClientKey(300) }, "00 | 0a ac 02";
    Message::Request { .. }, Message::Request { id: ID, request: ServerRequest::Stop.into() },
        "01 | 07 61";
    Message::Reply { .. }, Message::Reply { id: ID, result: Err(Fault::Cancelled) },
        "02 | 07 01 1b";
    Message::Group(_), Message::Group(GroupMessage::Leave), "03 | 02";
    Message::CacheCommand(_),
        Message::CacheCommand(CacheCommand::Invalidate { number: 3, line: LINE }),
        "04 | 01 03 09 01";
    Message::CacheAnswer(_),
        Message::CacheAnswer(CacheAnswer { number: 3, was_there: true }), "05 | 03 01";
    Message::SentLine(_),
        Message::SentLine(SentLine::Evicted { ticket: 5, number: 3, line: LINE }),
        "06 | 01 05 03 09 01";
    Message::HelloAgain { .. }, Message::HelloAgain { version: 10, key: ClientKey(300) },
        "07 | 0a ac 02";
    Message::Recall { .. }, Message::Recall { file: FILE, ends: true }, "08 | 09 01";
    Message::RecallPages { .. }, Message::RecallPages { file: FILE }, "09 | 09";
});

pinned!(transfer_name: TransferName {
    TransferName::Call(_), TransferName::Call(CALL), "00 | 07 06";
    TransferName::Part(_), TransferName::Part(300), "01 | ac 02";
});

pinned!(request: Request {
    Request::Read(_), Request::Read(read()), "00 | 09 01 02 03 05 04";
    Request::Write(_),
        Request::Write(WriteRequest { file: FILE, block: 1, offset: 2 }), "01 | 09 01 02";
    Request::Cache(_),
        Request::Cache(Box::new(CacheRequest::WriteBack { line: LINE, keeps: true })),
        "02 | 04 09 01 01";
    Request::Object(ObjectRequest::Hello { .. }),
        ObjectRequest::Hello { server: SERVER }.into(), "03 | 00 01";
    Request::Object(ObjectRequest::Write { .. }),
        ObjectRequest::Write { file: FILE, disk: DISK, offset: 300 }.into(), "03 | 01 09 02 ac 02";
    Request::Object(ObjectRequest::Read { .. }),
        ObjectRequest::Read { file: FILE, disk: DISK, offset: 300, length: 3 }.into(),
        "03 | 02 09 02 ac 02 03";
    Request::Object(ObjectRequest::Digest { .. }),
        ObjectRequest::Digest { file: FILE, disk: DISK, offset: 300, length: 3 }.into(),
        "03 | 03 09 02 ac 02 03";
    Request::Object(ObjectRequest::Sync { .. }),
        ObjectRequest::Sync { file: FILE, disks: 2 }.into(), "03 | 04 09 02";
    Request::Object(ObjectRequest::Truncate { .. }),
        ObjectRequest::Truncate { file: FILE, disk: DISK, length: 300 }.into(),
        "03 | 05 09 02 ac 02";
    Request::Object(ObjectRequest::Length { .. }),
        ObjectRequest::Length { file: FILE, disk: DISK }.into(), "03 | 06 09 02";
    Request::Object(ObjectRequest::Renewing { .. }),
        ObjectRequest::Renewing { file: FILE }.into(), "03 | 07 09";
    Request::Object(ObjectRequest::Renewed { .. }),
        ObjectRequest::Renewed { file: FILE }.into(), "03 | 08 09";
    Request::Object(ObjectRequest::LostCopy { .. }),
        ObjectRequest::LostCopy { record: Box::new(record()) }.into(),
        "03 | 09 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01";
    Request::Object(ObjectRequest::KeepSize { .. }),
        ObjectRequest::KeepSize { file: FILE, size: SIZE }.into(), "03 | 0a 09 01 ac 02";
    Request::Object(ObjectRequest::KeptSize { .. }),
        ObjectRequest::KeptSize { file: FILE }.into(), "03 | 0b 09";
    Request::Object(ObjectRequest::Combine { .. }),
        ObjectRequest::Combine { file: FILE, disk: DISK, offset: 300, size: SIZE }.into(),
        "03 | 0c 09 02 ac 02 01 ac 02";
    Request::Object(ObjectRequest::Gather(_)), ObjectRequest::Gather(Box::new(row())).into(),
        "03 | 0d 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01 \
         ac 02 04 05 02 02 01";
    Request::Object(ObjectRequest::Encode(_)), ObjectRequest::Encode(Box::new(row())).into(),
        "03 | 0e 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01 \
         ac 02 04 05 02 02 01";
    Request::Object(ObjectRequest::Reach { .. }),
        ObjectRequest::Reach { record: Box::new(record()) }.into(),
        "03 | 0f 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01";
    Request::Object(ObjectRequest::Reached { .. }),
        ObjectRequest::Reached { file: FILE, size: SIZE }.into(), "03 | 10 09 01 ac 02";
    Request::Object(ObjectRequest::CutParity { .. }),
        ObjectRequest::CutParity { record: Box::new(record()), size: SIZE }.into(),
        "03 | 11 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01 01 ac 02";
    Request::Object(ObjectRequest::RowDigests(_)),
        ObjectRequest::RowDigests(Box::new(row())).into(),
        "03 | 12 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01 \
         ac 02 04 05 02 02 01";
    Request::Block(BlockRequest::Pull(_)),
        BlockRequest::Pull(pull()).into(), "10 | 09 01 02 03 05 04";
    Request::Block(BlockRequest::Page { .. }),
        BlockRequest::Page { file: FILE, block: 1 }.into(), "11 | 09 01";
    Request::Block(BlockRequest::Flush(_)),
        BlockRequest::Flush(FlushRequest { file: FILE, sync: true }).into(), "12 | 09 01";
    Request::Block(BlockRequest::Digests(_)),
        BlockRequest::Digests(DigestsRequest { file: FILE, block: 1, piece_bytes: 64 }).into(),
        "13 | 09 01 40";
    Request::Block(BlockRequest::PageToKeep { .. }),
        BlockRequest::PageToKeep { file: FILE, block: 1 }.into(), "14 | 09 01";
    Request::Block(BlockRequest::DroppedPages { .. }),
        BlockRequest::DroppedPages { file: FILE }.into(), "15 | 09";
    Request::Collective(CollectiveRequest::Join(_)),
        CollectiveRequest::Join(Box::new(join())).into(),
        "20 | 07 06 01 09 01 01 02 00 02 03 03 01 04 00 00 06 03 ac 02";
    Request::Collective(CollectiveRequest::Part(_)),
        CollectiveRequest::Part(Box::new(part())).into(), "21 | 06 00 09 00 06 02 01 04 02";
    Request::Collective(CollectiveRequest::Cancel { .. }),
        CollectiveRequest::Cancel {
            transfer: TransferName::Part(5), cause: Box::new(Fault::Cancelled)
        }.into(), "22 | 01 05 1b";
    Request::Collective(CollectiveRequest::Plan(_)),
        CollectiveRequest::Plan(Box::new(plan())).into(), "23 | 01 09 00 06 02 01 03 ac 02";
    Request::Collective(CollectiveRequest::JoinWithData(_)),
        CollectiveRequest::JoinWithData(Box::new(join())).into(),
        "24 | 07 06 01 09 01 01 02 00 02 03 03 01 04 00 00 06 03 ac 02";
    Request::Collective(CollectiveRequest::JoinInOrder(_)),
        CollectiveRequest::JoinInOrder(Box::new(join())).into(),
        "25 | 07 06 01 09 01 01 02 00 02 03 03 01 04 00 00 06 03 ac 02";
    Request::Collective(CollectiveRequest::Select(_)),
        CollectiveRequest::Select(Box::new(SelectRequest::End { number: 7 })).into(),
        "26 | 06 07";
    Request::File(FileRequest::Open(_)), FileRequest::Open(record()).into(),
        "30 | 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01";
    Request::File(FileRequest::Close { .. }),
        FileRequest::Close { file: FILE, recorded: SIZE }.into(), "31 | 09 01 ac 02";
    Request::File(FileRequest::Resize { .. }),
        FileRequest::Resize { file: FILE, size: SIZE }.into(), "32 | 09 01 ac 02";
    Request::File(FileRequest::KeepSize { .. }),
        FileRequest::KeepSize { file: FILE }.into(), "33 | 09";
    Request::File(FileRequest::SetModified { .. }),
        FileRequest::SetModified { file: FILE, modified: TIME }.into(), "34 | 09 ac 02";
    Request::File(FileRequest::Measure(_)), FileRequest::Measure(record()).into(),
        "35 | 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01";
    Request::File(FileRequest::OpenSizes { .. }),
        FileRequest::OpenSizes { after: Some(FILE) }.into(), "36 | 01 09";
    Request::File(FileRequest::Buffers { .. }),
        FileRequest::Buffers { file: FILE }.into(), "37 | 09";
    Request::File(FileRequest::Drop { .. }),
        FileRequest::Drop { file: FILE, protection: Protection::Mirror }.into(), "38 | 09 01";
    Request::File(FileRequest::Lease { .. }),
        FileRequest::Lease { file: FILE, clock: 300, since: 5 }.into(), "39 | 09 ac 02 05";
    Request::File(FileRequest::WriteGathered(_)),
        FileRequest::WriteGathered(Box::new(WriteGathered {
            file: FILE,
            since: 300,
            writes: vec![GatheredWrite { offset: 2, length: 3, stamp: 4 }],
            until: 301,
            returns: true,
        }))
        .into(),
        "3a | 09 ac 02 01 02 03 04 ad 02 01";
    Request::File(FileRequest::Scrub(_)),
        FileRequest::Scrub(Box::new(ScrubRequest { record: record(), disk: DISK, offset: 300 }))
            .into(),
        "3b | 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01 02 ac 02";
    Request::File(FileRequest::Protect(_)), FileRequest::Protect(Box::new(record())).into(),
        "3c | 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01";
    Request::File(FileRequest::DropCopy { .. }), FileRequest::DropCopy { file: FILE }.into(),
        "3d | 09";
    Request::File(FileRequest::NumberInPlace { .. }),
        FileRequest::NumberInPlace { path: a(), inode: 300, block_bytes: 2 }.into(),
        "3e | 01 61 ac 02 02";
    Request::Catalogue(CatalogueRequest::Create { .. }),
        CatalogueRequest::Create { record: record(), made: MADE }.into(),
        "40 | 09 01 61 ac 02 01 40 02 03 01 02 00 01 00 00 02 01 01 01 01 01 02 03 01 e8 07 02";
    Request::Catalogue(CatalogueRequest::MakeDirectory { .. }),
        CatalogueRequest::MakeDirectory { name: a(), made: MADE }.into(), "41 | 01 61 e8 07 02";
    Request::Catalogue(CatalogueRequest::SetDefaults { .. }),
        CatalogueRequest::SetDefaults { directory: a(), defaults: defaults() }.into(),
        "42 | 01 61 01 40 01 02 01 04 01 05 01 01 01 01 01 02 03 01 01";
    Request::Catalogue(CatalogueRequest::Stat { .. }),
        CatalogueRequest::Stat { name: a() }.into(), "43 | 01 61";
    Request::Catalogue(CatalogueRequest::List { .. }),
        CatalogueRequest::List { directory: a(), after: Some(b()) }.into(), "44 | 01 61 01 01 62";
    Request::Catalogue(CatalogueRequest::Rename { .. }),
        CatalogueRequest::Rename { from: a(), to: b(), replace: true }.into(),
        "45 | 01 61 01 62 01";
    Request::Catalogue(CatalogueRequest::Remove { .. }),
        CatalogueRequest::Remove { name: a() }.into(), "46 | 01 61";
    Request::Catalogue(CatalogueRequest::RecordSize { .. }),
        CatalogueRequest::RecordSize { file: FILE, size: SIZE }.into(), "47 | 09 01 ac 02";
    Request::Catalogue(CatalogueRequest::RecordModified { .. }),
        CatalogueRequest::RecordModified { file: FILE, modified: TIME, is_set: true }.into(),
        "48 | 09 ac 02 01";
    Request::Catalogue(CatalogueRequest::Nameless { .. }),
        CatalogueRequest::Nameless { after: None }.into(), "49 | 00";
    Request::Catalogue(CatalogueRequest::Forget { .. }),
        CatalogueRequest::Forget { file: FILE }.into(), "4a | 09";
    Request::Catalogue(CatalogueRequest::Copy(_)),
        CatalogueRequest::Copy(catalogue_change()).into(), "4b | 01 05 06 02 09 01 02 07 08 0a 00";
    Request::Catalogue(CatalogueRequest::SetBehind { .. }),
        CatalogueRequest::SetBehind { server: SERVER, is_behind: true }.into(), "4c | 01 01";
    Request::Catalogue(CatalogueRequest::Behind), CatalogueRequest::Behind.into(), "4d";
    Request::Catalogue(CatalogueRequest::Files { .. }),
        CatalogueRequest::Files { after: Some(FILE) }.into(), "4e | 01 09";
    Request::Catalogue(CatalogueRequest::Protect { .. }),
        CatalogueRequest::Protect { file: FILE, protection: Protection::Mirror }.into(),
        "4f | 09 01";
    Request::Group(GroupRequest::Register(_)),
        GroupRequest::Register(Box::new(register())).into(), "50 | 07 02 02 00 05 01 06";
    Request::Group(GroupRequest::Leave(_)),
        GroupRequest::Leave(LeaveRequest { group: 7, first: ClientId(1), count: 2 }).into(),
        "51 | 07 01 02";
    Request::Group(GroupRequest::AllGather(_)),
        GroupRequest::AllGather(Box::new(all_gather())).into(),
        "52 | 01 61 01 07 01 02 ac 02 02 08 09";
    Request::Group(GroupRequest::Counter(_)),
        GroupRequest::Counter(counter()).into(), "53 | 07 01 02 ac 02";
    Request::Group(GroupRequest::Lock(_)),
        GroupRequest::Lock(lock()).into(), "54 | 07 01 06 01 02 03 ac 02";
    Request::Group(GroupRequest::Unlock(_)),
        GroupRequest::Unlock(UnlockRequest { group: 7, rank: ClientId(1), number: 6 }).into(),
        "55 | 07 01 06";
    Request::Server(ServerRequest::Status), ServerRequest::Status.into(), "60";
    Request::Server(ServerRequest::Stop), ServerRequest::Stop.into(), "61";
    Request::Server(ServerRequest::Probe { .. }),
        ServerRequest::Probe { silence_ms: 300 }.into(), "62 | ac 02";
    Request::Server(ServerRequest::CatalogueCopy { .. }),
        ServerRequest::CatalogueCopy { after: Some(300) }.into(), "63 | 01 ac 02";
    Request::Server(ServerRequest::Unprotected { .. }),
        ServerRequest::Unprotected { from: FILE, count: 300 }.into(), "64 | 09 ac 02";
    Request::Node(NodeRequest::Find(_)), NodeRequest::Find(place()).into(), "70 | 09 01 61";
    Request::Node(NodeRequest::Look { .. }), NodeRequest::Look { node: FILE }.into(), "71 | 09";
    Request::Node(NodeRequest::Make(_)), NodeRequest::Make(Box::new(new_node())).into(),
        "72 | 09 01 61 e8 07 02 07 a0 03 02 00 01 62";
    Request::Node(NodeRequest::Change { .. }),
        NodeRequest::Change { node: FILE, changes: changes() }.into(),
        "73 | 09 01 a0 03 01 07 00 01 03 01 ac 02";
    Request::Node(NodeRequest::Remove { .. }),
        NodeRequest::Remove { place: place(), is_directory: true }.into(), "74 | 09 01 61 01";
    Request::Node(NodeRequest::Rename { .. }), rename_node(), "75 | 09 01 61 03 01 62 02";
    Request::Node(NodeRequest::List { .. }),
        NodeRequest::List { directory: FILE, after: Some(b()) }.into(), "76 | 09 01 01 62";
    Request::Node(NodeRequest::Path { .. }), NodeRequest::Path { node: FILE }.into(), "77 | 09";
});

pinned!(reply: Reply {
    Reply::Done, Reply::Done, "00";
    Reply::Moved { .. }, Reply::Moved { bytes: 300 }, "01 | ac 02";
    Reply::Entry(_), Reply::Entry(entry()),
        "02 | 01 61 e8 07 02 ac 02 00 00 00 00 00 00 00 00 00 00 00";
    Reply::Entries { .. }, Reply::Entries { entries: vec![entry()], more: true },
        "03 | 01 01 61 e8 07 02 ac 02 00 00 00 00 00 00 00 00 00 00 00 01";
    Reply::Status(_), Reply::Status(Box::new(status())),
        "04 | 01 02 03 04 05 06 01 07 08 01 01 09 01 01 14 01 01 01 02 0a 0b 11 0c 0d 0e 0f 10 12 \
         13";
    Reply::Buffers(_), Reply::Buffers(buffer_statistics()), "05 | 01 02 03 04 05";
    Reply::Digests(_), Reply::Digests(vec![1, 300]), "06 | 02 01 ac 02";
    Reply::Size(_), Reply::Size(SIZE), "07 | 01 ac 02";
    Reply::Sizes { .. }, Reply::Sizes { sizes: vec![(FILE, SIZE, TIME)], more: false },
        "08 | 01 09 01 ac 02 ac 02 00";
    Reply::NoRoom, Reply::NoRoom, "09";
    Reply::InUse, Reply::InUse, "0a";
    Reply::Gathered(_), Reply::Gathered(vec![vec![8, 9], vec![]]), "0b | 02 02 08 09 00";
    Reply::Counter { .. }, Reply::Counter { before: 300 }, "0c | ac 02";
    Reply::Plan { .. }, Reply::Plan { blocks: vec![planned_block()], looked_at: 3, more: true },
        "0d | 01 01 ac 02 01 02 08 03 01";
    Reply::Line { .. }, Reply::Line { line: LINE, is_last_copy: true }, "0e | 09 01 01";
    Reply::HasLine, Reply::HasLine, "0f";
    Reply::SendLine(_), Reply::SendLine(LineTaker { address: a(), ticket: 5, number: 3 }),
        "10 | 01 61 05 03";
    Reply::Nameless, Reply::Nameless, "11";
    Reply::Measured { .. }, Reply::Measured { size: SIZE, modified: TIME }, "12 | 01 ac 02 ac 02";
    Reply::Modified { .. }, Reply::Modified { at: TIME }, "13 | ac 02";
    Reply::Node(_), Reply::Node(Box::new(node_entry())),
        "14 | 09 01 01 61 e8 07 02 ac 02 00 00 00 00 00 00 00 00 00 00 00 a0 03 01 07 00 03 04";
    Reply::Nodes { .. }, Reply::Nodes { entries: vec![node_entry()], more: true },
        "15 | 01 09 01 01 61 e8 07 02 ac 02 00 00 00 00 00 00 00 00 00 00 00 a0 03 01 07 00 03 04 \
         01";
    Reply::MovedTogether { .. }, Reply::MovedTogether { bytes: 300, calls_alone: 8 },
        "16 | ac 02 08";
    Reply::Lease { .. }, Reply::Lease { is_granted: true }, "17 | 01";
    Reply::Copied { .. }, Reply::Copied { position: 300 }, "18 | ac 02";
    Reply::Length { .. }, Reply::Length { bytes: Some(300) }, "19 | 01 ac 02";
    Reply::Servers(_), Reply::Servers(vec![SERVER]), "1a | 01 01";
    Reply::Scrubbed(_), Reply::Scrubbed(scrubbed()), "1b | 01 ac 02 01 02 03 04 01 05 06 01 07 08";
    Reply::LostCopy, Reply::LostCopy, "1c";
    Reply::Select(_), Reply::Select(Box::new(SelectReply::Number(Reduced::Count(3)))),
        "1d | 02 00 03";
    Reply::CatalogueCopy { .. },
        Reply::CatalogueCopy { position: 3, records: vec![(9, a().into())], more: true },
        "1e | 03 01 09 01 61 01";
    Reply::Unprotected(_), Reply::Unprotected(unprotected()), "1f | 01 09 ac 02 05 01 02 06 01 01";
});

pinned!(cooperation: Cooperation {
    Cooperation::Base, Cooperation::Base, "00";
    Cooperation::GreedyForwarding, Cooperation::GreedyForwarding, "01";
    Cooperation::CentrallyCoordinated, Cooperation::CentrallyCoordinated, "02";
    Cooperation::GloballyManaged, Cooperation::GloballyManaged, "03";
    Cooperation::NChance, Cooperation::NChance, "04";
});

pinned!(cache_request: CacheRequest {
    CacheRequest::Register(_), CacheRequest::Register(registration()),
        "00 | ac 02 02 02 07 01 61 05";
    CacheRequest::Read { .. }, CacheRequest::Read { line: LINE, dropped: vec![LINE] },
        "01 | 09 01 01 09 01";
    CacheRequest::Write { .. },
        CacheRequest::Write { line: LINE, offset: 2, keeps: true, dropped: vec![LINE] },
        "02 | 09 01 02 01 01 09 01";
    CacheRequest::Own { .. },
        CacheRequest::Own { line: LINE, fetches: true, dropped: vec![LINE] },
        "03 | 09 01 01 01 09 01";
    CacheRequest::WriteBack { .. }, CacheRequest::WriteBack { line: LINE, keeps: false },
        "04 | 09 01 00";
    CacheRequest::Evict { .. }, CacheRequest::Evict { line: LINE, chances: Some(2) },
        "05 | 09 01 01 02";
    CacheRequest::Settle { .. }, CacheRequest::Settle { line: LINE }, "06 | 09 01";
    CacheRequest::Withdraw, CacheRequest::Withdraw, "07";
});

pinned!(cache_command: CacheCommand {
    CacheCommand::Send { .. },
        CacheCommand::Send { number: 3, line: LINE, reader: line_reader(), moves: true },
        "00 | 03 09 01 01 61 05 07 01";
    CacheCommand::Invalidate { .. }, CacheCommand::Invalidate { number: 3, line: LINE },
        "01 | 03 09 01";
    CacheCommand::WriteBack { .. }, CacheCommand::WriteBack { number: 3, line: LINE },
        "02 | 03 09 01";
    CacheCommand::Store { .. }, CacheCommand::Store { line: LINE, replaces: Some(LINE) },
        "03 | 09 01 01 09 01";
    CacheCommand::Expect { .. },
        CacheCommand::Expect { answer: 4, number: 3, line: LINE, chances: 2 },
        "04 | 04 03 09 01 02";
    CacheCommand::Confirm { .. }, CacheCommand::Confirm { number: 3 }, "05 | 03";
});

pinned!(sent_line: SentLine {
    SentLine::Requested { .. },
        SentLine::Requested { ticket: 5, id: ID, line: LINE, is_last_copy: true },
        "00 | 05 07 09 01 01";
    SentLine::Evicted { .. }, SentLine::Evicted { ticket: 5, number: 3, line: LINE },
        "01 | 05 03 09 01";
});

pinned!(group_message: GroupMessage {
    GroupMessage::Join { .. }, GroupMessage::Join { group: 7, client: ClientId(2) }, "00 | 07 02";
    GroupMessage::Agree { .. },
        GroupMessage::Agree { number: 1, round: 2, values: vec![(ClientId(3), 4)], fault: None },
        "01 | 01 02 01 03 04 00";
    GroupMessage::Leave, GroupMessage::Leave, "02";
    GroupMessage::Broken { .. }, GroupMessage::Broken { fault: Fault::Cancelled }, "03 | 1b";
});

pinned!(fault: Fault {
    Fault::NoSuchFile { .. }, Fault::NoSuchFile { name: a() }, "00 | 01 61";
    Fault::FileExists { .. }, Fault::FileExists { name: a() }, "01 | 01 61";
    Fault::BadName { .. }, Fault::BadName { name: a(), cause: b() }, "02 | 01 61 01 62";
    Fault::NoSuchDirectory { .. }, Fault::NoSuchDirectory { name: a() }, "03 | 01 61";
    Fault::NotADirectory { .. }, Fault::NotADirectory { name: a() }, "04 | 01 61";
    Fault::IsADirectory { .. }, Fault::IsADirectory { name: a() }, "05 | 01 61";
    Fault::DirectoryNotEmpty { .. }, Fault::DirectoryNotEmpty { name: a() }, "06 | 01 61";
    Fault::BadAccess { .. }, Fault::BadAccess { cause: a() }, "07 | 01 61";
    Fault::BadRequest { .. }, Fault::BadRequest { cause: a() }, "08 | 01 61";
    Fault::WrongVersion { .. }, Fault::WrongVersion { client: 1, server: 2 }, "09 | 01 02";
    Fault::NoSpace { .. }, Fault::NoSpace { server: SERVER, cause: a() }, "0a | 01 01 61";
    Fault::Corrupt { .. }, corrupt(), "0b | 01 61 01 02 01 01 62";
    Fault::DiskFailed { .. }, Fault::DiskFailed { server: SERVER, cause: a() }, "0c | 01 01 61";
    Fault::ClientLeft { .. }, Fault::ClientLeft { client: ClientId(2), cause: a() },
        "0d | 02 01 61";
    Fault::ServerLeft { .. }, Fault::ServerLeft { server: SERVER, cause: a() }, "0e | 01 01 61";
    Fault::CatalogueFailed { .. }, Fault::CatalogueFailed { cause: a() }, "0f | 01 61";
    Fault::TransferFailed { .. }, Fault::TransferFailed { cause: a() }, "10 | 01 61";
    Fault::PastEnd { .. }, Fault::PastEnd { file: a(), bytes: 300 }, "11 | 01 61 ac 02";
    Fault::MembersMissing { .. }, members_missing(), "12 | 02 01 03 01 61 ac 02";
    Fault::CallsDiffer { .. }, Fault::CallsDiffer { cause: a() }, "13 | 01 61";
    Fault::ServerStalled { .. }, Fault::ServerStalled { server: SERVER, waited_ms: 300 },
        "14 | 01 ac 02";
    Fault::CounterOverflow { .. }, Fault::CounterOverflow { value: 1, add: 300 }, "15 | 01 ac 02";
    Fault::LockTimedOut { .. }, lock_timed_out(), "16 | 03 01 02 ac 02";
    Fault::ReadOnly, Fault::ReadOnly, "17";
    Fault::IsSpecial { .. }, Fault::IsSpecial { name: a(), kind: b() }, "18 | 01 61 01 62";
    Fault::WritesLost { .. }, Fault::WritesLost { cause: a() }, "19 | 01 61";
    Fault::BadSelection { .. }, Fault::BadSelection { cause: a() }, "1a | 01 61";
    Fault::Cancelled, Fault::Cancelled, "1b";
});

/// The explicit numbers of enums without fields are those that postcard counts.
#[test]
fn numbers_of_variants_are_their_positions() {
    let numbers = [
        (encode_record(&Direction::Write), Direction::Write as u8),
        (encode_record(&DiskOrder::Staggered), DiskOrder::Staggered as u8),
        (encode_record(&Declared::GlobalSequential), Declared::GlobalSequential as u8),
        (encode_record(&LockKind::Exclusive), LockKind::Exclusive as u8),
    ];
    for (bytes, number) in numbers {
        assert_eq!(bytes, [number]);
    }
}

const ID: RequestId = RequestId(7);
const FILE: FileId = FileId(9);
const SERVER: ServerId = ServerId(1);
const DISK: DiskId = DiskId(2);
const TIME: Timestamp = Timestamp::from_ns(300);
const MADE: Made = Made { owner: 1000, at_s: 2 };
const SIZE: FileSize = FileSize { cuts: 1, bytes: 300 };

fn a() -> String {
    "a".to_owned()
}

fn b() -> String {
    "b".to_owned()
}

fn buffering() -> Buffering {
    Buffering {
        declared: Declared::Sequential,
        replacement: Some(Replacement::Mru),
        prefetch: Some(Prefetch::Next),
        blocks_min: 2,
        blocks_max: 3,
    }
}

fn record() -> FileRecord {
    let map = vec![0, 1].try_into().ok();
    FileRecord {
        file: FILE,
        name: a(),
        bytes: 300,
        cuts: 1,
        stripe: Stripe { placement: map.into(), ..Stripe::round_robin(64, 2, 3) },
        pool: Pool::all(2),
        buffering: buffering(),
        protection: Protection::Mirror,
    }
}

fn row() -> RowRequest {
    RowRequest {
        record: record(),
        row: 300,
        offset: 4,
        length: 5,
        rest: vec![ServerId(2), ServerId(1)],
    }
}

fn defaults() -> FileDefaults {
    FileDefaults {
        block_bytes: Some(64),
        servers: Some(2),
        pool: vec![ServerId(4)],
        map: vec![ServerId(5)],
        buffering: buffering(),
        protection: Some(Protection::Mirror),
    }
}

fn entry() -> Entry {
    let kind = EntryKind::Directory(FileDefaults::default());
    Entry { name: a(), made: MADE, modified: TIME, kind }
}

fn place() -> Place {
    Place { directory: FILE, part: a() }
}

fn new_node() -> NewNode {
    let kind = NewKind::Special(Special::Link { target: b() });
    NewNode { place: place(), made: MADE, group: 7, mode: 0o640, kind }
}

fn changes() -> AttributeChanges {
    let (accessed, modified) = (Some(Timestamp::from_ns(3)), Some(TIME));
    AttributeChanges { mode: Some(0o640), owner: Some(7), group: None, accessed, modified }
}

fn rename_node() -> Request {
    let to = Place { directory: FileId(3), part: b() };
    NodeRequest::Rename { from: place(), to, manner: RenameManner::Exchange }.into()
}

fn node_entry() -> NodeEntry {
    let (accessed, changed) = (Timestamp::from_ns(3), Timestamp::from_ns(4));
    let attributes = Attributes { mode: 0o640, owner: Some(7), group: None, accessed, changed };
    NodeEntry { node: FILE, is_named: true, entry: entry(), attributes }
}

fn distribution() -> Distribution {
    Distribution {
        shape: vec![4, 5],
        record_bytes: 8,
        dimensions: vec![Dimension::Block, Dimension::None],
        grid: vec![2, 1],
        clients: 3,
    }
}

fn nested() -> Nested {
    let level = Level { count: 4, file_stride: 5, memory_stride: 6 };
    Nested { file_offset: 1, memory_offset: 2, length: 3, levels: vec![level] }
}

fn dealt() -> OwnPart {
    OwnPart::Dealt { distribution: distribution(), client: ClientId(2), file_offset: 300 }
}

fn list_entry() -> ListEntry {
    ListEntry { file_offset: 1, memory_offset: 2, length: 3 }
}

fn read() -> ReadRequest {
    let region = RegionId(5);
    ReadRequest { file: FILE, block: 1, offset: 2, length: 3, region, region_offset: 4 }
}

fn pull() -> PullRequest {
    let region = RegionId(5);
    PullRequest { file: FILE, block: 1, offset: 2, length: 3, region, region_offset: 4 }
}

fn all_gather() -> AllGatherRequest {
    let (name, group, rank, bytes) = (a(), Some(7), ClientId(1), vec![8, 9]);
    AllGatherRequest { name, group, rank, size: 2, timeout_ms: 300, bytes }
}

fn register() -> RegisterRequest {
    let members = vec![(ClientId(0), ClientKey(5)), (ClientId(1), ClientKey(6))];
    RegisterRequest { group: 7, size: 2, members }
}

fn join() -> JoinRequest {
    let members = [(0, 3), (1, 3), (3, 4)];
    let members = members.map(|(rank, region)| (ClientId(rank), RegionId(region)));
    JoinRequest {
        call: CALL,
        parameters: CollectiveCall {
            direction: Direction::Write,
            file: FILE,
            order: DiskOrder::Sorted,
            sync: true,
        },
        members: MemberRun::of(members),
        access: Ok(Access::All { bytes: 6, clients: 3 }),
        timeout_ms: 300,
    }
}

fn counter() -> CounterRequest {
    CounterRequest { group: 7, rank: ClientId(1), change: CounterChange::Add(300) }
}

fn lock() -> LockRequest {
    let (rank, kind, timeout_ms) = (ClientId(1), LockKind::Exclusive, 300);
    LockRequest { group: 7, rank, number: 6, kind, start: 2, end: 3, timeout_ms }
}

fn lock_timed_out() -> Fault {
    Fault::LockTimedOut { holder: ClientId(3), start: 1, end: 2, waited_ms: 300 }
}

fn part() -> PartRequest {
    PartRequest {
        number: 6,
        direction: Direction::Read,
        file: FILE,
        access: Access::All { bytes: 6, clients: 2 },
        client: ClientId(1),
        region: RegionId(4),
        order: DiskOrder::Staggered,
    }
}

const CALL: CallId = CallId { group: 7, number: 6 };

const LINE: LineName = LineName { file: FILE, line: 1 };

fn registration() -> CacheRegistration {
    CacheRegistration {
        line_bytes: 300,
        cooperation: Cooperation::CentrallyCoordinated,
        chances: 2,
        global_lines: 7,
        address: a(),
        ticket: 5,
    }
}

fn line_reader() -> LineReader {
    LineReader { address: a(), ticket: 5, id: ID }
}

fn plan() -> PlanRequest {
    PlanRequest {
        direction: Direction::Write,
        file: FILE,
        access: Access::All { bytes: 6, clients: 2 },
        order: DiskOrder::Sorted,
        disk: DiskId(3),
        skipped: 300,
    }
}

fn planned_block() -> PlannedBlock {
    PlannedBlock { block: 1, address: 300, shares: vec![(ClientId(2), 8)] }
}

fn catalogue_change() -> CatalogueChange {
    let records = vec![(9, Some(vec![7, 8])), (10, None)];
    CatalogueChange { from: Some(5), to: 6, records }
}

fn status() -> ServerStatus {
    ServerStatus {
        clients: 1,
        requests: 2,
        bytes_moved: 3,
        cache_bytes: 4,
        dirty_bytes: 5,
        collective_bytes: 6,
        disks: vec![(7, 8)],
        files: vec![(SERVER, 9)],
        protected_parts: vec![(SERVER, 20)],
        copies: vec![ServerId(1)],
        behind: vec![ServerId(2)],
        files_behind: 10,
        repaired: 11,
        refill: RefillStatus {
            unlisted_disks: 17,
            files: 12,
            bytes: 13,
            filled_bytes: 14,
            elapsed_ms: 15,
            lost_files: 16,
        },
        processor: ProcessorUse { user_ns: 18, system_ns: 19 },
    }
}

fn unprotected() -> UnprotectedFiles {
    let unprotected = Unprotected { file_bytes: 300, own_bytes: 5, behind: vec![(ServerId(2), 6)] };
    UnprotectedFiles { files: vec![(FILE, unprotected)], more: true, is_all_known: true }
}

fn scrubbed() -> Scrubbed {
    Scrubbed {
        next: Some(300),
        bytes: 1,
        repaired: 2,
        repaired_copies: 3,
        behind: 4,
        damaged: vec![(5, 6)],
        damaged_copies: vec![(7, 8)],
    }
}

fn buffer_statistics() -> BufferStatistics {
    BufferStatistics { hits: 1, misses: 2, prefetched: 3, prefetched_unused: 4, evictions: 5 }
}

fn corrupt() -> Fault {
    Fault::Corrupt { file: a(), offset: 1, length: 2, server: SERVER, cause: b() }
}

fn members_missing() -> Fault {
    Fault::MembersMissing { missing: vec![ClientId(1), ClientId(3)], call: a(), waited_ms: 300 }
}
