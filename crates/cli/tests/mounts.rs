//! Proves: a mounted instance is a directory for every program, and what other doors have written
//! is seen at once; nothing stays mounted, whoever is killed; what cannot be is an error of the
//! system. Skipped, with a note, where this process cannot mount.

use crate::readme::run_page;
use crate::support::pages::examples;
use crate::support::{
    Place, Running, USAGE, bytes, gone, processes_naming, run, signal, unisono, until,
};
use client::{Connection, Instance};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::process::Signal;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A mount of an instance; unmounted when dropped.
struct Mount {
    directory: PathBuf,
}

impl Mount {
    /// Mounts the instance of a place; `None`, with a note, if this process may not.
    fn new(place: &Place) -> Option<Self> {
        Self::with(place, &[])
    }

    fn with(place: &Place, options: &[&str]) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let directory = place.path("mount");
        fs::create_dir_all(&directory).unwrap();
        let mut words: Vec<&OsStr> = vec!["mount".as_ref()];
        words.extend(options.iter().map(OsStr::new));
        words.push(directory.as_os_str());
        place.run(&words).done();
        Some(Self { directory })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn unmount(self) {
        run(unisono(&["unmount".as_ref(), self.directory.as_os_str()])).done();
        assert!(!is_mounted(&self.directory));
    }
}

#[test]
fn a_mount_outlives_servers_that_are_started_again() {
    let place = Place::new();
    place.start(&["--servers", "2", "--restart=60"]);
    let Some(mount) = Mount::new(&place) else { return };
    let content = bytes(3 << 20);
    fs::write(mount.path("kept"), &content).unwrap();
    File::open(mount.path("kept")).unwrap().sync_all().unwrap();
    for server in [1, 0] {
        let pid = place.server_pids()[server];
        signal(pid, Signal::KILL);
        gone(pid);
        assert!(fs::read(mount.path("kept")).unwrap() == content, "server {server} is back");
        fs::write(mount.path(&format!("new-{server}")), b"after").unwrap();
        // Longer than the mount takes to notice servers that are no more.
        std::thread::sleep(Duration::from_millis(1_500));
        assert!(is_mounted(&mount.directory));
    }
    assert_eq!(fs::read(mount.path("new-1")).unwrap(), b"after");
    mount.unmount();
    place.run(&["stop"]).done();
}

impl Drop for Mount {
    fn drop(&mut self) {
        if is_mounted(&self.directory) {
            let words = ["unmount".as_ref(), "--lazy".as_ref(), self.directory.as_os_str()];
            run(unisono(&words)).done();
        }
    }
}

/// True if this process may mount; otherwise says that a test is skipped.
fn can_mount() -> bool {
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let helper = ["/usr/bin/fusermount3", "/bin/fusermount3"].map(|path| Path::new(path).exists());
    let may = device.is_ok() && (helper.contains(&true) || rustix::process::geteuid().is_root());
    if !may {
        println!("skipped: this system does not let this user mount by FUSE");
    }
    may
}

/// True if an instance is mounted on a directory.
fn is_mounted(directory: &Path) -> bool {
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
    all.lines().any(|line| {
        line.split(' ').nth(4).is_some_and(|path| Path::new(path) == directory)
            && line.contains(" unisono:")
    })
}

fn until_unmounted(directory: &Path) {
    until("unmounted", || (!is_mounted(directory)).then_some(()));
}

/// Ids of the processes of a mount: that which serves it, and that which holds it.
fn processes(mount: &Mount) -> (u32, u32) {
    let of_role = |role: &str| {
        let is_of_role = |pid: &u32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == role.as_bytes())
        };
        let mut found = processes_naming(&mount.directory).into_iter().filter(is_of_role);
        found.next().expect("a mount has this process")
    };
    (of_role("mount-serve"), of_role("mount-hold"))
}

fn connection(place: &Place) -> Connection {
    Connection::open(&Instance::at(place.instance())).unwrap()
}

fn errno<T>(outcome: std::io::Result<T>) -> Option<Errno> {
    outcome.err().and_then(|error| Errno::from_io_error(&error))
}

