"""Build backend of the wheel: maturin, after the command, the libraries and the manual are built.

What `scripts/install` puts below a prefix goes into the data of the wheel, so that an environment has
it in the same places.
"""

import os
import pathlib
import re
import shutil
import subprocess

import maturin
from maturin import build_sdist, get_requires_for_build_sdist, get_requires_for_build_wheel  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parent.parent
WHEEL = ROOT / "target" / "wheel"


def _stage() -> None:
    """Install the product into the folder that maturin takes the data of the wheel from."""
    installed, data = WHEEL / "installed", WHEEL / "unisono.data"
    shutil.rmtree(WHEEL, ignore_errors=True)
    subprocess.run([ROOT / "scripts/install", "--prefix", installed], check=True, cwd=ROOT)
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


def _platform() -> str:
    """Oldest platform that has the C library which the staged programs and libraries need."""
    files = [*(WHEEL / "unisono.data/scripts").iterdir(), *(WHEEL / "unisono.data/data/lib").iterdir()]
    told = subprocess.run(["objdump", "-T", *files], check=True, capture_output=True, text=True).stdout
    return f"manylinux_2_{max(int(minor) for minor in re.findall(r'GLIBC_2[.]([0-9]+)', told))}"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Write the metadata; maturin wants the folder of the data to be there."""
    (WHEEL / "unisono.data").mkdir(parents=True, exist_ok=True)
    return maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build the wheel."""
    _stage()
    os.environ.setdefault("CARGO_TARGET_DIR", str(ROOT / "target"))
    # maturin checks that the extension module fits it too.
    os.environ.setdefault("MATURIN_PEP517_ARGS", f"--compatibility {_platform()}")
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
