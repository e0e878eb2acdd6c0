"""The extension module: connections, files, groups and parts. Offsets and lengths are in bytes."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, final

__version__: str

# Any object whose memory is contiguous in C order: bytes, bytearray, memoryview, NumPy array, ...
_Buffer = Any

def error_kinds() -> list[tuple[str, int, int]]:
    """Return the kinds of errors: name, exit code, errno."""

def default_instance() -> Path:
    """Return the directory of the instance that is used when none is named."""

def after_fork() -> None:
    """Give up what a forked child shares with threads of its parent."""

def instance_name(word: str) -> str:
    """Return the name in an instance that a word means; that of the root is empty."""

def instance_directory(path: str | PathLike[str]) -> Path:
    """Return the directory of the instance that a path names: itself, or of a mount the mounted one."""

def mounted(path: str | PathLike[str]) -> tuple[Path, str] | None:
    """Return the directory of the instance and the name in it, of a path below a mount; None for others."""

def check_memory(object: _Buffer) -> int:
    """Return the number of bytes of an object's memory, if a file can be written from it."""

def simulate(source: tuple[str, str] | None, points: Sequence[str], jobs: int | None = None) -> list[str]:
    """Return the rows of each point in JSON; a point is an object of keys that override the file `source`."""

def draw_bars(
    title: str, x_name: str, y_name: str, groups: Sequence[str], series: Sequence[tuple[str, Sequence[float | None]]]
) -> str:
    """Return bars as SVG: for each name a value in each group, or none."""

def draw_lines(
    title: str, x_name: str, y_name: str, series: Sequence[tuple[str, Sequence[tuple[float, float]]]]
) -> str:
    """Return lines over a logarithmic axis as SVG: for each name its points, with x above 0."""

@final
class Connection:
    """Connection to all servers of an instance, for any thread. Made by :func:`unisono.connect`."""

    def __new__(cls, instance: str | PathLike[str] | None = None, *, timeout: float | None = None) -> Connection: ...
    @property
    def instance(self) -> Path:
        """Directory of the instance."""

    @property
    def servers(self) -> int:
        """Number of servers."""

    def open(
        self, name: str, mode: str = "r", *, block_bytes: int | None = None, protection: str | None = None, in_place: bool = False
    ) -> File:
        """Open a file: "r" one that is there, "a" make it if there is none, "x" a new one, "w" cut to 0 bytes.

        `block_bytes` (bytes) and `protection` ("none", "mirror", "parity" or, with rows of 4 blocks, "parity:4")
        are for a file that is made. With `in_place`, the name is the path of an ordinary file, which the servers must find there and work on. Raises NotFoundError, AlreadyExistsError, IsADirectory.
        """

    def stat(self, name: str) -> dict[str, Any]:
        """Return name, type, size in bytes, created and mtime (seconds since 1970), version, block_bytes, servers and protection.

        Of a protected file also ``protected_bytes``: bytes that the loss of any one server would leave, or None while that is unknown.
        """

    def list(self, name: str) -> list[dict[str, Any]]:
        """Return the entries of a directory, each as :meth:`stat` does. Raises NotADirectory."""

    def remove(self, name: str) -> None:
        """Remove a file or an empty directory. Raises NotFoundError, DirectoryNotEmptyError."""

    def rename(self, old: str, new: str, *, replace: bool = False) -> None:
        """Give a file or directory another name. Raises AlreadyExistsError, unless a file is replaced."""

    def make_directory(self, name: str, *, parents: bool = False) -> None:
        """Make a directory; with `parents` also those above it, and nothing if it is there."""

    def group(self, name: str, rank: int, size: int) -> Group:
        """Form a group whose members meet under a name. Collective. Raises MembersMissingError."""

