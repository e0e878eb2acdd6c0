"""fsx: random accesses of a file, each read checked, and the file at last compared with a second one."""

import ctypes
import mmap
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from outcome import Outcome, Place, output_of

# Of <linux/falloc.h>.
FALLOC_FL_KEEP_SIZE = 1
FALLOC_FL_PUNCH_HOLE = 2


def map_shared(file: int) -> None:
    """Writes by a shared mapping, and reads what was written."""
    os.ftruncate(file, 8192)
    with mmap.mmap(file, 8192) as mapping:
        mapping[4096:4100] = b"data"
        mapping.flush()
    if os.pread(file, 4, 4096) != b"data":
        raise OSError("what was written by a mapping is not read")


def punch_hole(file: int) -> None:
    """Makes a hole in the middle of a file."""
    os.pwrite(file, b"x" * 12288, 0)
    library = ctypes.CDLL(None, use_errno=True)
    library.fallocate64.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if library.fallocate64(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def copy_range(file: int) -> None:
    """Copies a part of a file within it."""
    os.pwrite(file, b"y" * 4096, 0)
    os.copy_file_range(file, file, 4096, 0, 8192)


# Operations that a file system may not offer: their test, and their names in the configuration.
OPTIONAL: dict[str, tuple[Callable[[int], None], list[str]]] = {
    "shared-mapping": (map_shared, ["mapread", "mapwrite", "invalidate"]),
    "punch-hole": (punch_hole, ["punch_hole"]),
    "copy-file-range": (copy_range, ["copy_file_range"]),
}


def offered(place: Place) -> Iterator[tuple[Outcome, list[str]]]:
    """Tries each optional operation, and tells what fsx must leave out if it fails."""
    for name, (attempt, operations) in OPTIONAL.items():
        file = os.open(place.work / name, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            attempt(file)
            yield Outcome(name, "passed"), []
        except OSError as error:
            reason = f"{error}; fsx is run without {', '.join(operations)}"
            yield Outcome(name, "failed", reason), operations
        finally:
            os.close(file)


def content(path: Path) -> bytes:
    """Content of a file, read anew from its file system as far as the kernel drops cached pages."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        return b"".join(iter(lambda: os.read(file, 1 << 20), b""))
    finally:
        os.close(file)


def run(seed: int, place: Place, configuration: Path) -> Outcome:
    """Runs the operations of one seed in both file systems, and compares the files."""
    name = f"seed-{seed}"
    files = (place.work / name, place.reference / name)
    for file, kind in zip(files, ("", "-reference"), strict=True):
        artifacts = place.logs / f"fsx-{name}{kind}"
        artifacts.mkdir(exist_ok=True)
        command = [place.options.folder / "bin/fsx", "-f", configuration, "-S", seed]
        command += ["-N", place.options.operations, "-P", artifacts, file]
        code, output = output_of(command, environment={"RUST_BACKTRACE": "0"})
        (artifacts / "log").write_text(output)
        if code or "completed A-OK" not in output:
            # A panic says its message in the line after its place.
            found = re.search(r"panicked at .*\n(.*)|^\[ERROR fsx\] (?!Using seed)(.*)", output, re.M)
            cause = (found[1] or found[2]) if found else output.strip()[:200]
            where = f"on the second file system, {place.reference}: " if kind else ""
            return Outcome(name, "failed", f"{where}exit code {code}: {cause}; see {artifacts}/log")
    if content(files[0]) != content(files[1]):
        return Outcome(name, "failed", "the file differs from that on the second file system")
    return Outcome(name, "passed")


def suite(place: Place) -> Iterator[Outcome]:
    """The optional operations, then each seed; as many seeds at once as there are processors."""
    text = (Path(__file__).parent / "fsx.toml").read_text()
    for outcome, absent in offered(place):
        yield outcome
        for operation in absent:
            text = re.sub(rf"^{operation} = .*$", f"{operation} = 0", text, flags=re.MULTILINE)
    configuration = place.logs / "fsx.toml"
    configuration.write_text(text)
    seeds = range(1, place.options.seeds + 1)
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        yield from pool.map(lambda seed: run(seed, place, configuration), seeds)
    finally:
        pool.shutdown(cancel_futures=True)
