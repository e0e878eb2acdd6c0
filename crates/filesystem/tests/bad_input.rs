//! Proves: a server answers any input with a fault or disconnects, and serves all others as before.
//! Files that do not exist, exist already, or vanish give a fault that says so.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::raw::{KEY, Raw, Reaction, record};
use crate::support;

use filesystem::Fault;
use filesystem::collective::Strategy;
use policy::{
    Access, BYTES_MAX, Buffering, Dimension, Direction, DiskOrder, Distribution, Level, ListEntry,
    LockKind, Nested, PageMap, Pool, Stripe,
};
use support::{
    Cluster, Numbers, Shape, Start, create, expect_equal, for_each_seed, image, memory_of,
    read_back, share, transfer, write_image,
};
use units::{ClientId, Duration, FileId, RegionId, ServerId};
use wire::{
    BlockRequest, CallId, CatalogueRequest, CollectiveCall, CollectiveRequest, CounterChange,
    CounterRequest, DigestsRequest, FileRecord, FileRequest, FileSize, FlushRequest, GroupMessage,
    GroupRequest, JoinRequest, LockRequest, Made, MemberRun, Message, PROTOCOL_VERSION,
    PartRequest, PullRequest, ReadRequest, RegisterRequest, Reply, Request, RequestId,
    ServerRequest, UnlockRequest, WriteRequest,
};
use world::payload::Bytes;
use world::{Clock, Header, OneSided, Payloads};

const FILE_BYTES: u64 = 1000;

/// Clients 0 and 1 write a file; client 2 runs `attack`; then clients 0 and 1 use the file again by
/// every strategy and find it unchanged.
fn unharmed_by<R: 'static, F: Future<Output = R> + 'static>(attack: impl Fn(Start) -> F) -> R {
    let cluster = Cluster::new(Shape { clients: 3, ..Shape::default() });
    let access: Access = "rc".parse::<policy::Pattern>().unwrap().access(2, 8, FILE_BYTES).unwrap();
    let contents = image(1, FILE_BYTES);
    let use_file = |group_number: u64, direction: Direction| {
        let (access, contents) = (access.clone(), contents.clone());
        cluster.run(0..2, move |start| {
            let (access, contents) = (access.clone(), contents.clone());
            async move {
                let group = start.join(group_number).await.unwrap();
                let file = match direction {
                    Direction::Write => {
                        create(&group, "f", FILE_BYTES, start.shape.stripe()).await.unwrap()
                    }
                    Direction::Read => group.client().open("f").await.unwrap(),
                };
                for strategy in Strategy::NAMED {
                    let transfer = transfer(direction, &file, &access, strategy);
                    match direction {
                        Direction::Write => {
                            write_image(&group, &transfer, &contents).await.unwrap();
                        }
                        Direction::Read => {
                            let got = read_back(&group, &transfer).await.unwrap();
                            let wanted = memory_of(&access, group.rank(), &contents);
                            expect_equal(&got, &wanted, "a file after an attack");
                        }
                    }
                }
                group.leave().await;
            }
        })
    };
    use_file(0, Direction::Write);
    let result = cluster.run_alone(2, attack);
    use_file(1, Direction::Read);
    result
}

#[test]
fn bytes_that_are_no_message_end_the_connection() {
    for_each_seed("bad_input", "bytes_that_are_no_message", 40, |seed| {
        unharmed_by(|start| async move {
            let mut numbers = Numbers::new(seed);
            let raw = match seed % 2 {
                0 => Raw::connect(&start).await,
                _ => Raw::greeted(&start).await,
            };
            let length = numbers.below(200) as usize;
            let garbage: Vec<u8> = (0..length).map(|_| numbers.below(256) as u8).collect();
            raw.send(Header::from_slice(&garbage), None).await;
            // Random bytes may be a message by chance; the test is that all others are served.
            raw.reaction().await;
        });
    });
    let reaction = unharmed_by(|start| async move {
        let raw = Raw::greeted(&start).await;
        raw.send(Header::from_elem(0xff, world::HEADER_BYTES_MAX), None).await;
        raw.reaction().await
    });
    assert!(matches!(reaction, Reaction::HangsUp), "{reaction:?}");
}

