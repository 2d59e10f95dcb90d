"""The table of a mesh file with every key, compared with the record of `whole_table`."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct
from msgspec.structs import fields

from asya.option import Option
from asya.protocol.mesh_keys import Pointer, Seconds
from tests.unit.asya_infra.mesh_file.whole_table import RECORDED, actors_with_options, table, text_of

pytestmark = pytest.mark.usefixtures("folder")

# What the functions or synthesis find out, and no key sets; and what only another mesh could set.
_WITHOUT_KEY = {
    *("MeshTable.version", "Pause.until", "Retention.results", "Sink.persist", "SparkApplication.release"),
    *("Actor.own_code", "MeshTable.capabilities", "MeshTable.own_calls"),
}


def test_every_key_gives_the_recorded_table() -> None:
    assert text_of(table()) == RECORDED.read_text(), (
        "if the change is intended: python -m tests.unit.asya_infra.mesh_file.whole_table"
    )


class Ink(Struct, frozen=True):
    color: Literal["blue", "red"] = "blue"
    copies: Annotated[int, Meta(ge=1, le=9)] = 1


@pytest.mark.parametrize(
    ("form", "default", "other"),
    [
        (bool, False, True),
        (bool, True, False),
        (Literal["a", "b"], "a", "b"),
        (Annotated[int, Meta(ge=2)], 2, 3),
        (Pointer | None, None, "/text"),
        (str, "/text", "/other"),
        (Seconds, 7.0, "1234s"),
        (Ink, Ink(), {"color": "red", "copies": 2}),
    ],
)
def test_an_option_of_any_type_is_recorded_with_another_value(form: Any, default: object, other: object) -> None:
    options = [
        Option(key=f"of_{kind}", type=form, default=default, text="", kinds=(kind,) if kind else ())
        for kind in ("", "gate")
    ]
    assert dict(actors_with_options(options)) == {
        "every-option": {"handler": "shop.one", "of_": other},
        "every-option-of-gate": {"kind": "gate", "of_gate": other},
    }


def test_each_field_of_the_table_has_a_value_that_is_not_its_default() -> None:
    """So that a key which is not taken over into the table shows in the record."""
    missing = set[str]()
    found = set[str]()
    for each in _structs(table()):
        for field in fields(type(each)):
            name, value = f"{type(each).__name__}.{field.name}", getattr(each, field.name)
            default = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
            (missing if value == default else found).add(name)
    assert missing - found == _WITHOUT_KEY


def _structs(value: Any) -> Iterator[Struct]:
    if isinstance(value, Struct):
        yield value
        for name in value.__struct_fields__:
            yield from _structs(getattr(value, name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _structs(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from _structs(each)
