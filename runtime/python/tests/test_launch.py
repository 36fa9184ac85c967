import weakref

import gridlet
import numpy as np
import pytest


def test_kernels_launch_kernels(program, device):
    count = device.zeros(1, np.uint32)
    program.node[1, 1](count, 6)
    device.synchronize()
    assert count.tolist() == [127]


def test_grids_and_blocks_have_three_extents(program, device):
    out = device.zeros(1, np.uint32)
    for grid, block, expected in [
        (1, 1, 111111),
        ((2,), (1, 1), 2 * 211111),
        ((1, 2), (1, 1, 3), 6 * 121113),
        ((2, 1, 1), 3, 6 * 211311),
    ]:
        out.fill(0)
        program.shape[grid, block](out)
        assert out.tolist() == [expected]


@pytest.mark.parametrize(
    "key, text",
    [
        ((1,), "1 values given, 2 to 4 expected"),
        ((1, 1, 1, None, 1), "5 values given, 2 to 4 expected"),
        (((1, 1, 1, 1), 1), "grid: expected a number"),
        ((1, -1), "block: expected a number"),
        ((1, "x"), "block: expected a number"),
        ((1, 1, -1), "shared: expected a number of bytes from 0 to 4294967295"),
        ((1, 1, "x"), "shared: expected a number of bytes from 0 to 4294967295"),
        ((1, 1, 0, "x"), "stream: expected a gridlet.Stream"),
    ],
)
def test_wrong_shapes_of_launches_are_refused(program, key, text):
    with pytest.raises(TypeError, match=text):
        program.child[key]


def test_limits_are_kept(program, device):
    with device:
        with pytest.raises(gridlet.LaunchError, match="kernel `child`"):
            program.child[1, 1025]()
        with pytest.raises(ValueError, match="kernel `child`"):
            program.child[0, 1]()
        with pytest.raises(TypeError, match="stream: expected a gridlet.Stream"):
            program.child[1, 1](stream=7)
        with pytest.raises(TypeError, match="shared: expected a number of bytes"):
            program.child[1, 1](shared=1 << 32)
        with pytest.raises(gridlet.LaunchError, match="kernel `child`"):
            program.child[1, 1](shared=1 << 30)


def test_shared_memory_is_given_twice(program, device):
    out = device.zeros(8, np.uint32)
    program.reversed[1, 8, 32](out)
    assert out.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    out.fill(0)
    program.reversed[1, 4](out, shared=16)
    assert out.tolist() == [3, 2, 1, 0, 0, 0, 0, 0]


def test_scalars_are_converted(program, device):
    out = device.zeros(5, np.float64)
    program.scalars[1, 1](-7, 2**64 - 1, 1.5, 3, True, out)
    assert out.tolist() == [-7, 2.0**64, 1.5, 3, 1]
    program.scalars[1, 1](np.int64(7), np.uint8(9), np.float64(0.5), np.float32(2), np.bool_(False), out)
    assert out.tolist() == [7, 9, 0.5, 2, 0]


@pytest.mark.parametrize(
    "at, value, error, text",
    [
        (0, 128, OverflowError, r"argument 0 \(`a`\): expected a `i8`, given 128, from -128 to 127"),
        (0, -129, OverflowError, r"argument 0 \(`a`\)"),
        (0, 1.0, TypeError, r"argument 0 \(`a`\): expected a value of type `i8`, given 1.0 \(`float`\)"),
        (0, True, TypeError, r"argument 0 \(`a`\).*given True"),
        (1, -1, OverflowError, r"argument 1 \(`b`\)"),
        (1, 2**64, OverflowError, r"argument 1 \(`b`\)"),
        (1, "7", TypeError, r"argument 1 \(`b`\): expected a value of type `u64`, given a `str`"),
        (2, "x", TypeError, r"argument 2 \(`c`\): expected a value of type `f32`"),
        (2, True, TypeError, r"argument 2 \(`c`\)"),
        (3, None, TypeError, r"argument 3 \(`d`\)"),
        (4, 1, TypeError, r"argument 4 \(`e`\): expected a value of type `bool`, given 1"),
        (5, 7, TypeError, r"argument 5 \(`out`\): expected a mutable buffer of `f64`, given 7 \(`int`\)"),
        (5, [1.0], TypeError, r"argument 5 \(`out`\): expected a mutable buffer of `f64`, given a `list`"),
        (5, np.zeros(5, np.float32), TypeError, r"argument 5 .*given an array of float32 of shape \[5\]"),
    ],
)
def test_wrong_arguments_name_the_parameter(program, device, at, value, error, text):
    arguments = [1, 1, 1.0, 1.0, True, device.zeros(5, np.float64)]
    arguments[at] = value
    with device, pytest.raises(error, match="kernel `scalars`, " + text):
        program.scalars[1, 1](*arguments)


def test_the_count_of_arguments_is_checked(program):
    with pytest.raises(TypeError, match=r"kernel `add` takes 2 arguments \(data, n\), 1 given"):
        program.add[1, 1](1)
    with pytest.raises(TypeError, match="kernel `child` takes 0 arguments"):
        program.child[1, 1](1)


