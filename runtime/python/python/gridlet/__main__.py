"""The program `gridlet`: `python -m gridlet` is the same."""

import os
import sys


def main():
    from ._native import command

    # A closed pipe must reach the program as an error, and an interrupt must end it at once; it handles both.
    sys.stdout.flush()
    status = command(["gridlet", *sys.argv[1:]], [sys.executable, "-m", "gridlet"])
    # Without Python's shutdown, which kernels that still run would hold up.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
