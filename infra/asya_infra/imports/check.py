"""Checks that each light handler can be imported from what would be deployed: `asya validate` passes if, and only if, it can.

What only AWS knows decides nothing: an import that calls AWS, or that reads a secret before it fails, gives a note.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asya.protocol import names
from asya.protocol.mesh_table import MeshTable, encode_table, with_version
from asya_infra.build.code_files import CodeFiles, CodeFilesError, code_files
from asya_infra.build.code_tree import NO_SECRET, WITHOUT_AWS, ImportPath, function_path
from asya_infra.build.folder import build_once
from asya_infra.build.packages import REQUIREMENTS, PackagesError, Target
from asya_infra.contracts.check import hold_together
from asya_infra.imports.jobs import job_notes
from asya_infra.mesh_file import LoadedMesh, MeshFileError, load_mesh, to_table
from asya_infra.mesh_file.actor_model import ActorSection
from asya_infra.mesh_file.checks.context import Finding
from asya_infra.mesh_file.legacy.variables import handler_variables
from asya_infra.mesh_file.user_code import CodeError, find_definition
from asya_infra.product.interpreters import FUNCTION_PYTHON, Interpreter, interpreter_for

IMPORT_SECONDS = 30
"""The time limit of an import. Lambda gives it 10 seconds, and this machine may be slower."""

_PROGRAM = Path(__file__).with_name("importer.py")
_ANSWER = "imports.json"
_INHERITED = ("PATH", "SYSTEMROOT")


@dataclass(frozen=True)
class Imports:
    """What the imports of a mesh's handlers gave.

    Attributes:
        findings: why functions would not start.
        notes: what was not checked, and why.
    """

    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Failure:
    """Why a handler was not loaded.

    Attributes:
        kind: `failed` by an error, `refused` by the library, `ended` the process, `slow`, or `library`: its own import failed.
        message: of the error, or what the code has printed.
        type: the class of the error.
        code: that of the process.
        places: the lines of deployed files that the error comes from, the innermost first.
        calls_aws: whether the error comes from a call of AWS.
        secrets: the secrets that the import has read.
        module: that which was not found.
        opened: the file of the package that could not be opened.
        is_write: whether a file was to be written where a function can write none.
        variable: that which is not set.
    """

    kind: str
    message: str
    type: str = ""
    code: int = 0
    places: Sequence[tuple[str, int | None]] = ()
    calls_aws: bool = False
    secrets: Sequence[str] = ()
    module: str | None = None
    opened: str | None = None
    is_write: bool = False
    variable: str | None = None

    @property
    def error(self) -> str:
        """The error as Python prints it."""
        return f"{self.type}: {self.message}" if self.message else self.type

    @property
    def only_aws_knows(self) -> str:
        """Why the import may work on AWS; empty if it cannot."""
        if self.calls_aws:
            return "it calls AWS, which no check does; call AWS in the handler"
        if self.secrets:
            return f"it reads {', '.join(self.secrets)}, whose value only AWS has; read secrets in the handler"
        return ""


def check_imports(loaded: LoadedMesh, root: Path, seconds: float = IMPORT_SECONDS) -> Imports:
    """Import the handlers of all light actors as their functions do. The answer is kept for the same code if all can be loaded.

    Args:
        loaded: a valid mesh file.
        root: the folder for builds.
        seconds: the time limit of each import.
    """
    actors = {name: actor for name, actor in loaded.mesh.actors.items() if actor.handler is not None}
    if not actors:
        return Imports()
    python = interpreter_for(FUNCTION_PYTHON)
    table = with_version(to_table(loaded, existing_application=""))
    target, hashed = Target(interpreter=python.path), loaded.mesh.requires_hashes
    try:
        path = function_path(root, target, loaded.code_folder, encode_table(table), hashed=hashed)
        failures = _failures(root, python.path, path, _groups(loaded, actors, table), seconds)
    except (PackagesError, CodeFilesError, OSError, ValueError, subprocess.SubprocessError) as error:
        return Imports(notes=(f"{loaded.path}: no handler was imported, so a failing import is not found: {error}",))
    return _told(loaded, actors, failures, _Told(code_files(loaded.code_folder), python, seconds))


def load_importable(path: Path, stage: str | None, root: Path) -> LoadedMesh:
    """Load a mesh file, hold the types of its actors against each other, import its handlers, and look up imports of its jobs.

    Args:
        path: the mesh file.
        stage: see `load_mesh`.
        root: the folder for builds.

    Raises:
        MeshFileError: the file has problems; or, all at once: types conflict, or handlers cannot be imported.
    """
    loaded = load_mesh(path, stage)
    imports = check_imports(loaded, root)
    problems = [loaded.source.problem(place, text) for place, text in imports.findings]
    try:
        held = hold_together(loaded, root)
    except MeshFileError as error:
        raise MeshFileError([*error.problems, *problems]) from None
    if problems:
        raise MeshFileError(problems)
    return replace(held, notes=(*held.notes, *imports.notes, *job_notes(loaded, root)))


def _groups(loaded: LoadedMesh, actors: Mapping[str, ActorSection], table: MeshTable) -> list[list[dict[str, Any]]]:
    """Return the handlers of each module, with all that decides how they are loaded."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for name, actor in actors.items():
        handler = str(actor.handler)
        own = {**actor.env, **dict.fromkeys(actor.secrets, NO_SECRET), **handler_variables(table.actors[name])}
        groups.setdefault(handler.rpartition(".")[0], []).append(
            {
                "actor": name,
                "name": handler,
                "mode": actor.handler_mode,
                "lists_fan_out": actor.fan_out_lists,
                "is_typed": actor.kind is None,
                "secrets": sorted(actor.secrets),
                "variables": {**_function_variables(loaded, name), **own},
            }
        )
    return list(groups.values())


