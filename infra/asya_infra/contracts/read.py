"""Reads the types of a folder of code, by importing what is deployed of it in a subprocess.

Spark types become JSON Schemas, so that the routes to their jobs are checked.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from asya.contracts import forms
from asya.heavy.job_python import JOB_PYTHON
from asya_infra.build.code_files import CodeFilesError
from asya_infra.build.code_tree import WITHOUT_AWS, ImportPath, function_path, job_tree
from asya_infra.build.folder import build_once
from asya_infra.build.jobs import build_job_library
from asya_infra.build.packages import PackagesError, Target, build_folder_packages
from asya_infra.product.environments import EnvironmentsError, spark_path
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for
from asya_infra.product.places import BUILD, LIBRARY

Schema = dict[str, Any]

_WHOLE: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}
_SCALARS: dict[str, Schema] = {
    "byte": _WHOLE,
    "short": _WHOLE,
    "integer": _WHOLE,
    "long": _WHOLE,
    "float": _NUMBER,
    "double": _NUMBER,
    "boolean": {"type": "boolean"},
    "date": {"type": "string", **forms.DATE.schema()},
    "timestamp": {"type": "string", **forms.DATE_TIME.schema()},
    "timestamp_ntz": {"type": "string", **forms.LOCAL_DATE_TIME.schema()},
    "binary": {"type": "string", "contentEncoding": "base64"},
}


def json_schema(kind: Any) -> Schema:
    """The schema for a Spark type in its JSON form. A string takes any value, and what is not known may be anything."""
    if isinstance(kind, str):
        is_decimal = kind.startswith("decimal")
        return {"type": ["string", "number"], **forms.DECIMAL.schema()} if is_decimal else dict(_SCALARS.get(kind, {}))
    match kind.get("type"):
        case "struct":
            fields = kind["fields"]
            return {
                "type": "object",
                "properties": {each["name"]: _nullable(each["type"], each["nullable"]) for each in fields},
                "required": [each["name"] for each in fields if not each["nullable"]],
            }
        case "array":
            return {"type": "array", "items": _nullable(kind["elementType"], kind["containsNull"])}
        case "map":
            return {
                "type": "object",
                "additionalProperties": _nullable(kind["valueType"], kind["valueContainsNull"]) or True,
            }
    return {}


def _nullable(kind: Any, has_nulls: Any) -> Schema:
    schema = json_schema(kind)
    return {"anyOf": [schema, {"type": "null"}]} if has_nulls and schema else schema


_CONTRACTS = LIBRARY / "contracts"
_READER = Path(__file__).parent / "reader.py"
_ANSWER = "types.json"
_SECONDS = 120
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SYSTEMROOT")


@dataclass(frozen=True, order=True)
class Function:
    """A function whose types to read.

    Attributes:
        key: the name of its actor.
        name: the dotted name of the function.
        given: how many parameters come before the payload.
        lists_fan_out: whether a returned list is a frame for each item.
    """

    key: str
    name: str
    given: int = 0
    lists_fan_out: bool = False


@dataclass(frozen=True)
class Types:
    """The types of one function, as JSON Schemas; None says nothing."""

    input: Schema | None = None
    output: Schema | None = None


@dataclass(frozen=True)
class FolderTypes:
    """What was read of a folder.

    Attributes:
        functions: the types of each function by its key.
        models: the schema of each model by its name.
        errors: why the types of a key or a name are not known.
        columns: the schema of each type of a DataFrame's payloads by its name.
        problems: why such a type has no Spark type.
        unions: the options of the unions of each function by its key, where they are classes.
    """

    functions: Mapping[str, Types]
    models: Mapping[str, Schema]
    errors: Mapping[str, str]
    columns: Mapping[str, Schema] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    unions: Mapping[str, list[list[Schema]]] = field(default_factory=dict)


NOTHING = FolderTypes({}, {}, {})


def read_types(
    root: Path,
    folder: Path,
    functions: Sequence[Function],
    models: Sequence[str],
    variables: Mapping[str, str],
    *,
    hashed: bool = False,
    columns: Sequence[str] = (),
    spark: bool = False,
) -> FolderTypes:
    """Read the types of functions and models. The answer is kept for the same content of the folder.

    Args:
        root: the folder for builds.
        folder: the user's code, with its `requirements.txt`.
        functions: the functions.
        models: the dotted names of models.
        variables: the environment variables that the code may read when it is imported.
        hashed: refuse required packages without hashes.
        columns: the dotted names of types of the payloads of DataFrame jobs.
        spark: whether the folder is that of jobs, which may import PySpark.
    """
    if not functions and not models and not columns:
        return NOTHING
    request = json.dumps(
        {
            "functions": [asdict(each) for each in sorted(functions)],
            "models": sorted(set(models)),
            "columns": sorted(set(columns)),
        }
    )
    known = json.dumps(sorted(variables.items()))
    keys = [*(each.key for each in functions), *models, *columns]
    python = interpreter_for(JOB_PYTHON if spark else FUNCTION_PYTHON).path
    try:
        path = _imported(root, folder, Target(interpreter=python), hashed=hashed, spark=spark)
        answer = build_once(
            root,
            "types",
            # The names of built folders say what is in them.
            [request, known, *map(str, (*path.folders, python)), _CONTRACTS, _READER],
            lambda draft: _ask(draft, python, path, request, variables=variables),
        )
        return _parsed(json.loads((answer / _ANSWER).read_text(encoding="utf-8")))
    except _IncompleteError as error:
        # It is not kept: what it lacks may come from outside of the folder.
        return _parsed(error.answer)
    except (PackagesError, CodeFilesError, EnvironmentsError, OSError, ValueError, subprocess.SubprocessError) as error:
        return FolderTypes({}, {}, dict.fromkeys(keys, str(error)))


def _imported(root: Path, folder: Path, target: Target, *, hashed: bool, spark: bool) -> ImportPath:
    """Return what is deployed of a folder of code, and what functions or job runs find beside it."""
    if not spark:
        return function_path(root, target, folder, hashed=hashed)
    packages = build_folder_packages(root, folder, target, hashed=hashed)
    after = (*([packages] if packages else []), build_job_library(BUILD), *spark_path())
    return ImportPath(job_tree(root, folder), after)


class _IncompleteError(Exception):
    """Some types cannot be read."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__()
        self.answer = answer


