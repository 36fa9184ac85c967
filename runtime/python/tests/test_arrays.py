import ctypes

import gridlet
import ml_dtypes
import numpy as np
import pytest

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_come_back(device, dtype):
    values = (np.arange(24).reshape(2, 3, 4) % 7).astype(dtype)
    array = device.array(values)
    assert (array.shape, array.dtype, array.ndim) == ((2, 3, 4), values.dtype, 3)
    assert (array.size, array.nbytes, len(array)) == (24, values.nbytes, 2)
    assert array.device == device and not array.read_only
    back = array.numpy()
    assert back.dtype == values.dtype and np.array_equal(back, values)
    assert array.tolist() == values.tolist()
    assert np.array_equal(np.from_dlpack(array), values)
    assert np.asarray(array).ctypes.data == array.address


def test_bfloat16_comes_back(device):
    values = np.array([1.5, -2], ml_dtypes.bfloat16)
    array = device.array(values)
    assert array.dtype == values.dtype and array.tolist() == [1.5, -2]


def test_arrays_are_made_from_anything(device):
    assert device.array([1.5, 2]).dtype == np.float64
    assert device.array([1, 2], np.float32).dtype == np.float32
    assert device.array(7, "uint32").shape == ()
    assert device.array(7, "uint32").tolist() == 7
    assert device.zeros(3).tolist() == [0.0] * 3
    assert device.zeros((2, 2), np.uint8).tolist() == [[0, 0], [0, 0]]
    assert device.empty((2, 0), np.uint8).tolist() == [[], []]
    assert device.array(np.arange(6).reshape(2, 3).T).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert device.array(device.array([1, 2])).tolist() == [1, 2]
    assert repr(device.zeros((2, 3))) == "<gridlet.Array of float32 [2, 3] on cpu>"


def test_wrong_arrays_are_refused(device):
    for wrong, text in [
        ("text", "kernels have no type like the dtype"),
        ([1j], "kernels have no type like the dtype complex128"),
        (np.zeros(1, ">u4"), "has another byte order"),
        ([object()], "kernels have no type like the dtype object"),
    ]:
        with pytest.raises(TypeError, match=text):
            device.array(wrong)
    for shape in ["x", -1, (1, -1), 1.5]:
        with pytest.raises(TypeError, match="shape: give a number"):
            device.zeros(shape)
    with pytest.raises(ValueError, match="is too large"):
        device.zeros((1 << 40, 1 << 40))
    with pytest.raises((MemoryError, gridlet.Error)):
        device.empty(1 << 58, np.uint8)
    with pytest.raises(TypeError, match="has no length"):
        len(device.zeros(()))


def test_arrays_are_filled_and_copied_into(device):
    array = device.zeros((2, 2), np.float32)
    array.fill(1.5)
    assert array.tolist() == [[1.5, 1.5], [1.5, 1.5]]
    array.copy_from([[1, 2], [3, 4]])
    assert array.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match=r"values: shape \[2\] given, \[2, 2\] expected"):
        array.copy_from([1, 2])
    with pytest.raises(TypeError, match="Cannot cast"):
        device.zeros(1, np.uint32).copy_from([1.5])


def test_numpy_shares_the_memory(device):
    array = device.zeros(4, np.uint32)
    view = np.asarray(array)
    assert view.ctypes.data == array.address
    view[1] = 7
    assert array.tolist() == [0, 7, 0, 0]
    lent = np.from_dlpack(array)
    assert lent.ctypes.data == array.address and lent.flags.writeable
    lent[2] = 8
    assert array.tolist() == [0, 7, 8, 0]
    address = array.address
    del array
    assert view[1] == 7 and lent.ctypes.data == address
    with pytest.raises(AttributeError, match="in host memory"):
        device.zeros(1).__cuda_array_interface__


def test_dlpack_follows_the_protocol(device):
    array = device.zeros(4, np.uint32)
    assert array.__dlpack_device__() == (1, 0)
    for _ in range(3):
        # Capsules that nobody takes give the memory back themselves.
        array.__dlpack__()
        array.__dlpack__(max_version=(1, 0), stream=-1, dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="neither copied nor moved"):
        array.__dlpack__(copy=True)
    with pytest.raises(BufferError, match="neither copied nor moved"):
        array.__dlpack__(dl_device=(2, 0))
    pair = device.array(np.zeros(1, [("a", "u4")]))
    with pytest.raises(BufferError, match="DLPack has no type like"):
        pair.__dlpack__()


