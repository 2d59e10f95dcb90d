"""Follows the payload along the routes of a mesh file, and finds the actors that it cannot fit.

Only what conflicts for sure is a conflict.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asya.protocol import names
from asya.registry import PRODUCT, Registry
from asya_infra.contracts.read import Schema, Types
from asya_infra.contracts.schemas import FORMATS, Typed, closed, name_of, typed
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.source import Location

_Pairs = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Conflict:
    """A conflict at a field.

    Attributes:
        field: the path of the field; empty for the whole payload.
        needs: the type that is needed; None if the field is not allowed.
        gives: the type that is given; None without the field.
    """

    field: str
    needs: str | None
    gives: str | None

    def text(self, taker: str, giver: str) -> str:
        """The conflict as a sentence about the actor that takes and what gives."""
        if self.needs is None:
            return f"{taker} takes no field {self.field}; {giver} gives it"
        needed = f"{self.field}: {self.needs}" if self.field else self.needs
        return f"{taker} needs {needed}; {giver} gives {'none' if self.gives is None else self.gives}"


def conflicts(given: Typed, needed: Typed) -> list[Conflict]:
    """The conflicts of all values of one schema with another one; empty if some value may fit."""
    return list(_conflicts(given, needed, "", frozenset()))


def _conflicts(given: Typed, needed: Typed, path: str, above: _Pairs) -> Iterator[Conflict]:
    """Yield the conflicts of two schemas; those `above` them are being compared, because a type may contain itself."""
    pair = (id(given.schema), id(needed.schema))
    if pair in above or not given.is_known or not needed.is_known:
        return
    above = above | {pair}
    found = [_against(option, needed, path, above) for option in given.options()]
    # What may fit is no conflict: a route may be for some of the results only.
    if all(found):
        yield from found[0] if len(found) == 1 else [Conflict(path, name_of(needed), name_of(given))]


def _against(given: Typed, needed: Typed, path: str, above: _Pairs) -> list[Conflict]:
    """The conflicts of a type that is no union."""
    options = needed.options()
    if len(options) == 1:
        return list(_of_one(given, options[0], path, above))
    found = [list(_of_one(given, option, path, above)) for option in options]
    if not all(found):
        return []
    likely = [
        each for option, each in zip(options, found, strict=True) if option.is_known and given.types & option.types
    ]
    return likely[0] if len(likely) == 1 else [Conflict(path, name_of(needed), name_of(given))]


def _of_one(given: Typed, needed: Typed, path: str, above: _Pairs) -> Iterator[Conflict]:
    if not given.is_known or not needed.is_known:
        return
    if _differ(given, needed):
        yield Conflict(path, name_of(needed), name_of(given))
    elif given.types == needed.types == {"object"}:
        yield from _of_objects(given, needed, path, above)
    elif given.types == needed.types == {"array"}:
        yield from _of_arrays(given, needed, path, above)


def _differ(given: Typed, needed: Typed) -> bool:
    """Whether no value has both types."""
    types, accepted = given.types, needed.types
    if not types or not accepted:
        return False
    if "number" in accepted:
        accepted = accepted | {"integer"}
    # A float may be whole.
    if "number" in types:
        types = types | {"integer"}
    if not types & accepted:
        return True
    if given.values is not None and needed.values is not None:
        return not any(value in needed.values for value in given.values)
    formats = [FORMATS.get(each.schema.get("format", "")) for each in (given, needed)]
    return types == {"string"} and None not in formats and formats[0] != formats[1]


def _of_objects(given: Typed, needed: Typed, path: str, above: _Pairs) -> Iterator[Conflict]:
    fields, accepted = given.properties, needed.properties
    for name in dict.fromkeys([*needed.required, *(name for name in accepted if name in given.required)]):
        wanted, place = needed.within(accepted.get(name, {})), f"{path}.{name}" if path else name
        if name in fields:
            yield from _conflicts(given.within(fields[name]), wanted, place, above)
        elif given.others is False:
            yield Conflict(place, name_of(wanted), None)
        elif isinstance(given.others, dict):
            yield from _conflicts(given.within(given.others), wanted, place, above)
    for name in given.required:
        if name not in accepted:
            place = f"{path}.{name}" if path else name
            if needed.others is False:
                yield Conflict(place, None, name_of(given.within(fields.get(name, {}))))
            elif isinstance(needed.others, dict):
                one = given.within(fields.get(name, {}))
                yield from _conflicts(one, needed.within(needed.others), place, above)
    if isinstance(given.others, dict) and isinstance(needed.others, dict):
        one, other = given.within(given.others), needed.within(needed.others)
        yield from _conflicts(one, other, f"{path}[]", above)


def _of_arrays(given: Typed, needed: Typed, path: str, above: _Pairs) -> Iterator[Conflict]:
    if given.schema.get("minItems", 0) > needed.schema.get("maxItems", 2**63) or given.schema.get(
        "maxItems", 2**63
    ) < needed.schema.get("minItems", 0):
        yield Conflict(path, _sized(needed), _sized(given))
        return
    places, wanted = given.schema.get("prefixItems", []), needed.schema.get("prefixItems", [])
    for index, (one, other) in enumerate(zip(places, wanted, strict=False)):
        yield from _conflicts(given.within(one), needed.within(other), f"{path}[{index}]", above)
    if not places and not wanted:
        one, other = given.within(given.schema.get("items", {})), needed.within(needed.schema.get("items", {}))
        yield from _conflicts(one, other, f"{path}[]", above)


def _sized(one: Typed) -> str:
    low, high = one.schema.get("minItems", 0), one.schema.get("maxItems")
    return f"a list of {low}" if low == high else f"a list of {low} to {high if high is not None else 'any number'}"


Finding = tuple[Location, str]


@dataclass(frozen=True)
class Payload:
    """What is known of a payload on its way.

    Attributes:
        schema: its JSON Schema; None if nothing is known.
        giver: what gave it, for people.
    """

    schema: Schema | None
    giver: str


def route_conflicts(
    mesh: MeshFile, types: Mapping[str, Types], schemas: Mapping[str, Schema], registry: Registry = PRODUCT
) -> Iterator[Finding]:
    """Yield each conflict once, at the place in the mesh file where the actors meet.

    Args:
        mesh: the mesh file.
        types: the types of actors by name; an actor without types is not known.
        schemas: the input schema of each tool.
        registry: the capabilities of the mesh.
    """
    return iter(dict.fromkeys(_Routes(mesh, types, registry).findings(schemas)))


class _Routes:
    def __init__(self, mesh: MeshFile, types: Mapping[str, Types], registry: Registry) -> None:
        self._mesh = mesh
        self._types = types
        self._registry = registry

    def findings(self, schemas: Mapping[str, Schema]) -> Iterator[Finding]:
        for name, tool in self._mesh.tools.items():
            place: Location = ("tools", name, "route")
            schema = schemas.get(name)
            has_fields = bool(schema and schema.get("properties"))
            arguments = Payload(closed(schema) if has_fields else schema, f"the input of tool {name!r}")
            yield from self._along(tool.route or (name,), arguments, place)
        for name, actor in self._mesh.actors.items():
            output = self._output(name)
            for index, target in enumerate(actor.can_send_to or ()):
                yield from self._meet(target, output, ("actors", name, "can_send_to", index))

    def _along(self, route: Sequence[str], payload: Payload, place: Location) -> Iterator[Finding]:
        """Yield the conflicts along a route, and along the routes that failed payloads take from its actors."""
        for index, actor in enumerate(route):
            yield from self._meet(actor, payload, (*place, index))
            section = self._mesh.actors.get(actor)
            policies = section.resiliency.policies if section else {}
            for policy, policy_section in policies.items():
                if policy_section.then_route and place[-1] != "then_route":
                    then_place: Location = ("actors", actor, "resiliency", "policies", policy, "then_route")
                    yield from self._along(policy_section.then_route, payload, then_place)
            payload = self._after(actor, payload)

    def _meet(self, actor: str, payload: Payload, place: Location) -> Iterator[Finding]:
        needed = self._types.get(actor, Types()).input
        if payload.schema is not None and needed is not None:
            for conflict in conflicts(typed(payload.schema), typed(needed)):
                yield place, conflict.text(repr(actor), payload.giver)

    def _after(self, actor: str, payload: Payload) -> Payload:
        section = self._mesh.actors.get(actor)
        if section is not None and section.kind == "pause":
            return _answered(payload, section.pause)
        return payload if passes_payloads(self._mesh, self._registry, actor) else self._output(actor)

    def _output(self, actor: str) -> Payload:
        return Payload(self._types.get(actor, Types()).output, repr(actor))


def passes_payloads(mesh: MeshFile, registry: Registry, actor: str) -> bool:
    """Whether an actor passes payloads on as they came."""
    section = mesh.actors.get(actor)
    kind = registry.actor_functions.get(section.kind or "") if section is not None else None
    return actor == names.CHECKPOINT or (kind is not None and kind.passes_payloads)


def _answered(payload: Payload, pause: Any) -> Payload:
    """What is known after a pause: the answers may have any type."""
    if payload.schema is None or pause is None or not pause.fields:
        return Payload(None, payload.giver)
    keys = [(field.payload_key or f"/{field.name}").strip("/").split("/")[0] for field in pause.fields]
    schema = typed(payload.schema).schema
    if not isinstance(schema, dict) or "properties" not in schema:
        return Payload(None, payload.giver)
    root = {key: value for key, value in payload.schema.items() if key == "$defs"}
    properties = {**schema["properties"], **{key: {} for key in keys}}
    return Payload({**root, **schema, "properties": properties}, payload.giver)
