import json
import os
import pathlib
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


def test_warnings_are_kept():
    program = gridlet.compile("kernel k() { let unused = 1; }\n")
    (warning,) = program.warnings
    assert warning["severity"] == "warning" and warning["line"] == 1
    assert program.rendered_warnings.startswith(f"warning[{warning['id']}]")
    assert gridlet.compile(SOURCE).warnings == []


def test_layouts_are_those_of_the_layout_pass(program):
    layout = gridlet.layout("kernel k(a: u8, b: *mut u32, c: f32x2) {}\n")
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


def test_unoptimized_programs_run(device):
    out = device.zeros(1, np.uint32)
    gridlet.compile(SOURCE, optimize=False, launch="cdp").k[1, 1](out)
    assert out.tolist() == [7]


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


def test_the_stubs_name_everything():
    package = pathlib.Path(gridlet.__file__).parent
    stub = (package / "__init__.pyi").read_text()
    for name in gridlet.__all__:
        assert f"class {name}" in stub or f"def {name}(" in stub, name
        public = getattr(gridlet, name)
        assert public.__doc__, name
        if isinstance(public, type) and not issubclass(public, Exception):
            for member, value in vars(public).items():
                if not member.startswith("_"):
                    assert f"def {member}(" in stub, f"{name}.{member}"
                    assert value.__doc__, f"{name}.{member}"
