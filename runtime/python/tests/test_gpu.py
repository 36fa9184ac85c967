"""Tests that need a GPU. `GRIDLET_REQUIRE_GPU=1` makes a missing one a failure."""

import asyncio
import ctypes
import os
import pathlib
import shutil
import statistics
import subprocess
import time

import gridlet
import numpy as np
import pytest


def test_kernels_run_on_the_gpu(program, gpu):
    count = gpu.zeros(1, np.uint32)
    program.node[1, 1](count, 8)
    gpu.synchronize()
    assert count.tolist() == [511] and gpu.kind == "cuda"
    with pytest.raises(AttributeError, match="a GPU's memory is not NumPy's"):
        count.__array_interface__
    with pytest.raises(TypeError, match=r"`data`.*copy it with `device.array"):
        program.add[1, 1](np.zeros(1, np.uint32), 1, stream=gpu.stream())


def test_pytorch_shares_its_memory(program, gpu):
    torch = pytest.importorskip("torch")
    theirs = torch.zeros(64, dtype=torch.int32, device="cuda").view(torch.uint32)
    ours = gpu.share(theirs)
    assert ours.address == theirs.data_ptr()
    partition = gpu.partition(sms=16)
    assert partition.sms == 16
    with partition:
        program.add[1, 64](ours, 64)
        program.add[1, 64](theirs, 64)
    partition.synchronize()
    assert theirs.cpu().tolist() == [2 * i for i in range(64)]
    back = torch.from_dlpack(ours)
    assert back.data_ptr() == ours.address
    assert torch.as_tensor(ours, device="cuda").data_ptr() == ours.address
    assert gpu.array(theirs).tolist() == theirs.cpu().tolist()
    # Kernels that launch kernels, there too.
    count = torch.zeros(1, dtype=torch.int32, device="cuda").view(torch.uint32)
    with partition:
        program.node[1, 1](count, 9)
    partition.synchronize()
    assert count.item() == 1023


def test_partitions_share_no_sms(program, gpu):
    count, whole = gpu.count_partitions(sms=16), gpu.info["sm_count"]
    assert 2 <= count <= whole // 16
    found = []
    for index in range(count):
        seen = gpu.zeros(1024, np.uint32)
        with gpu.partition(sms=16, index=index) as partition:
            program.places[4 * whole, 128](seen)
        partition.synchronize()
        assert partition.sms == 16
        found.append(set(np.flatnonzero(seen.numpy()).tolist()))
    print("\nSMs of partitions of 16:", found)
    # All partitions may use the same 2 more, after a program with CUDA's device runtime was loaded.
    everywhere = set.intersection(*found)
    assert len(everywhere) <= 2 and all(len(sms) <= 18 for sms in found)
    assert sum(len(sms - everywhere) for sms in found) == len(set.union(*found) - everywhere)
    with pytest.raises(gridlet.LaunchError, match=f"has {count} partitions of 16 SMs"):
        gpu.partition(sms=16, index=count)
    assert gpu.count_partitions(sms=whole) == 1


def test_launches_follow_pytorchs_stream(program, gpu):
    torch = pytest.importorskip("torch")
    with torch.cuda.stream(torch.cuda.Stream()):
        stream = gpu.external_stream(torch.cuda.current_stream())
        assert stream.handle == torch.cuda.current_stream().cuda_stream
        for _ in range(100):
            values = torch.full((1 << 20,), 1, dtype=torch.int32, device="cuda")
            program.add[1 << 10, 1 << 10](values.view(torch.uint32), 1 << 20, stream=stream)
            total = values.sum(dtype=torch.int64)
        assert total.item() == (1 << 20) + (1 << 19) * ((1 << 20) - 1)
    stream.synchronize()


def test_cupy_shares_its_memory(program, gpu):
    cupy = pytest.importorskip("cupy")
    theirs = cupy.zeros(64, cupy.uint32)
    ours = gpu.share(theirs)
    assert ours.address == theirs.data.ptr
    program.add[1, 64](theirs, 64)
    gpu.synchronize()
    assert theirs.tolist() == list(range(64))
    assert cupy.asarray(ours).data.ptr == ours.address
    assert cupy.from_dlpack(ours).data.ptr == ours.address


