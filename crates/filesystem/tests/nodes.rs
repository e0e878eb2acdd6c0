//! Proves: requests of a mount, by number, change the same names as requests by path, as `rename`
//! and its relatives of POSIX do; attributes and links are there after a crash of the server; and
//! numbers and texts that make no sense are refused.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::raw::{Raw, Reaction};
use crate::support::{Cluster, Numbers, Shape, for_each_seed, start_server};

use filesystem::{Client, Fault};
use std::collections::BTreeMap;
use units::{FileId, Timestamp};
use wire::{
    AttributeChanges, EntryKind, FileRecord, LINK_BYTES_MAX, Made, NewKind, NewNode, NodeEntry,
    NodeRequest, Place, ROOT, RenameManner, Special,
};
use world::payload::Bytes;
use world_simulated::SimulatedWorld;

type TestClient = Client<SimulatedWorld<Bytes>>;

/// Number of each node, and true for directories, by directory and name.
type Model = BTreeMap<(FileId, String), (FileId, bool)>;

fn place(directory: FileId, part: &str) -> Place {
    Place { directory, part: part.to_owned() }
}

fn new(directory: FileId, part: &str, kind: NewKind) -> NewNode {
    let made = Made { owner: 7, at_s: 8 };
    NewNode { place: place(directory, part), made, group: 9, mode: 0o640, kind }
}

fn link(target: &str) -> NewKind {
    NewKind::Special(Special::Link { target: target.to_owned() })
}

fn file(shape: &Shape) -> NewKind {
    NewKind::File(FileRecord {
        file: FileId(0),
        name: "f".to_owned(),
        bytes: 0,
        cuts: 0,
        stripe: shape.stripe(),
        pool: policy::Pool::all(shape.servers),
        buffering: policy::Buffering::default(),
        protection: policy::Protection::None,
    })
}

#[derive(Clone, Debug)]
enum Change {
    Make(Place, bool),
    Remove(Place, bool),
    Rename(Place, Place, RenameManner),
}

/// A change of names in directories that there are, or were.
fn some_change(numbers: &mut Numbers, directories: &[FileId]) -> Change {
    let mut some_place = || {
        let directory = numbers.pick(directories);
        place(directory, numbers.pick(&["a", "b", "c"]))
    };
    let (from, to) = (some_place(), some_place());
    let manners = [RenameManner::Replace, RenameManner::Keep, RenameManner::Exchange];
    match numbers.below(6) {
        0 | 1 => Change::Make(from, true),
        2 => Change::Make(from, false),
        3 => Change::Remove(from, numbers.below(2) == 0),
        _ => Change::Rename(from, to, numbers.pick(&manners)),
    }
}

fn key(place: &Place) -> (FileId, String) {
    (place.directory, place.part.clone())
}

/// Tells if a directory is there: the root, or one that has a name.
fn is_there(model: &Model, directory: FileId) -> bool {
    directory == ROOT || model.values().any(|node| *node == (directory, true))
}

fn is_empty(model: &Model, directory: FileId) -> bool {
    !model.keys().any(|(parent, _)| *parent == directory)
}

/// Tells if `id` is `directory`, or in it at any depth.
fn is_within(model: &Model, mut id: FileId, directory: FileId) -> bool {
    while id != directory {
        match model.iter().find(|(_, (node, _))| *node == id) {
            Some(((parent, _), _)) => id = *parent,
            None => return false,
        }
    }
    true
}

/// Applies a change that is not the creation of a node; false when it must be refused.
fn apply(model: &mut Model, change: &Change) -> bool {
    match change {
        Change::Make(place, _) => {
            is_there(model, place.directory) && !model.contains_key(&key(place))
        }
        Change::Remove(place, is_directory) => match model.get(&key(place)).copied() {
            Some((id, kind)) if kind == *is_directory && (!kind || is_empty(model, id)) => {
                model.remove(&key(place));
                true
            }
            _ => false,
        },
        Change::Rename(from, to, manner) => {
            let Some((id, is_directory)) = model.get(&key(from)).copied() else { return false };
            if !is_there(model, to.directory) || is_within(model, to.directory, id) {
                return false;
            }
            let there = model.get(&key(to)).copied();
            let may = match (there, manner) {
                (Some((other, _)), RenameManner::Replace | RenameManner::Exchange)
                    if other == id =>
                {
                    return true;
                }
                (Some((other, _)), RenameManner::Exchange) => {
                    !is_within(model, from.directory, other)
                }
                (None, RenameManner::Exchange) => false,
                (Some(_), RenameManner::Keep) => false,
                (None, _) => true,
                (Some((other, kind)), RenameManner::Replace) => {
                    kind == is_directory && (!kind || is_empty(model, other))
                }
            };
            if may {
                model.remove(&key(from));
                if let (Some(there), RenameManner::Exchange) = (there, manner) {
                    model.insert(key(from), there);
                }
                model.insert(key(to), (id, is_directory));
            }
            may
        }
    }
}

