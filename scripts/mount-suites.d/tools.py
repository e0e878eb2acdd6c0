"""Everyday tools in the file system under test: git, a C build, cp, rsync and tar."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import trees
from outcome import Outcome, Place, Steps, output_of

ROOT = Path(__file__).resolve().parent.parent.parent

# Source files of the C program.
C_FILES = 30

# git reads no settings of the user, trusts folders of other owners, and needs a name for commits.
GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "GIT_CONFIG_KEY_1": "user.name",
    "GIT_CONFIG_VALUE_1": "suites",
    "GIT_CONFIG_KEY_2": "user.email",
    "GIT_CONFIG_VALUE_2": "suites@localhost",
}


def absent(*programs: str) -> Outcome | None:
    """A skipped test that names the first program that this machine lacks."""
    for program in programs:
        if not shutil.which(program):
            return Outcome("all", "skipped", f"{program} is not installed")
    return None


def git(place: Place) -> Iterator[Outcome]:
    """Clones this project, checks and changes the clone, and repacks it."""
    lacks = absent("git")
    if not lacks and output_of(["git", "-C", ROOT, "rev-parse", "HEAD"], environment=GIT)[0]:
        lacks = Outcome("all", "skipped", "these sources are no clone of a repository")
    if lacks:
        yield lacks
        return
    steps, clone = Steps(place, GIT), place.work / "clone"
    cloned = steps.command("clone", "git", "clone", "--quiet", "--no-hardlinks", ROOT, clone)
    yield cloned
    if cloned.state != "passed":
        return
    yield steps.command("fsck", "git", "fsck", "--full", "--no-progress", folder=clone)
    yield steps.silent("status", "git", "status", "--porcelain", folder=clone)
    (clone / "README.md").write_text("changed\n")
    (clone / "new").write_text("new\n")
    yield steps.command("add", "git", "add", "--all", folder=clone)
    yield steps.command("commit", "git", "commit", "--quiet", "-m", "change", folder=clone)
    yield steps.command("switch", "git", "checkout", "--quiet", "-b", "old", "HEAD~1", folder=clone)
    yield steps.check("restored", lambda: "new is there" if (clone / "new").exists() else "")
    yield steps.command("merge", "git", "merge", "--quiet", "-", folder=clone)
    yield steps.command("gc", "git", "gc", "--quiet", "--prune=now", folder=clone)
    yield steps.command("fsck-packed", "git", "fsck", "--full", "--no-progress", folder=clone)
    yield steps.silent("status-packed", "git", "status", "--porcelain", folder=clone)


def write_program(folder: Path) -> None:
    """Writes a C program of several files with a library, whose output is the sum of all file numbers."""
    folder.mkdir()
    names = [f"part_{number}" for number in range(C_FILES)]
    declarations = "".join(f"int {name}(void);\n" for name in names)
    (folder / "parts.h").write_text(declarations)
    for number, name in enumerate(names):
        table = ", ".join(str(index * number) for index in range(500))
        text = f'#include "parts.h"\nstatic const int table[] = {{{table}}};\n'
        text += f"int {name}(void) {{ return table[1]; }}\n"
        (folder / f"{name}.c").write_text(text)
    total = " + ".join(f"{name}()" for name in names)
    text = '#include <stdio.h>\n#include "parts.h"\n'
    text += f'int main(void) {{ printf("%d\\n", {total}); return 0; }}\n'
    (folder / "main.c").write_text(text)
    objects = " ".join(f"{name}.o" for name in names)
    (folder / "Makefile").write_text(
        f"CFLAGS = -g -O1 -MMD\nprogram: main.o libparts.a\n\t$(CC) -o $@ $^\n"
        f"libparts.a: {objects}\n\t$(AR) rc $@ $^\n-include *.d\n"
    )


def build(place: Place) -> Iterator[Outcome]:
    """Builds a C program, runs it, and builds again what changed: make goes by modification times."""
    lacks = absent("make", "cc", "ar")
    if lacks:
        yield lacks
        return
    steps, folder = Steps(place), place.work / "program"
    write_program(folder)
    made = steps.command("make", "make", "-j2", folder=folder)
    yield made
    if made.state != "passed":
        return

    def output() -> str:
        text = output_of([folder / "program"])[1].strip()
        return "" if text == str(sum(range(C_FILES))) else f"the program says {text!r}"

    def rebuilt() -> str:
        # Later than all results, also where times are coarse.
        newest = max(path.stat().st_mtime_ns for path in folder.iterdir())
        os.utime(folder / "part_7.c", ns=(newest + 1_000_000, newest + 1_000_000))
        text = output_of(["make"], folder)[1]
        compiled = re.findall(r"-o (part_\d+|main)\.o|(\S+)\.c$", text, re.MULTILINE)
        names = sorted({first or second for first, second in compiled})
        return "" if names == ["part_7"] else f"compiled was {names}, not part_7"

    yield steps.check("run", output)
    yield steps.check(
        "up-to-date",
        lambda: "" if "up to date" in output_of(["make"], folder)[1] else "make builds again",
    )
    yield steps.check("rebuild", rebuilt)
    yield steps.check("run-again", output)


def compared(steps: Steps, suffix: str, left: Path, right: Path) -> Iterator[Outcome]:
    """Compares a tree with its copy: contents by diff, then what diff does not look at."""
    # diff takes two FIFOs for different.
    yield steps.silent(
        f"contents{suffix}", "diff", "-r", "--no-dereference", "--exclude=fifo", left, right
    )
    for name, value in trees.COMPARISONS.items():
        yield steps.check(f"{name}{suffix}", partial(trees.differences, left, right, value))


def copy(place: Place) -> Iterator[Outcome]:
    """Copies a tree into the file system by cp -a, renames it there, and copies it back."""
    steps, source = Steps(place), place.reference / "tree"
    trees.make_tree(source)
    first, moved, back = place.work / "tree", place.work / "moved", place.reference / "back"
    yield steps.silent("cp", "cp", "-a", source, first)
    yield from compared(steps, "", source, first)
    yield steps.silent("mv", "mv", first, moved)
    yield from compared(steps, "-moved", source, moved)
    yield steps.silent("cp-back", "cp", "-a", moved, back)
    yield from compared(steps, "-back", source, back)

    def newer() -> str:
        stamp = place.work / "stamp"
        stamp.touch()
        os.utime(moved / "holes", ns=(stamp.stat().st_mtime_ns + 1,) * 2)
        text = output_of(["find", moved, "-newer", stamp])[1]
        return "" if text.split() == [str(moved / "holes")] else f"find -newer prints {text[:200]!r}"

    yield steps.check("find-newer", newer)


def rsync(place: Place) -> Iterator[Outcome]:
    """Copies a tree by rsync -a; later runs must copy what changed, and nothing else."""
    lacks = absent("rsync")
    if lacks:
        yield lacks
        return
    steps, source, target = Steps(place), place.reference / "tree", place.work / "tree"
    trees.make_tree(source)
    words = ["rsync", "-a", "--itemize-changes", f"{source}/", f"{target}/"]
    yield steps.command("first", *words)
    yield from compared(steps, "", source, target)
    yield steps.silent("second", *words)

    def changed() -> str:
        file = source / "holes"
        with file.open("ab") as opened:
            opened.write(b"more")
        text = output_of(list(words))[1].strip()
        is_only = re.fullmatch(r">f\.st\S* holes", text)
        return "" if is_only else f"rsync transfers after one change: {text[:200]!r}"

    yield steps.check("changed", changed)
    yield steps.silent("checksums", *words, "--checksum")


def tar(place: Place) -> Iterator[Outcome]:
    """Makes many small files, archives them, extracts the archive, and compares."""
    lacks = absent("tar")
    if lacks:
        yield lacks
        return
    count, steps = place.options.tar_files, Steps(place)
    source, archive, target = place.work / "files", place.work / "files.tar", place.work / "extracted"
    trees.make_small_files(source, count)
    target.mkdir()
    yield steps.check("files", lambda: trees.wrong_small_files(source, count))
    yield steps.silent("create", "tar", "-cf", archive, "-C", source, ".")
    yield steps.silent("extract", "tar", "-xpf", archive, "-C", target)
    yield steps.silent("compare", "tar", "--compare", "-f", archive, "-C", target)
    yield steps.check("extracted", lambda: trees.wrong_small_files(target, count))


SUITES: dict[str, Callable[[Place], Iterator[Outcome]]] = {
    "git": git,
    "build": build,
    "copy": copy,
    "rsync": rsync,
    "tar": tar,
}
