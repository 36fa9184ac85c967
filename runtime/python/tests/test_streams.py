import asyncio
import threading
import time

import gridlet
import numpy as np
import pytest


def test_streams_are_chosen(program, device):
    stream, out = device.stream(), device.zeros(4, np.uint32)
    program.add[1, 4](out, 4, stream=stream)
    program.add[1, 4, 0, stream](out, 4)
    with stream as entered:
        assert entered is stream
        program.add[1, 4](out, 4)
    assert stream.launches == 3 and stream.device == device
    stream.synchronize()
    assert out.tolist() == [0, 3, 6, 9]
    assert repr(stream) == "<gridlet.Stream on cpu>"
    with pytest.raises(gridlet.Error, match="CPU device has no"):
        stream.handle


def test_events_order_and_time(program, device):
    first, second, out = device.stream(), device.stream(), device.zeros(4, np.uint32)
    start = first.record()
    program.add[1, 4](out, 4, stream=first)
    event = first.record()
    second.wait(event)
    program.add[1, 4](out, 4, stream=second)
    second.synchronize()
    assert event.is_done and start.elapsed_ms(event) > 0
    assert out.tolist() == [0, 2, 4, 6]
    assert repr(event) == "<gridlet.Event on cpu>"


def test_partitions_run_kernels(program):
    device = gridlet.Device("cpu", threads=2)
    partition = device.partition(sms=1)
    assert (partition.sms, partition.device) == (1, device)
    out = device.zeros(4, np.uint32)
    with partition:
        program.add[1, 4](out, 4)
    program.add[1, 4](out, 4, stream=partition.stream(priority=0))
    partition.synchronize()
    device.synchronize()
    assert out.tolist() == [0, 2, 4, 6]
    assert repr(partition) == "<gridlet.Partition of 1 SMs of cpu>"
    with pytest.raises(gridlet.LaunchError, match="no partition of 3 SMs"):
        device.partition(sms=3)


def test_partitions_can_share_no_processors(program):
    device = gridlet.Device("cpu", threads=4)
    assert [device.count_partitions(sms=sms) for sms in [1, 2, 3, 4]] == [4, 2, 1, 1]
    out = device.zeros(4, np.uint32)
    for index in range(2):
        with device.partition(sms=2, index=index) as partition:
            program.add[1, 4](out, 4)
        partition.synchronize()
        assert partition.sms == 2
    assert device.partition(sms=4, index=0).sms == 4
    assert out.tolist() == [0, 2, 4, 6]
    with pytest.raises(gridlet.LaunchError, match="index: cpu has 2 partitions of 2 SMs"):
        device.partition(sms=2, index=2)
    for wrong in [0, 5]:
        with pytest.raises(gridlet.LaunchError):
            device.count_partitions(sms=wrong)


def test_objects_are_of_public_types(program, device):
    for value, kind in [
        (program.add, gridlet.Kernel),
        (program.add[1, 1], gridlet.Launcher),
        (device.partition(sms=1), gridlet.Partition),
        (device.stream().record(), gridlet.Event),
        (device.share(np.zeros(1), stream=device.stream()), gridlet.Array),
    ]:
        assert type(value) is kind
        with pytest.raises(TypeError, match="cannot create|No constructor"):
            kind()
    assert repr(program.add[(2, 3), 4, 5]) == "<gridlet.Launcher add[(2, 3, 1), (4, 1, 1), 5]>"


def test_with_blocks_nest(program):
    one, two = gridlet.Device("cpu", threads=1), gridlet.Device("cpu", threads=2)
    with one:
        with two:
            with pytest.raises(TypeError, match="expected memory of"):
                program.add[1, 1](one.zeros(1, np.uint32), 1)
        program.add[1, 1](one.zeros(1, np.uint32), 1)
    one.synchronize()


def test_streams_can_be_awaited(program, device):
    async def several():
        streams = [device.stream() for _ in range(8)]
        counts = [device.zeros(1, np.uint32) for _ in streams]
        for stream, count in zip(streams, counts):
            program.node[1, 1](count, 8, stream=stream)
        await asyncio.gather(*(stream.done() for stream in streams))
        return [count.tolist() for count in counts]

    before = threading.active_count()
    assert asyncio.run(several()) == [[511]] * 8
    assert threading.active_count() == before


def test_awaiting_raises(program, device):
    async def fails():
        stream = device.stream()
        program.stop[1, 1](stream=stream)
        await stream.done()

    with pytest.raises(gridlet.Fault, match="kernel `stop`"):
        asyncio.run(fails())


def test_awaiting_lets_others_run(program):
    device = gridlet.Device("cpu", threads=1)
    flag, other = device.zeros(1, np.uint32), device.stream()
    program.spin[1, 1](flag, stream=other)

    async def release():
        waiting = asyncio.ensure_future(other.done())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        # The kernel spins on this word, which the host may write at any time.
        import ctypes

        ctypes.c_uint32.from_address(flag.address).value = 1
        # A launch after `done` does not hold up those who wait for what came before.
        program.child[1, 1](stream=other)
        await asyncio.wait_for(waiting, 10)

    asyncio.run(release())
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(asyncio.wait_for(never(program, device), 0.05))


async def never(program, device):
    flag, stream = device.zeros(1, np.uint32), device.stream()
    program.spin[1, 1](flag, stream=stream)
    try:
        await stream.done()
    finally:
        import ctypes

        ctypes.c_uint32.from_address(flag.address).value = 1


def test_the_lock_is_released_while_waiting(program):
    device = gridlet.Device("cpu", threads=1)
    flag = device.zeros(1, np.uint32)
    program.spin[1, 1](flag)

    def release():
        import ctypes

        time.sleep(0.05)
        ctypes.c_uint32.from_address(flag.address).value = 1

    thread = threading.Thread(target=release)
    thread.start()
    # With the lock held, the thread could not run, and this would time out.
    device.synchronize(timeout=10)
    thread.join()
