"""Records what the loader says of wrong values at every key of the mesh file.

Each section gets the same value at all its keys, so the record shows that all mistakes are reported at once. To accept an
intended change: `python -m tests.unit.asya_infra.mesh_file.wrong_values`.
"""

import copy
import json
from collections.abc import Iterator
from contextlib import chdir
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from asya_infra.mesh_file import MeshFileError, load_mesh
from asya_infra.mesh_file.schema import PATH as SCHEMA
from tests.unit.asya_infra.mesh_file.loading import write_code

RECORDED = Path(__file__).parent / "recorded" / "wrong_values.txt"
VALUES: tuple[Any, ...] = (None, True, -1, 0.5, 10**7, "x", "1ms", "9999d", [], ["x"], {"x": 1})
BASE: dict[str, Any] = {
    "namespace": "shop",
    "actors": {
        "a": {"handler": "shop.one"},
        "heavy": {"spark": {"job": "heavy.crunch"}},
        "later": {"kind": "wait", "wait": {"for": "1h"}},
    },
    "tools": {"t": {"route": ["a", "heavy"]}},
    "triggers": {"nightly": {"cron": "0 3 * * *", "tool": "t"}},
}
# The key of an entry in a mapping that has a free choice of keys.
_ENTRIES = {"actors": "a", "tools": "t", "triggers": "nightly"}

Place = tuple[str | int, ...]


def sections() -> Iterator[tuple[Place, list[str]]]:
    """Yield each kind of section once: a place of it in a mesh file, and its keys."""
    schema = json.loads(SCHEMA.read_text())
    seen = {name for name in schema["$defs"] if name.startswith("Stage")}
    queue: list[tuple[Place, dict[str, Any]]] = [((), schema)]
    while queue:
        place, section = queue.pop(0)
        properties = section.get("properties", {})
        if not properties:
            continue
        yield place, list(properties)
        for key, value in properties.items():
            for inner, name in _references(value, (*place, key)):
                if name not in seen:
                    seen.add(name)
                    queue.append((inner, schema["$defs"][name]))


def _references(value: dict[str, Any], place: Place) -> Iterator[tuple[Place, str]]:
    if "$ref" in value:
        yield place, value["$ref"].rpartition("/")[2]
    for option in value.get("anyOf", ()):
        yield from _references(option, place)
    if isinstance(items := value.get("items"), dict):
        yield from _references(items, (*place, 0))
    if isinstance(entries := value.get("additionalProperties"), dict):
        yield from _references(entries, (*place, _ENTRIES.get(str(place[-1]), "x")))


def mesh_with(place: Place, keys: list[str], value: Any) -> dict[str, Any]:
    """Return a mesh file with the value at all keys of the section; the keys of the file itself keep those that it needs."""
    mesh = copy.deepcopy(BASE)
    holder: Any = mesh
    for part, after in zip_longest(place, place[1:]):
        fresh: Any = [{}] if after == 0 else {}
        if isinstance(holder, list):
            holder = holder[0]
        else:
            holder = holder.setdefault(part, fresh)
    needed = BASE if not place else {}
    holder |= {key: value for key in keys if key not in needed}
    holder["no_such_key"] = value
    return mesh


def problems_of(mesh: dict[str, Any]) -> list[str]:
    """Return the problems of a mesh file in the working folder, each with its line and key."""
    path = Path("mesh.yaml")
    path.write_text(json.dumps(mesh, indent=1))
    try:
        load_mesh(path)
    except MeshFileError as error:
        return [str(problem).removeprefix("mesh.yaml:") for problem in error.problems]
    return []


def record() -> str:
    """Return the problems of all wrong mesh files, which are made in the working folder."""
    lines = []
    for place, keys in sections():
        for value in VALUES:
            lines.append(f"# {'.'.join(map(str, place)) or 'the file'}: every key is {json.dumps(value)}")
            lines += problems_of(mesh_with(place, keys, value))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with TemporaryDirectory() as _folder, chdir(_folder):
        write_code(Path())
        RECORDED.write_text(record(), encoding="utf-8")