#[test]
fn every_door_sees_the_files_of_the_others() {
    // Proves: files that programs make through a mount are those of the instance, with their
    // content, and the other way round, without waiting.
    let place = Place::with_servers(2);
    let Some(mount) = Mount::new(&place) else { return };
    let data = bytes(3 << 20);
    fs::create_dir_all(mount.path("a/b")).unwrap();
    fs::write(mount.path("a/b/made"), &data).unwrap();
    assert_eq!(place.run(&["get", "a/b/made", "-"]).done().output, data);
    let local = place.file("local", &data[..100_000]);
    place.run(&["put".as_ref(), local.as_os_str(), "a/put".as_ref()]).done();
    assert_eq!(fs::read(mount.path("a/put")).unwrap(), &data[..100_000]);
    place.run(&["mv", "a/put", "a/b/made"]).done();
    assert_eq!(fs::metadata(mount.path("a/b/made")).unwrap().len(), 100_000);
    assert_eq!(fs::read(mount.path("a/b/made")).unwrap(), &data[..100_000]);
    place.run(&["rm", "a/b/made"]).done();
    let missing = fs::metadata(mount.path("a/b/made")).map_err(|error| error.kind());
    assert_eq!(missing.err(), Some(std::io::ErrorKind::NotFound));
    symlink("b/../b", mount.path("a/link")).unwrap();
    let listed = place.run(&["ls", "a"]).done();
    assert!(listed.text().contains("link -> b/../b"), "{}", listed.text());
    mount.unmount();
}

#[test]
fn what_one_program_has_closed_the_next_one_reads() {
    // Proves: close-to-open consistency between a mount and the library, also where size and time
    // would not show a change, and although the kernel keeps data of a file.
    let place = Place::with_servers(2);
    let Some(mount) = Mount::new(&place) else { return };
    let connection = connection(&place);
    let path = mount.path("shared");
    fs::write(&path, [0; 5000]).unwrap();
    let file = connection.open_file("shared").unwrap();
    for round in 1..=40_u8 {
        file.write_at(&[round; 5000], 0).unwrap();
        assert!(fs::read(&path).unwrap().starts_with(&[round; 5000]), "round {round}");
        fs::write(&path, [!round; 5000]).unwrap();
        let mut read = [0; 5000];
        assert_eq!(file.read_at(&mut read, 0).unwrap(), 5000);
        assert_eq!(read, [!round; 5000], "round {round}");
        // A file grows without a write, and is closed; its size is seen at once.
        let longer = 6000 + u64::from(round);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(longer).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), longer);
        assert_eq!(file.size().unwrap(), longer);
    }
    file.close().unwrap();
}

#[test]
fn a_file_is_used_as_programs_are_used_to() {
    // Proves: holes, appends, truncation, mappings, removal in use, renames over files and
    // exchanges, links and pipes do what they do in a local file system.
    let place = Place::with_servers(2);
    let Some(mount) = Mount::new(&place) else { return };
    let path = mount.path("f");
    let mut file = OpenOptions::new().create_new(true).read(true).append(true).open(&path).unwrap();
    file.write_all(b"one ").unwrap();
    file.write_all(b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one two");
    drop(file);
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    file.write_all_at(b"end", (2 << 30) + 1).unwrap();
    let mut hole = vec![1; 1000];
    file.read_exact_at(&mut hole, 1 << 30).unwrap();
    assert_eq!(hole, vec![0; 1000]);
    file.set_len(3).unwrap();
    file.set_len(6).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"one\0\0\0");
    fs::remove_file(&path).unwrap();
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    file.write_all_at(b"still", 0).unwrap();
    let mut read = [0; 5];
    file.read_exact_at(&mut read, 0).unwrap();
    assert_eq!(&read, b"still");
    fs::write(&path, b"another").unwrap();
    file.read_exact_at(&mut read, 0).unwrap();
    assert_eq!(&read, b"still");
    drop(file);
    let other = mount.path("g");
    fs::write(&other, b"g").unwrap();
    fs::rename(&path, &other).unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"another");
    fs::write(&path, b"new").unwrap();
    let exchange = |flags| rustix::fs::renameat_with(CWD, &path, CWD, &other, flags);
    assert_eq!(exchange(RenameFlags::NOREPLACE), Err(Errno::EXIST));
    exchange(RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"another");
    assert_eq!(fs::read(&other).unwrap(), b"new");
    fs::create_dir(mount.path("d")).unwrap();
    fs::write(mount.path("d/x"), b"x").unwrap();
    fs::create_dir(mount.path("empty")).unwrap();
    assert_eq!(errno(fs::rename(mount.path("empty"), mount.path("d"))), Some(Errno::NOTEMPTY));
    fs::rename(mount.path("d"), mount.path("empty")).unwrap();
    symlink("empty/x", mount.path("link")).unwrap();
    assert_eq!(fs::read(mount.path("link")).unwrap(), b"x");
    let pipe = mount.path("pipe");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, b"through the pipe").unwrap()
    });
    let mut through = String::new();
    File::open(&pipe).unwrap().read_to_string(&mut through).unwrap();
    writer.join().unwrap();
    assert_eq!(through, "through the pipe");
}

