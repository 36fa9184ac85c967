import json
import os
import pickle
import subprocess
import sys

import gridlet
import numpy as np
import pytest

SOURCE = "kernel k(p: *mut u32) { *p = 7; }\n"


def test_a_path_is_compiled(tmp_path, device):
    path = tmp_path / "k.grid"
    path.write_text('use "more.grid";\nkernel k(p: *mut u32) { *p = seven(); }\n')
    (tmp_path / "more.grid").write_text("fn seven() -> u32 { 7 }\n")
    for given in [path, str(path)]:
        program = gridlet.compile(given)
        assert (program.name, program.kernels) == ("k", ["k"])
    out = device.zeros(1, np.uint32)
    program.k[1, 1](out)
    assert out.tolist() == [7]


def test_a_wrong_program_raises_its_messages():
    with pytest.raises(gridlet.CompileError) as raised:
        gridlet.compile("kernel k(p: *mut u32) {\n    *p = nothing;\n}\n", name="a.grid")
    error = raised.value
    assert isinstance(error, gridlet.Error)
    assert error.rendered == str(error)
    assert "error[unknown-name]" in str(error) and "a.grid:2:10" in str(error)
    (message,) = error.diagnostics
    assert (message["id"], message["severity"], message["file"]) == ("unknown-name", "error", "a.grid")
    assert (message["line"], message["column"], message["end_column"]) == (2, 10, 17)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.diagnostics) == (str(error), error.diagnostics)


def test_wrong_files_raise_os_errors(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        gridlet.compile(tmp_path / "none.grid")
    assert raised.value.filename == str(tmp_path / "none.grid")
    (tmp_path / "binary.grid").write_bytes(b"\xff\xfe")
    with pytest.raises(gridlet.CompileError, match="UTF-8"):
        gridlet.compile(tmp_path / "binary.grid")


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"source": 7}, TypeError, "source: expected a path or the text of a program"),
        ({"source": SOURCE, "launch": "nvcc"}, ValueError, "launch: unknown launch strategy"),
        ({"source": SOURCE, "opt_level": 2}, ValueError, "opt_level: there is no level 2; there are 0, 1 and 3"),
        ({"source": SOURCE, "backend": "gcc"}, ValueError, "backend: there is no `gcc`; there are `auto`, `libnvvm`"),
        ({"source": SOURCE, "dialect": "old"}, ValueError, "dialect: there is no `old`; there are `auto`, `legacy`"),
        ({"source": SOURCE, "instances": ["k::"]}, ValueError, "is not a kernel name"),
        ({"source": SOURCE, "instances": ["none"]}, gridlet.CompileError, "no kernel `none`"),
        ({"source": SOURCE, "link": ["none.ll"]}, FileNotFoundError, "none.ll"),
    ],
)
def test_wrong_options_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        gridlet.compile(**arguments)


def test_instances_are_kernels():
    source = "kernel k<const N: u32>(p: *mut u32) { *p = N; }\n"
    program = gridlet.compile(source, instances=["k::<8>"])
    assert program.kernels == ["k::<8>"]
    assert program["k::<8>"].name == "k::<8>"
    with pytest.raises(KeyError, match="no kernel `k::<9>`"):
        program["k::<9>"]


def test_kernels_are_attributes(program):
    assert program.add.name == "add"
    assert "add" in dir(program) and "layout" in dir(program)
    assert repr(program.add) == "<gridlet.Kernel add(data: *mut u32, n: u32)>"
    assert repr(program).startswith("<gridlet.Program tests: add, node, ")
    with pytest.raises(AttributeError, match="no kernel `none`: the program has `add`, `node`"):
        program.none
    with pytest.raises(TypeError, match=r"a launch needs a grid and a block: `add\[blocks, threads\]"):
        program.add(1, 2)


def test_programs_without_structs_have_no_dtypes():
    program = gridlet.compile(SOURCE)
    with pytest.raises(KeyError, match="no struct `S`: the kernels' parameters have no structs"):
        program.dtype("S")


