"""Parses a module by another Python than that of this process, which may refuse the syntax of the functions' version."""

import ast
import json
import subprocess
from pathlib import Path
from typing import Any

_PROGRAM = """
import ast, json, sys

def plain(value):
    if isinstance(value, ast.AST):
        fields = {name: plain(each) for name, each in ast.iter_fields(value)}
        return {"node": type(value).__name__, "line": getattr(value, "lineno", None), "fields": fields}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, (str, int, float)) else None

sys.setrecursionlimit(10_000)
try:
    answer = plain(ast.parse(sys.stdin.buffer.read()))
except (SyntaxError, ValueError) as error:
    answer = {"problem": getattr(error, "msg", None) or str(error), "line": getattr(error, "lineno", None)}
print(json.dumps(answer))
"""
_SECONDS = 60


def parse_by(python: Path, content: bytes) -> ast.Module:
    """Parse a module by an interpreter. Constants that JSON does not have are None in the tree.

    Raises:
        SyntaxError: the interpreter refuses it.
        OSError, subprocess.SubprocessError: the interpreter does not answer.
    """
    command = [str(python), "-I", "-S", "-c", _PROGRAM]
    result = subprocess.run(command, input=content, capture_output=True, check=True, timeout=_SECONDS)
    answer = json.loads(result.stdout)
    if "problem" in answer:
        raise SyntaxError(answer["problem"], (None, answer["line"], None, None))
    module = _node(answer)
    assert isinstance(module, ast.Module)
    return module


def _node(value: Any) -> Any:
    if isinstance(value, list):
        return [_node(each) for each in value]
    if not isinstance(value, dict):
        return value
    # A node of a newer version has no class here; nothing looks into it.
    kind = getattr(ast, value["node"], ast.AST)
    node: Any = kind()
    for name, each in value["fields"].items():
        setattr(node, name, _node(each))
    if value["line"] is not None:
        node.lineno = value["line"]
    return node
