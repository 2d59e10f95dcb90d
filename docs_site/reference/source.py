"""Reads the source of the deployed packages: the syntax trees of their modules."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOYED = (ROOT / "functions" / "asya", ROOT / "spark_jobs" / "asya_spark")
NOT_DEPLOYED = {"testing", "client"}
"""Packages of `asya` that run on the user's machine."""


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """Return the path in the repository and the tree of each deployed module, sorted by path."""
    return tuple(
        (path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8")))
        for folder in DEPLOYED
        for path in sorted(folder.rglob("*.py"))
        if path.relative_to(folder).parts[0] not in NOT_DEPLOYED
    )


@cache
def calls(tree: ast.Module) -> tuple[ast.Call, ...]:
    """Return the calls of a module, in the order of lines."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return tuple(sorted(found, key=lambda call: (call.lineno, call.col_offset)))


def texts(value: ast.expr, tree: ast.Module) -> list[str]:
    """Return the texts that an expression may have: a literal, a template, a choice, or values of a table of the module.

    The result is empty if the expression is none of them.
    """
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return [value.value]
    if isinstance(value, ast.JoinedStr):
        return ["".join(_template(part) for part in value.values)]
    if isinstance(value, ast.IfExp):
        return texts(value.body, tree) + texts(value.orelse, tree)
    if isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name):
        return [text for each in _table(value.value.id, tree) for text in texts(each, tree)]
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return [left + right for left in texts(value.left, tree) for right in texts(value.right, tree)]
    return []


def _template(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return "{" + ast.unparse(part.value) + "}"
    return str(part.value) if isinstance(part, ast.Constant) else ""


def _table(name: str, tree: ast.Module) -> list[ast.expr]:
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and target.id == name and isinstance(value, ast.Dict):
            return value.values
    return []


def passed_texts(call: ast.Call, tree: ast.Module) -> list[str]:
    """Return the texts that callers pass, in any module, for the parameter that is the first argument of a call."""
    name = call.args[0].id if isinstance(call.args[0], ast.Name) else ""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(node is call for node in ast.walk(function)):
            parameters = [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
            if name in parameters:
                return _texts_of_callers(function.name, name, parameters.index(name))
    return []


def _texts_of_callers(function: str, parameter: str, position: int) -> list[str]:
    found: list[str] = []
    for _, tree in modules():
        for call in calls(tree):
            if ast.unparse(call.func).rpartition(".")[2] == function:
                values = [each.value for each in call.keywords if each.arg == parameter] or call.args[position:][:1]
                found += [text for value in values for text in texts(value, tree)]
    return found
