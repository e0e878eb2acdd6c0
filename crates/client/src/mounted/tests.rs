//! Proves: a path below a mount means the file that the kernel would open or create by it, and a
//! path elsewhere means none; mounts are found in the table of the system.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use rustix::fs::{XattrFlags, setxattr};
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

/// Directories with the attributes of a mount, in place of a mount: `mount` has `in/file`, `beside`
/// is on the same file system.
struct Tree {
    _home: TempDir,
    top: PathBuf,
    mounts: Vec<Mount>,
}

impl Tree {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let top = home.path().canonicalize().unwrap();
        fs::create_dir_all(top.join("mount/in")).unwrap();
        fs::create_dir(top.join("beside")).unwrap();
        fs::write(top.join("mount/in/file"), "").unwrap();
        for (path, name) in [("mount", ""), ("mount/in", "in"), ("mount/in/file", "in/file")] {
            give(&top.join(path), "/instances/first", name);
        }
        let device = top.metadata().unwrap().dev();
        let mounts = vec![mount_at(device, top.join("mount"))];
        Self { _home: home, top, mounts }
    }

    fn find(&self, path: impl AsRef<Path>) -> Result<Option<MountedName>, UserError> {
        find(&self.mounts, &self.top.join(path))
    }

    /// The name of a path in the first instance.
    #[track_caller]
    fn name(&self, path: impl AsRef<Path>) -> String {
        let found = self.find(path).unwrap().expect("the path lies below the mount");
        assert_eq!(found.instance, Path::new("/instances/first"));
        found.name
    }
}

fn mount_at(device: u64, point: impl Into<PathBuf>) -> Mount {
    let instance = "/instances/first".into();
    Mount { device, point: point.into(), is_root: true, instance }
}

fn give(path: &Path, instance: &str, name: &str) {
    for (attribute, value) in [(INSTANCE_ATTRIBUTE, instance), (NAME_ATTRIBUTE, name)] {
        setxattr(path, attribute, value.as_bytes(), XattrFlags::empty()).unwrap();
    }
}

#[test]
fn a_path_means_what_the_kernel_opens_by_it() {
    let tree = Tree::new();
    for (path, name) in [
        ("mount", ""),
        ("mount/", ""),
        ("mount/in", "in"),
        ("mount//in/./file", "in/file"),
        ("mount/in/../in/file", "in/file"),
        ("beside/../mount/in/file", "in/file"),
    ] {
        assert_eq!(tree.name(path), name, "{path}");
    }
}

#[test]
fn a_file_that_does_not_exist_is_named_by_its_directory() {
    let tree = Tree::new();
    for (path, name) in [
        ("mount/new", "new"),
        ("mount/in/new", "in/new"),
        ("mount/none/deep/new", "none/deep/new"),
        ("mount/in/../new", "new"),
        ("mount/in/file/new", "in/file/new"),
    ] {
        assert_eq!(tree.name(path), name, "{path}");
    }
    // The kernel finds nothing by these, and by this one leaves the mount.
    assert_eq!(tree.find("mount/none/../new").unwrap(), None);
    assert_eq!(tree.find("mount/none/../../beside/new").unwrap(), None);
}

#[test]
fn links_are_followed_into_the_mount_and_out_of_it() {
    let tree = Tree::new();
    let link = |target: &str, name: &str| symlink(target, tree.top.join(name)).unwrap();
    link("../mount/in", "beside/directory");
    link("../mount/in/file", "beside/file");
    link("../mount/in/new", "beside/dangling");
    link("dangling", "beside/second");
    link("../mount/none", "beside/lost");
    link("around", "beside/around");
    for (path, name) in [
        ("beside/directory", "in"),
        ("beside/directory/new", "in/new"),
        ("beside/file", "in/file"),
        ("beside/dangling", "in/new"),
        ("beside/second", "in/new"),
        ("beside/lost/new", "none/new"),
    ] {
        assert_eq!(tree.name(path), name, "{path}");
    }
    for path in ["beside/around", "beside/around/new"] {
        assert_eq!(tree.find(path).unwrap(), None, "{path}");
    }
}

#[test]
fn paths_elsewhere_have_no_name() {
    let tree = Tree::new();
    let elsewhere = Path::new("/proc");
    for path in ["/proc", "/proc/self", "/proc/none/new", ""] {
        let found = find(&tree.mounts, &elsewhere.join(path)).unwrap();
        assert_eq!(found, None, "{path}");
    }
    // Copies of a mounted tree have its attributes, but are on another device.
    let others = [mount_at(tree.mounts[0].device + 1, tree.top.join("mount"))];
    assert_eq!(find(&others, &tree.top.join("mount/in/file")).unwrap(), None);
    assert_eq!(MountedName::of_path(&tree.top.join("mount/in/file")).unwrap(), None);
}

