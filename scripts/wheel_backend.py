"""Build backend of the wheel: maturin, after the command, the libraries and the manual are built.

What `scripts/install` puts below a prefix goes into the data of the wheel, so that an environment has
it in the same places. Variables of the environment:

  UNISONO_TARGET   target of cargo, and UNISONO_GLIBC the oldest C library that the wheel is for, such as 2.28.
                   `scripts/packages` sets them, with a linker that links for it. Without them, the wheel
                   is for the C library of this machine.
  UNISONO_PACKAGE  name of the package that the wheel becomes a part of, if it is another one
"""

import os
import pathlib
import shutil
import subprocess

import maturin
from maturin import build_sdist, get_requires_for_build_sdist, get_requires_for_build_wheel  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parent.parent
WHEEL = ROOT / "target" / "wheel"
TARGET, GLIBC = os.environ.get("UNISONO_TARGET"), os.environ.get("UNISONO_GLIBC")
PACKAGE = os.environ.get("UNISONO_PACKAGE", "wheel")


def _stage() -> None:
    """Install the product into the folder that maturin takes the data of the wheel from."""
    installed, data = WHEEL / "installed", WHEEL / "unisono.data"
    shutil.rmtree(WHEEL, ignore_errors=True)
    install = [ROOT / "scripts/install", "--prefix", installed, "--package", PACKAGE]
    target = ["--target", TARGET] if TARGET else []
    subprocess.run([*install, *target], check=True, cwd=ROOT)
    (data / "data").mkdir(parents=True)
    shutil.move(installed / "bin", data / "scripts")
    for kind in ("lib", "include", "share"):
        shutil.move(installed / kind, data / "data" / kind)
    libraries = data / "data" / "lib"
    (libraries / "libunisono.a").unlink()
    # A wheel has no links: programs load the library by the name that has its major version.
    for path in [*libraries.iterdir(), *(data / "data/share/man/man3").iterdir()]:
        if path.is_symlink():
            path.unlink()
    for path in libraries.glob("libunisono.so.*.*"):
        path.rename(libraries / ".".join(path.name.split(".")[:3]))
    shutil.rmtree(libraries / "pkgconfig")
    about = data / "data/share/doc/unisono"
    about.mkdir(parents=True)
    subprocess.run([ROOT / "packaging/notices", about / "copyright"], check=True, cwd=ROOT)


def _platform() -> str:
    """Oldest platform that has the C library which the staged programs and libraries need."""
    described = (WHEEL / "unisono.data/data/share/unisono/package").read_text()
    needed = next(line.removeprefix("glibc: ") for line in described.splitlines() if line.startswith("glibc: "))
    if GLIBC and _number(needed) > _number(GLIBC):
        raise RuntimeError(f"the programs need glibc {needed}, and the wheel is for {GLIBC}")
    return "manylinux_" + (GLIBC or needed).replace(".", "_")


def _number(version: str) -> tuple[int, ...]:
    """Version as numbers, which can be compared."""
    return tuple(int(part) for part in version.split("."))


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Write the metadata; maturin wants the folder of the data to be there."""
    (WHEEL / "unisono.data").mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build the wheel."""
    _stage()
    os.environ.setdefault("CARGO_TARGET_DIR", str(ROOT / "target"))
    # maturin checks that the extension module fits it too.
    target = f"--target {TARGET}" if TARGET else ""
    os.environ.setdefault("MATURIN_PEP517_ARGS", f"--compatibility {_platform()} {target}")
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
