"""The file system for fsspec: ``unisono://name`` wherever fsspec URLs are understood."""

# fsspec has no types, and the classes of this module share their private parts.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportPrivateUsage=false

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import secrets
from collections.abc import Generator
from datetime import datetime, timezone
from typing import Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem  # type: ignore[import-untyped]
from fsspec.utils import stringify_path  # type: ignore[import-untyped]

from . import errors
from ._connect import connect
from ._native import File, check_memory, instance_name

__all__ = ["UnisonoFile", "UnisonoFileSystem"]

# Bytes that copies hold in memory at a time.
_COPY_BYTES = 16 * 2**20

# Bytes that open files buffer for small reads and writes.
_BUFFER_BYTES = 2**20

# Modes of files, and those of the connection.
_MODES = {"rb": "r", "r+b": "r", "wb": "w", "w+b": "w", "xb": "x", "x+b": "x", "ab": "a", "a+b": "a"}


class UnisonoFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """Files of a Unisono instance.

    Parameters
    ----------
    instance : str, optional
        Directory of the instance. Default: ``UNISONO_INSTANCE``, or the usual directory.
    timeout : float, optional
        Seconds after which servers that do not answer are given up (default: 60).
    block_bytes : int, optional
        Bytes in a block of new files. Default: as their directory says.

    Notes
    -----
    Synchronous. May be pickled, and used after a fork: each process connects by itself, at its first
    use of the servers. There is no cache of listings, because others may write.

    Examples
    --------
    >>> import fsspec
    >>> fs = fsspec.filesystem("unisono")
    >>> fs.pipe_file("samples/values", np.arange(1000, dtype="f8"))
    >>> found = np.empty(1000)
    >>> with fs.open("samples/values") as file:
    ...     file.readinto(found)            # from the servers into this memory
    8000
    >>> np.frombuffer(fs.cat_file("samples/values", -16))
    array([998., 999.])
    >>> fs.ls("samples", detail=False)
    ['samples/values']
    >>> fs.rm("samples", recursive=True)
    """

    protocol = "unisono"
    root_marker = ""
    cachable = True

    def __init__(
        self,
        instance: str | None = None,
        timeout: float | None = None,
        block_bytes: int | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs["use_listings_cache"] = False
        super().__init__(**kwargs)
        self.instance, self.timeout, self.block_bytes = instance, timeout, block_bytes

    @property
    def _connection(self) -> Any:
        return connect(self.instance, self.timeout)

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return instance_name(os.fspath(stringify_path(path)))

    # ---- Names --------------------------------------------------------------------------------

    def _info(self, entry: dict[str, Any], name: str) -> dict[str, Any]:
        return {**entry, "name": name}

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """Return name, size in bytes, type ("file" or "directory"), and times in seconds since 1970.

        "created" is the time of creation, "mtime" that of the last change of a file's data or size. "version"
        is another string after each change, and for each file that gets the name.
        """
        name = self._strip_protocol(path)
        if not name:
            return {"name": "", "size": 0, "type": "directory", "created": 0, "mtime": 0.0, "version": "0"}
        return self._info(self._connection.stat(name), name)

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        """List a directory, or a file by itself; with `detail`, as :meth:`info` does."""
        name = self._strip_protocol(path)
        try:
            entries = self._connection.list(name)
        except NotADirectoryError:
            return [self.info(name)] if detail else [name]
        prefix = f"{name}/" if name else ""
        found = [self._info(entry, prefix + entry["name"].rsplit("/", 1)[-1]) for entry in entries]
        return found if detail else [entry["name"] for entry in found]

    def _kind(self, path: str) -> str | None:
        """Return "file", "directory" or, if there is nothing of that name, None; other failures are raised."""
        try:
            found: str = self.info(path)["type"]
        except (FileNotFoundError, NotADirectoryError, errors.BadNameError):
            return None
        return found

    def exists(self, path: str, **kwargs: Any) -> bool:
        """Return whether there is a file or a directory of that name."""
        return self._kind(path) is not None

    def isfile(self, path: str) -> bool:
        """Return whether there is a file of that name."""
        return self._kind(path) == "file"

    def isdir(self, path: str) -> bool:
        """Return whether there is a directory of that name."""
        return self._kind(path) == "directory"

    def walk(
        self, path: str, maxdepth: int | None = None, topdown: bool = True, on_error: Any = "omit", **kwargs: Any
    ) -> Generator[Any, None, None]:
        """Yield the directories below a path, each with its directories and files.

        With `on_error="omit"`, directories that are removed meanwhile are left out. Other failures
        are raised: a listing without the files of a lost server would pass for a complete one.
        """
        handler: Any = _raise_unless_missing if on_error == "omit" else on_error
        yield from super().walk(path, maxdepth, topdown, handler, **kwargs)

    def ukey(self, path: str) -> str:
        """Return a key that changes exactly when the file does."""
        found = self.info(path)
        return hashlib.sha256(f"{found['version']} {found['size']}".encode()).hexdigest()

    def checksum(self, path: str) -> int:
        """Return a number that changes exactly when the file does."""
        return int(self.ukey(path), 16)

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        """Make a directory."""
        name = self._strip_protocol(path)
        if create_parents and "/" in name:
            self._connection.make_directory(self._parent(name), parents=True)
        self._connection.make_directory(name)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Make a directory and those above it."""
        name = self._strip_protocol(path)
        if not exist_ok and name and self.exists(name):
            raise _refused("already-exists", name, "cannot make the directory", "the name is taken", "give exist_ok=True, or another name")
        if name:
            self._connection.make_directory(name, parents=True)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        name = self._strip_protocol(path)
        if self.info(name)["type"] != "directory":
            raise _refused("not-a-directory", name, "cannot remove the directory", "it is a file", "remove it with rm_file")
        self._connection.remove(name)

    def rm_file(self, path: str) -> None:
        """Remove a file."""
        name = self._strip_protocol(path)
        if self.isdir(name):
            raise _refused("is-a-directory", name, "cannot remove", "it is a directory", "remove it with rmdir, or recursively")
        self._connection.remove(name)

    _rm = rm_file

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Remove files, and with `recursive` directories and what is in them."""
        paths = self.expand_path(path, recursive=recursive, maxdepth=maxdepth)
        for one in reversed(paths):
            if not recursive:
                self.rm_file(one)
            elif one:
                self._connection.remove(one)

    def mv(self, path1: str, path2: str, recursive: bool = False, maxdepth: int | None = None, **kwargs: Any) -> None:
        """Give a file or a directory another name."""
        old, new = self._strip_protocol(path1), self._strip_protocol(path2)
        if self.isdir(new):
            new = f"{new}/{old.rsplit('/', 1)[-1]}"
        self._connection.rename(old, new, replace=True)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        """Copy a file; of a directory, make one of that name."""
        old, new = self._strip_protocol(path1), self._strip_protocol(path2)
        if old == new:
            raise errors.UsageError(f"cannot copy {old!r}", "source and target are the same file", "give another name")
        if self.isdir(old):
            self.makedirs(new, exist_ok=True)
            return
        with self._file(old, "r") as source, self._made(new, "w") as target:
            piece, at = bytearray(_COPY_BYTES), 0
            while read := source.read_into(at, piece):
                target.write(at, memoryview(piece)[:read])
                at += read

    def created(self, path: str) -> datetime:
        """Return the time of creation."""
        return datetime.fromtimestamp(self.info(path)["created"], tz=timezone.utc)

    def modified(self, path: str) -> datetime:
        """Return the time of the last change of a file, or of the creation of a directory."""
        return datetime.fromtimestamp(self.info(path)["mtime"], tz=timezone.utc)

    # ---- Data ---------------------------------------------------------------------------------

    def _file(self, name: str, mode: str) -> File:
        file: File = self._connection.open(name, mode, block_bytes=self.block_bytes)
        return file

    def _made(self, name: str, mode: str) -> File:
        """Open a file that is made if it is not there, with the directories above it."""
        try:
            return self._file(name, mode)
        except FileNotFoundError:
            self._connection.make_directory(self._parent(name), parents=True)
            return self._file(name, mode)

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        """Return the bytes of a file from `start` to `end`; negative numbers count from its end."""
        with self._file(self._strip_protocol(path), "r") as opened:
            size = opened.size()
            first, last, _ = slice(start, end).indices(size)
            data: bytes = opened.read(first, max(0, last - first))
            return data

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        """Write bytes, or any object whose memory is contiguous, into a file."""
        name = self._strip_protocol(path)
        check_memory(value)
        if mode == "create":
            with self._made(name, "x") as opened:
                opened.write(0, value)
                opened.flush()
            return
        # A reader of the name finds the old content or the new one.
        hidden = _hidden_name(name)
        try:
            with self._made(hidden, "x") as opened:
                opened.write(0, value)
                opened.flush()
            self._connection.rename(hidden, name, replace=True)
        except BaseException:
            with contextlib.suppress(Exception):
                self._connection.remove(hidden)
            raise

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: Any = None,
        autocommit: bool = True,
        cache_options: Any = None,
        **kwargs: Any,
    ) -> Any:
        name, hidden = self._strip_protocol(path), None
        if mode not in _MODES:
            raise errors.UsageError(
                f"cannot open {name!r}", f"{mode!r} is no mode", f"give one of {', '.join(sorted(_MODES))}"
            )
        if "cache_type" in kwargs and mode == "rb":
            # fsspec's `blockcache` reads a file through a cache that it gives to it.
            size = kwargs.get("size") or self.info(name)["size"]
            return _CachedReader(self, name, mode, block_size or "default", size=size)
        if not autocommit and mode in ("wb", "xb"):
            hidden = _hidden_name(name)
        how = _MODES[mode]
        target = hidden or name
        opened = self._file(target, how) if how == "r" else self._made(target, how)
        raw = _Raw(opened, mode)
        kind = _Updater if "+" in mode else _Reader if mode == "rb" else _Writer
        file = kind(raw, _BUFFER_BYTES)
        file._describe(self, name, mode, hidden)
        return file

    def invalidate_cache(self, path: str | None = None) -> None:
        """Do nothing: there is no cache."""


