"""The base class and the shared types of the mesh file's model."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema


class Section(BaseModel):
    """A mapping in the mesh file. Unknown keys are errors; attribute docstrings become descriptions in the schema."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True)


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


# Spark settings and environment variables are text. Users may write `8` or `true` without quotes.
Text = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "number", "boolean"]})]

# A list with one value needs no brackets.
Texts = Annotated[
    tuple[str, ...],
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