def test_missing_tools_are_named(tmp_path):
    code = f"""
import gridlet
program = gridlet.compile({SOURCE!r})
try:
    program.ptx()
except gridlet.MissingError as error:
    print(error)
"""
    environment = {**os.environ, "GRIDLET_TOOLKIT": str(tmp_path / "none"), "LD_LIBRARY_PATH": ""}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment, timeout=120)
    assert "libnvvm" in done.stdout.lower() and str(tmp_path) in done.stdout


def test_warnings_are_kept():
    program = gridlet.compile("kernel k() { let unused = 1; }\n")
    (warning,) = program.warnings
    assert warning["severity"] == "warning" and warning["line"] == 1
    assert program.rendered_warnings.startswith(f"warning[{warning['id']}]")
    assert gridlet.compile(SOURCE).warnings == []


def test_layouts_are_those_of_the_layout_pass(program):
    layout = gridlet.layout("kernel k(a: u8, b: *mut u32, c: f32x2) {}\n")
    with pytest.raises(gridlet.CompileError, match="k.grid:1:"):
        gridlet.layout("kernel k( {", name="k.grid")
    instance = "kernel k<const N: u32>(a: [u8; N]) {}\n"
    assert gridlet.layout(instance, instances=["k::<8>"])["kernels"][0]["size"] == 8
    assert layout["limit"] == 4096
    (kernel,) = layout["kernels"]
    assert (kernel["kernel"], kernel["size"]) == ("k", 24)
    assert [it["offset"] for it in kernel["parameters"]] == [0, 8, 16]
    assert program.add.parameters[0] == {
        "name": "data", "type": "*mut u32", "offset": 0, "size": 8, "alignment": 8,
    }
    assert json.loads(json.dumps(program.manifest))["kernels"][0]["name"] == "add"


def test_structs_have_dtypes(program):
    dtype = program.dtype("Outer")
    inner = np.dtype({"names": ["a", "b"], "formats": ["u1", "f8"], "offsets": [0, 8], "itemsize": 16})
    assert dtype == np.dtype({
        "names": ["first", "inner", "many"],
        "formats": ["u2", inner, ("i4", (3,))],
        "offsets": [0, 8, 24],
        "itemsize": 40,
    })
    with pytest.raises(KeyError, match="no struct `None`: the kernels' parameters have"):
        program.dtype("None")


def test_every_stage_can_be_seen():
    program = gridlet.compile(SOURCE)
    assert "define void @k" in program.nvvm() or "define" in program.nvvm()
    assert ".target sm_90" in program.ptx()
    assert ".target sm_100" in program.ptx("sm_100")
    assert program.cubin("sm_80")[:4] == b"\x7fELF"
    for stage in [program.nvvm, program.ptx, program.cubin]:
        with pytest.raises(ValueError, match="unknown architecture `sm_1`"):
            stage("sm_1")


def test_bundles_can_be_loaded(tmp_path, device):
    program = gridlet.compile(SOURCE, name="k.grid")
    path = tmp_path / "k.gridlet"
    path.write_bytes(program.bundle("cpu", "sm_90"))
    loaded = gridlet.load(path)
    assert (loaded.name, loaded.kernels, loaded.warnings) == ("k", ["k"], [])
    out = device.zeros(1, np.uint32)
    loaded.k[1, 1](out)
    assert out.tolist() == [7]
    with pytest.raises(gridlet.Error, match="which has no source"):
        loaded.ptx()
    with pytest.raises(ValueError, match="targets: give at least one"):
        program.bundle()
    with pytest.raises(ValueError, match="unknown architecture"):
        program.bundle("gpu")
    path.write_bytes(b"PK")
    with pytest.raises(gridlet.Error):
        gridlet.load(path)


def test_extern_functions_are_linked(tmp_path, device):
    (tmp_path / "seven.c").write_text("unsigned seven(void) { return 7; }\n")
    source = "extern fn seven() -> u32;\nkernel k(p: *mut u32) { *p = seven(); }\n"
    out = device.zeros(1, np.uint32)
    gridlet.compile(source, link=[tmp_path / "seven.c"]).k[1, 1](out)
    assert out.tolist() == [7]
    with pytest.raises(gridlet.CompileError, match="seven"):
        gridlet.compile(source).build(device)