def _hidden_name(name: str) -> str:
    """Return the name under which a file is written before it gets its own."""
    folder, _, last = name.rpartition("/")
    # A name of the greatest length has no room for a suffix.
    return f"{folder}/.{last[:40]}.part-{secrets.token_hex(8)}".lstrip("/")


def _refused(kind: str, name: str, verb: str, cause: str, help: str) -> Exception:
    place: dict[str, Any] = {"file": name, "range": None, "server": None, "ranks": []}
    return errors.of_kind(kind, f"{verb} {name!r}", cause, help, place)


def _raise_unless_missing(error: Exception) -> None:
    if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
        raise error


def _is_borrowed(view: Any) -> bool:
    """Tell if memory is that of a buffer of `io`, which does not outlive an interrupted call."""
    return isinstance(view, memoryview) and view.obj is None  # pyright: ignore[reportUnnecessaryComparison]


class _CachedReader(AbstractBufferedFile):  # type: ignore[misc]
    """A file that is read through a cache of fsspec."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        fs: UnisonoFileSystem = self.fs
        return fs.cat_file(self.path, start, end)


class _Raw(io.RawIOBase):
    """A file of an instance without a buffer: memory of the caller is read and written directly."""

    def __init__(self, file: File, mode: str) -> None:
        self._file, self._mode = file, mode
        # True if the last write has ended by an exception; an interrupted one goes on.
        self.was_interrupted = False
        self.is_abandoned = False
        self._at = file.size() if "a" in mode else 0

    def readable(self) -> bool:
        return "r" in self._mode or "+" in self._mode

    def writable(self) -> bool:
        return self._mode != "rb"

    def seekable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        if _is_borrowed(into):
            data = self._file.read(self._at, into.nbytes)
            into[: len(data)] = data
            read = len(data)
        else:
            read = self._file.read_into(self._at, into)
        self._at += read
        return read

    def write(self, data: Any) -> int:
        if "a" in self._mode:
            self._at = self._file.size()
        owned = bytes(data) if _is_borrowed(data) else data
        self.was_interrupted = True
        written: int = self._file.write(self._at, owned)
        self.was_interrupted = False
        self._at += written
        return written

    def read_at(self, offset: int, length: int) -> bytes:
        return self._file.read(offset, length)

    def read_into_at(self, offset: int, into: Any) -> int:
        return self._file.read_into(offset, into)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise errors.UsageError("cannot seek", f"{whence} is no place to seek from", "give 0, 1 or 2")
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence)
        start = self._file.size() if start is None else start
        if start + offset < 0:
            # As files of the operating system do, which zipfile relies on.
            raise OSError(errno.EINVAL, f"cannot seek to {start + offset}, before the start of the file")
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def truncate(self, size: int | None = None) -> int:
        end = self._at if size is None else size
        self._file.set_size(end)
        return end

    def size(self) -> int:
        found: int = self._file.size()
        return found

    def close(self) -> None:
        if self.closed:
            return
        try:
            # Servers write behind; what failed must be told.
            if self.writable() and not self.is_abandoned:
                self._file.flush()
        finally:
            self._file.close()
            super().close()


class UnisonoFile:
    """Methods of open files besides those of :mod:`io`.

    Large reads and writes go between the servers and the memory of the caller without a copy.

    Attributes
    ----------
    fs : UnisonoFileSystem
    path : str
        Name in the instance.
    mode : str
    """

    fs: UnisonoFileSystem
    path: str
    raw: Any

    def _describe(self, fs: UnisonoFileSystem, path: str, mode: str, hidden: str | None) -> None:
        self.fs, self.path, self._mode, self._hidden = fs, path, mode, hidden

    def read(self, size: int | None = -1) -> bytes:
        """Return at most so many bytes; all up to the end if there is no size."""
        stream: Any = self
        is_small = size is not None and 0 <= size < _BUFFER_BYTES
        if is_small or not stream.readable():
            return super().read(size)  # type: ignore[misc, no-any-return]
        stream.flush()
        at = stream.tell()
        length = max(0, self.size - at) if size is None or size < 0 else size
        data: bytes = self.raw.read_at(at, length)
        stream.seek(at + len(data))
        return data

    def readinto(self, into: Any) -> int:
        """Fill memory; return the number of bytes, fewer only at the end of the file."""
        stream: Any = self
        if check_memory(into) < _BUFFER_BYTES or not stream.readable():
            return super().readinto(into)  # type: ignore[misc, no-any-return]
        stream.flush()
        at = stream.tell()
        read: int = self.raw.read_into_at(at, into)
        stream.seek(at + read)
        return read

    def write(self, data: Any) -> int:
        """Write memory; return the number of its bytes."""
        stream: Any = self
        if check_memory(data) < _BUFFER_BYTES or not stream.writable():
            return super().write(data)  # type: ignore[misc, no-any-return]
        stream.flush()
        written: int = self.raw.write(data)
        # What `io` knows of the position is that before the write.
        stream.seek(self.raw.tell())
        return written

    def flush(self) -> None:
        """Write what is buffered."""
        if not self.raw.is_abandoned:
            super().flush()  # type: ignore[misc]

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        # An interrupted write goes on by itself: the interrupt must not wait for it.
        is_interrupt = kind is not None and not issubclass(kind, Exception)
        self.raw.is_abandoned = is_interrupt and self.raw.was_interrupted
        stream: Any = self
        stream.close()

    @property
    def mode(self) -> str:
        """Mode in which it was opened."""
        return self._mode

    @property
    def full_name(self) -> str:
        """Name with the protocol."""
        return f"unisono://{self.path}"

    @property
    def size(self) -> int:
        """Size now, in bytes."""
        found: int = self.raw.size()
        return found

    def info(self) -> dict[str, Any]:
        """Metadata, as :meth:`UnisonoFileSystem.info` returns it."""
        return self.fs.info(self._hidden or self.path)

    def commit(self) -> None:
        """Give a file that was written in a transaction its name."""
        if self._hidden:
            self.fs._connection.rename(self._hidden, self.path, replace=True)
            self._hidden = None

    def discard(self) -> None:
        """Remove a file that was written in a transaction."""
        if self._hidden:
            self.fs._connection.remove(self._hidden)
            self._hidden = None


class _Reader(UnisonoFile, io.BufferedReader):
    def __reduce__(self) -> Any:
        return (_reopen, (self.fs, self.path, self.tell()))


class _Writer(UnisonoFile, io.BufferedWriter):
    pass


class _Updater(UnisonoFile, io.BufferedRandom):  # type: ignore[override]
    pass


def _reopen(fs: UnisonoFileSystem, path: str, position: int) -> Any:
    """Open a file that was pickled."""
    opened = fs.open(path, "rb")
    opened.seek(position)
    return opened
