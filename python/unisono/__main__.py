"""``python -m unisono`` is the command ``unisono``."""

import os
import shutil
import sys
import sysconfig


def main() -> None:
    """Become the command that is installed with this package."""
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    places = [os.path.join(sysconfig.get_path("scripts", scheme), "unisono") for scheme in schemes]
    command = next((place for place in places if os.access(place, os.X_OK)), None) or shutil.which("unisono")
    if command is None:
        print("error: the command unisono is not installed", file=sys.stderr)
        print(f"cause: it is neither in {' nor in '.join(places)} nor on PATH", file=sys.stderr)
        print("help:  install the wheel with pip", file=sys.stderr)
        sys.exit(1)
    os.execv(command, [command, *sys.argv[1:]])


main()