#[test]
fn messages_out_of_place_end_the_connection() {
    let request = Message::Request { id: RequestId(5), request: ServerRequest::Status.into() };
    let hello = Message::Hello { version: PROTOCOL_VERSION, key: KEY };
    let strange = [
        vec![request],
        vec![hello.clone(), hello.clone()],
        vec![hello.clone(), Message::Group(GroupMessage::Leave)],
        vec![hello, Message::Reply { id: RequestId(5), result: Ok(Reply::Done) }],
    ];
    for messages in strange {
        let reaction = unharmed_by(|start| {
            let messages = messages.clone();
            async move {
                let raw = Raw::connect(&start).await;
                for message in &messages {
                    raw.send_message(message).await;
                }
                raw.reaction().await
            }
        });
        assert!(matches!(reaction, Reaction::HangsUp), "{reaction:?} to {messages:?}");
    }
}

#[test]
fn client_of_another_version_gets_a_fault() {
    let reaction = unharmed_by(|start| async move {
        let raw = Raw::connect(&start).await;
        raw.send_message(&Message::Hello { version: PROTOCOL_VERSION + 1, key: KEY }).await;
        raw.ask(ServerRequest::Status, None).await
    });
    let told = matches!(reaction, Reaction::Answers(Err(Fault::WrongVersion { .. })));
    assert!(told, "{reaction:?}");
}

/// A request, and the body of its message.
type RequestWithBody = (Request, Option<Vec<u8>>);

/// Invalid requests; the file of the test is number 1, with 64 bytes in a block.
fn senseless() -> Vec<RequestWithBody> {
    let mut all = senseless_reads();
    all.extend(senseless_writes());
    for request in senseless_records()
        .into_iter()
        .chain(senseless_names_and_sizes())
        .chain(senseless_of_groups())
    {
        all.push((request, None));
    }
    all.extend(senseless_parts());
    all
}

/// Reads, pulls and digests.
fn senseless_reads() -> Vec<RequestWithBody> {
    let read = |file, block, offset, length| {
        let region = RegionId(0);
        let file = FileId(file);
        ReadRequest { file, block, offset, length, region, region_offset: 0 }.into()
    };
    let pull = |file, block, offset, length| {
        let (file, region) = (FileId(file), RegionId(9));
        let region_offset = 1 << 40;
        let pull = PullRequest { file, block, offset, length, region, region_offset };
        BlockRequest::Pull(pull).into()
    };
    let digests = |file, block, piece_bytes| {
        BlockRequest::Digests(DigestsRequest { file: FileId(file), block, piece_bytes }).into()
    };
    let requests: [Request; 18] = [
        read(99, 0, 0, 8),
        read(1, 1, 0, 8),  // a block of the other server
        read(1, 16, 0, 8), // beyond the end
        read(1, u64::MAX, 0, 8),
        read(1, 0, 60, 8),
        read(1, 0, u64::MAX, 8),
        read(1, 0, 8, u64::MAX),
        read(1, 0, 0, 0),
        pull(99, 0, 0, 8),
        pull(1, 1, 0, 8),
        pull(1, 0, 60, 8),
        pull(1, 0, 0, 0),
        pull(1, 0, 8, u64::MAX),
        pull(1, 0, 0, 8), // a memory that nobody has exposed
        digests(99, 0, 8),
        digests(1, 1, 8),
        digests(1, u64::MAX, 8),
        digests(1, 0, 0),
    ];
    requests.map(|request| (request, None)).into()
}

/// Writes and flushes.
fn senseless_writes() -> Vec<RequestWithBody> {
    let write = |file, block, offset| WriteRequest { file: FileId(file), block, offset }.into();
    let some = Some(vec![1; 10]);
    vec![
        (write(99, 0, 0), some.clone()),
        (write(1, 0, 0), None),
        (write(1, 0, 60), some.clone()),
        (write(1, 1, 0), some),
        (write(1, 0, 0), Some(Vec::new())),
        (BlockRequest::Flush(FlushRequest { file: FileId(99), sync: true }).into(), None),
    ]
}

