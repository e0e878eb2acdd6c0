//! Proves: in place, an error of a file system has the class of the MPI standard, ends every rank's
//! call where it ends that of the MPI library, and leaves a file that the next program writes; a slow
//! file system only delays; and the files are right on each kind of file system, which patterns may
//! name.

use crate::faulty_mount::FaultyMount;
use crate::in_place::{compiled, directory};
use fuser::Errno;
use mpi::{Family, Servers, done, ended};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Bytes of one turn of a rank in the program, and number of turns.
const PIECE_BYTES: usize = 1 << 16;
const PIECES: usize = 64;

/// Number of ranks.
const RANKS: u32 = 2;

fn program(servers: &Servers, family: Family) -> PathBuf {
    compiled(servers, family, "in_place_faults", &["in_place_faults.c"])
}

/// The program on a file in place, by patterns.
fn in_place(servers: &Servers, family: Family, path: &Path, patterns: &str) -> Command {
    let mut command = servers.mpiexec(family, RANKS);
    command.arg(program(servers, family)).arg(path).env("UNISONO_IN_PLACE", patterns);
    command
}

/// The lines that the program prints of calls that have failed.
#[track_caller]
fn failures(command: Command) -> Vec<String> {
    let text = done(command);
    assert!(text.lines().any(|line| line == "ended"), "{text}");
    let is_failure = |line: &&str| line.contains(": MPI_ERR") || line.contains(": another");
    text.lines().filter(is_failure).map(str::to_owned).collect()
}

#[track_caller]
fn assert_whole(path: &Path) {
    let found = std::fs::read(path).unwrap();
    let turn: Vec<u8> = (0..RANKS as u8).flat_map(|rank| [b'a' + rank; PIECE_BYTES]).collect();
    assert!(found == turn.repeat(PIECES), "{path:?} has {} bytes", found.len());
}

#[test]
fn errors_of_a_file_system_have_the_classes_of_the_standard() {
    let family = Family::Mpich;
    let (servers, mount) = (Servers::start(), FaultyMount::new());
    let path = mount.point().join("file");
    for (error, class) in [(Errno::ENOSPC, "MPI_ERR_NO_SPACE"), (Errno::EIO, "MPI_ERR_IO")] {
        mount.fail_after(Some((3, error)));
        let mut plain = family.mpiexec(RANKS);
        plain.arg(program(&servers, family)).arg(&path);
        // ROMIO names an error of another rank MPI_ERR_IO.
        let others = failures(plain);
        assert!(others.first().is_some_and(|it| it.starts_with("write: ")), "{others:?}");
        std::fs::remove_file(&path).unwrap();
        mount.fail_after(Some((3, error)));
        let found = failures(in_place(&servers, family, &path, "*"));
        assert_eq!(found.first(), Some(&format!("write: {class}")), "{found:?}");
        mount.fail_after(None);
        assert_eq!(failures(in_place(&servers, family, &path, "*")), [""; 0]);
        assert_whole(&mount.below().join("file"));
    }
}

#[test]
fn a_slow_file_system_delays_programs_in_place() {
    let family = Family::OpenMpi;
    let (servers, mount) = (Servers::start(), FaultyMount::new());
    let path = mount.point().join("file");
    mount.hold();
    let mut command = in_place(&servers, family, &path, "*");
    let running = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
    mount.release();
    let ended = running.wait_with_output().unwrap();
    assert!(ended.status.success());
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "ended\n");
    assert_whole(&mount.below().join("file"));
}

/// A file system of its own in a file; it is unmounted when this is dropped.
struct Xfs {
    home: tempfile::TempDir,
}

/// Least size of a file system that `mkfs.xfs` makes.
const XFS_BYTES: u64 = 300 << 20;

impl Xfs {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let (image, point) = (home.path().join("image"), home.path().join("mount"));
        std::fs::File::create(&image).unwrap().set_len(XFS_BYTES).unwrap();
        std::fs::create_dir(&point).unwrap();
        let mut make = Command::new("mkfs.xfs");
        make.arg("-q").arg(&image);
        done(make);
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).args([&image, &point]);
        done(mount);
        Self { home }
    }

    fn point(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("mount")
    }
}

