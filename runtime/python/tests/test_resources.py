import gc
import subprocess
import sys
import sysconfig
import threading
import weakref

import gridlet
import numpy as np
import pytest

SOURCE = "kernel k(p: *mut u32) { atomic_add(p, 1); }\n"


def grown(make, count):
    """Whether many repetitions leave blocks of Python's memory or references to None, after some for the caches."""
    for _ in range(min(count, 200)):
        make()
    gc.collect()
    blocks, references = sys.getallocatedblocks(), sys.getrefcount(None)
    for _ in range(count):
        make()
    gc.collect()
    growth = sys.getallocatedblocks() - blocks, sys.getrefcount(None) - references
    return growth if growth[0] > max(300, count // 8) or growth[1] > 100 else None


def test_arrays_leave_nothing(device):
    theirs = np.zeros(4, np.uint32)
    before = sys.getrefcount(theirs)

    def make():
        array = device.array(theirs)
        np.asarray(array)
        np.from_dlpack(array)
        device.share(theirs)
        array.tolist()

    assert grown(make, 10_000) is None
    assert sys.getrefcount(theirs) == before


def test_streams_leave_nothing(program, device):
    out, theirs = device.zeros(4, np.uint32), np.zeros(4, np.uint32)
    before = sys.getrefcount(out), sys.getrefcount(theirs)

    def make():
        stream = device.stream()
        program.add[1, 1](out, 1, stream=stream)
        program.add[1, 1](theirs, 1, stream=stream)
        stream.record()
        stream.synchronize()

    assert grown(make, 10_000) is None
    assert (sys.getrefcount(out), sys.getrefcount(theirs)) == before


def test_programs_leave_nothing():
    def make():
        program = gridlet.compile(SOURCE)
        program.k, program.layout(), program.k[1, 1]

    assert grown(make, 10_000) is None


def test_programs_are_unloaded(device):
    def make():
        program = gridlet.compile(SOURCE)
        out = device.zeros(1, np.uint32)
        program.k[1, 1](out)
        assert out.tolist() == [1]

    assert grown(make, 20) is None


def test_errors_leave_nothing(program, device):
    out = device.zeros(1, np.uint32)
    device.synchronize()

    def make():
        for arguments in [(), (out, -1), (1.5, 1), (np.zeros(1), 1)]:
            try:
                program.add[1, 1](*arguments)
            except (TypeError, OverflowError):
                pass

    assert grown(make, 2000) is None


def test_everything_can_die_in_any_order():
    device = gridlet.Device("cpu", threads=1, seed=5)
    program = gridlet.compile(SOURCE)
    array, stream, partition = device.zeros(1, np.uint32), device.stream(), device.partition(sms=1)
    program.k[1, 1](array, stream=stream)
    kernel = program.k
    died = [weakref.ref(it) for it in (device, program, array, stream, partition)]
    del device, program, array, stream, partition
    assert all(it() is None for it in died)
    assert kernel.name == "k"


def at_once(work, count=8):
    """Runs `work(number)` in threads that start together, and raises what one of them raised."""
    failures, start = [], threading.Barrier(count)

    def run(number):
        try:
            start.wait()
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_threads_share_a_program(device):
    program = gridlet.compile(SOURCE)
    total = device.zeros(1, np.uint32)

    def work(_):
        stream = device.stream()
        for _ in range(200):
            program.k[1, 1](total, stream=stream)
        stream.synchronize()
        own = device.zeros(1, np.uint32)
        program.k[2, 2](own)
        assert own.tolist() == [4]

    at_once(work, 16)
    assert total.tolist() == [16 * 200]


def test_threads_share_every_object(program):
    """One of each, without anything of a thread's own: the interpreter's lock, if it has one, is the only help."""
    device = gridlet.Device("cpu", threads=2, seed=8)
    stream, partition, event = device.stream(), device.partition(sms=1), device.stream().record()
    total, theirs = device.zeros(1, np.uint32), np.zeros(8, np.uint32)
    fresh = gridlet.compile(SOURCE, name="fresh.grid")
    launch, struct = fresh.k[1, 1, 0, stream], program.dtype("Outer")

    def work(number):
        for turn in range(100):
            launch(total)
            program.add[1, 8](theirs, 8, stream=stream)
            with partition:
                program.outer[1, 1](np.zeros((), struct), device.zeros(4, np.float64))
            assert np.asarray(device.share(theirs)).ctypes.data == theirs.ctypes.data
            assert np.from_dlpack(total).shape == total.shape
            assert gridlet.Device("cpu", threads=2, seed=8) == device
            stream.record(), event.is_done, stream.wait(event), repr(total), program.layout()
            with pytest.raises(TypeError):
                launch(theirs, theirs)
            if turn % 10 == number:
                stream.synchronize()
                partition.synchronize()

    at_once(work)
    device.synchronize()
    assert total.tolist() == [800]
    assert theirs.tolist() == [800 * i for i in range(8)]


def test_threads_drop_what_others_use(program, device):
    """The last reference to an array, stream or program may go in any thread."""
    shared = [None] * 4

    def work(number):
        for turn in range(200):
            stream, array = device.stream(), device.array([0], np.uint32)
            program.add[1, 1](array, 1, stream=stream)
            shared[turn % 4] = stream, array, np.asarray(array), gridlet.compile(SOURCE)
            taken = shared[(turn + number) % 4]
            if taken:
                taken[0].launches, taken[1].shape, taken[2].shape, taken[3].kernels

    at_once(work)
    device.synchronize()


def test_threads_drop_streams_while_others_free_arrays(device):
    """An array that is dropped looks at all streams, so the last reference to one may go just then."""

    def work(number):
        for _ in range(400):
            if number % 2:
                [device.stream() for _ in range(20)]
            else:
                for _ in range(50):
                    device.zeros(1, np.uint32)

    at_once(work)


def test_waits_of_threads_raise_once(program):
    """A fault is reported to one of the threads that wait for its stream, and to no more than those."""
    device = gridlet.Device("cpu", threads=2, seed=9)
    stream, raised = device.stream(), []

    def work(number):
        for _ in range(50):
            try:
                stream.synchronize()
            except gridlet.Fault:
                raised.append(number)

    def start_and_wait(number):
        if number == 0:
            program.stop[1, 1](stream=stream)
        work(number)

    at_once(start_and_wait)
    assert 1 <= len(raised) <= 8
    stream.synchronize()


def test_the_module_needs_no_lock():
    """An interpreter without the lock must not turn it on for this module."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("needs a free-threaded Python")
    code = "import sys, gridlet; gridlet.Device('cpu').zeros(1); print(sys._is_gil_enabled())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n" and done.stderr == "", done


def test_threads_compile_at_once(device):
    def work(number):
        program = gridlet.compile(f"kernel k(p: *mut u32) {{ *p = {number}; }}\n")
        out = device.zeros(1, np.uint32)
        program.k[1, 1](out)
        assert out.tolist() == [number]

    at_once(work)


def test_freeing_an_array_does_not_wait(program):
    """Python may free an object in any thread, also in one that a kernel waits for."""
    import ctypes
    import time

    device = gridlet.Device("cpu", threads=1, seed=6)
    flag, other = device.zeros(1, np.uint32), device.zeros(1 << 20, np.uint32)
    theirs = np.zeros(4, np.uint32)
    before = sys.getrefcount(theirs)
    shared = device.share(theirs)
    program.spin[1, 1](flag)
    start = time.monotonic()
    del other, shared
    assert time.monotonic() - start < 10
    # The kernel might use it.
    assert sys.getrefcount(theirs) > before
    ctypes.c_uint32.from_address(flag.address).value = 1
    device.synchronize()
    assert sys.getrefcount(theirs) == before
    assert device.zeros(1).tolist() == [0]


def test_dropped_arrays_are_freed_when_many_wait(program):
    device = gridlet.Device("cpu", threads=1, seed=7)
    out = device.zeros(1, np.uint32)
    for _ in range(100):
        program.add[1, 1](out, 1)
        device.empty(64 << 20, np.uint8)
    # 6.4 GB would have been taken, if all had waited for this.
    device.synchronize()
