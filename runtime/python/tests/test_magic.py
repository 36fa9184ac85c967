import gridlet
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