/// Records of files to open or to create.
fn senseless_records() -> Vec<Request> {
    let map = |turns: &[u32]| PageMap::try_from(turns.to_vec()).ok();
    let good = Stripe::round_robin(64, 2, 1);
    let open = |bytes, stripe| FileRequest::Open(record(1, bytes, stripe)).into();
    let none = Buffering { blocks_min: 2, blocks_max: 1, ..Buffering::default() };
    let create = |record| CatalogueRequest::Create { record, made: Made::default() }.into();
    let named = |servers: &[u32]| Pool::Named(servers.iter().copied().map(ServerId).collect());
    vec![
        open(FILE_BYTES, Stripe { block_bytes: 0, ..good.clone() }),
        open(FILE_BYTES, Stripe { servers: 0, ..good.clone() }),
        open(FILE_BYTES, Stripe { servers: 3, ..good.clone() }),
        open(FILE_BYTES, Stripe { disks_per_server: u32::MAX, ..good.clone() }),
        FileRequest::Open(record(5, u64::MAX, good.clone())).into(),
        FileRequest::Open(FileRecord { pool: Pool::all(3), ..record(5, 1, good.clone()) }).into(),
        FileRequest::Open(FileRecord { pool: named(&[1, 1]), ..record(5, 1, good.clone()) }).into(),
        FileRequest::Open(FileRecord { pool: named(&[0, 2]), ..record(5, 1, good.clone()) }).into(),
        FileRequest::Open(FileRecord { pool: named(&[]), ..record(5, 1, good.clone()) }).into(),
        create(FileRecord { buffering: none, ..record(0, 1, good.clone()) }),
        create(record(0, u64::MAX, good.clone())),
        create(record(0, BYTES_MAX + 1, good.clone())),
        create(FileRecord { pool: named(&[0]), ..record(0, 1, good.clone()) }),
        open(FILE_BYTES, Stripe { placement: map(&[0, 2]).into(), ..good.clone() }),
        create(FileRecord { name: "a//b".to_owned(), ..record(0, 1, good.clone()) }),
        create(FileRecord { name: "../b".to_owned(), ..record(0, 1, good) }),
    ]
}

/// Names and sizes of files and directories.
fn senseless_names_and_sizes() -> Vec<Request> {
    let too_large = FileSize { cuts: 7, bytes: BYTES_MAX + 1 };
    vec![
        CatalogueRequest::Stat { name: "x".repeat(1 << 20) }.into(),
        CatalogueRequest::Remove { name: String::new() }.into(),
        CatalogueRequest::Rename { from: String::new(), to: "r".to_owned(), replace: false }.into(),
        CatalogueRequest::Rename { from: "f".to_owned(), to: String::new(), replace: true }.into(),
        FileRequest::Resize { file: FileId(99), size: FileSize::default() }.into(),
        FileRequest::Resize { file: FileId(1), size: too_large }.into(),
        CatalogueRequest::RecordSize { file: FileId(99), size: FileSize::default() }.into(),
        CatalogueRequest::RecordSize { file: FileId(1), size: too_large }.into(),
        CatalogueRequest::MakeDirectory { name: String::new(), made: Made::default() }.into(),
        CatalogueRequest::List { directory: "f".to_owned(), after: None }.into(),
    ]
}

/// Requests of members, of a group that has none.
fn senseless_of_groups() -> Vec<Request> {
    let (group, rank, number) = (u64::MAX, ClientId(0), 0);
    let lock = |start, end| {
        let (kind, timeout_ms) = (LockKind::Exclusive, u64::MAX);
        GroupRequest::Lock(LockRequest { group, rank, number, kind, start, end, timeout_ms }).into()
    };
    vec![
        GroupRequest::Counter(CounterRequest { group, rank, change: CounterChange::Set(1) }).into(),
        lock(0, 1),
        lock(u64::MAX, 0),
        GroupRequest::Unlock(UnlockRequest { group, rank, number }).into(),
    ]
}

