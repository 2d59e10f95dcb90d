"""Marks of the fields that are keys of the mesh file: how a key is written there, and where it stands.

The actor table and the mesh file share these fields. Each declares its type, default and bounds (`msgspec.Meta`) once, and the text
below it describes the key. Functions read the table and ignore the marks; `asya_infra.mesh_file.sections` reads the file by them.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

SHORTEST_TIMEOUT = 2.0  # seconds
LONGEST_TIMEOUT = 366 * 86400.0


class Form(Struct, frozen=True):
    """How a value is written in the mesh file, if not as in the table, or which text it is (`asya_infra.mesh_file.forms`)."""

    name: Literal[
        "address",
        "bytes",
        "cron",
        "duration",
        "floats",
        "host",
        "lifetime",
        "pointer",
        "secret",
        "texts",
        "webhook id",
        "zone",
    ]


class After(Struct, frozen=True):
    """The key after which this key and the following ones stand in the schema, if a section extends one of the table.

    Attributes:
        key: empty for the first place.
    """

    key: str


class NoKey(Struct, frozen=True):
    """A field that is no key of the mesh file."""


Seconds = Annotated[float, Form("duration")]
"""`500ms`, `30s` or `2h` in the mesh file."""
TaskTimeout = Annotated[Seconds, Meta(ge=SHORTEST_TIMEOUT, le=LONGEST_TIMEOUT)]
"""The time that a task has until its deadline, as callers of the gateway may give it."""
Pointer = Annotated[str, Form("pointer")]
"""A JSON pointer."""
JsonOfFloats = Annotated[object, Form("floats")]
"""JSON whose numbers are floats, because AWS reads it so. All other JSON of the mesh file keeps the digits of its numbers."""
Texts = Annotated[tuple[str, ...], Form("texts")]
"""A list of texts. One text needs no brackets in the mesh file."""