/// Lists every node from the root.
async fn walk(client: &TestClient) -> Model {
    let (mut found, mut left, mut files) = (Model::new(), vec![ROOT], Vec::<FileRecord>::new());
    while let Some(directory) = left.pop() {
        let (entries, more) = client.list_nodes(directory, None).await.unwrap();
        assert!(!more);
        for entry in entries {
            let part = entry.entry.name.clone();
            let same = client.find_node(place(directory, &part), None).await.unwrap();
            assert_eq!(same, entry);
            // A record speeds it up, and one of another file does no harm.
            files.extend(entry.entry.file().cloned());
            for guess in files.iter().take(3).chain(files.last()) {
                let guess = Some(guess.clone());
                let same = client.find_node(place(directory, &part), guess).await.unwrap();
                assert_eq!(same, entry);
            }
            assert_eq!(client.look_at_node(entry.node, None).await.unwrap(), entry);
            let is_directory = entry.entry.is_directory();
            left.extend(is_directory.then_some(entry.node));
            found.insert((directory, part), (entry.node, is_directory));
        }
    }
    found
}

#[test]
fn names_by_number_are_as_posix_says() {
    for_each_seed("nodes", "names_by_number_are_as_posix_says", 60, |seed| {
        let cluster = Cluster::<Bytes>::new(Shape { clients: 1, seed, ..Shape::default() });
        let model = cluster.run_alone(0, |start| async move {
            let client = start.connect().await.unwrap();
            let (mut numbers, mut model) = (Numbers::new(seed), Model::new());
            let mut directories = vec![ROOT, FileId(u64::MAX)];
            for _ in 0..200 {
                let change = some_change(&mut numbers, &directories);
                let expected = apply(&mut model, &change);
                let outcome = match change.clone() {
                    Change::Make(place, is_directory) => {
                        let Place { directory, part } = &place;
                        let files = [file(&start.shape), link("x")];
                        let kind = match is_directory {
                            true => NewKind::Directory,
                            false => numbers.pick(&files),
                        };
                        let made = client.make_node(new(*directory, part, kind)).await;
                        made.map(|made| {
                            model.insert(key(&place), (made.node, is_directory));
                            directories.extend(is_directory.then_some(made.node));
                        })
                    }
                    Change::Remove(place, is_directory) => {
                        client.remove_node(place, is_directory).await
                    }
                    Change::Rename(from, to, manner) => client.rename_node(from, to, manner).await,
                };
                assert_eq!(outcome.is_ok(), expected, "{change:?}: {outcome:?} in {model:?}");
            }
            assert_eq!(walk(&client).await, model);
            // The same names by path.
            for ((directory, part), (id, _)) in &model {
                let path = client.node_path(*id).await.unwrap().name;
                assert!(path.ends_with(part.as_str()), "{path} in {directory}");
                client.stat(&path).await.unwrap();
            }
            model
        });
        cluster.machine.kill(0);
        cluster.machine.restart(0);
        let _server = start_server(&cluster.machine, &cluster.shape, 0);
        cluster.run_alone(0, |start| {
            let model = model.clone();
            async move { assert_eq!(walk(&start.connect().await.unwrap()).await, model) }
        });
    });
}

