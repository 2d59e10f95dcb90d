"""Finds what the functions of a job change of their process, without running them."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from asya_infra.mesh_file.user_code import CodeError, own_files, parse_file

_ENVIRONMENT = "os.environ"
_HADOOP = "hadoopConfiguration()"
_OF_PROCESS = frozenset({"os.chdir", "os.fchdir", "os.putenv", "os.unsetenv", "time.tzset", "locale.setlocale"})
_OF_MAPPINGS = frozenset({"clear", "pop", "popitem", "setdefault", "update"})
_OF_JAVA = frozenset({"TimeZone.setDefault", "Locale.setDefault"})
_FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def find_process_settings(folder: Path, job: str) -> Iterator[tuple[Path, int, str]]:
    """Yield file, line and setting of each change of the process by functions of a job (`protocol §10.parallel`).

    These are the functions of its module, and of the modules of the folder that it imports. Statements outside of functions run
    once.
    """
    try:
        for path in own_files(folder, job):
            yield from _settings_in(path)
    except CodeError:
        return


def _settings_in(path: Path) -> Iterator[tuple[Path, int, str]]:
    tree = parse_file(path)
    names = _aliases(tree)
    inside = {node for function in ast.walk(tree) if isinstance(function, _FUNCTIONS) for node in ast.walk(function)}
    for node in ast.walk(tree):
        if node in inside and (changed := _changed_setting(node, names)) is not None:
            yield path, getattr(node, "lineno", 1), changed


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Return what names of a module stand for: imported names, and variables for the environment or Hadoop's configuration."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    meanings: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            meaning = _dotted(node.value, names)
            is_shared = meaning == _ENVIRONMENT or meaning.endswith(_HADOOP)
            for target in node.targets:
                if isinstance(target, ast.Name):
                    meanings[target.id].add(meaning if is_shared else "")
        elif isinstance(node, ast.arg):
            meanings[node.arg].add("")
    # A name that also stands for something else may be another variable.
    names |= {name: found.pop() for name, found in meanings.items() if len(found) == 1 and found != {""}}
    return names


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    """Return an expression as `a.b().c`; parts that are no names are empty."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return f"{_dotted(node.func, names)}()" if isinstance(node, ast.Call) else ""


def _changed_setting(node: ast.AST, names: dict[str, str]) -> str | None:
    """Return what of the process a statement or a call changes."""
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    else:
        targets = []
    values = [target.value if isinstance(target, ast.Subscript) else target for target in targets]
    if isinstance(node, ast.AugAssign) or any(isinstance(target, ast.Subscript) for target in targets):
        return _ENVIRONMENT if _ENVIRONMENT in [_dotted(value, names) for value in values] else None
    if not isinstance(node, ast.Call):
        return None
    called = _dotted(node.func, names)
    owner, _, method = called.rpartition(".")
    if called in _OF_PROCESS or method == "setCheckpointDir":
        return f"{method}()" if method == "setCheckpointDir" else f"{called}()"
    if owner == _ENVIRONMENT and method in _OF_MAPPINGS:
        return _ENVIRONMENT
    if owner.endswith(_HADOOP) and (method.startswith("set") or method in ("unset", "clear", "addResource")):
        return f"{_HADOOP}.{method}()"
    java = ".".join(called.split(".")[-2:])
    return f"{java}()" if java in _OF_JAVA else None
