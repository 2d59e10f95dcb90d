"""Records the table that is made from a mesh file with every key of the table, and with every option that manifests declare.

To accept an intended change: `python -m tests.unit.asya_infra.mesh_file.whole_table`.
"""

import json
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

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
    options = {key: other_value(option) for key, option in PRODUCT.options.items()}
    actor = json.dumps({"handler": "shop.one", **options})
    return to_table(loading.load(MESH.read_text().replace("actors:\n", f"actors:\n  every-option: {actor}\n", 1)))


def other_value(option: Option[Any]) -> object:
    """Return a value of an option that is not its default."""
    values = (not option.default,) if option.type is bool else get_args(option.type)
    return next(each for each in values if each != option.default)


def text_of(content: MeshTable) -> str:
    """Return a table as JSON with sorted keys."""
    return json.dumps(json.loads(encode_table(content)), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    with TemporaryDirectory() as _folder, chdir(_folder):
        loading.write_code(Path())
        RECORDED.write_text(text_of(table()), encoding="utf-8")
