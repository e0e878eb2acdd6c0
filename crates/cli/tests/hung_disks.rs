//! Proves: when a disk hangs, all that waits for it fails after the limit of its server, and names
//! the server; other servers and disks go on, and when the disk goes on, so does everything.

use crate::{preloaded, support};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{FAILED, Place, run, until};

/// Time after which requests of a disk fail, and how much longer an error may take.
const LIMIT: Duration = Duration::from_secs(2 + 10);

/// An instance with two servers; what one of them writes to `held` can be made to wait.
struct Instance {
    place: Place,
    held: PathBuf,
}

impl Instance {
    fn new(held: &str) -> Option<Self> {
        let place = Place::new();
        let library = preloaded::build(&place.path(""))?;
        let held = place.instance().join("data").join(held);
        let mut start = place.command(&["start", "--servers", "2", "--disk-timeout", "2"]);
        start.env("LD_PRELOAD", &library).env(preloaded::FAULTS, &held);
        run(start).done();
        Some(Self { place, held })
    }

    fn hold(&self) {
        std::fs::write(self.held.join("hold"), b"").expect("a test may write");
    }

    fn release(&self) {
        std::fs::remove_file(self.held.join("hold")).expect("it is there");
    }

    /// Runs a command that must fail in time and name the hang.
    fn fails(&self, words: &[&str], cause: &[&str]) {
        let begun = Instant::now();
        let refused = self.place.run(words).failed(FAILED, &[&["hangs"], cause].concat());
        assert!(begun.elapsed() < LIMIT, "{words:?}: {:?}", begun.elapsed());
        drop(refused);
    }
}

/// Words of a bench that writes to stable storage.
fn bench(strategy: &str) -> Vec<&str> {
    let words = "bench --clients 4 --size 8MiB --pattern wb --record 1MiB --repeat 1 --sync \
                 --strategy";
    words.split_whitespace().chain([strategy]).collect()
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn a_disk_that_hangs_is_named_with_every_strategy() {
    // Proves: while the disk of server 1 hangs, collectives that write to stable storage fail with
    // every strategy, in time, and name that server and the disk; a file of the other server can be
    // read and written. When the disk goes on, so do all strategies.
    let Some(instance) = Instance::new("server-1") else { return };
    let place = &instance.place;
    let content = support::bytes(700_000);
    place.file("little", &content);
    let strategies = [
        "caching",
        "two-phase",
        "disk-directed",
        "noncollective",
        "global-barrier",
        "node-grouping",
    ];
    place.run(&["layout", "set", "--pool", "0", "/"]).code(0);
    place.run(&["put", "little", "other"]).done();
    place.run(&["layout", "set", "--pool", "0,1", "/"]).code(0);
    instance.hold();
    for strategy in strategies {
        instance.fails(&bench(strategy), &["server 1", &path(&instance.held)]);
        assert_eq!(place.run(&["get", "other", "-"]).done().output, content);
    }
    instance.release();
    for strategy in strategies {
        until("the disk goes on", || {
            let ended = place.run(&bench(strategy));
            (ended.exit_code() == Some(0)).then_some(())
        });
    }
    place.assert_nothing_held();
}

#[test]
fn a_change_of_the_catalogue_that_hangs_has_failed() {
    // Proves: while the disk of the catalogue hangs, a new directory fails in time, as do further
    // ones; when the disk goes on, none of them is there, also after a restart, and they can be
    // made.
    let Some(instance) = Instance::new("server-0/catalogue") else { return };
    let place = &instance.place;
    place.run(&["mkdir", "before"]).done();
    instance.hold();
    for name in ["first", "second"] {
        instance.fails(&["mkdir", name], &[]);
    }
    instance.release();
    until("the disk goes on", || {
        (place.run(&["mkdir", "after"]).exit_code() == Some(0)).then_some(())
    });
    let listed = |place: &Place| {
        let listed = place.run(&["ls", "--json"]).done().json();
        let entries = listed["entries"].as_array().expect("it lists entries").clone();
        entries.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(place), ["after", "before"]);
    place.run(&["stop"]).done();
    place.start(&["--servers", "2"]);
    assert_eq!(listed(place), ["after", "before"]);
    place.run(&["mkdir", "first"]).done();
}