/// Parts of single clients.
fn senseless_parts() -> Vec<RequestWithBody> {
    let part = |file, access, client| {
        let (file, client, region) = (FileId(file), ClientId(client), RegionId(0));
        let (direction, order) = (Direction::Write, DiskOrder::Sorted);
        let part = PartRequest { number: 7, direction, file, access, client, region, order };
        (CollectiveRequest::Part(Box::new(part)).into(), None)
    };
    let all = |bytes, clients| Access::All { bytes, clients };
    vec![
        part(99, all(FILE_BYTES, 1), 0),
        part(1, all(FILE_BYTES, 1), 1),
        part(1, all(FILE_BYTES, 1), u32::MAX),
        part(1, all(FILE_BYTES, 0), 0),
        part(1, all(FILE_BYTES + 1, 1), 0),
        part(1, all(FILE_BYTES, 1), 0), // a memory that nobody has exposed
        part(1, Access::lists(vec![]), 0),
    ]
}

#[test]
fn senseless_requests_are_refused() {
    for (request, body) in senseless() {
        let reaction = unharmed_by(|start| {
            let (request, body) = (request.clone(), body.clone());
            async move {
                let raw = Raw::greeted(&start).await;
                if !matches!(request, Request::File(FileRequest::Open(_))) {
                    let open = record(1, FILE_BYTES, start.shape.stripe());
                    let opened = raw.ask(FileRequest::Open(open), None).await;
                    let is_open = matches!(opened, Reaction::Answers(Ok(Reply::Size(_))));
                    assert!(is_open, "{opened:?}");
                }
                raw.ask(request, body.map(Bytes::from)).await
            }
        });
        assert!(matches!(reaction, Reaction::Answers(Err(_))), "{reaction:?} to {request:?}");
    }
}

#[test]
fn open_with_another_stripe_than_the_first_is_refused() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 2, ..Shape::default() });
    let (first, second) = cluster.run_alone(0, |start| async move {
        let raw = Raw::greeted(&start).await;
        let lie = Stripe { block_bytes: 8, ..start.shape.stripe() };
        let lie = raw.ask(FileRequest::Open(record(1, FILE_BYTES, lie)), None).await;
        let truth = record(1, FILE_BYTES, start.shape.stripe());
        (lie, raw.ask(FileRequest::Open(truth), None).await)
    });
    assert!(matches!(first, Reaction::Answers(Ok(_))), "{first:?}");
    assert!(matches!(second, Reaction::Answers(Err(Fault::BadRequest { .. }))), "{second:?}");
}

/// Invalid accesses of a collective of one client.
fn hostile() -> Vec<Access> {
    let entry =
        |file_offset, memory_offset, length| ListEntry { file_offset, memory_offset, length };
    let level = |count, file_stride, memory_stride| Level { count, file_stride, memory_stride };
    let nested = |length, levels| Nested { file_offset: 0, memory_offset: 0, length, levels };
    let distribution = |shape: Vec<u64>, grid: Vec<u32>, clients| {
        let dimensions = vec![Dimension::Cyclic(1); shape.len()];
        Access::Distribution(Distribution { shape, record_bytes: 8, dimensions, grid, clients })
    };
    vec![
        Access::All { bytes: u64::MAX, clients: 1 },
        Access::All { bytes: FILE_BYTES, clients: 2 },
        Access::All { bytes: FILE_BYTES, clients: 0 },
        Access::All { bytes: FILE_BYTES, clients: u32::MAX },
        Access::lists(vec![vec![entry(0, 0, 10), entry(5, 10, 10)]]),
        Access::lists(vec![vec![entry(0, 0, 10), entry(10, 5, 10)]]),
        Access::lists(vec![vec![entry(u64::MAX, 0, 10)]]),
        Access::lists(vec![vec![entry(0, u64::MAX, 10)]]),
        Access::lists(vec![vec![entry(0, 0, 0)]]),
        Access::lists(vec![vec![entry(0, 1 << 40, 10)]]), // in the file, but outside the memory
        Access::lists(vec![]),
        Access::nested(vec![nested(8, vec![level(u64::MAX, 8, 8)])]),
        Access::nested(vec![nested(8, vec![level(u64::MAX, u64::MAX, u64::MAX); 16])]),
        Access::nested(vec![nested(8, vec![level(2, 8, 8); 60])]),
        Access::nested(vec![nested(8, vec![level(10, 0, 0)])]),
        distribution(vec![u64::MAX, u64::MAX], vec![1, 1], 1),
        distribution(vec![125], vec![u32::MAX], u32::MAX),
        distribution(vec![125], vec![0], 1),
        distribution(vec![], vec![], 1),
        distribution(vec![125], vec![1, 1], 1),
        distribution(vec![1; 40], vec![1; 40], 1),
    ]
}

