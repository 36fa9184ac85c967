import json
import os
import subprocess
import sys

import gridlet
from gridlet import _toolkit

SOURCE = "kernel k(p: *mut u32) { *p = 7; }\n"


def run(*arguments, **variables):
    environment = {**os.environ, **variables}
    command = [sys.executable, "-m", "gridlet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


def test_the_program_runs(tmp_path):
    path = tmp_path / "k.grid"
    path.write_text(SOURCE)
    done = run("run", str(path), "--device", "cpu", "--kernel", "k", "--grid", "1", "--block", "1",
               "--arg", "[1]", "--print", "p:1")
    assert done.returncode == 0 and "p: [7]" in done.stdout, done
    done = run("run", str(path), "--json", "--device", "cpu", "--kernel", "k", "--grid", "1",
               "--block", "1", "--arg", "[1]", "--print", "p:1")
    assert json.loads(done.stdout)["buffers"] == {"p": [7]}
    assert run("--version").stdout == f"gridlet {gridlet.__version__}\n"


def test_exit_statuses_are_those_of_the_program(tmp_path):
    path = tmp_path / "wrong.grid"
    path.write_text("kernel k( {")
    done = run("check", str(path))
    assert done.returncode == 1 and "error[syntax-error]" in done.stderr
    done = run("chck")
    assert done.returncode == 2 and "unrecognized subcommand" in done.stderr


def test_compiler_parts_of_pip_are_found(tmp_path, monkeypatch):
    assert _toolkit.folder() is None or os.path.isdir(_toolkit.folder())
    packages = tmp_path / "site-packages"
    (packages / "nvidia" / "cu13" / "nvvm").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(packages))
    found = _toolkit.folder()
    assert found == str(packages / "nvidia" / "cu13")
    path = os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")])
    done = run("doctor", PYTHONPATH=path)
    assert f"NVIDIA's Python packages: {found}" in done.stdout, done