#[test]
fn a_mount_names_its_own_instance() {
    let tree = Tree::new();
    fs::create_dir(tree.top.join("mount2")).unwrap();
    give(&tree.top.join("mount2"), "/instances/second", "below/here");
    let found = tree.find("mount2/new").unwrap().unwrap();
    assert_eq!(found.instance, Path::new("/instances/second"));
    assert_eq!(found.name, "below/here/new");
}

#[test]
fn a_mount_whose_servers_are_silent_is_named_by_the_table_of_mounts() {
    let mut tree = Tree::new();
    let mount = tree.top.join("mount");
    for path in ["mount", "mount/in", "mount/in/file"] {
        rustix::fs::removexattr(tree.top.join(path), NAME_ATTRIBUTE).unwrap();
    }
    symlink("../mount", tree.top.join("beside/link")).unwrap();
    for (path, name) in [("mount", ""), ("mount/in/file", "in/file"), ("beside/link/a/b", "a/b")] {
        assert_eq!(tree.name(path), name, "{path}");
    }
    // The name of another directory of the instance is not known.
    tree.mounts[0].is_root = false;
    for path in ["mount", "mount/new", "beside/link/none/new"] {
        let error = tree.find(path).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoInstance, "{path}");
        assert!(error.cause.contains(mount.to_str().unwrap()), "{path}: {}", error.cause);
    }
}

#[test]
fn attributes_that_make_no_name_are_an_error() {
    let tree = Tree::new();
    give(&tree.top.join("mount"), "relative", "");
    assert!(tree.find("mount/new").unwrap_err().cause.contains("does not tell"));
    give(&tree.top.join("mount"), "/instances/first", "");
    let odd = OsStr::from_bytes(b"mount/\xff");
    assert!(tree.find(odd).unwrap_err().cause.contains("is not UTF-8"));
}

#[test]
fn the_error_of_a_dead_mount_names_it() {
    let dead = io::Error::from(rustix::io::Errno::NOTCONN);
    let error = unusable(Path::new("/mnt/u/a"), &mount_at(1, "/mnt/u"), &dead);
    assert!(error.error.contains("/mnt/u/a"), "{error}");
    assert!(error.cause.contains("mount /mnt/u of /instances/first has ended"), "{error}");
    assert!(error.help.contains("unisono unmount --lazy /mnt/u"), "{error}");
}

#[test]
fn lines_of_the_table_of_mounts_are_read() {
    let of = |line: &str| Mount::of_line(line.as_bytes());
    let mount = |minor, point: &str, is_root, instance: &str| {
        let device = rustix::fs::makedev(0, minor);
        Some(Mount { device, point: point.into(), is_root, instance: instance.into() })
    };
    let rest = "rw,nosuid - fuse.unisono unisono:/i rw,user_id=0";
    assert_eq!(of(&format!("36 35 0:52 / /mnt/u {rest}")), mount(52, "/mnt/u", true, "/i"));
    let part = of(&format!("36 35 0:53 /sub /mnt/\\040a\\134b {rest}"));
    assert_eq!(part, mount(53, "/mnt/ a\\b", false, "/i"));
    let by_root = "36 35 0:54 / /m rw shared:1 master:2 - fuse unisono:/i\\040j rw";
    assert_eq!(of(by_root), mount(54, "/m", true, "/i j"));
    for other in [
        "36 35 0:52 / /mnt/u rw,nosuid - fuse.sshfs unisono:/i rw",
        "36 35 0:52 / /mnt/u rw,nosuid - fuse other:/i rw",
        "36 35 0:52 / /mnt/u rw,nosuid - ext4 /dev/vda rw",
        "36 35 x:52 / /mnt/u rw - fuse.unisono unisono:/i rw",
        "36 35 0:52 / /mnt/u rw - fuse.unisono",
        "36 35 0:52 / /mnt/u rw",
        "",
    ] {
        assert_eq!(of(other), None, "{other}");
    }
    assert_eq!(unescaped_path(b"\\999\\04"), PathBuf::from("\\999\\04"));
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let known = [" - fuse unisono:", " - fuse.unisono unisono:"];
    let expected: usize = known.iter().map(|known| all.matches(known).count()).sum();
    assert_eq!(Mount::all().len(), expected);
}