impl Drop for Xfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.point()).output();
    }
}

#[test]
fn files_in_place_are_right_on_each_file_system() {
    let (servers, stopped) = (Servers::start(), Servers::start());
    done(stopped.unisono(&["stop"]));
    let ((_home, usual), memory) = (directory(), tempfile::tempdir_in("/dev/shm").unwrap());
    let mut places = vec![(usual, "*"), (memory.path().to_owned(), "type:nfs,type:tmpfs")];
    // Only root mounts a file system of a file.
    let xfs = is_root().then(Xfs::new);
    places.extend(xfs.iter().map(|xfs| (xfs.point(), "type:xfs")));
    for (place, patterns) in places {
        let path = place.join("file");
        for family in Family::OF_DEBIAN {
            assert_eq!(failures(in_place(&servers, family, &path, patterns)), [""; 0]);
            assert_whole(&path);
            // The pattern is that of this file system: without servers such a file is not opened.
            std::fs::remove_file(&path).unwrap();
            let (code, text) = ended(in_place(&stopped, family, &path, patterns));
            assert_ne!(code, Some(0), "{text}");
            let others = in_place(&stopped, family, &path, "type:gpfs,*.h5");
            assert_eq!(failures(others), [""; 0]);
            assert_whole(&path);
        }
    }
}

/// True if a process has a file open for direct I/O.
fn has_direct(process: u64, path: &Path) -> bool {
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let numbers = open.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let direct = rustix::fs::OFlags::DIRECT.bits();
    let mut flags = numbers.filter_map(|number| {
        let target = std::fs::read_link(format!("/proc/{process}/fd/{number}")).ok()?;
        let known = std::fs::read_to_string(format!("/proc/{process}/fdinfo/{number}")).ok()?;
        let flags = known.lines().find_map(|line| line.strip_prefix("flags:"))?.trim();
        (target == path).then(|| u32::from_str_radix(flags, 8).unwrap())
    });
    flags.any(|flags| flags & direct != 0)
}

#[test]
fn direct_transfers_are_right_on_each_file_system() {
    // Proves: with --direct, servers open an ordinary file for direct I/O too, and what programs read
    // and write in pieces of any length is right; a file system without direct I/O is named.
    let family = Family::Mpich;
    let servers = Servers::start_as(&std::env::temp_dir(), &["--servers", "2", "--direct"]);
    let ((_home, usual), memory) = (directory(), tempfile::tempdir_in("/dev/shm").unwrap());
    let xfs = is_root().then(Xfs::new);
    let mut places = vec![usual, memory.path().to_owned()];
    places.extend(xfs.iter().map(Xfs::point));
    let holder = compiled(&servers, family, "in_place", &["in_place.c"]);
    for place in places {
        let path = place.join("file");
        assert_eq!(failures(in_place(&servers, family, &path, "*")), [""; 0]);
        assert_whole(&path);
        // A program has it open while it starts one that looks at the servers.
        let mut hold = servers.mpiexec(family, 1);
        hold.arg(&holder)
            .arg(&path)
            .arg("touch held; while [ -e held ]; do sleep 0.01; done; false");
        hold.env("UNISONO_IN_PLACE", "*").current_dir(&place);
        let mut holding = hold.spawn().unwrap();
        let held = place.join("held");
        while !held.exists() {
            assert!(holding.try_wait().unwrap().is_none(), "it ended early");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        for process in servers.processes() {
            assert!(has_direct(process, &path), "{path:?}");
        }
        std::fs::remove_file(held).unwrap();
        assert!(holding.wait().unwrap().success());
    }
    let faulty = FaultyMount::new();
    let path = faulty.point().join("file");
    let (code, text) = ended(in_place(&servers, family, &path, "*"));
    assert_ne!(code, Some(0), "{text}");
    for words in ["supports no direct I/O", "--direct only where"] {
        assert!(text.contains(words), "{words:?} is missing: {text}");
    }
}

/// True where this process may mount.
fn is_root() -> bool {
    let shown = Command::new("id").arg("-u").output().unwrap().stdout;
    shown == b"0\n"
}