def test_halves_are_rounded(program, device):
    import ml_dtypes

    out, more = device.zeros(1, np.float16), device.array(np.zeros(1, ml_dtypes.bfloat16))
    program.halves[1, 1](1 / 3, 1 / 3, out, more)
    assert out.numpy()[0] == np.float16(1 / 3)
    assert more.numpy()[0] == ml_dtypes.bfloat16(1 / 3)
    bits = device.zeros(2, np.uint16)
    program.halves[1, 1](1.0, 1.0, bits, bits)
    assert bits.tolist()[0] == 0x3F80


def test_vectors_and_arrays_are_dimensions(program, device):
    points, vectors = device.zeros((2, 3), np.float32), device.zeros((2, 2), np.float32)
    program.points[1, 1](points, vectors)
    assert points.tolist() == [[0, 0, 7], [0, 0, 0]] and vectors.tolist() == [[0, 0], [0, 8]]
    with pytest.raises(TypeError, match=r"`p`.*given an array of float32 of shape \[3, 2\]"):
        program.points[1, 1](device.zeros((3, 2), np.float32), vectors)
    # Bytes are anything.
    program.points[1, 1](device.zeros(24, np.uint8), vectors)


def test_structs_are_passed_by_value(program, device):
    out = device.zeros(4, np.float64)
    value = np.zeros((), program.dtype("Outer"))
    value["first"], value["inner"]["a"], value["inner"]["b"], value["many"] = 1, 2, 3.5, [4, 5, 6]
    for given in [
        value,
        value[()],
        (1, (2, 3.5), [4, 5, 6]),
        {"first": 1, "inner": {"a": 2, "b": 3.5}, "many": (4, 5, 6)},
        (1, {"a": 2, "b": 3.5}, np.array([4, 5, 6], np.int32)),
    ]:
        out.fill(0)
        program.outer[1, 1](given, out)
        assert out.tolist() == [1, 2, 3.5, 15]
    for given, text in [
        ((1, (2, "x"), [4, 5, 6]), r"`given.inner.b`\): expected a value of type `f64`"),
        ((1, (2, 3.5), [4, 5]), r"`given.many`\): expected a value of type `\[i32; 3\]`"),
        ((1, (2, 3.5), [4, 5, "x"]), r"`given.many\[2\]`"),
        ((1, 2), r"`given`\): expected a value of type `Outer`, given a `tuple`"),
        ({"first": 1}, "given a dictionary of 1"),
        ({"first": 1, "inner": (1, 2), "none": 3}, "given a dictionary without `many`"),
        (7, "given 7"),
        (np.zeros((), [("first", "u2")]), "expected a value of type `Outer`, laid out as"),
        (np.zeros(1, program.dtype("Outer")), "expected a value of type `Outer`, laid out as"),
    ]:
        with pytest.raises(TypeError, match=text):
            program.outer[1, 1](given, out)


def test_structs_hold_arrays(program, device):
    for data in [device.zeros(4, np.uint32), np.zeros(4, np.uint32)]:
        with device:
            program.view[1, 8]((data, 3, (2.0, 4.0)))
        device.synchronize()
        assert data.tolist() == [8, 8, 8, 0]
    with pytest.raises(TypeError, match=r"`v.data`.*given an array of float64 of shape \[4\]"):
        program.view[1, 8]((device.zeros(4, np.float64), 3, (2.0, 4.0)))
    with pytest.raises(TypeError, match=r"`v.scale.y`"):
        program.view[1, 8]((None, 0, (2.0, "x")))


def test_null_is_none(program, device):
    with device:
        program.add[1, 1](None, 0)
    device.synchronize()


def test_numpy_arrays_are_arguments(program, device):
    values = np.zeros(64, np.uint32)
    with device:
        for _ in range(3):
            program.add[1, 64](values, 64)
    device.synchronize()
    assert values.tolist() == [3 * i for i in range(64)]


def test_arguments_live_until_their_launches_end(program, device):
    def temporary():
        with device:
            program.add[64, 1024](np.zeros(1 << 16, np.uint32), 1 << 16)

    # More than a stream keeps before it waits.
    for _ in range(1100):
        temporary()
    device.synchronize()


def test_memory_of_another_device_is_refused(program, device):
    other = gridlet.Device("cpu", threads=1)
    with pytest.raises(TypeError, match=r"`data`\): expected memory of cpu, given an array"):
        program.add[1, 1](other.zeros(1, np.uint32), 1, stream=device.stream())


def test_faults_raise(program, device):
    program.stop[1, 1](stream=(stream := device.stream()))
    with pytest.raises(gridlet.Fault, match="kernel `stop` stopped itself with a trap") as raised:
        stream.synchronize()
    assert raised.value.kernels == ["stop"]
    device.synchronize()


def test_faults_of_dropped_streams_raise(program, device):
    program.stop[1, 1](stream=device.stream())
    with pytest.raises(gridlet.Fault, match="kernel `stop`"):
        device.synchronize()
    device.synchronize()


REPORTS = """
kernel child() {}
kernel stop() { trap(); }
kernel lose() { launch child<<<1, block_dim.x * 2048>>>(); }
kernel race() { shared sum: u32; sum += thread_idx.x; }
"""


