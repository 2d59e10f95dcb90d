"""Inspects user code without running it: finds handlers and detects the shape of jobs.

Another Python may parse it than that of this process, which may refuse the syntax of the functions' version.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from asya_infra.mesh_file.source import did_you_mean
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for

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


Shape = Literal["payload", "dataframe"]
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_IMPORTS_FOLLOWED = 8
# What scripts call the session and the context.
_WAITS = frozenset({"awaitTermination", "awaitAnyTermination"})
_TRIGGERS_WITH_END = frozenset({"availableNow", "once"})
_SPARK_NAMES = frozenset({"spark", "sc", "session", "spark_session", "sparkContext", "spark_context", "getOrCreate"})

LIBRARIES = frozenset(
    {"asya", "asya_spark", "aws_lambda_powertools", "boto3", "botocore", "cronsim", "msgspec", "py4j", "pyspark"}
)
"""Packages that functions and job runs import besides user code and the standard library."""
JOB_LIBRARIES = frozenset({"asya", "asya_spark", "py4j", "pyspark"})
"""Those of them that code of jobs can import."""


class CodeError(Exception):
    """A handler or job that does not exist, or a module that cannot be parsed."""


class _IsClassError(CodeError):
    """A name is a class and not one of its methods."""


@dataclass(frozen=True)
class Definition:
    """The function that a dotted name refers to.

    Attributes:
        definition: the syntax tree; None if only running the code could tell, such as after a star import.
        path: the file.
    """

    definition: ast.AST | None
    path: Path


def hidden_modules(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a folder of code that hide a module of Python or of the library, and the names of the modules.

    User code comes first on the path. A package `boto3` is a copy of the original and hides nothing; a file `boto3.py` is none.
    """
    for path in sorted(folder.glob("*.py")):
        if path.stem in sys.stdlib_module_names or path.stem in LIBRARIES:
            yield path, path.stem
    for path in sorted(folder.glob("*/__init__.py")):
        if path.parent.name in sys.stdlib_module_names:
            yield path.parent, path.parent.name


def find_definition(folder: Path, name: str) -> Definition:
    """Find `module.function` or `module.Class.method` in a folder of code.

    Raises:
        CodeError: the module or the name does not exist, or the module is not valid Python.
    """
    parts = name.split(".")
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise CodeError(f"should have the form module.function or module.Class.method; got {name!r}")
    if not folder.is_dir():
        raise CodeError(f"there is no folder {folder} to find {name!r} in")
    for end in range(len(parts) - 1, 0, -1):
        file = _module_file(folder, parts[:end])
        if file is not None:
            return _find_in(_Module(folder, parts[:end], file), parts[end:], _IMPORTS_FOLLOWED)
    module = _module_file(folder, parts)
    if module is not None:
        raise CodeError(f"{name!r} is a module ({module}); add a name in it")
    known = sorted({path.stem for path in folder.glob("*.py")} | {p.parent.name for p in folder.glob("*/__init__.py")})
    raise CodeError(f"there is no module {parts[0]!r} in {folder}{did_you_mean(parts[0], known)}")


def check_model(folder: Path, name: str) -> None:
    """Check that a folder of code has a class or a value with this dotted name.

    Raises:
        CodeError: the module or the name does not exist, or the module is not valid Python.
    """
    try:
        found = find_definition(folder, name)
    except _IsClassError:
        return
    if found.definition is not None:
        raise CodeError(f"{name!r} in {found.path} is a function; name a model or a StructType")


def detect_shape(folder: Path, job: str) -> Shape:
    """Detect the shape of a job by the annotation (`DataFrame`) or the name (`envelopes`) of its second parameter.

    Raises:
        CodeError: as in `find_definition`, or the function takes fewer than two arguments.
    """
    match = find_definition(folder, job)
    function, path = match.definition, match.path
    if not isinstance(function, _Function):
        return "payload"
    arguments = [*function.args.posonlyargs, *function.args.args]
    if len(arguments) < 2:
        if function.args.vararg:
            return "payload"
        raise CodeError(f"{job!r} ({path}:{function.lineno}) should take two arguments: spark, payload")
    second = arguments[1]
    words = {node.id for node in ast.walk(second) if isinstance(node, ast.Name)}
    words |= {node.attr for node in ast.walk(second) if isinstance(node, ast.Attribute)}
    words |= {str(node.value).rpartition(".")[2] for node in ast.walk(second) if isinstance(node, ast.Constant)}
    return "dataframe" if second.arg == "envelopes" or "DataFrame" in words else "payload"


