"""Markdown tables, and the types of JSON Schema in words for them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table; cells keep their Markdown, pipes and line breaks are escaped."""
    return [_row(header), "|" + "---|" * len(header), *(_row(row) for row in rows), ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in cells) + " |"


def code(text: object) -> str:
    """Return text as inline code; empty text stays empty."""
    return f"`{text}`" if text not in ("", None) else ""


_BEGIN = "<!-- Written by `make generated`, from declarations. -->\n"
_END = "<!-- The end of what is written. -->\n"


def with_written(page: str, lines: Iterable[str]) -> str:
    """Return a page with these lines between its marks."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    written = "\n".join(lines).strip()
    return f"{before}{_BEGIN}\n{written}\n\n{_END}{after}"


Schema = dict[str, Any]
_LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "minLength": "characters at least",
    "maxLength": "characters at most",
    "minItems": "items at least",
    "maxItems": "items at most",
    "minProperties": "keys at least",
    "maxProperties": "keys at most",
    "pattern": "pattern",
}


_TEXT = ["string", "number", "boolean"]
"""Text of the mesh file, which takes each scalar as it is written."""


def reference(schema: Schema) -> str | None:
    """Return the name of the definition that a schema refers to."""
    target = schema.get("$ref")
    return str(target).rpartition("/")[2] if target else None


def type_of(schema: Schema, *, links: bool = True) -> str:
    """Return the type: names of JSON types, values of an enumeration, or links to definitions on the same page."""
    if name := reference(schema):
        return f"[{name}](#{name.lower()})" if links else name
    for union in ("anyOf", "oneOf", "allOf"):
        if union in schema:
            parts = [type_of(part, links=links) for part in schema[union]]
            return " or ".join(dict.fromkeys(part for part in parts if part != "null")) or "null"
    if values := schema.get("enum", [schema["const"]] if "const" in schema else None):
        return ", ".join(f"`{value}`" for value in values)
    return _json_type(schema, links=links)


def _json_type(schema: Schema, *, links: bool) -> str:
    kind = "null" if "not" in schema else schema.get("type")
    if kind == "array":
        return f"list of {type_of(schema.get('items') or {}, links=links)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object, each value {type_of(schema['additionalProperties'], links=links)}"
    if kind == _TEXT:
        return "string"
    return " or ".join(kind) if isinstance(kind, list) else str(kind or "any JSON")


def limits_of(schema: Schema) -> str:
    """Return the bounds and the pattern of a value, of all branches of a union."""
    limits = [
        f"{words} `{schema[key]}`"
        if words in ("at least", "at most", "more than", "less than", "pattern")
        else f"{schema[key]} {words}"
        for key, words in _LIMITS.items()
        if key in schema
    ]
    for union in ("anyOf", "oneOf"):
        limits += [limit for part in schema.get(union, ()) if (limit := limits_of(part))]
    if isinstance(schema.get("items"), dict) and (limit := limits_of(schema["items"])):
        limits.append(f"each: {limit}")
    return "; ".join(dict.fromkeys(limits))


def default_of(schema: Schema, *, required: bool) -> str:
    """Return the default as JSON; a default of null is none."""
    if required:
        return "required"
    default = schema.get("default")
    return "" if default is None else f"`{json.dumps(default, ensure_ascii=False)}`"
