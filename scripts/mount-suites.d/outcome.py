"""Outcomes, folders, and commands with a time limit, for all suites of scripts/mount-suites."""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

# Seconds after which a command is ended.
LIMIT_S = 7200


def fail(cause: str, advice: str) -> NoReturn:
    """Says in three parts why the suites cannot run, and ends."""
    print(f"error: the suites were not run\ncause: {cause}\nhelp:  {advice}", file=sys.stderr)
    sys.exit(2)


@dataclass
class Outcome:
    """Outcome of one test: its state is `passed`, `failed` or `skipped`."""

    name: str
    state: str
    reason: str = ""


@dataclass
class Place:
    """Folders of one suite: in the file system under test, and in a second one."""

    work: Path
    reference: Path
    logs: Path
    options: argparse.Namespace

    def make(self) -> None:
        """Makes both folders, which other users may enter whatever the umask is."""
        for folder in (self.work, self.reference):
            folder.mkdir()
            folder.chmod(0o755)

    def remove(self) -> str:
        """Removes both folders, and tells what could not be removed."""
        shutil.rmtree(self.reference, ignore_errors=True)
        try:
            shutil.rmtree(self.work)
        except OSError as error:
            return f"the files of the suite could not be removed: {error}"
        return f"{self.work} is still there" if self.work.exists() else ""


def output_of(
    command: list[object], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Exit code of a command, and all that it wrote; 124 if it was ended at the time limit."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            env=os.environ | {"LC_ALL": "C.UTF-8"} | dict(environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        return 124, (expired.stdout or b"").decode(errors="replace")
    return done.returncode, done.stdout.decode(errors="replace")


class Steps:
    """Tests of one suite that are commands or comparisons, each noted with its cause."""

    def __init__(self, place: Place, environment: Mapping[str, str] | None = None) -> None:
        """Starts with no outcomes."""
        self.place = place
        self.environment = environment

    def command(self, name: str, *words: object, folder: Path | None = None) -> Outcome:
        """A test that passes if a command exits with 0."""
        return self.silent(name, *words, folder=folder, may_write=True)

    def silent(
        self, name: str, *words: object, folder: Path | None = None, may_write: bool = False
    ) -> Outcome:
        """A test that passes if a command exits with 0 and writes nothing."""
        code, output = output_of(list(words), folder or self.place.work, self.environment)
        last = output.strip().splitlines()[-1:] or ["it wrote nothing"]
        if code == 124:
            return Outcome(name, "failed", f"{words[0]}: no end within {LIMIT_S} s")
        if code:
            return Outcome(name, "failed", f"{words[0]}: exit code {code}: {last[0]}")
        if output.strip() and not may_write:
            return Outcome(name, "failed", f"{words[0]} wrote: {output.strip()[:300]!r}")
        return Outcome(name, "passed")

    def check(self, name: str, difference: Callable[[], str]) -> Outcome:
        """A test that passes if a comparison finds no difference."""
        try:
            cause = difference()
        except OSError as error:
            cause = str(error)
        return Outcome(name, "failed" if cause else "passed", cause)