#[test]
fn hostile_collectives_are_refused() {
    for access in hostile() {
        for direction in [Direction::Read, Direction::Write] {
            let reaction = unharmed_by(|start| {
                let access = access.clone();
                async move {
                    let raw = Raw::greeted(&start).await;
                    let open = record(1, FILE_BYTES, start.shape.stripe());
                    raw.ask(FileRequest::Open(open), None).await;
                    let memory = start.world.memory(FILE_BYTES);
                    let region = start.world.expose(&memory, &[raw.server]).await.unwrap();
                    let members = vec![(ClientId(0), KEY)];
                    let register = RegisterRequest { group: 7, size: 1, members };
                    raw.ask(GroupRequest::Register(Box::new(register)), None).await;
                    let request = CollectiveRequest::Join(Box::new(JoinRequest {
                        call: CallId { group: 7, number: 0 },
                        parameters: CollectiveCall {
                            direction,
                            file: FileId(1),
                            order: DiskOrder::Sorted,
                            sync: false,
                        },
                        members: vec![MemberRun { first: ClientId(0), count: 1, region }],
                        access: Ok(access),
                        timeout_ms: 500,
                    }));
                    raw.ask(request, None).await
                }
            });
            assert!(matches!(reaction, Reaction::Answers(Err(_))), "{reaction:?} to {access:?}");
        }
    }
}

#[test]
fn files_that_are_not_there_or_already_are() {
    let cluster = Cluster::<Bytes>::new(Shape::default());
    cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let stripe = start.shape.stripe();
        let missing = |fault| matches!(fault, Fault::NoSuchFile { name } if name == "f");
        assert!(missing(client.open("f").await.unwrap_err()));
        assert!(missing(client.stat("f").await.unwrap_err()));
        assert!(missing(client.remove("f").await.unwrap_err()));
        assert!(client.list("").await.unwrap().is_empty());
        let made = client.create("f", 100, stripe.clone()).await.unwrap();
        let again = client.create("f", 100, stripe.clone()).await.unwrap_err();
        assert!(matches!(again, Fault::FileExists { name } if name == "f"));
        assert_eq!(client.stat_file("f").await.unwrap(), made);
        client.create("e", 0, stripe.clone()).await.unwrap();
        let names: Vec<String> =
            client.list("").await.unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["e", "f"]);
        client.remove("f").await.unwrap();
        assert!(missing(client.open("f").await.unwrap_err()));
        let other = client.create("f", 100, stripe.clone()).await.unwrap();
        assert_ne!(other.file, made.file, "a number must never be used again");
        for name in ["a\0b", "\0", "/a", "a/", "a/./b", &"x".repeat(256)] {
            let fault = client.create(name, 100, stripe.clone()).await.unwrap_err();
            assert!(matches!(fault, Fault::BadName { .. }), "{name:?}: {fault}");
        }
        client.create(&"ä".repeat(127), 100, stripe.clone()).await.unwrap();
        let nowhere = Stripe { servers: 9, ..stripe };
        assert!(matches!(client.create("g", 1, nowhere).await, Err(Fault::BadRequest { .. })));
        assert!(matches!(client.stat("g").await, Err(Fault::NoSuchFile { .. })));
    });
}

