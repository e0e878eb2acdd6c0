"""Trees of files that the suites make in one file system and compare in another."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

# Of many differences, the first ones are told.
TOLD_MAX = 3

# Nanoseconds from 1970 to the time of the first file of a tree, 2001-09-09. Its fraction shows whether a
# file system keeps nanoseconds.
FIRST_TIME_NS = 1_000_000_000_123_456_789


def make_tree(top: Path) -> None:
    """Makes a tree with what tools copy: names, sizes, modes, times, links, empty folders, a FIFO."""
    names = ["plain", "with space", "-dash", "ünï-名前", "new\nline", "x" * 255, ".hidden", "a" * 100]
    sizes = [0, 1, 4095, 4096, 4097, 65536, 1 << 20, (1 << 20) + 1]
    modes = [0o644, 0o600, 0o755, 0o444, 0o400, 0o777, 0o640, 0o2755]
    folder = top
    for depth in range(12):
        folder = folder / (f"level {depth}" if depth % 2 else f"level-{depth}")
        folder.mkdir(parents=True)
        for number, name in enumerate(names):
            file = folder / name
            length = sizes[(number + depth) % len(sizes)]
            file.write_bytes(bytes((depth * 31 + index) % 251 for index in range(251)) * (length // 251 + 1))
            os.truncate(file, length)
            file.chmod(modes[(number * 3 + depth) % len(modes)])
        if not os.geteuid():
            os.chown(folder / "plain", 1, 1)
        (folder / "relative").symlink_to("plain")
        (folder / "absolute").symlink_to("/etc/hostname")
        (folder / "dangling").symlink_to("nowhere/" + "y" * 1000)
        (folder / "upward").symlink_to("..")
        (folder / "empty").mkdir(mode=0o700)
    with (top / "holes").open("wb") as holes:
        holes.seek(8 << 20)
        holes.write(b"end")
    os.mkfifo(top / "fifo", 0o620)
    number = 0
    # Folders last, since a new entry changes their time.
    for place, folders, files in os.walk(top, topdown=False):
        for name in sorted(files + folders) + [""]:
            time_ns = FIRST_TIME_NS + number * 86_400_000_000_000
            os.utime(os.path.join(place, name), ns=(time_ns, time_ns), follow_symlinks=False)
            number += 1


def entries(top: Path) -> Iterator[str]:
    """Names of all entries below a folder, and its own as an empty name, in order."""
    yield ""
    for place, folders, files in os.walk(top):
        folders.sort()
        for name in sorted(folders + files):
            yield os.path.relpath(os.path.join(place, name), top)


def differences(left: Path, right: Path, value: Callable[[Path], object]) -> str:
    """The first entries of two trees whose values differ; empty if there are none."""
    names = [set(entries(left)), set(entries(right))]
    found = [f"{name!r} is only in one" for name in sorted(names[0] ^ names[1])]
    for name in sorted(names[0] & names[1]):
        values = value(left / name), value(right / name)
        if values[0] != values[1]:
            found.append(f"{name!r}: {values[0]} and {values[1]}")
    if not found:
        return ""
    more = f" and {len(found) - TOLD_MAX} more" if len(found) > TOLD_MAX else ""
    return "; ".join(one[:200] for one in found[:TOLD_MAX]) + more


def mode(path: Path) -> str:
    """Permissions of an entry; those of a symbolic link have no meaning."""
    status = path.lstat()
    return "" if stat.S_ISLNK(status.st_mode) else oct(stat.S_IMODE(status.st_mode))


def kind_and_length(path: Path) -> tuple[int, int]:
    """Type of an entry, and its length if it is a file."""
    status = path.lstat()
    is_file = stat.S_ISREG(status.st_mode)
    return stat.S_IFMT(status.st_mode), status.st_size if is_file else 0


def link(path: Path) -> str:
    """Target of a symbolic link; empty for others."""
    return os.readlink(path) if path.is_symlink() else ""


def time_ns(path: Path) -> int:
    """Modification time of an entry, in nanoseconds."""
    return path.lstat().st_mtime_ns


def owner(path: Path) -> tuple[int, int]:
    """User and group of an entry."""
    status = path.lstat()
    return status.st_uid, status.st_gid


# Comparisons of a tree with its copy, by their names in the table.
COMPARISONS: dict[str, Callable[[Path], object]] = {
    "kinds": kind_and_length,
    "links": link,
    "modes": mode,
    "times": time_ns,
    "owners": owner,
}


def content_of(number: int) -> bytes:
    """Content of one of many small files: 0 to about 1,200 bytes that its number determines."""
    return f"file {number}\n".encode() * (number * 7919 % 100)


def small_file(top: Path, number: int) -> Path:
    """Path of one of many small files, a thousand in a folder."""
    return top / f"{number // 1000:04}" / f"file-{number}"


def make_small_files(top: Path, count: int) -> None:
    """Makes many small files."""
    for number in range(count):
        path = small_file(top, number)
        if number % 1000 == 0:
            path.parent.mkdir(parents=True)
        path.write_bytes(content_of(number))


def wrong_small_files(top: Path, count: int) -> str:
    """The first of many small files whose content is not what was written; empty if there is none."""
    for number in range(count):
        if small_file(top, number).read_bytes() != content_of(number):
            return f"{small_file(top, number)} has other content than was written"
    found = sum(len(files) for _, _, files in os.walk(top))
    return "" if found == count else f"{found} files are listed instead of {count}"