LOOP = """
kernel k(p: *mut f32, n: u32) {
    for i in 0..n { p[i] = sqrt(p[i]) / 3.0; }
}
"""


@pytest.mark.parametrize("level", [0, 1, 3])
def test_programs_run_at_every_level(device, level):
    out = device.array([9.0, 36.0], np.float32)
    program = gridlet.compile(LOOP, opt_level=level, debug_lines=True)
    program.k[1, 1](out, 2)
    assert out.tolist() == [1, 2]


def test_levels_differ(tmp_path):
    images = [gridlet.compile(LOOP, opt_level=level).bundle("cpu") for level in [0, 1, 3]]
    assert len(set(images)) == 3
    cubins = [gridlet.compile(LOOP, opt_level=level).cubin() for level in [0, 1, 3]]
    assert cubins[0] != cubins[1] == cubins[2]


def test_code_for_gpus_has_options():
    assert ".approx" not in gridlet.compile(LOOP).ptx()
    assert "sqrt.approx.ftz.f32" in gridlet.compile(LOOP, fast_math=True).ptx()
    assert "LLVM NVPTX" in gridlet.compile(LOOP, backend="nvptx").ptx()
    assert ".loc" not in gridlet.compile(LOOP).ptx()
    assert ".loc" in gridlet.compile(LOOP, debug_lines=True).ptx()
    libnvvm = [gridlet.compile(LOOP, backend=name).ptx() for name in ["auto", "libnvvm"]]
    assert libnvvm[0] == libnvvm[1] and "NVIDIA NVVM Compiler" in libnvvm[0]
    legacy, modern = (gridlet.compile(LOOP, dialect=name).nvvm() for name in ["legacy", "modern"])
    assert "float*" in legacy and "float*" not in modern
    assert gridlet.compile(LOOP, dialect="auto").nvvm() == legacy
    nodes = "kernel node(n: u32) { if n > 0 { launch node<<<1, 1, stream = fire_and_forget>>>(n - 1); } }"
    for launch in ["cdp", "resident"]:
        manifest = gridlet.compile(nodes, launch=launch).manifest
        assert manifest["launch_strategy"] == launch


def test_bundles_can_be_checked_and_native(tmp_path):
    program = gridlet.compile("kernel k(p: *mut u32) { *p += thread_idx.x; }")
    path = tmp_path / "k.gridlet"
    path.write_bytes(program.bundle("cpu", check=True))
    checking = gridlet.Device("cpu", check=True)
    gridlet.load(path).k[1, 64](checking.zeros(1, np.uint32))
    with pytest.raises(gridlet.CheckError, match=r"error\[race\]"):
        checking.synchronize()
    path.write_bytes(program.bundle("cpu"))
    with pytest.raises(gridlet.Error, match="built without --check"):
        gridlet.load(path).k[1, 64](checking.zeros(1, np.uint32))
    native = program.bundle("cpu", native=True)
    assert native != program.bundle("cpu")
    path.write_bytes(native)
    device = gridlet.Device("cpu")
    out = device.zeros(1, np.uint32)
    gridlet.load(path).k[1, 1](out)
    assert out.tolist() == [0]


def test_another_process_takes_the_image_of_the_first(tmp_path):
    code = f"""
import gridlet
device = gridlet.Device("cpu")
out = device.zeros(1, "u4")
gridlet.compile({SOURCE!r}).k[1, 1](out)
assert out.tolist() == [7]
"""
    environment = {**os.environ, "GRIDLET_CACHE": str(tmp_path), "GRIDLET_CACHE_SIZE": "1000000"}
    seen = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=120)
        seen.append([(entry.name, entry.stat().st_ino) for entry in (tmp_path / "compiled").iterdir()])
    assert len(seen[0]) == 1 and seen[0] == seen[1]
    environment["GRIDLET_CACHE"] = str(tmp_path / "unused")
    code = code.replace(").k[1, 1]", ", cache=False).k[1, 1]")
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=120)
    assert not (tmp_path / "unused").exists()


def test_the_cache_can_be_left_out(device):
    out = device.zeros(1, np.uint32)
    gridlet.compile(SOURCE, cache=False).k[1, 1](out)
    assert out.tolist() == [7]