def _function_variables(loaded: LoadedMesh, actor: str) -> dict[str, str]:
    """Return the variables that a function has of its own accord; values that only a deployment knows are placeholders."""
    return {
        **WITHOUT_AWS,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{FUNCTION_PYTHON}",
        "AWS_LAMBDA_FUNCTION_NAME": names.function_name(loaded.namespace, actor),
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(loaded.mesh.actors[actor].memory),
        "ASYA_ACTOR": actor,
        "ASYA_BUCKET": "not-known",
        "ASYA_DATA_URI": "s3://not-known/data/",
        "ASYA_RESULTS_URI": "s3://not-known/results/",
        "ASYA_QUEUE_URL_PREFIX": "https://not-known/",
        "ASYA_GATEWAY_URL": "https://not-known/",
        "POWERTOOLS_SERVICE_NAME": actor,
        "POWERTOOLS_METRICS_NAMESPACE": names.METRICS_NAMESPACE,
        "LOG_LEVEL": "INFO",
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
    }


def _failures(
    root: Path, python: Path, path: ImportPath, groups: list[list[dict[str, Any]]], seconds: float
) -> dict[str, _Failure]:
    """Return why handlers cannot be loaded, by actor.

    Raises:
        OSError, ValueError, subprocess.SubprocessError: the program that loads them gives no answer.
    """
    request = json.dumps(groups, sort_keys=True)
    try:
        # The names of built folders say what is in them.
        key: list[str | bytes | Path] = [request, *map(str, (*path.folders, python)), _PROGRAM]
        build_once(root, "imports", key, lambda _: _load_all(root, python, path, groups, seconds))
    except _FailedError as error:
        return error.failures
    return {}


class _FailedError(Exception):
    """Some handlers cannot be loaded, which is not kept: the next import may find what this one lacked."""

    def __init__(self, failures: dict[str, _Failure]) -> None:
        super().__init__()
        self.failures = failures


def _compiled(root: Path, python: Path, path: ImportPath) -> Path:
    """Return the folder for the compiled library, which takes longer to compile than to import."""
    library = {each.name for folder in path.after for each in folder.iterdir()}
    has_own = any(each.name in library for each in path.tree.content.iterdir())
    own = [str(path.tree.content)] if has_own else []
    return build_once(root, "compiled", [*map(str, (python, *path.after)), *own], lambda _: None)


