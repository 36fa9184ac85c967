"""The whole public interface: stubs, docstrings, that tests use all of it, and the time that importing it takes."""

import ast
import inspect
import pathlib
import re
import subprocess
import sys

import gridlet
import pytest

PACKAGE = pathlib.Path(gridlet.__file__).parent
STUBS = ast.parse((PACKAGE / "__init__.pyi").read_text()).body
TESTS = [ast.parse(path.read_text()) for path in pathlib.Path(__file__).parent.glob("*.py")]


def functions(body):
    return [it for it in body if isinstance(it, ast.FunctionDef)]


def interface():
    """The functions and classes of the stubs by name, each with its functions."""
    for it in STUBS:
        if isinstance(it, ast.FunctionDef):
            yield it.name, None, [it]
        elif isinstance(it, ast.ClassDef):
            yield it.name, it, functions(it.body)


def used():
    """The attributes that the tests use, the keywords that they give to each function, and the exceptions that they expect."""
    attributes, keywords, raised = set(), set(), set()
    for tree in TESTS:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                attributes.add(node.attr)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "gridlet." in node.value:
                # A program for another process.
                attributes |= set(re.findall(r"\bgridlet\.(\w+)", node.value))
                raised |= set(re.findall(r"except gridlet\.(\w+)", node.value))
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", None))
                keywords |= {(name, keyword.arg) for keyword in node.keywords}
                if name == "raises":
                    raised |= {part.attr for part in ast.walk(node.args[0]) if isinstance(part, ast.Attribute)}
    return attributes, keywords, raised


def test_the_stubs_are_complete():
    named = {name for name, *_ in interface()}
    assert set(gridlet.__all__) <= named
    for name, _, members in interface():
        public = getattr(gridlet, name, None)
        if name.startswith("_"):
            continue
        assert public.__doc__, name
        if isinstance(public, type) and not issubclass(public, Exception):
            given = {member for member in vars(public) if not member.startswith("_")}
            # PyO3 puts it into `__getattribute__`.
            stubbed = {member.name for member in members} - {"__getattr__"}
            assert given == {member for member in stubbed if not member.startswith("_")}, name
            absent = {member for member in stubbed if not hasattr(public, member)}
            assert not absent, (name, absent)
            for member in given:
                assert vars(public)[member].__doc__, f"{name}.{member}"


def test_the_stubs_have_the_parameters():
    for name, owner, members in interface():
        for member in members:
            own = owner is not None
            at = getattr(getattr(gridlet, name, None), member.name, None) if own else getattr(gridlet, name)
            if member.name == "__new__":
                at = getattr(gridlet, name)
            try:
                signature = inspect.signature(at)
            except (TypeError, ValueError):
                # Properties and slots of types have none.
                continue
            if member.name.startswith("__") and member.name not in ("__new__", "__dlpack__"):
                continue
            expected = member.args
            if own and member.name != "__new__":
                expected.posonlyargs = []
            stubbed = {it.arg for it in expected.args + expected.kwonlyargs} - {"self", "cls"}
            stubbed |= {it.arg for it in [expected.vararg] if it}
            real = set(signature.parameters) - {"self"}
            assert real == stubbed, f"{name}.{member.name}"


@pytest.mark.parametrize("what", ["names", "members", "keywords", "errors"])
def test_tests_use_everything(what):
    attributes, keywords, raised = used()
    missing = []
    for name, owner, members in interface():
        if name.startswith("_"):
            continue
        is_error = owner is not None and issubclass(getattr(gridlet, name), Exception)
        # `%load_ext` calls the one.
        if what == "names" and name not in attributes | {"load_ipython_extension"}:
            missing.append(name)
        if what == "errors" and is_error and name not in raised:
            missing.append(name)
        for member in members:
            called = name if member.name in ("__new__", "__call__") else member.name
            if what == "members" and owner is not None and not member.name.startswith("__") and member.name not in attributes:
                missing.append(f"{name}.{member.name}")
            if what == "keywords" and member.name != "__exit__":
                missing += [
                    f"{name}.{member.name}({it.arg}=)"
                    for it in member.args.kwonlyargs
                    if not any(given == it.arg for at, given in keywords if at == called or name == "Launcher")
                ]
    assert not missing, f"no test uses {', '.join(missing)}"


def test_importing_takes_little_time():
    code = "import time; start = time.perf_counter(); import gridlet; print(time.perf_counter() - start)"
    command = [sys.executable, "-c", code]
    took = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(5)]
    # The best of five: the machine may be busy.
    assert min(took) < 0.1, took
