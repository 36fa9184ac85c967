import pathlib
import re


def test_the_program_of_the_readme_runs(capsys):
    text = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out == "[1023]\n"
