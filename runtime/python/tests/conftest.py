"""The programs and devices of the tests.

A machine with a GPU may lack NVIDIA's compiler parts. `python conftest.py FOLDER` elsewhere builds what test_gpu.py needs, and
`GRIDLET_TEST_BUNDLES=FOLDER` makes it load that.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import gridlet
import pytest

PROGRAM = """
struct View { data: *mut u32, n: u32, scale: f32x2 }
struct Inner { a: u8, b: f64 }
struct Outer { first: u16, inner: Inner, many: [i32; 3] }

kernel add(data: *mut u32, n: u32) {
    let i = block_idx.x * block_dim.x + thread_idx.x;
    if i < n { data[i] += i; }
}
kernel node(count: *mut u32, depth: u32) {
    atomic_add(count, 1);
    if depth > 0 {
        launch node<<<1, 1, stream = fire_and_forget>>>(count, depth - 1);
        launch node<<<1, 1, stream = fire_and_forget>>>(count, depth - 1);
    }
}
kernel view(v: View) {
    if thread_idx.x < v.n { v.data[thread_idx.x] = (v.scale.x * v.scale.y) as u32; }
}
kernel outer(given: Outer, out: *mut f64) {
    out[0] = given.first as f64;
    out[1] = given.inner.a as f64;
    out[2] = given.inner.b;
    out[3] = given.many[0] as f64 + given.many[1] as f64 + given.many[2] as f64;
}
kernel outers(given: *const Outer, out: *mut f64) { out[0] = given[1].inner.b; }
kernel points(p: *mut [f32; 3], v: *mut f32x2) { p[0][2] = 7.0; v[1].y = 8.0; }
kernel scalars(a: i8, b: u64, c: f32, d: f64, e: bool, out: *mut f64) {
    out[0] = a as f64;
    out[1] = b as f64;
    out[2] = c as f64;
    out[3] = d;
    out[4] = if e { 1.0 } else { 0.0 };
}
kernel halves(a: f16, b: bf16, out: *mut f16, more: *mut bf16) { out[0] = a; more[0] = b; }
kernel reads(from: *const u32, out: *mut u32) { out[0] = from[0]; }
kernel reversed(out: *mut u32) {
    dynamic shared room: [u32];
    room[thread_idx.x] = thread_idx.x;
    sync_threads();
    out[thread_idx.x] = room[block_dim.x - 1 - thread_idx.x];
}
kernel shape(out: *mut u32) {
    atomic_add(out, grid_dim.x * 100000 + grid_dim.y * 10000 + grid_dim.z * 1000
        + block_dim.x * 100 + block_dim.y * 10 + block_dim.z);
}
kernel stop() { trap(); }
kernel child() {}
kernel lose() { launch child<<<1, block_dim.x * 2048>>>(); }
kernel spin(flag: *mut u32) { while atomic_add(flag, 0) == 0 {} }
kernel race(sum: *mut u32) { *sum += thread_idx.x; }
kernel places(seen: *mut u32) {
    let start = clock64();
    while clock64() - start < 20000 {}
    seen[sm_id()] = 1;
}
"""


LOSES = """
kernel child() {}
kernel lose() { launch child<<<1, block_dim.x * 2048>>>(); }
"""

# The programs of test_gpu.py: name, text and options.
PROGRAMS = {"tests": (PROGRAM, {}), "lose": (LOSES, {"launch": "cdp"})}


def compiled(name):
    bundles = os.environ.get("GRIDLET_TEST_BUNDLES")
    if bundles:
        return gridlet.load(pathlib.Path(bundles) / f"{name}.gridlet")
    text, options = PROGRAMS[name]
    return gridlet.compile(text, name=f"{name}.grid", **options)


@pytest.fixture(scope="session")
def program():
    return compiled("tests")


@pytest.fixture(scope="session")
def cubin():
    """The machine code of `program`, for a GPU of compute capability 9.0."""
    bundles = os.environ.get("GRIDLET_TEST_BUNDLES")
    return (pathlib.Path(bundles) / "tests.cubin").read_bytes() if bundles else compiled("tests").cubin()


@pytest.fixture(scope="session")
def losing_program():
    return compiled("lose")


@pytest.fixture(scope="session")
def device():
    return gridlet.Device("cpu")


@pytest.fixture(scope="session")
def gpu():
    """The first GPU; the test is skipped without one."""
    try:
        return gridlet.Device("cuda:0")
    except gridlet.MissingError as error:
        if os.environ.get("GRIDLET_REQUIRE_GPU"):
            raise
        pytest.skip(f"needs a GPU: {str(error).splitlines()[0]}")


FAKE = (pathlib.Path(__file__).parent / "../../tests/suite/fake_driver/fake.c").resolve()


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """A folder with the runtime's fake driver, for `LD_LIBRARY_PATH`."""
    if not FAKE.exists():
        pytest.skip("needs the repository's fake driver")
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("driver")
    for name in ["libcuda.so", "libcuda.so.1"]:
        command = ["cc", "-shared", "-fPIC", "-w", "-o", str(folder / name), str(FAKE)]
        subprocess.run(command, check=True)
    return folder


if __name__ == "__main__":
    for name in PROGRAMS:
        path = pathlib.Path(sys.argv[1]) / f"{name}.gridlet"
        path.write_bytes(compiled(name).bundle("cpu", "sm_90"))
    path.with_name("tests.cubin").write_bytes(compiled("tests").cubin())