@pytest.mark.parametrize(
    "name, error", [("stop", gridlet.Fault), ("lose", gridlet.LostLaunches), ("race", gridlet.CheckError)]
)
def test_reports_of_dropped_programs_raise(name, error):
    """Also if Python frees the program before the wait."""
    device = gridlet.Device("cpu", check=name == "race")
    for place in [device, device.stream(), device.partition(sms=1)]:
        with place:
            gridlet.compile(REPORTS)[name][1, 64]()
        with pytest.raises(error):
            place.synchronize()
        place.synchronize()


def test_programs_of_many_launches_are_unloaded(device):
    """Without a wait of its own: a stream waits when it has kept many."""
    died, out = [], device.zeros(1, np.uint32)
    for number in range(200):
        program = gridlet.compile("kernel k(p: *mut u32) { atomic_add(p, 1); }")
        program.k[1, 1](out)
        died.append(weakref.ref(program))
    del program
    assert all(program() is None for program in died)
    assert out.tolist() == [200]


def test_faults_of_freed_arrays_raise(program, device):
    array = device.zeros(1)
    with device:
        program.stop[1, 1]()
    # Freeing it waits for the kernel.
    del array
    with pytest.raises(gridlet.Fault, match="kernel `stop`"):
        device.zeros(1).numpy()
    device.synchronize()


def test_lost_launches_raise(program, device):
    import pickle

    with device:
        program.lose[1, 1]()
    with pytest.raises(gridlet.LostLaunches) as raised:
        device.synchronize()
    lost = raised.value
    assert (lost.program, lost.count, lost.file) == ("tests", 1, "tests.grid")
    assert lost.line > 40 and lost.error > 0 and lost.name.startswith("cudaError")
    assert vars(pickle.loads(pickle.dumps(lost))) == vars(lost)
    device.synchronize()


def test_messages_name_functions_of_python(program):
    device = gridlet.Device("cpu", threads=1)
    program.spin[1, 1](device.array(np.ones(1, np.uint32)))
    device.synchronize()
    with pytest.raises(gridlet.Error, match="hint: set limits right after `Device`, before"):
        device.set_pending_launches(4)


def test_time_outs_raise(program):
    device = gridlet.Device("cpu", threads=1)
    flag = device.zeros(1, np.uint32)
    program.spin[1, 1](flag)
    with pytest.raises(gridlet.TimedOut, match="not finished after 0.05 s"):
        device.synchronize(timeout=0.05)
    assert issubclass(gridlet.TimedOut, TimeoutError)
    for wrong in [0, -1, float("nan"), 1e300]:
        with pytest.raises(ValueError, match="timeout"):
            device.synchronize(timeout=wrong)


def test_checking_devices_find_races(program):
    device = gridlet.Device("cpu", check=True)
    total = device.zeros(1, np.uint32)
    program.race[1, 64](total)
    with pytest.raises(gridlet.CheckError, match=r"error\[race\]") as raised:
        device.synchronize()
    assert "kernel race(sum: *mut u32)" in str(raised.value)
    assert raised.value.reports[0]["kind"] == "race"
    assert repr(device) == 'gridlet.Device("cpu", check=True)' and device.check


def test_checking_devices_know_numpy_arrays(program):
    device = gridlet.Device("cpu", check=True)
    values = np.zeros(8, np.uint32)
    with device:
        program.add[1, 8](values, 8)
        program.add[1, 8](values, 8)
        device.synchronize()
        assert values.tolist() == [2 * i for i in range(8)]
        program.add[1, 16](values, 16)
        with pytest.raises(gridlet.CheckError, match="add"):
            device.synchronize()
    shared = device.share(values)
    with pytest.raises(ValueError, match="a checking device sees this memory already"):
        device.share(values[2:])
    del shared
    device.share(values[2:])
    empty = device.empty(8, np.uint32)
    np.asarray(empty)[:] = 1
    program.add[1, 8](empty, 8)
    device.synchronize()


def test_devices_are_opened_by_name(device):
    assert gridlet.Device("cpu") == device and hash(gridlet.Device("cpu")) == hash(device)
    assert gridlet.Device("cpu", threads=3) != device
    assert (device.name, device.kind, device.info["kind"]) == ("cpu", "cpu", "cpu")
    assert repr(device) == 'gridlet.Device("cpu")'
    assert gridlet.Device(seed=1).kind == "cpu"
    with pytest.raises(ValueError, match="`gpu` is not a device"):
        gridlet.Device("gpu")
    with pytest.raises(ValueError, match="only the CPU device has `check`"):
        gridlet.Device("cuda:0", check=True)
    with pytest.raises(ValueError, match="threads"):
        gridlet.Device("cpu", threads=0)
    if gridlet.Device().kind == "cpu":
        with pytest.raises(gridlet.MissingError):
            gridlet.Device("cuda:0")
    with pytest.raises(gridlet.Error):
        device.external_stream(7)
    device.set_launch_memory(1 << 20)
    gridlet.Device("cpu", threads=2).set_pending_launches(4096)
