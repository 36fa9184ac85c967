import gc
import sys
import threading
import weakref

import gridlet
import numpy as np

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


def test_threads_share_a_program(device):
    program = gridlet.compile(SOURCE)
    total, failures = device.zeros(1, np.uint32), []

    def work():
        try:
            stream = device.stream()
            for _ in range(200):
                program.k[1, 1](total, stream=stream)
            stream.synchronize()
            own = device.zeros(1, np.uint32)
            program.k[2, 2](own)
            assert own.tolist() == [4]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert total.tolist() == [16 * 200]


def test_threads_compile_at_once(device):
    failures = []

    def work(number):
        try:
            program = gridlet.compile(f"kernel k(p: *mut u32) {{ *p = {number}; }}\n")
            out = device.zeros(1, np.uint32)
            program.k[1, 1](out)
            assert out.tolist() == [number]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


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
