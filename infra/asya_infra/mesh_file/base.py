"""The base class and the shared types of the mesh file's model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Section(BaseModel):
    """A mapping in the mesh file. Unknown keys are errors; attribute docstrings become descriptions in the schema."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True)

    @classmethod
    def type_of(cls, key: str, values: Mapping[str, Any]) -> Any:  # noqa: ARG003  (subclasses read the values)
        """Return the type of a key, in a mapping with these values; None for an unknown key."""
        for name, field in cls.model_fields.items():
            if key == (field.alias or name):
                return Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        return None


@dataclass(frozen=True)
class OneOrMore:
    """The schema of a list of text whose only value needs no brackets.

    Attributes:
        or_flag: whether `true` and `false` have a meaning of their own, and are no text.
    """

    or_flag: bool = False

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of the list, or of its value."""
        many = handler(core_schema)
        return {"anyOf": [many["items"], *([{"type": "boolean"}] if self.or_flag else []), many]}


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


# A list with one value needs no brackets.
Texts = Annotated[tuple[str, ...], BeforeValidator(_as_list), OneOrMore()]
