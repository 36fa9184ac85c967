import json
import pathlib

import gridlet
import numpy as np
import pytest
from IPython.testing.globalipapp import start_ipython


@pytest.fixture(scope="module")
def shell():
    shell = start_ipython()
    shell.run_line_magic("load_ext", "gridlet")
    yield shell
    shell.history_manager.save_flag.set() if shell.history_manager else None


def test_a_cell_is_a_program(shell, capsys):
    shell.run_cell_magic("gridlet", "tree", "kernel node() {}\n")
    program = shell.user_ns["tree"]
    assert isinstance(program, gridlet.Program) and program.name == "tree"
    shell.run_cell_magic("gridlet", "made k::<8>", "kernel k<const N: u32>() { assert(N > 0); }\n")
    assert shell.user_ns["made"].kernels == ["k::<8>"]
    shell.run_cell_magic("gridlet", "warned", "kernel node() { let unused = 1; }\n")
    assert "warning[" in capsys.readouterr().err


def test_a_wrong_cell_shows_its_messages(shell, capsys):
    shell.run_cell_magic("gridlet", "wrong", "kernel node( {}\n")
    assert "wrong" not in shell.user_ns
    shown = capsys.readouterr().err
    assert "error[syntax-error]" in shown and "wrong.grid:1:14" in shown


def test_a_cell_needs_a_name(shell, capsys):
    from IPython.core.error import UsageError

    for line in ["", "1x"]:
        with pytest.raises(UsageError, match="usage: %%gridlet NAME"):
            shell.run_cell_magic("gridlet", line, "kernel node() {}\n")


NOTEBOOK = (pathlib.Path(__file__).parent / "../../../examples/python/mandelbrot.ipynb").resolve()


@pytest.mark.skipif(not NOTEBOOK.exists(), reason="needs the repository's examples")
def test_the_notebook_draws_the_mandelbrot_set(shell, monkeypatch):
    monkeypatch.chdir(NOTEBOOK.parent)
    notebook = json.loads(NOTEBOOK.read_text())
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "commit it without outputs"
            shell.run_cell("".join(cell["source"])).raise_error()
    image, pixels = shell.user_ns["image"], shell.user_ns["pixels"]
    assert image.format == "png" and len(image.data) > 10_000
    re, im = np.meshgrid(np.linspace(-2, 0.5, 512, False), np.linspace(-1.25, 1.25, 512, False))
    z = c = re + 1j * im
    for _ in range(200):
        z = np.where(np.abs(z) < 2, z * z + c, z)
    black = np.all(pixels == [0, 0, 51], axis=2)
    # Points near the border need more steps than these.
    assert np.mean(black == (np.abs(z) < 2)) > 0.98
    assert 0.1 < black.mean() < 0.4