#[test]
fn attributes_outlive_a_crash() {
    let cluster = Cluster::<Bytes>::new(Shape { clients: 1, ..Shape::default() });
    let changes = AttributeChanges {
        mode: Some(0o7751),
        owner: Some(3),
        group: Some(4),
        accessed: Some(Timestamp::from_ns(5)),
        modified: Some(Timestamp::from_ns(6)),
    };
    let told = |entry: &NodeEntry| {
        let attributes = entry.attributes;
        let owners = (attributes.owner, attributes.group);
        (attributes.mode, owners, attributes.accessed, entry.entry.modified)
    };
    let set = (0o7751, (Some(3), Some(4)), Timestamp::from_ns(5), Timestamp::from_ns(6));
    let ids = cluster.run_alone(0, |start| async move {
        let client = start.connect().await.unwrap();
        let mut ids = vec![ROOT];
        for (part, kind) in [
            ("d", NewKind::Directory),
            ("f", file(&start.shape)),
            ("l", link("d/../f")),
            ("p", NewKind::Special(Special::Fifo)),
        ] {
            let made = client.make_node(new(ROOT, part, kind)).await.unwrap();
            let owners = (Some(7), Some(9));
            assert_eq!((told(&made).0, told(&made).1), (0o640, owners));
            ids.push(made.node);
        }
        for id in &ids {
            let before = client.look_at_node(*id, None).await.unwrap().attributes.changed;
            let changed = client.change_node(*id, changes).await.unwrap();
            assert_eq!(told(&changed), set);
            assert!(changed.attributes.changed > before, "a change has a time");
        }
        // A file that has lost its name has attributes as long as a client has it open.
        let made = client.make_node(new(ROOT, "open", file(&start.shape))).await.unwrap();
        let record = client.open_node(made.entry.into_file().unwrap()).await.unwrap();
        client.remove_node(place(ROOT, "open"), false).await.unwrap();
        let changed = client.change_node(made.node, changes).await.unwrap();
        assert!(!changed.is_named && told(&changed) == set);
        client.close(&record).await.unwrap();
        let gone = client.look_at_node(made.node, None).await.unwrap_err();
        assert!(matches!(gone, Fault::NoSuchFile { .. }));
        ids
    });
    cluster.machine.kill(0);
    cluster.machine.restart(0);
    let _server = start_server(&cluster.machine, &cluster.shape, 0);
    cluster.run_alone(0, |start| {
        let ids = ids.clone();
        async move {
            let client = start.connect().await.unwrap();
            for id in ids {
                let found = client.look_at_node(id, None).await.unwrap();
                assert_eq!((told(&found).0, told(&found).1), (set.0, set.1), "{id}");
                if id != ROOT {
                    assert_eq!(told(&found), set, "{id}");
                }
            }
            let found = client.find_node(place(ROOT, "l"), None).await.unwrap();
            let target = "d/../f".to_owned();
            assert_eq!(found.entry.kind, EntryKind::Special(Special::Link { target }));
            // By path, it is not a file.
            let refused = client.open("l").await.unwrap_err();
            assert!(matches!(refused, Fault::IsSpecial { .. }), "{refused}");
        }
    });
}

#[test]
fn hostile_requests_by_number_are_refused() {
    let cluster = Cluster::<Bytes>::new(Shape::default());
    cluster.run_alone(0, |start| async move {
        let raw = Raw::greeted(&start).await;
        let nobody = FileId(u64::MAX);
        let make = |part: &str, kind: NewKind| NodeRequest::Make(Box::new(new(ROOT, part, kind)));
        let NewKind::File(record) = file(&start.shape) else { panic!("it is a file") };
        let wide = policy::Stripe { servers: 9, ..record.stripe.clone() };
        let wide = NewKind::File(FileRecord { stripe: wide, ..record });
        let root = || place(ROOT, "");
        let manner = RenameManner::Replace;
        let changes = AttributeChanges::default();
        let refused = [
            make("", NewKind::Directory),
            make("a/b", NewKind::Directory),
            make("..", NewKind::Directory),
            make("a\0b", NewKind::Directory),
            make(&"n".repeat(256), NewKind::Directory),
            make("l", link("")),
            make("l", link(&"t".repeat(LINK_BYTES_MAX + 1))),
            make("f", wide),
            NodeRequest::Find(place(nobody, "a")),
            NodeRequest::Look { node: nobody },
            NodeRequest::Path { node: nobody },
            NodeRequest::List { directory: nobody, after: None },
            NodeRequest::Change { node: nobody, changes },
            NodeRequest::Remove { place: root(), is_directory: true },
            NodeRequest::Rename { from: root(), to: place(ROOT, "a"), manner },
            NodeRequest::Rename { from: place(ROOT, "a"), to: place(nobody, "b"), manner },
        ];
        for request in refused {
            let shown = format!("{request:?}");
            let reaction = raw.ask(request, None).await;
            assert!(matches!(reaction, Reaction::Answers(Err(_))), "{shown}: {reaction:?}");
        }
        let mode = AttributeChanges { mode: Some(u16::MAX), ..changes };
        let request = NodeRequest::Change { node: ROOT, changes: mode };
        assert!(matches!(raw.ask(request, None).await, Reaction::Answers(Ok(_))));
    });
    cluster.run_alone(1, |start| async move {
        let client = start.connect().await.unwrap();
        assert_eq!(client.look_at_node(ROOT, None).await.unwrap().attributes.mode, 0o7777);
        assert!(client.list("").await.unwrap().is_empty());
    });
}