#[test]
fn a_file_removed_in_use_serves_its_users() {
    // Proves: transfers of every strategy go on when the file loses its name, and all of its data
    // goes with its last user.
    for_each_seed("bad_input", "a_file_removed_in_use", 60, |seed| {
        let cache_blocks = seed % 3 * seed;
        let cluster = Cluster::<Bytes>::new(Shape { cache_blocks, ..Shape::default() });
        let strategy = Strategy::NAMED[(seed % 6) as usize];
        let access = "wc".parse::<policy::Pattern>().unwrap().access(4, 8, 2000).unwrap();
        let direction = match seed / 6 % 2 {
            0 => Direction::Write,
            _ => Direction::Read,
        };
        cluster.run(0..4, |start| {
            let access = access.clone();
            async move {
                let group = start.join(0).await.unwrap();
                let file = create(&group, "f", 2000, start.shape.stripe()).await.unwrap();
                let bytes = access.memory_bytes(group.rank()) as usize;
                let memory = share(&group, vec![1; bytes]).await.unwrap();
                let transfer = transfer(direction, &file, &access, strategy);
                let some_transfers = async || {
                    for _ in 0..6 {
                        group.transfer(&transfer, &memory).await.unwrap();
                    }
                };
                let remove = async {
                    if group.rank() == ClientId(3) {
                        start.world.sleep(Duration::from_us(seed * 100)).await;
                        group.client().remove("f").await.unwrap();
                    }
                };
                futures_util::future::join(some_transfers(), remove).await;
                group.barrier().await.unwrap();
                assert!(group.client().stat("f").await.is_err());
                some_transfers().await;
                group.leave().await;
            }
        });
        assert_all_freed(&cluster, 0);
    });
}

/// Asserts that nothing of any file is left in the caches and on the disks.
fn assert_all_freed(cluster: &Cluster<Bytes>, client: u32) {
    cluster.run_alone(client, |start| async move {
        let client = start.connect().await.unwrap();
        client.drop_nameless().await.unwrap();
        for status in client.status().await {
            let status = status.unwrap();
            assert_eq!(status.cache_bytes, 0, "something is left in a cache");
            assert!(status.disks.iter().all(|(capacity, free)| capacity == free));
        }
    });
}

#[test]
fn answer_that_fits_no_message_becomes_a_fault() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 1, ..Shape::default() });
    cluster.run_alone(0, |start| async move {
        let group = start.join(0).await.unwrap();
        let bytes = 1 << 40;
        let file = create(&group, "f", bytes, start.shape.stripe()).await.unwrap();
        let entry = |at: u64| ListEntry { file_offset: at << 20, memory_offset: 0, length: 1 };
        let far = |at: u64| ListEntry { memory_offset: at, ..entry(at) };
        let access = Access::lists(vec![(0..1 << 20).map(far).collect()]);
        let memory = share(&group, vec![0; 1 << 20]).await.unwrap();
        let transfer = transfer(Direction::Read, &file, &access, Strategy::DiskDirected);
        let fault = group.transfer(&transfer, &memory).await.unwrap_err();
        assert!(matches!(fault, Fault::BadRequest { .. }), "{fault}");
    });
}

#[test]
fn a_lie_about_a_stripe_is_no_lie_about_a_size() {
    // Proves: an open or a size request with a wrong stripe neither ends a server nor makes the
    // file longer for others.
    for block in [1 << 57, 1 << 61] {
        let cluster = Cluster::<Bytes>::new(Shape { servers: 2, clients: 2, ..Shape::default() });
        let made = cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let file = client.create("f", 100, start.shape.stripe()).await.unwrap();
            client.close(&file).await.unwrap();
            file
        });
        let lie = FileRecord { stripe: Stripe::round_robin(1, 1, 1), bytes: BYTES_MAX, ..made };
        cluster.run_alone(1, |start| {
            let lie = lie.clone();
            async move {
                let raw = Raw::greeted(&start).await;
                let opened = raw.ask(FileRequest::Open(lie.clone()), None).await;
                assert!(matches!(opened, Reaction::Answers(Ok(_))), "{opened:?}");
                let _ = raw.ask(BlockRequest::Page { file: lie.file, block }, None).await;
                let _ = raw
                    .ask(FileRequest::Close { file: lie.file, recorded: FileSize::default() }, None)
                    .await;
                for block_bytes in [1, 1 << 30] {
                    let stripe = Stripe::round_robin(block_bytes, 1, 1);
                    let measure = FileRequest::Measure(FileRecord { stripe, ..lie.clone() });
                    let _ = raw.ask(measure, None).await;
                }
            }
        });
        cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            assert_eq!(client.open("f").await.unwrap().bytes, 100);
        });
    }
}