def _load_all(root: Path, python: Path, path: ImportPath, groups: list[list[dict[str, Any]]], seconds: float) -> None:
    with tempfile.TemporaryDirectory(prefix="asya-imports-") as folder:
        own = Path(folder).resolve()
        files = own / "files"
        files.mkdir()
        common = {
            **{name: os.environ[name] for name in _INHERITED if name in os.environ},
            "HOME": str(own / "no-home"),
            "TMPDIR": str(files),
            "LAMBDA_TASK_ROOT": str(path.tree.content),
            "PYTHONPATH": os.pathsep.join(map(str, path.folders)),
        }
        groups = [[{**each, "variables": {**common, **each["variables"]}} for each in group] for group in groups]
        request = {
            "code": str(path.tree.content),
            "temporary": str(files),
            "compiled": str(_compiled(root, python, path)),
            "seconds": seconds,
            "groups": groups,
        }
        question, answer = own / "request.json", own / _ANSWER
        question.write_text(json.dumps(request), encoding="utf-8")
        # With -S the packages of this machine's Python are not on the path.
        command = [str(python), "-P", "-S", str(_PROGRAM), str(question), str(answer)]
        result = subprocess.run(
            command,
            env={**common, **WITHOUT_AWS, "TZ": ":UTC"},
            cwd=path.tree.content,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if not answer.is_file():
            raise ValueError(
                f"the program that imports them ended ({result.returncode}): {result.stderr.strip()[-300:]}"
            )
        text = path.tree.as_written(answer.read_text(encoding="utf-8"))
    if failures := {actor: _Failure(**each) for actor, each in json.loads(text).items()}:
        raise _FailedError(failures)


@dataclass(frozen=True)
class _Told:
    """What texts about failures are made from."""

    code: CodeFiles
    python: Interpreter
    seconds: float


def _told(
    loaded: LoadedMesh, actors: Mapping[str, ActorSection], failures: Mapping[str, _Failure], told: _Told
) -> Imports:
    findings: list[Finding] = []
    notes: list[str] = []
    for actor in actors:
        if (failure := failures.get(actor)) is None:
            continue
        handler = str(actors[actor].handler)
        if failure.only_aws_knows:
            cause = f"{_where(failure, told.code, handler)}{failure.error}"
            notes.append(
                f"{loaded.path}: actors.{actor}.handler: {handler!r} is not checked, because its import failed here ({cause}) and "
                f"{failure.only_aws_knows}"
            )
        else:
            stand_in = told.python.unchecked("functions")
            text = _text(handler, failure, told)
            findings.append((("actors", actor, "handler"), f"{text}. {stand_in}" if stand_in else text))
    return Imports(tuple(findings), tuple(notes))


def _text(handler: str, failure: _Failure, told: _Told) -> str:
    """Say why a function would not start, where, and what to do."""
    code = told.code
    where = _where(failure, code, handler)
    match failure.kind:
        case "library":
            return (
                f"no function with the packages of {code.folder / REQUIREMENTS} starts: importing the library failed: "
                f"{failure.error}; remove or change what the library imports too"
            )
        case "refused":
            return f"{where}{failure.message}"
        case "slow":
            return (
                f"{where}importing {handler!r} takes longer than {told.seconds:g} s, and Lambda gives it 10 s; do the work "
                "when the handler is called"
            )
        case "ended":
            printed = f"; it printed: {failure.message}" if failure.message else ""
            return f"{where}importing {handler!r} ended the process (code {failure.code}){printed}; remove what ends it"
    advice = "; ".join(_advice(failure, code))
    return f"{where}importing {handler!r} failed: {failure.error}; {advice}"


def _where(failure: _Failure, code: CodeFiles, handler: str) -> str:
    """Return the author's file and line, with a colon; empty if no file of the author is known."""
    for file, line in failure.places:
        if file in code.targets:
            return f"{code.folder / file}:{line}: " if line else f"{code.folder / file}: "
    try:
        found = find_definition(code.folder, handler)
    except CodeError:
        return ""
    line = getattr(found.definition, "lineno", None)
    return f"{found.path}:{line}: " if line and failure.kind == "refused" else f"{found.path}: "


def _advice(failure: _Failure, code: CodeFiles) -> Iterator[str]:
    if failure.module is not None:
        top = failure.module.partition(".")[0]
        if top in sys.stdlib_module_names:
            yield f"Python {FUNCTION_PYTHON}, which functions have, has no such module; use another one"
            return
        yield _left_out(code, (top, f"{top}.py")) or (
            f"name the package of {failure.module!r} in {code.folder / REQUIREMENTS}, or put the module into {code.folder}"
        )
    elif failure.is_write:
        yield "a function writes in its temporary folder alone; use tempfile"
    elif failure.opened is not None:
        yield _left_out(code, (failure.opened,)) or f"put the file into {code.folder}"
    elif failure.variable is not None:
        yield f"set {failure.variable} with `env` of the actor, or read it when the handler is called"
    elif failure.type == "SystemExit":
        yield "remove the call of sys.exit"
    else:
        yield "correct it, or its function does not start"


def _left_out(code: CodeFiles, targets: Iterable[str]) -> str:
    """Return why something of the author's folder is not deployed; empty if it is, or is not there."""
    for target in targets:
        path = code.folder / target
        if path.exists() and not any(each == target or each.startswith(f"{target}/") for each in code.targets):
            return f"{path} is not deployed: {code.why_left_out(target)}"
    return ""