def _ask(draft: Path, python: Path, path: ImportPath, request: str, *, variables: Mapping[str, str]) -> None:
    environment = {
        # User code is imported here, so it gets no credentials and nothing else of the caller's environment.
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        **WITHOUT_AWS,
        **variables,
        "PYTHONPATH": os.pathsep.join(map(str, path.folders)),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with tempfile.TemporaryDirectory() as temporary:
        question, answer = Path(temporary) / "request.json", Path(temporary) / _ANSWER
        question.write_text(request, encoding="utf-8")
        # With -S the packages of this machine's Python are not on the path.
        command = [str(python), "-P", "-S", str(_READER), str(question), str(answer)]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=_SECONDS)
        if not answer.is_file():
            shown = path.tree.as_written(result.stderr.strip())
            raise ValueError(f"its import ended the process ({result.returncode}): {shown[-300:]}")
        text = answer.read_text(encoding="utf-8")
    parsed = json.loads(text)
    if any("error" in each for group in parsed.values() for each in group.values()):
        raise _IncompleteError(json.loads(path.tree.as_written(text)))
    (draft / _ANSWER).write_text(text, encoding="utf-8")


def _parsed(answer: dict[str, Any]) -> FolderTypes:
    functions, models, columns = answer["functions"], answer["models"], answer["columns"]
    inputs = {name: each["input"] for name, each in columns.items() if "input" in each}
    inputs |= {name: json_schema(each["spark"]) for name, each in columns.items() if "spark" in each}
    return FolderTypes(
        {key: Types(each["input"], each["output"]) for key, each in functions.items() if "error" not in each},
        {name: each["input"] for name, each in models.items() if "error" not in each},
        {key: each["error"] for key, each in (functions | models | columns).items() if "error" in each},
        inputs,
        {name: each["problem"] for name, each in columns.items() if "problem" in each},
        {key: each["unions"] for key, each in functions.items() if each.get("unions")},
    )
