"""Writes the types of the console's calls in TypeScript: `make console-types`.

They come from the OpenAPI document, for the calls that the page may make. What the document cannot say is in the Python types:
whether an answer leaves out a field that has its default.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from asya.api_call import Named
from asya.gateway.call_table import CALLS
from asya_cli.console.calls import CALLS as ALLOWED
from docs_site.reference.gateway_calls import openapi
from docs_site.reference.tables import Schema

FILE = Path(__file__).parents[2] / "console" / "src" / "api" / "gateway.ts"
HEAD = """\
/**
 * What the gateway answers (docs/protocol.md §13), from its OpenAPI document. Fields that do not apply are missing.
 *
 * Written by `make console-types`; change the types of the calls instead.
 */

import type { Json } from "../shared/json";
"""
_REFERENCE = "#/components/schemas/"
_SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_ATTRIBUTE = re.compile(r"^ {8}((?:\w+, )*\w+): (.+)$", re.MULTILINE)


def text() -> str:
    """Return the content of the file."""
    schemas: Mapping[str, Schema] = openapi()["components"]["schemas"]
    types = dict(_python_types(_answers()))
    return HEAD + "".join(_interface(name, schemas[name], types[name]) for name in sorted(_reachable(schemas)))


def _answers() -> list[type]:
    """Return the types of the answers to the page."""
    calls = [call for call in CALLS if (call.method, call.path) in ALLOWED]
    return [each.load() for call in calls for each in call.answers.values() if isinstance(each, Named)]


def _reachable(schemas: Mapping[str, Schema]) -> set[str]:
    """Return the names of the answers, and of all types in them."""
    found, pending = set[str](), [each.__name__ for each in _answers()]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += re.findall(rf'"{_REFERENCE}(\w+)"', json.dumps(schemas[name]))
    return found


def _python_types(answers: list[type]) -> Iterator[tuple[str, msgspec.inspect.Type]]:
    """Yield each type in the answers with its name."""
    pending: list[Any] = list(msgspec.inspect.multi_type_info(answers))
    seen: set[type] = set()
    while pending:
        each = pending.pop()
        match each:
            case msgspec.inspect.StructType() | msgspec.inspect.DataclassType():
                if each.cls not in seen:
                    seen.add(each.cls)
                    yield each.cls.__name__, each
                    pending += [field.type for field in each.fields]
            case msgspec.inspect.UnionType():
                pending += each.types
            case msgspec.inspect.ListType() | msgspec.inspect.VarTupleType():
                pending.append(each.item_type)
            case msgspec.inspect.DictType():
                pending.append(each.value_type)


def _interface(name: str, schema: Schema, kind: Any) -> str:
    description = schema.get("description", "")
    notes = {key: note for keys, note in _ATTRIBUTE.findall(description) for key in keys.split(", ")}
    omits = isinstance(kind, msgspec.inspect.StructType) and kind.cls.__struct_config__.omit_defaults
    lines = [f"\n/** {description.partition(chr(10))[0]} */", f"export interface {name} {{"]
    for field in kind.fields:
        key, value = field.encode_name, schema["properties"][field.encode_name]
        if key in notes:
            note = re.sub(r"\bNone\b", "null", notes[key]).rstrip(".")
            lines.append(f"  /** {note[:1].upper()}{note[1:]}. */")
        # One without a default is unset.
        is_unset = field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT
        if (omits or is_unset) and not field.required:
            lines.append(f"  {key}?: {_without_null(value) if value.get('default', '') is None else _type(value)};")
        else:
            lines.append(f"  {key}: {_type(value)};")
    return "\n".join([*lines, "}", ""])


def _without_null(schema: Schema) -> str:
    """Return the type of a field that is missing instead of null."""
    if "anyOf" not in schema:
        return _type(schema)
    return _type(schema | {"anyOf": [each for each in schema["anyOf"] if each.get("type") != "null"]})


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(_REFERENCE)
    if "enum" in schema or "anyOf" in schema:
        values = [json.dumps(each) for each in schema.get("enum", ())]
        return " | ".join(dict.fromkeys([*values, *map(_type, schema.get("anyOf", ()))]))
    kind = schema.get("type")
    if kind == "array":
        item = _type(schema.get("items", {}))
        return f"({item})[]" if " | " in item else f"{item}[]"
    if kind == "object":
        return f"Record<string, {_type(schema.get('additionalProperties') or {})}>"
    return _SIMPLE.get(str(kind), "Json")


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
