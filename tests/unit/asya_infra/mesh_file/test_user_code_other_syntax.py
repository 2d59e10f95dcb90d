"""Modules that another Python parses, because that of this process may refuse the syntax of functions."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from asya_infra import notes
from asya_infra.mesh_file import user_code
from asya_infra.mesh_file.user_code import CodeError, detect_shape, find_definition, parse_by
from asya_infra.product.interpreters import FUNCTION_PYTHON, Interpreter, interpreter_for

NEWER = 'def one(p: dict) -> dict:\n    return {\'n\': f"{p["n"]}"}\n\nasync def crunch(spark, rows: DataFrame): ...\n'


def test_the_tree_is_that_of_this_process() -> None:
    """A constant that JSON does not have, such as bytes, is None in it."""
    for file in (Path(user_code.__file__), Path(notes.__file__)):
        content = file.read_bytes()
        assert ast.dump(parse_by(Path(sys.executable), content)) == ast.dump(ast.parse(content))


@pytest.mark.parametrize("content", [b"x = (", b"x = 1\0", b"# coding: klingon\n", b"x = '\xff'"])
def test_a_mistake_is_one_of_syntax(content: bytes) -> None:
    with pytest.raises(SyntaxError) as refused:
        parse_by(Path(sys.executable), content)
    assert refused.value.msg


def test_an_interpreter_that_does_not_answer() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        parse_by(Path("/bin/false"), b"x = 1")


def test_syntax_of_the_functions_version_is_read_or_named(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(NEWER)
    python = interpreter_for(FUNCTION_PYTHON)
    if sys.version_info < (3, 12) and python.problem:
        with pytest.raises(CodeError, match=r"shop\.py:2 is not valid Python: .* uv python install 3\.13"):
            find_definition(tmp_path, "shop.one")
        return
    assert isinstance(find_definition(tmp_path, "shop.one").definition, ast.FunctionDef)
    assert detect_shape(tmp_path, "shop.crunch") == "dataframe"


def test_a_refusal_without_the_functions_python_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = Interpreter(
        Path(sys.executable), ".".join(map(str, sys.version_info[:3])), FUNCTION_PYTHON, "no network"
    )
    monkeypatch.setattr(user_code, "interpreter_for", lambda wanted: stand_in)
    (tmp_path / "shop.py").write_text("def one(p:\n")
    with pytest.raises(
        CodeError, match=r"shop\.py:1 is not valid Python: .*\. Python 3\.13, which functions have, is not on"
    ):
        find_definition(tmp_path, "shop.one")
