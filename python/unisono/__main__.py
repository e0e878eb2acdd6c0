"""``python -m unisono`` is the command ``unisono``."""

import os
import sys
import sysconfig


def main() -> None:
    """Become the command that is installed with this package."""
    command = os.path.join(sysconfig.get_path("scripts"), "unisono")
    os.execv(command, [command, *sys.argv[1:]])


main()
