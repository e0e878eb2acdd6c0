"""Paths for universal_pathlib: ``UPath("unisono://name")`` is a :class:`UnisonoPath`."""

# fsspec has no types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import fsspec  # type: ignore[import-untyped]
from upath import UPath

__all__ = ["UnisonoPath"]

# UPath takes the syntax of names from the file system only if its class is loaded.
fsspec.get_filesystem_class("unisono")


class UnisonoPath(UPath):
    """Path of a file or a directory of a Unisono instance.

    All characters of a name are literal, except in the patterns of `glob` and `rglob`.
    """

    __slots__ = ()

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove this file."""
        try:
            self.fs.rm_file(self.path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rmdir(self, recursive: bool = True) -> None:
        """Remove this directory: with what is in it (the default of UPath), or only if it is empty."""
        if not recursive:
            self.fs.rmdir(self.path)
            return
        if not self.is_dir():
            raise NotADirectoryError(str(self))
        fs: Any = self.fs
        below = fs.find(self.path, withdirs=True, detail=True)
        for name, info in reversed(below.items()):
            if info["type"] == "directory":
                fs.rmdir(name)
            else:
                fs.rm_file(name)

    def replace(self, target: Any) -> UnisonoPath:
        """Give this file another name, in place of the file that has it."""
        return self.rename(target)
