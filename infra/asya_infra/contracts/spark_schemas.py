"""The JSON Schema of the payloads that a Spark type takes, so that the routes to its job are checked."""

from typing import Any

from asya.contracts import forms

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
