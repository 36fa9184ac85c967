"""Finds NVIDIA's compiler parts where pip installs them."""

import os
import sys


def folder():
    """The folder of `nvidia-nvvm` and the other packages, which share one; None if they are not installed."""
    for entry in sys.path:
        candidate = os.path.join(entry or os.curdir, "nvidia", "cu13")
        if os.path.isdir(os.path.join(candidate, "nvvm")):
            return os.path.abspath(candidate)
    return None
