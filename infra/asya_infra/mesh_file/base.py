"""What every part of the mesh file's model has in common."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema


class Section(BaseModel):
    """A mapping of the mesh file: unknown keys are errors, attribute docstrings become the schema's descriptions."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True)


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


# Spark settings and environment variables are text, but nobody should have to quote `8` or `true` for that.
Text = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "number", "boolean"]})]

# One value may be written without the brackets of a list.
Texts = Annotated[
    tuple[str, ...],
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
