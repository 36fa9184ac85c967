"""What a GPU's arrays, streams and partitions ask of the driver, on the runtime's fake driver: its device memory is host memory,
and a launch prints its parameters."""

import os
import subprocess
import sys

BEGIN = """
import gridlet, numpy as np

program = gridlet.compile("kernel k(p: *mut u32) { *p = 1; }")
device = gridlet.Device()
assert (device.name, device.kind) == ("cuda:0", "cuda")

class Tensor:
    '''Memory of a GPU, as PyTorch describes it.'''

    def __init__(self, kind=2, number=0):
        self.values, self.asked = np.arange(4, dtype=np.uint32), []
        self.device = kind, number

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append(stream)
        return self.values.__dlpack__(max_version=max_version)

class Interface:
    '''Memory of a GPU, as CuPy and Numba describe it.'''

    def __init__(self, **more):
        self.values = np.arange(4, dtype=np.uint32)
        self.__cuda_array_interface__ = {**self.values.__array_interface__, **more}

def bytes_of(address):
    return " ".join(f"{byte:02x}" for byte in address.to_bytes(8, "little"))
"""


def run(driver, code, **settings):
    settings = {"FAKE_PARAMETERS": "1", "FAKE_PARAMETER_BYTES": "8", "FAKE_TALLY": "1", **settings}
    environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), **settings}
    command = [sys.executable, "-c", BEGIN + code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_arrays_are_copied_and_launched(driver):
    said = run(driver, """
array = device.array(np.arange(4, dtype=np.uint32))
assert array.tolist() == [0, 1, 2, 3]
program.k[(2, 3), 32, 48](array)
device.synchronize()
print("expected:", bytes_of(array.address))
try:
    program.k[1, 1](np.zeros(1, np.uint32))
except TypeError as error:
    print(error)
try:
    array.__array_interface__
except AttributeError as error:
    print(error)
try:
    np.asarray(array)
except Exception as error:
    print("asarray:", type(error).__name__)
""")
    expected = said.split("expected: ")[1].splitlines()[0]
    assert f"cuLaunchKernelEx (2, 3, 1) (32, 1, 1) 48: {expected}" in said
    assert "argument 0 (`p`): expected a mutable buffer of `u32`, given a `ndarray` with DLPack's device" in said
    assert "copy it with `array.numpy()`" in said


def test_memory_of_other_libraries_is_launched_as_it_is(driver):
    said = run(driver, """
stream = device.stream()
for theirs in [Tensor(), Tensor(kind=13), Interface(), Interface(stream=1), Interface(stream=None)]:
    shared = device.share(theirs, stream=stream)
    assert shared.address == theirs.values.ctypes.data
    program.k[1, 1](shared)
    program.k[1, 1](theirs, stream=stream)
    print("expected:", bytes_of(shared.address))
    if isinstance(theirs, Tensor):
        assert theirs.asked == ([stream.handle] * 2 if theirs.device[0] == 2 else [None] * 2), theirs.asked
    assert device.array(theirs).tolist() == [0, 1, 2, 3]
device.synchronize()
stream.synchronize()
for wrong in [Tensor(number=1), Tensor(kind=1)]:
    try:
        device.share(wrong)
    except TypeError as error:
        print(error)
""")
    for expected in [line[10:] for line in said.splitlines() if line.startswith("expected: ")]:
        assert said.count(f"cuLaunchKernelEx (1, 1, 1) (1, 1, 1) 0: {expected}") == 2
    assert "a `Tensor` with DLPack's device 2:1 is not in the memory of cuda:0" in said
    assert "a `Tensor` with DLPack's device 1:0 is not in the memory of cuda:0" in said


def test_arrays_are_lent_to_other_libraries(driver):
    run(driver, """
array = device.array(np.arange(4, dtype=np.uint32))
program.k[1, 1](array)
interface = array.__cuda_array_interface__
assert interface == {"shape": (4,), "typestr": "<u4", "data": (array.address, False), "version": 3, "stream": None}
assert array.__dlpack_device__() == (2, 0)
again = device.share(array)
assert again.address == array.address
array.__dlpack__(stream=-1, max_version=(1, 0))
array.__dlpack__()
""")


def test_streams_and_partitions_are_the_drivers(driver):
    said = run(driver, """
array = device.zeros(1, np.uint32)
with device.partition(sms=16) as partition:
    program.k[1, 1](array)
partition.synchronize()
assert partition.sms == 16

class Theirs:
    cuda_stream = device.stream().handle

class Cupy:
    ptr = Theirs.cuda_stream

class Core:
    def __cuda_stream__(self):
        return 0, Theirs.cuda_stream

import ctypes

class Numba:
    handle = ctypes.c_void_p(Theirs.cuda_stream)

class Bindings:
    '''A handle of NVIDIA's Python bindings.'''

    def __int__(self):
        return Theirs.cuda_stream

class NewNumba:
    handle = Bindings()

for theirs in [Theirs, Cupy, Core(), Numba, NewNumba, Theirs.cuda_stream, gridlet.Device().stream()]:
    stream = device.external_stream(theirs)
    program.k[1, 1](array, stream=stream)
    stream.synchronize()
assert device.external_stream(Theirs).handle == Theirs.cuda_stream
assert device.external_stream(Theirs).__cuda_stream__() == (0, Theirs.cuda_stream)
try:
    device.external_stream("x")
except TypeError as error:
    print(error)
first, second = device.stream(), device.stream()
second.wait(first.record())
""")
    assert "cuGreenCtxCreate" in said or "cuGreenCtxStreamCreate" in said
    assert "stream: expected an object with `__cuda_stream__`" in said


def test_driver_errors_are_exceptions(driver):
    said = run(driver, """
try:
    device.zeros(1)
except gridlet.DeviceError as error:
    print(error.name, error.code)
""", FAKE_FAIL="cuMemAlloc_v2:2")
    assert "CUDA_ERROR_FAKE 2" in said
    said = run(driver, """
array = device.zeros(1, np.uint32)
try:
    program.k[1, 1](array)
    device.synchronize()
except gridlet.Fault as error:
    print("fault:", error.kernels, error.code)
""", FAKE_FAIL="cuLaunchKernelEx:700")
    assert "fault: ['k'] 700" in said


def test_nothing_is_left(driver):
    said = run(driver, """
import gc
for _ in range(3):
    array, stream = device.zeros(1, np.uint32), device.stream()
    program.k[1, 1](array, stream=stream)
    program.k[1, 1](Interface(), stream=stream)
    device.share(Tensor())
    device.array(Interface())
    device.partition(sms=8).stream()
device.synchronize()
del array, stream, device, program
gc.collect()
""")
    assert said.splitlines()[-1] == "> left:" and "destroyed that" not in said
