"""Reads the types of functions and models, in a process of its own: it imports user code.

    python -P reader.py request.json answer.json

The standard library and `asya.contracts` alone, beside the packages of the user's folder.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from asya.contracts.function import contract_of, input_schema
from asya.contracts.spark_types import NoSparkTypeError, spark_type


def main(request_file: str, answer_file: str) -> None:
    """Answer a request: the schemas of each name, or the error of its import."""
    request = json.loads(Path(request_file).read_text(encoding="utf-8"))
    answer = {
        "functions": {each["key"]: _answered(_function, each) for each in request["functions"]},
        "models": {name: _answered(_model, {"name": name}) for name in request["models"]},
        "columns": {name: _answered(_column, {"name": name}) for name in request["columns"]},
    }
    Path(answer_file).write_text(json.dumps(answer), encoding="utf-8")


def _answered(read: Any, item: dict[str, Any]) -> dict[str, Any]:
    try:
        return dict(read(item))
    except BaseException as error:  # noqa: BLE001 - an import runs any code
        return {"error": " ".join(f"{type(error).__name__}: {error}".split())}


def _function(item: dict[str, Any]) -> dict[str, Any]:
    owner, function = _resolved(item["name"])
    given = item["given"]
    # The class is not instantiated: its constructor may need what only the function has.
    if isinstance(owner, type) and not isinstance(vars(owner).get(function.__name__), staticmethod | classmethod):
        given += 1
    contract = contract_of(function, given=given, lists_fan_out=item["lists_fan_out"])
    return {"input": contract.input_schema(), "output": contract.output_schema(), "unions": contract.unions()}


def _model(item: dict[str, Any]) -> dict[str, Any]:
    return {"input": input_schema(_resolved(item["name"])[1])}


def _column(item: dict[str, Any]) -> dict[str, Any]:
    value = _resolved(item["name"])[1]
    if hasattr(value, "jsonValue") and not isinstance(value, type):  # a type of PySpark, which is not imported here
        return {"spark": value.jsonValue()}
    try:
        spark_type(value)
    except NoSparkTypeError as error:
        return {"problem": str(error)}
    return {"input": input_schema(value)}


def _resolved(name: str) -> tuple[Any, Any]:
    """The owner and the value of a dotted name; the module is its longest prefix that can be imported."""
    parts = name.split(".")
    for size in range(len(parts) - 1, 0, -1):
        module_name = ".".join(parts[:size])
        try:
            target: Any = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
                continue
            raise
        owner = target
        for attribute in parts[size:]:
            owner, target = target, getattr(target, attribute)
        return owner, target
    raise ModuleNotFoundError(f"there is no module {parts[0]!r}")


if __name__ == "__main__":
    main(*sys.argv[1:])