class Plain:
    """Lends an array through DLPack alone, as libraries from before its version 1 do."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        assert stream is None
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Versioned(Plain):
    def __dlpack__(self, stream=None, max_version=None):
        return self.array.__dlpack__(max_version=max_version)


@pytest.mark.parametrize("lender", [Plain, Versioned, lambda array: array])
def test_memory_is_shared_without_a_copy(program, device, lender):
    theirs = np.zeros((2, 2), np.uint32)
    ours = device.share(lender(theirs))
    assert (ours.address, ours.shape, ours.dtype) == (theirs.ctypes.data, (2, 2), np.uint32)
    program.add[1, 4](ours, 4)
    device.synchronize()
    assert theirs.tolist() == [[0, 1], [2, 3]]
    again = np.asarray(ours)
    del theirs
    assert again.tolist() == [[0, 1], [2, 3]]


def test_read_only_memory_stays_so(program, device):
    theirs = np.arange(4, dtype=np.uint32)
    theirs.flags.writeable = False
    out = device.zeros(1, np.uint32)
    for lent in [theirs, Versioned(theirs)]:
        ours = device.share(lent)
        assert ours.read_only and not np.asarray(ours).flags.writeable
        program.reads[1, 1](ours, out)
        with pytest.raises(TypeError, match="expected a mutable buffer of `u32`, given a read-only"):
            program.add[1, 1](ours, 4)
        with pytest.raises(ValueError, match="read-only"):
            ours.fill(1)
        with pytest.raises(BufferError, match="read-only"):
            ours.__dlpack__()
        assert not np.from_dlpack(ours).flags.writeable


def test_memory_that_cannot_be_shared_is_refused(device):
    with pytest.raises(ValueError, match="not contiguous"):
        device.share(np.zeros((2, 3), np.uint32).T)
    with pytest.raises(BufferError, match="not contiguous"):
        device.share(Plain(np.zeros((2, 3), np.uint32).T))
    with pytest.raises(TypeError, match="DLPack's type of code 5"):
        device.share(Plain(np.zeros(1, np.complex64)))
    with pytest.raises(TypeError, match="a `list` with none of the protocols"):
        device.share([1, 2])

    class Elsewhere:
        def __dlpack__(self, **_):
            raise AssertionError

        def __dlpack_device__(self):
            return (2, 0)

    with pytest.raises(TypeError, match=r"DLPack's device 2:0 is not in the memory of cpu; copy it"):
        device.share(Elsewhere())


class Described:
    """Describes an array by its interface alone."""

    def __init__(self, array, **changed):
        self.array = array
        parts = {**array.__array_interface__, **changed}
        self.__array_interface__ = {name: part for name, part in parts.items() if part != "none"}


def test_wrong_descriptions_are_refused(device):
    values = np.zeros(4, np.uint32)
    assert device.share(Described(values)).address == values.ctypes.data
    for changed, error, text in [
        ({"typestr": "none"}, TypeError, "its array interface has no `typestr`"),
        ({"data": "none"}, TypeError, "its array interface has no `data`"),
        ({"shape": "none"}, TypeError, "its array interface has no `shape`"),
        ({"strides": (8,)}, ValueError, "not contiguous"),
        ({"typestr": ">u4"}, TypeError, "another byte order"),
    ]:
        with pytest.raises(error, match=text):
            device.share(Described(values, **changed))

    class Capsule(Plain):
        def __dlpack__(self, **_):
            return self.array

    class Newer(Plain):
        """Lends with a version of DLPack that nobody knows."""

        def __dlpack__(self, **_):
            capsule = self.array.__dlpack__(max_version=(1, 0))
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            major = ctypes.c_uint32.from_address(pointer(capsule, b"dltensor_versioned"))
            assert major.value == 1
            major.value = 2
            return capsule

    with pytest.raises(TypeError, match="`__dlpack__` returned no DLPack capsule"):
        device.share(Capsule(values))
    with pytest.raises(BufferError, match="the object's version of DLPack is too new"):
        device.share(Newer(values))


def test_jax_shares_memory(program, device):
    jax = pytest.importorskip("jax")
    cpu = jax.devices("cpu")[0]
    theirs = jax.device_put(np.arange(4, dtype=np.uint32), cpu)
    ours = device.share(theirs)
    assert ours.address == theirs.unsafe_buffer_pointer()
    assert (ours.shape, ours.dtype) == ((4,), np.uint32)
    out = device.zeros(16, np.uint32)
    program.reads[1, 1](theirs, out)
    program.add[1, 16](out, 16)
    back = jax.dlpack.from_dlpack(out, copy=False)
    assert back.unsafe_buffer_pointer() == out.address
    assert back.tolist() == list(range(16))
    address = out.address
    del out
    assert back.unsafe_buffer_pointer() == address and back.tolist() == list(range(16))
    assert device.array(theirs).tolist() == [0, 1, 2, 3]


def test_pytorch_shares_memory(program, device):
    torch = pytest.importorskip("torch")
    theirs = torch.zeros(4, dtype=torch.int32).view(torch.uint32)
    with device:
        program.add[1, 4](theirs, 4)
    device.synchronize()
    assert theirs.tolist() == [0, 1, 2, 3]
    assert device.share(theirs).address == theirs.data_ptr()
    out = device.zeros(4, np.uint32)
    assert torch.from_dlpack(out).data_ptr() == out.address


def test_structured_arrays_are_shared(program, device):
    theirs = np.zeros(2, program.dtype("Outer"))
    theirs["inner"]["b"] = [1.5, 2.5]
    out = device.zeros(1, np.float64)
    for given in [device.array(theirs), device.share(theirs), theirs]:
        program.outers[1, 1](given, out)
        assert out.tolist() == [2.5]
    packed = np.zeros(2, [("first", "u2"), ("inner", [("a", "u1"), ("b", "f8")]), ("many", "i4", 3)])
    with pytest.raises(TypeError, match="`given`.*expected a buffer of `Outer`"):
        program.outers[1, 1](packed, out)