def find_stops(folder: Path, job: str) -> Iterator[tuple[Path, int]]:
    """Yield file and line of each call in the job's module that looks like one that stops Spark."""
    try:
        path = find_definition(folder, job).path
    except CodeError:
        return
    for node in ast.walk(parse_file(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "stop":
            words = {part.attr for part in ast.walk(node.func.value) if isinstance(part, ast.Attribute)}
            words |= {part.id for part in ast.walk(node.func.value) if isinstance(part, ast.Name)}
            if words & _SPARK_NAMES and "streams" not in words:
                yield path, node.lineno


def find_endless_waits(folder: Path, job: str) -> Iterator[tuple[Path, int, str]]:
    """Yield file, line and method of each call in the job's module that waits for the end of a stream without one."""
    try:
        path = find_definition(folder, job).path
    except CodeError:
        return
    calls = [
        (node, node.func.attr)
        for node in ast.walk(parse_file(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    triggers = (call for call, method in calls if method == "trigger")
    if any(keyword.arg in _TRIGGERS_WITH_END for trigger in triggers for keyword in trigger.keywords):
        return
    for call, method in calls:
        if method in _WAITS and not call.args and not call.keywords:
            yield path, call.lineno, method


@dataclass(frozen=True)
class Import:
    """An import of a package that is not in the folder of the code.

    Attributes:
        path: the file.
        line: its line.
        package: the first part of the name.
    """

    path: Path
    line: int
    package: str


def find_imports(folder: Path, name: str) -> Iterator[Import]:
    """Yield the imports of other packages that run when a module is imported, whatever holds, and those of its own imports.

    Those in `if`, in `try … except` and in functions are left out, because code may go on without them.
    """
    try:
        modules = [find_definition(folder, name).path]
        for path in modules:  # which grows
            for statement in _unconditional(parse_file(path).body):
                modules += [each for each in _own_modules(folder, path, statement) if each not in modules]
                for package in _packages_of(statement):
                    if not _is_own(folder, package):
                        yield Import(path, statement.lineno, package)
    except CodeError:
        return


def own_files(folder: Path, name: str) -> Iterator[Path]:
    """Yield the file of a definition, and those of the folder that it imports anywhere, without the libraries of the mesh.

    Raises:
        CodeError: as in `find_definition`.
    """
    files = [find_definition(folder, name).path]
    for path in files:  # which grows
        yield path
        imports = (node for node in ast.walk(parse_file(path)) if isinstance(node, ast.Import | ast.ImportFrom))
        found = (each for statement in imports for each in _own_modules(folder, path, statement))
        files += dict.fromkeys(each for each in found if each not in files and not _is_library(folder, each))


def _is_library(folder: Path, path: Path) -> bool:
    return path.relative_to(folder).parts[0].removesuffix(".py") in LIBRARIES


_Import = ast.Import | ast.ImportFrom


def _unconditional(body: list[ast.stmt]) -> Iterator[_Import]:
    for statement in body:
        if isinstance(statement, _Import):
            yield statement
        elif isinstance(statement, ast.With | ast.ClassDef) or (
            isinstance(statement, ast.Try) and not statement.handlers
        ):
            yield from _unconditional(statement.body)


def _packages_of(statement: _Import) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name.partition(".")[0] for alias in statement.names]
    return [(statement.module or "").partition(".")[0]] if statement.level == 0 else []


def _is_own(folder: Path, package: str) -> bool:
    return (folder / package).is_dir() or (folder / f"{package}.py").is_file()


def _own_modules(folder: Path, path: Path, statement: _Import) -> Iterator[Path]:
    """Yield the files of the folder that a statement imports, packages above them included."""
    if isinstance(statement, ast.Import):
        names = [alias.name.split(".") for alias in statement.names]
    else:
        package = list(path.parent.relative_to(folder).parts)
        base = package[: len(package) - statement.level + 1] if statement.level else []
        module = [*base, *(statement.module.split(".") if statement.module else [])]
        names = [module, *([*module, alias.name] for alias in statement.names)]
    for name in names:
        for end in range(1, len(name) + 1):
            if (file := _module_file(folder, name[:end])) is not None:
                yield file


def returns(folder: Path, handler: str) -> bool:
    """Whether a handler is a plain function that returns; False for a generator, and if only running the code could tell."""
    try:
        function = find_definition(folder, handler).definition
    except CodeError:
        return False
    if not isinstance(function, _Function) or function.decorator_list:
        return False
    return not any(isinstance(node, ast.Yield | ast.YieldFrom) for node in _own_nodes(function))


def _own_nodes(function: _Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body, without those of the functions and classes in it."""
    nodes: list[ast.AST] = list(function.body)
    while nodes:
        node = nodes.pop()
        yield node
        if not isinstance(node, _Function | ast.Lambda | ast.ClassDef):
            nodes += ast.iter_child_nodes(node)


def _module_file(folder: Path, parts: list[str]) -> Path | None:
    base = folder.joinpath(*parts)
    for candidate in (base / "__init__.py", base.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None


@dataclass(frozen=True)
class _Module:
    """A module in the folder, with the parts of its dotted name."""

    folder: Path
    name: list[str]
    file: Path

    def imported(self, statement: ast.ImportFrom) -> "_Module | None":
        """Return the source module of a `from … import`; None if it is not in the folder."""
        package = self.name if self.file.name == "__init__.py" else self.name[:-1]
        base = package[: len(package) - (statement.level - 1)] if statement.level else []
        target = [*base, *(statement.module.split(".") if statement.module else [])]
        file = _module_file(self.folder, target) if target else None
        return _Module(self.folder, target, file) if file else None


def _find_in(module: _Module, names: list[str], imports_left: int) -> Definition:
    tree = parse_file(module.file)
    defined = dict(_definitions(tree.body))
    if names[0] not in defined:
        if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
            return Definition(None, module.file)
        raise CodeError(f"{module.file} has no {names[0]!r}{did_you_mean(names[0], defined)}")
    definition = defined[names[0]]
    if isinstance(definition, ast.ImportFrom) and imports_left:
        source = module.imported(definition)
        original = next(alias.name for alias in definition.names if (alias.asname or alias.name) == names[0])
        return _find_in(source, [original, *names[1:]], imports_left - 1) if source else Definition(None, module.file)
    if isinstance(definition, ast.ClassDef):
        return _find_method(module.file, definition, names)
    if isinstance(definition, _Function) and len(names) > 1:
        raise CodeError(f"{names[0]!r} in {module.file} is a function and has no {names[1]!r}")
    return Definition(definition if isinstance(definition, _Function) else None, module.file)


def _find_method(file: Path, class_: ast.ClassDef, names: list[str]) -> Definition:
    if len(names) == 1:
        raise _IsClassError(f"{names[0]!r} in {file} is a class; add the name of a method, as in {names[0]}.method")
    methods = dict(_definitions(class_.body))
    if names[1] not in methods and not class_.bases:
        raise CodeError(f"class {names[0]} in {file} has no {names[1]!r}{did_you_mean(names[1], methods)}")
    method = methods.get(names[1])
    if isinstance(method, ast.ClassDef):
        return _find_method(file, method, names[1:])
    if isinstance(method, _Function) and len(names) > 2:
        raise CodeError(f"{names[0]}.{names[1]} in {file} is a method and has no {names[2]!r}")
    return Definition(method if isinstance(method, _Function) else None, file)


def parse_file(file: Path) -> ast.Module:
    """Parse a module, if need be by the Python of functions.

    Raises:
        CodeError: it is not valid Python.
    """
    # The bytes say in which encoding the text is: by a byte order mark, or by a comment.
    content = file.read_bytes()
    try:
        return ast.parse(content, filename=str(file))
    except (SyntaxError, ValueError) as error:
        refusal = error
    other = interpreter_for(FUNCTION_PYTHON)
    advice = f". {other.unchecked('functions')}" if other.problem else ""
    if not other.is_own:
        try:
            return parse_by(other.path, content)
        except SyntaxError as error:
            refusal = error
        except (OSError, subprocess.SubprocessError) as error:
            advice = f". {other.path} does not answer: {error}"
    line = getattr(refusal, "lineno", None) or 1
    message = getattr(refusal, "msg", None) or refusal
    raise CodeError(f"{file}:{line} is not valid Python: {message}{advice}")


def _definitions(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Yield each name that a block defines, with its statement, also in `if`, `try` and `with`."""
    for statement in body:
        if isinstance(statement, _Function | ast.ClassDef):
            yield statement.name, statement
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            for alias in statement.names:
                yield (alias.asname or alias.name.partition(".")[0]), statement
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                for node in ast.walk(target):
                    if isinstance(node, ast.Name):
                        yield node.id, statement
        else:
            for block in ("body", "orelse", "finalbody"):
                yield from _definitions(getattr(statement, block, []))
            for handler in getattr(statement, "handlers", []):
                yield from _definitions(handler.body)
