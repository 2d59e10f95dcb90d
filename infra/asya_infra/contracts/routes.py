"""Follows the payload along the routes of a mesh file, and finds the actors that it cannot fit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asya.protocol import names
from asya_infra.contracts.conflicts import conflicts
from asya_infra.contracts.read import Schema, Types
from asya_infra.contracts.schemas import closed, typed
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.source import Location

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


def route_conflicts(mesh: MeshFile, types: Mapping[str, Types], schemas: Mapping[str, Schema]) -> Iterator[Finding]:
    """Yield each conflict once, at the place in the mesh file where the actors meet.

    Args:
        mesh: the mesh file.
        types: the types of actors by name; an actor without types is not known.
        schemas: the input schema of each tool.
    """
    return iter(dict.fromkeys(_Routes(mesh, types).findings(schemas)))


class _Routes:
    def __init__(self, mesh: MeshFile, types: Mapping[str, Types]) -> None:
        self._mesh = mesh
        self._types = types

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
        passes_on = actor == names.CHECKPOINT or (section is not None and section.kind == "wait")
        return payload if passes_on else self._output(actor)

    def _output(self, actor: str) -> Payload:
        return Payload(self._types.get(actor, Types()).output, repr(actor))


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
