"""What the operator of the older generations was told about an actor: replicas, queue length, CPU and memory (`protocol §14`)."""

import math
from collections.abc import Iterator
from typing import Any

from asya_infra.mesh_file.legacy.draft import Draft
from asya_infra.mesh_file.legacy.values import as_cores, as_flag, as_megabytes
from asya_infra.mesh_file.source import Location

OPERATOR_KEYS = ("transport", "workload", "scaling", "resources")
# Lambda's share of a processor grows with the memory: one whole at this many megabytes.
MEGABYTES_PER_CORE = 1769
LEAST_MEGABYTES, MOST_MEGABYTES = 128, 10_240

_NO_COUNTERPART = "has no counterpart in a mesh file; leave it out"
_RUNTIME = "asya-runtime"
# What says nothing that a function needs to know: its code is the `code` folder.
_OF_NO_MEANING = frozenset({"kind", "name", "image", "imagePullPolicy"})


def upgrade_operator_settings(draft: Draft, section: Location) -> None:
    """Put an actor's older settings where they stand today."""
    _transport(draft, section)
    _workload(draft, section)
    _scaling(draft, section)
    _resources(draft, section)


def _transport(draft: Draft, section: Location) -> None:
    transport = draft.pop((*section, "transport"))
    if transport not in (None, "sqs"):
        draft.add_problem((*section, "transport"), f"the queues of a mesh are SQS, not {transport}; leave it out")


def _workload(draft: Draft, section: Location) -> None:
    """The runtime's container: its variables and resources are the actor's."""
    place = (*section, "workload")
    workload = draft.pop(place)
    if workload is None:
        return
    at = place
    for key in ("template", "spec", "containers"):
        workload = _below(draft, workload, key, at)
        at = (*at, key)
        if workload is None:
            return
    for index, container in _runtimes(workload):
        for key, value in container.items():
            inside = (*at, index, key)
            if key in ("env", "resources"):
                _adopt(draft, (*section, key), value, inside)
            elif key not in _OF_NO_MEANING:
                draft.add_problem(inside, _NO_COUNTERPART)


def _below(draft: Draft, value: Any, key: str, place: Location) -> Any:
    if not isinstance(value, dict):
        draft.add_problem(place, _NO_COUNTERPART)
        return None
    for other in value.keys() - {key} - _OF_NO_MEANING:
        draft.add_problem((*place, other), _NO_COUNTERPART)
    return value.get(key)


def _runtimes(containers: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """The container of the handler: the one of that name, or the only one."""
    found = [
        (index, one)
        for index, one in enumerate(containers if isinstance(containers, list) else [])
        if isinstance(one, dict)
    ]
    named = [(index, one) for index, one in found if one.get("name") == _RUNTIME]
    yield from named or found[:1]


def _adopt(draft: Draft, place: Location, value: Any, origin: Location) -> None:
    holder = draft.mapping(place[:-1])
    if holder is None:
        return
    if holder.get(str(place[-1])) is not None:
        draft.add_problem(origin, f"stands beside {place[-1]} of the actor itself; keep one")
        return
    holder[str(place[-1])] = value
    for inner in _places(value):
        draft.record_origin((*place, *inner), (*origin, *inner))


def _places(value: Any) -> Iterator[Location]:
    yield ()
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        for inner in _places(item):
            yield (key, *inner)


def _scaling(draft: Draft, section: Location) -> None:
    place = (*section, "scaling")
    scaling = draft.pop(place)
    if scaling is None:
        return
    if not isinstance(scaling, dict):
        draft.add_problem(place, "should be a mapping of minReplicas, maxReplicas and queueLength")
        return
    for key, value in scaling.items():
        at = (*place, key)
        match key:
            case "minReplicas" if value == 0:
                pass
            case "minReplicas":
                draft.put((*section, "provisioned"), value, at)
            case "maxReplicas":
                draft.put((*section, "concurrency"), value, at)
            case "queueLength":
                draft.put((*section, "batch", "size"), value, at)
            case "enabled":
                _scaling_enabled(draft, value, at)
            case _:
                draft.add_problem(at, _NO_COUNTERPART)


def _scaling_enabled(draft: Draft, value: Any, place: Location) -> None:
    try:
        if not as_flag(value):
            draft.add_problem(place, "functions always follow their queue; bound them with maxReplicas instead")
    except ValueError as error:
        draft.add_problem(place, str(error))


def _resources(draft: Draft, section: Location) -> None:
    """Limits count, else requests; CPU asks for as much memory as Lambda gives it for."""
    place = (*section, "resources")
    resources = draft.pop(place)
    if resources is None:
        return
    needed: dict[str, float] = {}
    for name in ("requests", "limits"):
        amounts = resources.get(name) if isinstance(resources, dict) else None
        for key, value in (amounts if isinstance(amounts, dict) else {}).items():
            try:
                needed[key] = as_cores(value) * MEGABYTES_PER_CORE if key == "cpu" else as_megabytes(value)
            except ValueError as error:
                draft.add_problem((*place, name, key), str(error))
    if not isinstance(resources, dict) or set(resources) - {"requests", "limits"} or set(needed) - {"cpu", "memory"}:
        draft.add_problem(place, "should be requests and limits of cpu and memory")
    elif needed:
        most = math.ceil(max(needed.values()))
        draft.put((*section, "memory"), min(max(most, LEAST_MEGABYTES), MOST_MEGABYTES), place)
