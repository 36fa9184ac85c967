"""Compiles GPU kernels that launch other kernels, and runs them on arrays of NumPy, PyTorch, CuPy, JAX and Numba.

    import gridlet, numpy as np

    program = gridlet.compile("quicksort.grid")
    device = gridlet.Device()
    data = device.array(np.arange(1000, dtype=np.uint32)[::-1])
    program.quicksort[1, 1](data, 0, 999, 0)
    device.synchronize()

`docs/python.md` is the guide, `docs/language.md` the language.
"""

from ._errors import (
    CheckError,
    CompileError,
    DeviceError,
    Error,
    Fault,
    LaunchError,
    LostLaunches,
    MissingError,
    TimedOut,
)
from ._native import (
    Array,
    Device,
    Event,
    Kernel,
    Launcher,
    Partition,
    Program,
    Stream,
    compile,
    load,
)

__version__ = "0.1.0"

__all__ = [
    "Array",
    "CheckError",
    "CompileError",
    "Device",
    "DeviceError",
    "Error",
    "Event",
    "Fault",
    "Kernel",
    "LaunchError",
    "Launcher",
    "LostLaunches",
    "MissingError",
    "Partition",
    "Program",
    "Stream",
    "TimedOut",
    "compile",
    "layout",
    "load",
    "load_ipython_extension",
]


def layout(source, *, name="program.grid", instances=()):
    """The parameter buffer of each kernel of a program, as `gridlet layout --json` shows it: offsets, sizes and alignments
    in bytes. The arguments are those of `compile`."""
    return compile(source, name=name, instances=list(instances)).layout()


def load_ipython_extension(shell):
    """Adds the cell magic `%%gridlet`: `%load_ext gridlet` calls this."""
    from ._magic import Magic

    shell.register_magics(Magic(shell))
