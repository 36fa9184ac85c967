"""The exceptions. They can be pickled, so they arrive whole from other processes."""


class Error(Exception):
    """Something that Gridlet, a device or a driver reports."""


class CompileError(Error):
    """The program is wrong, or a tool refused it. Its text is the rendered message.

    `diagnostics` has the parts: a dictionary for each message, with `id`, `severity`, `message`, `file`, `line`,
    `column`, `end_line`, `end_column`, `labels`, `notes` and `hint`. It is empty if a tool failed.
    """

    diagnostics: list = []

    @property
    def rendered(self):
        """The messages, as `gridlet check` shows them."""
        return str(self)


class MissingError(Error):
    """A tool, a driver or a device is missing or too old."""


class DeviceError(Error):
    """A call of the CUDA driver failed. `name` and `code` are the driver's."""

    name = ""
    code = 0


class LaunchError(Error, ValueError):
    """The device cannot do this: the grid or the block is too large, or two handles are of different devices."""


class LostLaunches(Error):
    """Kernels launched kernels that never ran. `count` is their number; the first was launched at `file`:`line`, and
    failed with the `cudaError` `error`, called `name`. `program` is the program's name."""

    program = ""
    count = 0
    error = 0
    name = ""
    file = ""
    line = 0


class Fault(Error):
    """A kernel broke: a wrong address, a trap, a failed assertion. `kernels` names those that may have. After a fault on a GPU,
    this process can no longer use that GPU; the CPU device stays usable."""

    kernels: list = []
    name = ""
    code = 0


class CheckError(Error):
    """A checking device found wrong accesses, races or barriers. Its text is the rendered report; `reports` has a
    dictionary for each."""

    reports: list = []


class TimedOut(Error, TimeoutError):
    """The device did not finish in time. After a time-out this process can no longer use a GPU; the CPU device stops the
    kernels and stays usable."""
