"""Records the table that is made from a mesh file with every key of the table, and with every option that manifests declare.

To accept an intended change: `python -m tests.unit.asya_infra.mesh_file.whole_table`.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import inspect

from asya.option import Option
from asya.protocol.mesh_table import MeshTable, encode_table
from asya.registry import PRODUCT
from asya_infra.mesh_file import to_table
from tests.unit.asya_infra.mesh_file import loading

MESH = Path(__file__).parent / "recorded" / "every_key.yml"
RECORDED = MESH.with_name("table.json")
_MORE_CODE = "def many(payload):\n    yield payload\n"


def table() -> MeshTable:
    """Return the table of the mesh file with every key, whose code is written into the working folder."""
    code = Path("functions/handlers/shop.py")
    code.write_text(code.read_text() + _MORE_CODE)
    actors = "".join(f"  {name}: {json.dumps(keys)}\n" for name, keys in actors_with_options(PRODUCT.options.values()))
    return to_table(loading.load(MESH.read_text().replace("actors:\n", f"actors:\n{actors}", 1)))


def actors_with_options(options: Iterable[Option[Any]]) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield actors that have all options between them: one with a handler, and one of each kind with options of its own."""
    for kind in sorted({kind for option in options for kind in option.kinds or ("",)}):
        own: dict[str, object] = {"kind": kind} if kind else {"handler": "shop.one"}
        keys = {option.key: other_value(option) for option in options if kind in (option.kinds or ("",))}
        yield f"every-option{'-of-' if kind else ''}{kind}", own | keys


def other_value(option: Option[Any]) -> object:
    """Return a value of an option that is not its default."""
    return _other(inspect.type_info(option.type), option.default)


def _other(form: inspect.Type, default: object) -> object:
    return next(each for each in _values(form) if each != default)


def _values(form: inspect.Type) -> Iterator[object]:
    """Yield values of a type, as the mesh file has them."""
    match form:
        case inspect.BoolType():
            yield from (True, False)
        case inspect.LiteralType(values=values):
            yield from values
        case inspect.StrType():
            yield from ("/text", "/other")  # a JSON pointer is a text, too
        case inspect.IntType(ge=least):
            yield from ((least or 1), (least or 1) + 1)
        case inspect.FloatType():
            yield from ("1234s", "1235s")  # a duration
        case inspect.NoneType():
            return
        case inspect.UnionType(types=types):
            yield from (value for each in types for value in _values(each))
        case inspect.StructType(fields=fields):
            yield {each.encode_name: _other(each.type, each.default) for each in fields}
        case inspect.Metadata(type=of):
            yield from _values(of)
        case _:
            raise TypeError(f"no values of {form} are known; add them here")


def text_of(content: MeshTable) -> str:
    """Return a table as JSON with sorted keys."""
    return json.dumps(json.loads(encode_table(content)), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    with TemporaryDirectory() as _folder, chdir(_folder):
        loading.write_code(Path())
        RECORDED.write_text(text_of(table()), encoding="utf-8")
