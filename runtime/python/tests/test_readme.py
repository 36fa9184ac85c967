import pathlib
import re

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent
README = (PACKAGE / "../../README.md").resolve()


def code(path, language):
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), re.DOTALL)[0]


def test_the_program_of_the_package_runs(capsys):
    exec(code(PACKAGE / "README.md", "python"), {})
    assert capsys.readouterr().out == "[1023]\n"


@pytest.mark.skipif(not README.exists(), reason="needs the repository's README.md")
def test_the_program_of_the_repository_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree.grid").write_text(code(README, "rust"))
    exec(code(README, "python"), {})
    assert capsys.readouterr().out == "[1023]\n"