#[test]
fn a_directory_is_listed_whole() {
    // Proves: a directory of more entries than an answer holds is listed without gaps or doubles.
    let place = Place::with_servers(1);
    let Some(mount) = Mount::new(&place) else { return };
    let directory = mount.path("many");
    fs::create_dir(&directory).unwrap();
    let names: Vec<String> = (0..2100).map(|number| format!("{number:0>60}")).collect();
    for name in &names {
        // Links have no data, so that they are made fast.
        symlink("nowhere", directory.join(name)).unwrap();
    }
    let listed = || {
        let entries = fs::read_dir(&directory).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(listed(), names);
    fs::remove_file(directory.join(&names[1500])).unwrap();
    assert_eq!(listed().len(), 2099);
    assert_eq!(errno(fs::remove_dir(&directory)), Some(Errno::NOTEMPTY));
}

#[test]
fn attributes_outlive_the_servers() {
    // Proves: modes, times and links are there after a restart, of files, of directories and of the
    // root; the time of a directory follows its entries; a time that was set is not changed by the
    // close of the file.
    let place = Place::with_servers(2);
    let Some(mount) = Mount::new(&place) else { return };
    fs::create_dir(mount.path("d")).unwrap();
    let set = |path: &Path, seconds: i64| {
        let time = Timespec { tv_sec: seconds, tv_nsec: 123_456_789 };
        let times = Timestamps { last_access: time, last_modification: time };
        rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    };
    for number in 0..30 {
        // As rsync does it: the kernel tells of the close of a file after close() has returned.
        let path = mount.path(&format!("d/{number}"));
        fs::write(&path, b"data").unwrap();
        set(&path, 1_000_000_000 + number);
    }
    symlink("0", mount.path("d/link")).unwrap();
    set(&mount.path("d/link"), 900_000_000);
    fs::set_permissions(mount.path("d/0"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(mount.path("d"), fs::Permissions::from_mode(0o1770)).unwrap();
    fs::set_permissions(mount.path(""), fs::Permissions::from_mode(0o711)).unwrap();
    let before = fs::metadata(mount.path("d")).unwrap().mtime();
    set(&mount.path("d"), 800_000_000);
    assert!(before > 1_700_000_000, "entries were made in it");
    let check = |mount: &Mount| {
        for number in 0..30 {
            let found = fs::metadata(mount.path(&format!("d/{number}"))).unwrap();
            let time = (found.mtime(), found.mtime_nsec(), found.atime());
            let set = 1_000_000_000 + number;
            assert_eq!(time, (set, 123_456_789, set), "file {number}");
        }
        let mode = |name: &str| {
            fs::symlink_metadata(mount.path(name)).unwrap().permissions().mode() & 0o7777
        };
        assert_eq!((mode("d/0"), mode("d/1"), mode("d")), (0o4751, 0o644, 0o1770));
        assert_eq!(mode(""), 0o711);
        assert_eq!(fs::metadata(mount.path("d")).unwrap().mtime(), 800_000_000);
        let link = fs::symlink_metadata(mount.path("d/link")).unwrap();
        assert_eq!((link.mtime(), link.len()), (900_000_000, 1));
        assert_eq!(fs::read_link(mount.path("d/link")).unwrap(), Path::new("0"));
    };
    check(&mount);
    mount.unmount();
    place.run(&["stop"]).done();
    place.start(&["--servers", "2"]);
    let mount = Mount::new(&place).expect("it could be mounted before");
    check(&mount);
    assert_eq!(fs::read(mount.path("d/7")).unwrap(), b"data");
}

#[test]
fn whoever_is_killed_leaves_nothing_mounted() {
    // Proves: a mount ends with either of its processes, with a file open in it, with its servers,
    // and with the command in the foreground; the directory can be used again each time.
    let place = Place::with_servers(1);
    for victim in ["serve", "hold", "stop"] {
        let Some(mount) = Mount::new(&place) else { return };
        fs::write(mount.path("f"), b"x").unwrap();
        let open = File::open(mount.path("f")).unwrap();
        let (serve, hold) = processes(&mount);
        match victim {
            "serve" => signal(serve, Signal::KILL),
            "hold" => signal(hold, Signal::KILL),
            _ => _ = place.run(&["stop"]).done(),
        }
        until_unmounted(&mount.directory);
        gone(serve);
        gone(hold);
        // What is open is an error, not a process that waits for ever.
        assert!(errno(open.read_exact_at(&mut [0], 0)).is_some());
        assert_eq!(fs::read_dir(&mount.directory).unwrap().count(), 0);
    }
    place.start(&["--servers", "1"]);
    let directory = place.path("mount");
    let words = ["mount".as_ref(), "--foreground".as_ref(), directory.as_os_str()];
    let foreground = Running::start(place.command(&words));
    until("mounted", || is_mounted(&directory).then_some(()));
    signal(foreground.pid(), Signal::TERM);
    until_unmounted(&directory);
    drop(foreground.end());
}

#[test]
fn a_killed_server_is_an_error_at_once() {
    // Proves: bytes on a server that was killed cannot be read (EIO) or written; what lies on
    // others is still read.
    let place = Place::with_servers(2);
    let Some(mount) = Mount::new(&place) else { return };
    place.run(&["layout", "set", "--servers", "1", "--pool", "0", ""]).done();
    fs::create_dir(mount.path("d")).unwrap();
    place.run(&["layout", "set", "--servers", "1", "--pool", "1", "d"]).done();
    // A mount keeps the layout of a directory for a second.
    std::thread::sleep(Duration::from_millis(1100));
    fs::write(mount.path("on-0"), b"zero").unwrap();
    fs::write(mount.path("d/on-1"), b"one").unwrap();
    signal(place.server_pids()[1], Signal::KILL);
    let failed = until("failed", || errno(fs::read(mount.path("d/on-1"))));
    assert_eq!(failed, Errno::IO);
    assert_eq!(errno(fs::write(mount.path("d/on-1"), b"new")), Some(Errno::IO));
    assert_eq!(fs::read(mount.path("on-0")).unwrap(), b"zero");
}

#[test]
fn the_example_of_the_page_runs() {
    if can_mount() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mount.md");
        let all = examples(&fs::read_to_string(&page).unwrap());
        assert_eq!(all.len(), 1, "the page has one example");
        run_page(&page, &all);
    }
}

#[test]
fn places_that_cannot_be_mounted_on_are_refused() {
    let place = Place::with_servers(1);
    let Some(mount) = Mount::new(&place) else { return };
    let full = place.path("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("x"), b"").unwrap();
    let try_mount = |on: &Path| place.run(&["mount".as_ref(), on.as_os_str()]);
    try_mount(&place.path("nowhere")).refused(USAGE, &["nowhere", "No such file"]);
    try_mount(&full).refused(USAGE, &["not empty"]);
    try_mount(&full.join("x")).refused(USAGE, &["Not a directory"]);
    try_mount(&mount.directory).refused(USAGE, &["mounted there already"]);
    let unmount = |what: &Path| run(unisono(&["unmount".as_ref(), what.as_os_str()]));
    unmount(&full).refused(USAGE, &["no instance is mounted there"]);
    unmount(&place.path("nowhere")).refused(USAGE, &["nowhere"]);
    unmount(Path::new("/proc")).refused(USAGE, &["no instance is mounted there"]);
    let open = File::create(mount.path("open")).unwrap();
    unmount(&mount.directory).refused(USAGE, &["programs use"]);
    drop(open);
    let empty = place.path("empty");
    fs::create_dir(&empty).unwrap();
    let none = Place::new();
    none.run(&["mount".as_ref(), empty.as_os_str()]).refused(3, &["does not exist"]);
}

#[test]
fn what_cannot_be_is_an_error_of_the_system() {
    // Proves: what an instance does not have is refused with the error that the page names.
    let place = Place::with_servers(1);
    let Some(mount) = Mount::new(&place) else { return };
    let file = mount.path("f");
    fs::write(&file, b"x").unwrap();
    assert_eq!(errno(fs::hard_link(&file, mount.path("hard"))), Some(Errno::PERM));
    let node = |kind| rustix::fs::mknodat(CWD, mount.path("dev"), kind, Mode::RUSR, 0);
    assert_eq!(node(FileType::CharacterDevice), Err(Errno::PERM));
    let create = |name: &OsStr| errno(File::create(mount.directory.join(name)));
    assert_eq!(create("n".repeat(256).as_ref()), Some(Errno::NAMETOOLONG));
    assert_eq!(create("n".repeat(255).as_ref()), None);
    assert_eq!(create(OsStr::from_bytes(b"\xff\xfe")), Some(Errno::ILSEQ));
    assert_eq!(create("new\nline".as_ref()), None);
    let open = OpenOptions::new().write(true).open(&file).unwrap();
    let punched = rustix::fs::fallocate(
        &open,
        rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE,
        0,
        1,
    );
    assert_eq!(punched, Err(Errno::OPNOTSUPP));
    assert_eq!(errno(open.set_len((1 << 62) + 1)), Some(Errno::FBIG));
    assert_eq!(errno(fs::read_link(&file)), Some(Errno::INVAL));
    let set = |path: &Path, name: &str, value: &[u8]| {
        rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty())
    };
    assert_eq!(set(&file, "user.mine", b"1"), Err(Errno::OPNOTSUPP));
    assert_eq!(set(&file, "user.unisono.layout", b"servers=1"), Err(Errno::PERM));
    for word in [&b"mirror"[..], b"parity:4", b"twice", b"\xff"] {
        assert_eq!(set(&mount.directory, "user.unisono.protection", word), Err(Errno::INVAL));
        assert_eq!(set(&file, "user.unisono.protection", word), Err(Errno::INVAL));
    }
    assert_eq!(set(&mount.directory, "user.unisono.layout", b"blocks=1"), Err(Errno::INVAL));
    assert_eq!(set(&mount.directory, "user.unisono.layout", b"block_bytes=0"), Err(Errno::INVAL));
    set(&mount.directory, "user.unisono.layout", b"block_bytes=65536").unwrap();
    fs::create_dir(mount.path("d")).unwrap();
    fs::write(mount.path("d/g"), b"x").unwrap();
    let get = |name: &str, attribute: &str| {
        let mut value = [0; 512];
        let length = rustix::fs::getxattr(mount.path(name), attribute, &mut value).unwrap();
        String::from_utf8(value[..length].to_vec()).unwrap()
    };
    assert_eq!(get("d/g", "user.unisono.path"), "d/g");
    assert_eq!(get("", "user.unisono.path"), "");
    assert_eq!(Path::new(&get("d", "user.unisono.instance")), place.instance());
    let layout = get("d/g", "user.unisono.layout");
    assert_eq!(layout, "block_bytes=65536 servers=1 disks_per_server=1");
    drop(mount);
    let Some(mount) = Mount::with(&place, &["--read-only"]) else { return };
    assert_eq!(errno(fs::write(mount.path("f"), b"y")), Some(Errno::ROFS));
    assert_eq!(fs::read(mount.path("f")).unwrap(), b"x");
    let named = OFlags::PATH | OFlags::NOFOLLOW;
    assert!(rustix::fs::open(mount.path("f"), named, Mode::empty()).is_ok());
}

#[test]
fn attributes_show_and_set_protection() {
    // Proves: an attribute of a file protects it, and one of a directory the files that are made in
    // it; the other doors see that, and what they set is seen here.
    let place = Place::with_servers(3);
    let Some(mount) = Mount::new(&place) else { return };
    let get = |name: &str| {
        let mut value = [0; 64];
        let path = mount.path(name);
        let length = rustix::fs::getxattr(path, "user.unisono.protection", &mut value).unwrap();
        String::from_utf8(value[..length].to_vec()).unwrap()
    };
    let set = |name: &str, word: &[u8]| {
        let none = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(mount.path(name), "user.unisono.protection", word, none).unwrap();
    };
    let told = |name: &str| {
        place.run(&["layout", "get", name, "--json"]).json()["protection"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    fs::write(mount.path("f"), [7; 100_000]).unwrap();
    assert_eq!((get("f"), get("")), ("none".into(), "none".into()));
    set("f", b"parity:2");
    assert_eq!((get("f"), told("f")), ("parity:2".into(), "parity:2".into()));
    set("f", b"mirror\n");
    assert_eq!((get("f"), told("f")), ("mirror".into(), "mirror".into()));
    fs::create_dir(mount.path("d")).unwrap();
    set("d", b"mirror");
    fs::write(mount.path("d/g"), b"x").unwrap();
    assert_eq!(
        (get("d"), get("d/g"), told("d/g")),
        ("mirror".into(), "mirror".into(), "mirror".into())
    );
    place.run(&["layout", "set", "f", "--protect", "none"]).done();
    assert_eq!(get("f"), "none");
    assert_eq!(fs::read(mount.path("f")).unwrap(), [7; 100_000]);
    symlink("f", mount.path("link")).unwrap();
    let mut value = [0; 64];
    let link = mount.path("link");
    let of_link = rustix::fs::lgetxattr(link, "user.unisono.protection", &mut value);
    assert_eq!(of_link, Err(Errno::NODATA));
}

#[test]
fn a_run_mounts_for_the_time_of_its_program() {
    // Proves: `run --mount` mounts before the program starts and has unmounted when it ends, also
    // when the program still uses it or `run` is killed; links are staged out as links.
    if !can_mount() {
        return;
    }
    let place = Place::new();
    let (mount, out) = (place.path("mount"), place.path("out"));
    fs::create_dir(&mount).unwrap();
    let command = |script: &str| {
        let words = ["run", "--servers", "1", "--no-preload", "--no-limit", "--mount"];
        let mut command = unisono(&words);
        command.arg(&mount).arg("--stage-out").arg(&out).args(["--overwrite", "--"]);
        command.args(["sh", "-c", script]);
        command
    };
    let script = "cd \"$UNISONO_MOUNT\" && echo text > file && ln -s file link && mkfifo pipe && \
                  { sleep 60 > busy 2>&1 & }";
    run(command(script)).done();
    assert!(!is_mounted(&mount));
    assert_eq!(fs::read(out.join("file")).unwrap(), b"text\n");
    assert_eq!(fs::read_link(out.join("link")).unwrap(), Path::new("file"));
    assert!(fs::symlink_metadata(out.join("pipe")).is_err());
    run(command("exit 9")).code(9);
    assert!(!is_mounted(&mount));
    run(command("umount \"$UNISONO_MOUNT\" || fusermount3 -u \"$UNISONO_MOUNT\"")).done();
    let killed = Running::start(command("exec sleep 60 >/dev/null 2>&1"));
    until("mounted", || is_mounted(&mount).then_some(()));
    signal(killed.pid(), Signal::KILL);
    until_unmounted(&mount);
    drop(killed.end());
    let full = place.path("");
    let mut refused = unisono(&["run", "--servers", "1", "--no-preload", "--mount"]);
    refused.arg(&full).args(["--", "true"]);
    run(refused).refused(USAGE, &["not empty"]);
    let mut refused = unisono(&["run", "--servers", "1", "--no-preload", "--mount"]);
    refused.arg(place.path("missing")).args(["--", "true"]);
    let refused = run(refused).refused(USAGE, &["No such file"]);
    assert!(!refused.error.contains("server"), "nothing was started: {}", refused.error);
}
