"""Writes contracts into the metadata of templates, and reads them back.

The metadata is of resources, not of the template: CloudFormation updates it also if nothing else changes. It is text, because
a field such as `Ref` would be an intrinsic function.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from asya_infra.contracts.mesh_contracts import ActorContract, MeshContracts, ToolContract

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
