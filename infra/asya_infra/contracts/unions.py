"""Finds the options of a union that no reader can tell apart (`protocol §6.typed.union`)."""

import itertools
from collections.abc import Iterator, Mapping

from asya_infra.contracts.compatibility import refusals
from asya_infra.contracts.read import Schema
from asya_infra.contracts.schemas import closed
from asya_infra.mesh_file.source import Location


def alike_options(unions: Mapping[str, list[list[Schema]]], key: Location) -> Iterator[tuple[Location, str]]:
    """Yield a finding for each pair of options that have the same JSON for some of their values, at the actor that has them.

    Args:
        unions: the schemas of the options of each union, by actor, as results give them.
        key: the key of an actor's section that names its code.
    """
    for actor, found in unions.items():
        texts = [
            text
            for options in found
            for one, other in itertools.combinations(options, 2)
            for text in _alike(one, other)
        ]
        for text in dict.fromkeys(texts):
            yield ("actors", actor, *key), text


def _alike(one: Schema, other: Schema) -> Iterator[str]:
    if _reads_as(one, other) or _reads_as(other, one):
        names = f"{one.get('title', 'an option')} and {other.get('title', 'another one')}"
        yield (
            f"values of {names} cannot be told apart in JSON, so one would arrive as the other; give them a field that "
            "differs, such as kind: Literal['a'] and kind: Literal['b']"
        )


def _reads_as(given: Schema, needed: Schema) -> bool:
    """Whether the shortest form of a value, the one with the fields that are always given, is one of another type."""
    required = given.get("required", [])
    shortest = {**given, "properties": {name: given.get("properties", {}).get(name, {}) for name in required}}
    return not refusals(closed(shortest), closed(needed))