@final
class File:
    """Open file, for any thread."""

    @property
    def name(self) -> str:
        """Name in the instance."""

    @property
    def closed(self) -> bool:
        """True when it was closed."""

    @property
    def interrupted(self) -> bool:
        """True if a transfer goes on whose wait was interrupted. Later transfers wait for its end."""

    @property
    def block_bytes(self) -> int:
        """Bytes of a block, the unit in which the file lies on its servers."""

    def size(self) -> int:
        """Return the size in bytes now."""

    def set_size(self, size: int) -> None:
        """Set the size in bytes. New bytes are zero."""

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes from an offset on; fewer than `length` only at the end of the file."""

    def read_into(self, offset: int, into: _Buffer) -> int:
        """Fill memory from an offset on, without a copy; return the bytes read, fewer only at the end."""

    def write(self, offset: int, data: _Buffer) -> int:
        """Write memory at an offset, without a copy; return its bytes. Raises NoSpaceError, ServerLeftError."""

    def read_part(self, part: Part, into: _Buffer) -> None:
        """Read a part of the file with one request to each server."""

    def write_part(self, part: Part, data: _Buffer) -> None:
        """Write a part of the file with one request to each server."""

    def plan(
        self, is_write: bool, parts: Sequence[Part], blocks_max: int
    ) -> tuple[list[tuple[int, int, int, int, list[tuple[int, int]]]], bool]:
        """Return (server, disk, block, address, [(rank, bytes)]) of a directed call, and if that is all."""

    def flush(self, *, sync: bool = False) -> None:
        """Wait until all is with the disks, or with `sync` on stable storage; raise earlier failures."""

    def close(self) -> None:
        """Close it; do nothing when it was closed. Transfers under way go on."""

    def __enter__(self) -> File: ...
    def __exit__(self, *error: object) -> None: ...

@final
class Group:
    """Processes that make collective calls together."""

    @property
    def rank(self) -> int:
        """Rank of this process."""

    @property
    def size(self) -> int:
        """Number of members."""

    def barrier(self) -> None:
        """Wait until all members are here."""

    def all_gather(self, own: bytes) -> list[bytes]:
        """Return the bytes of all members, by rank. Collective."""

    def start_read(
        self, file: File, part: Part, into: _Buffer, *, method: str = "disk-directed", node_group_size: int = 0
    ) -> Started:
        """Begin a collective read into memory of this process.

        `node_group_size` is the number of members that make requests at a time by the method
        `node-grouping`; 0 means one for each disk, but at least two groups.
        """

    def start_write(
        self,
        file: File,
        part: Part,
        data: _Buffer,
        *,
        method: str = "disk-directed",
        sync: bool = False,
        node_group_size: int = 0,
    ) -> Started:
        """Begin a collective write from memory of this process; `node_group_size` as for a read."""

    def start_files(
        self, transfers: Sequence[tuple[bool, File, Part, _Buffer]], *, method: str = "disk-directed", sync: bool = False
    ) -> Started:
        """Begin transfers of several files as one collective call: (is_write, file, part, memory) each."""

@final
class Part:
    """Part of a file, as a rule that stays short. Raises UsageError for what no file can have."""

    @staticmethod
    def nothing() -> Part:
        """Return the part without bytes."""

    @staticmethod
    def contiguous(offset: int, length: int) -> Part:
        """Return `length` bytes at an offset."""

    @staticmethod
    def nested(nests: Sequence[tuple[int, int, int, Sequence[tuple[int, int, int]]]]) -> Part:
        """Return nested strides: (file offset, memory offset, length, [(count, file stride, memory stride)])."""

    @staticmethod
    def list(pieces: Sequence[tuple[int, int, int]]) -> Part:
        """Return pieces: (file offset, memory offset, length)."""

    @staticmethod
    def dealt(
        shape: Sequence[int],
        item_bytes: int,
        distribution: Sequence[str],
        grid: Sequence[int],
        rank: int,
        size: int,
        offset: int = 0,
    ) -> Part:
        """Return the part of a process of a distributed array in C order."""

    @property
    def bytes(self) -> int:
        """Number of its bytes."""

@final
class RecordType:
    """Type of a record: (name, offset, kind as NumPy writes it, bytes of an element, shape) of each field."""

    def __init__(self, fields: Sequence[tuple[str, int, str, int, Sequence[int]]], record_bytes: int) -> None: ...

@final
class Records:
    """Records of this process that match."""

    @property
    def count(self) -> int:
        """Number of records."""

    @property
    def blocks(self) -> tuple[int, int]:
        """Blocks that were read, and that were not, as rank 0 knows them."""

    def read_into(self, into: _Buffer) -> int:
        """Read the records into memory, in the order of the file; return their number. Collective."""

def find_records(
    file: File,
    records: RecordType,
    start: int,
    count: int,
    condition: str | None,
    *,
    group: Group | None = None,
    share: str = "even",
    key: str | None = None,
    operator: str | None = None,
    module: bytes | None = None,
) -> Records:
    """Find records that match; `share` is even, part or key. Collective."""

def reduce_records(
    file: File,
    records: RecordType,
    start: int,
    count: int,
    condition: str | None,
    what: str,
    *,
    group: Group | None = None,
    of: str = "",
    edges: Sequence[float] | None = None,
    operator: str | None = None,
    module: bytes | None = None,
) -> tuple[Any, tuple[int, int]]:
    """Return count, minimum, maximum, sum or histogram of records that match, and blocks. Collective."""

def summarise_records(
    file: File, records: RecordType, start: int, count: int, fields: Sequence[str], *, group: Group | None = None
) -> None:
    """Have the servers compute bounds of fields for each block. Collective."""

@final
class Started:
    """Collective call under way."""

    def done(self) -> bool:
        """Return True when the call has ended. Never waits."""

    def wait(self) -> int:
        """Wait for the end; return the bytes moved."""
