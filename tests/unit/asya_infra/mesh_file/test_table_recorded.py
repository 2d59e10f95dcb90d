"""The table of a mesh file with every key, compared with the record of `whole_table`."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import fields

from tests.unit.asya_infra.mesh_file.whole_table import RECORDED, table, text_of

pytestmark = pytest.mark.usefixtures("folder")

# What the functions or synthesis find out, and no key sets; and what only another mesh could set.
_WITHOUT_KEY = {
    *("MeshTable.version", "Pause.until", "Retention.results", "Sink.persist", "SparkApplication.release"),
    *("MeshTable.capabilities", "MeshTable.own_calls"),
}


def test_every_key_gives_the_recorded_table() -> None:
    assert text_of(table()) == RECORDED.read_text(), (
        "if the change is intended: python -m tests.unit.asya_infra.mesh_file.whole_table"
    )


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
