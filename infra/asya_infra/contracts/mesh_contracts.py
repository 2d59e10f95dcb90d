"""The contracts of a mesh: what its actors and tools take and give, and who gets what from whom.

Templates keep them in their metadata.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from asya.registry import PRODUCT, Registry
from asya_infra.contracts.read import Schema, Types
from asya_infra.contracts.routes import passes_payloads
from asya_infra.mesh_file.mesh_model import MeshFile

# They tell people what a value means, and never which values are allowed.
_ANNOTATIONS = frozenset({"description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"})
# Their keys are names, and no keywords.
_BY_NAME = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_VALUES = frozenset({"enum", "const"})


@dataclass(frozen=True)
class ActorContract:
    """The contract of an actor.

    Attributes:
        input: the JSON Schema of its payloads; None if it is not known.
        output: that of its results.
        next: the actors that get its results.
    """

    input: Schema | None = None
    output: Schema | None = None
    next: tuple[str, ...] = ()


@dataclass(frozen=True)
class ToolContract:
    """The contract of a tool.

    Attributes:
        input: the JSON Schema of its arguments; None if it is not known.
        next: the actors that get the arguments.
        result: the actor that gives the result; None if it is not known.
    """

    input: Schema | None = None
    next: tuple[str, ...] = ()
    result: str | None = None


@dataclass(frozen=True)
class MeshContracts:
    """The contracts of a mesh by the names of actors and tools. Actors without types are left out."""

    actors: Mapping[str, ActorContract] = field(default_factory=dict)
    tools: Mapping[str, ToolContract] = field(default_factory=dict)


def contracts_of(
    mesh: MeshFile, types: Mapping[str, Types], schemas: Mapping[str, Schema], registry: Registry = PRODUCT
) -> MeshContracts:
    """Return the contracts of a mesh file.

    Args:
        mesh: the mesh file.
        types: the types of actors by name.
        schemas: the input schema of each tool.
        registry: the capabilities of the mesh.
    """
    takers: dict[_Giver, dict[str, None]] = {}
    results: dict[str, str | None] = {}
    for name, tool in mesh.tools.items():
        last = _follow(mesh, registry, tool.route or (name,), ("tool", name), takers)
        results[name] = last[1] if last is not None and last[0] == "actor" else None
    for name, actor in mesh.actors.items():
        for target in actor.can_send_to or ():
            takers.setdefault(("actor", name), {})[target] = None
    return MeshContracts(
        {
            name: ActorContract(_plain(each.input), _plain(each.output), tuple(takers.get(("actor", name), ())))
            for name, each in types.items()
            if each != Types()
        },
        {
            name: ToolContract(_plain(schemas.get(name)), tuple(takers.get(("tool", name), ())), results[name])
            for name in mesh.tools
        },
    )


_Giver = tuple[str, str]


def _follow(
    mesh: MeshFile,
    registry: Registry,
    route: Sequence[str],
    giver: _Giver | None,
    takers: dict[_Giver, dict[str, None]],
    *,
    fails: bool = True,
) -> _Giver | None:
    """Note who gets the payloads of whom along a route, and along those of failed payloads; return the last giver."""
    for actor in route:
        if giver is not None:
            takers.setdefault(giver, {})[actor] = None
        if fails:
            for then_route in _then_routes(mesh, actor):
                _follow(mesh, registry, then_route, giver, takers, fails=False)
        section = mesh.actors.get(actor)
        if passes_payloads(mesh, registry, actor):
            continue
        # The answers to a pause may set any field.
        giver = None if section is None or section.kind == "pause" else ("actor", actor)
    return giver


def _then_routes(mesh: MeshFile, actor: str) -> Iterator[Sequence[str]]:
    section = mesh.actors.get(actor)
    for policy in section.resiliency.policies.values() if section else ():
        if policy.then_route:
            yield policy.then_route


def _plain(schema: Schema | None) -> Schema | None:
    """A schema without what is for people only, so that a changed description is no change; None if nothing is left."""
    return (_without_annotations(schema) or None) if schema is not None else None


def _without_annotations(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_annotations(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
    if kept.get("type") != "object":
        kept.pop("title", None)
    return {
        key: value
        if key in _VALUES
        else {name: _without_annotations(each) for name, each in value.items()}
        if key in _BY_NAME and isinstance(value, dict)
        else _without_annotations(value)
        for key, value in kept.items()
    }


ACTOR = "asya:contract"
"""The key in the metadata of an actor's function."""
TOOLS = "asya:tools"
"""The key in the metadata of the function of the gateway's calls."""

LARGEST = 100_000
"""How many characters of schemas a template has at most: a tenth of what CloudFormation takes."""

_Record = dict[str, Any]


def actor_records(contracts: MeshContracts, actors: Iterable[str], largest: int = LARGEST) -> dict[str, str]:
    """Return the metadata of the actors of one template that have types. If it is too large, the largest are left out.

    Args:
        contracts: the contracts of the mesh.
        actors: the actors of the template.
        largest: the number of characters of all records.
    """
    texts = {
        name: _text({"actor": name, **asdict(contracts.actors[name])}) for name in actors if name in contracts.actors
    }
    fitting = _fitting(texts, largest)
    return {name: text for name, text in texts.items() if name in fitting}


def tools_record(contracts: MeshContracts, largest: int = LARGEST) -> str:
    """Return the metadata of the gateway. If it is too large, the tools with the largest schemas have none."""
    fitting = _fitting({name: _text(asdict(tool)) for name, tool in contracts.tools.items()}, largest)
    return _text(
        {name: asdict(tool if name in fitting else replace(tool, input=None)) for name, tool in contracts.tools.items()}
    )


def read_contracts(templates: Iterable[Mapping[str, Any]]) -> MeshContracts | None:
    """Read the contracts of the templates of a mesh; None if they have no record, as those of earlier versions."""
    metadata = [
        resource.get("Metadata", {}) for template in templates for resource in template.get("Resources", {}).values()
    ]
    tools = [json.loads(each[TOOLS]) for each in metadata if TOOLS in each]
    if not tools:
        return None
    actors = [json.loads(each[ACTOR]) for each in metadata if ACTOR in each]
    return MeshContracts(
        {each["actor"]: ActorContract(each.get("input"), each.get("output"), _next(each)) for each in actors},
        {
            name: ToolContract(each.get("input"), _next(each), each.get("result"))
            for record in tools
            for name, each in record.items()
        },
    )


def _next(record: _Record) -> tuple[str, ...]:
    return tuple(record.get("next", ()))


def _text(record: _Record) -> str:
    return json.dumps(record, separators=(",", ":"), sort_keys=True)


def _fitting(texts: Mapping[str, str], largest: int) -> set[str]:
    """The names of the texts that fit together, the shortest first."""
    fitting: set[str] = set()
    for name in sorted(texts, key=lambda name: (len(texts[name]), name)):
        largest -= len(texts[name])
        if largest < 0:
            break
        fitting.add(name)
    return fitting