def test_jax_shares_its_memory(program, gpu):
    # Otherwise it takes most of the memory.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("needs JAX for GPUs")
    theirs = jax.numpy.zeros(64, jax.numpy.uint32)
    theirs.block_until_ready()
    ours = gpu.share(theirs)
    assert ours.address == theirs.unsafe_buffer_pointer()
    assert (ours.shape, ours.dtype) == ((64,), np.uint32)
    # The values of JAX's arrays never change, so kernels only read them.
    copy = gpu.zeros(1, np.uint32)
    program.reads[1, 1](theirs, copy)
    assert copy.tolist() == [0]
    made = gpu.zeros(64, np.uint32)
    program.add[1, 64](made, 64)
    back = jax.dlpack.from_dlpack(made)
    assert back.unsafe_buffer_pointer() == made.address
    assert jax.numpy.sum(back).item() == sum(range(64))
    # JAX's work comes before launches that get its results.
    many = jax.numpy.arange(1 << 22, dtype=jax.numpy.uint32)
    for step in range(20):
        many = many + jax.numpy.uint32(1)
        program.reads[1, 1](many, copy)
        assert copy.tolist() == [step + 1]
    address = made.address
    del made
    assert back.unsafe_buffer_pointer() == address and back[63].item() == 63


def test_numba_shares_its_memory(program, gpu):
    cuda = pytest.importorskip("numba.cuda", exc_type=ImportError)
    if not cuda.is_available():
        pytest.skip("needs Numba for GPUs")
    theirs = cuda.to_device(np.zeros(64, np.uint32))
    ours = gpu.share(theirs)
    assert ours.address == theirs.__cuda_array_interface__["data"][0]
    program.add[1, 64](ours, 64)
    program.add[1, 64](theirs, 64)
    gpu.synchronize()
    assert theirs.copy_to_host().tolist() == [2 * i for i in range(64)]
    back = cuda.as_cuda_array(ours)
    assert back.__cuda_array_interface__["data"][0] == ours.address
    assert back.copy_to_host().tolist() == [2 * i for i in range(64)]
    mine = cuda.stream()
    program.add[1, 64](theirs, 64, stream=gpu.external_stream(mine))
    mine.synchronize()
    assert theirs.copy_to_host().tolist() == [3 * i for i in range(64)]


def test_cuda_core_shares_its_streams(program, gpu):
    core = pytest.importorskip("cuda.core", exc_type=ImportError)
    if not hasattr(core, "Device"):
        core = pytest.importorskip("cuda.core.experimental", exc_type=ImportError)
    device = core.Device(0)
    device.set_current()
    theirs, out = device.create_stream(), gpu.zeros(64, np.uint32)
    program.add[1, 64](out, 64, stream=gpu.external_stream(theirs))
    theirs.sync()
    assert out.tolist() == list(range(64))


def test_streams_can_be_awaited_on_the_gpu(program, gpu):
    async def several():
        streams = [gpu.stream() for _ in range(4)]
        counts = [gpu.zeros(1, np.uint32) for _ in streams]
        for stream, count in zip(streams, counts):
            program.node[1, 1](count, 8, stream=stream)
        await asyncio.gather(*(stream.done() for stream in streams))
        return [count.tolist() for count in counts]

    assert asyncio.run(several()) == [[511]] * 4


def test_lost_launches_raise_on_the_gpu(losing_program, gpu):
    with gpu:
        losing_program.lose[1, 1]()
    with pytest.raises(gridlet.LostLaunches) as raised:
        gpu.synchronize()
    assert (raised.value.count, raised.value.file) == (1, "lose.grid")


def test_a_launch_costs_little(program, cubin, gpu, tmp_path):
    """A launch from Python costs at most 3 µs more than the driver's own, made in C for the same kernel in the same run."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("needs a C compiler, for launches without Python")
    source, library = pathlib.Path(__file__).parent / "bare_launch.c", tmp_path / "libbare.so"
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    bare = ctypes.CDLL(str(library))
    bare.seconds_per_launch.restype = ctypes.c_double
    bare.seconds_per_launch.argtypes = [ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int]
    out, stream = gpu.zeros(1, np.uint32), gpu.stream()
    assert bare.load(int(gpu.name.removeprefix("cuda:")), cubin, b"add") == 0
    launch, count = program.add[1, 1], 200

    def from_python():
        start = time.perf_counter()
        for _ in range(count):
            launch(out, 1, stream=stream)
        took = (time.perf_counter() - start) / count
        stream.synchronize()
        return took

    def from_c():
        took = bare.seconds_per_launch(out.address, 1, count)
        assert took > 0, took
        return took

    # In turns, so that both meet the same machine.
    rounds = [(from_python(), from_c()) for _ in range(100)]
    for name, pick in [("best", min), ("median", statistics.median)]:
        python, c = (pick(times) * 1e6 for times in zip(*rounds))
        print(f"\n{name} of 100 rounds: from Python {python:.2f} µs, the driver {c:.2f} µs, over it {python - c:.2f} µs")
        assert python - c <= 3
