"""Upgrades actors of Asya's Kubernetes operator, and the legacy names and settings of x-sink and x-sump (`protocol §14`)."""

import math
from collections.abc import Iterator
from typing import Any

from asya.protocol import names
from asya_infra.mesh_file.legacy.draft import Draft, as_cores, as_flag, as_megabytes
from asya_infra.mesh_file.legacy.variables import ACCESS_KEYS, ACCESS_KEYS_REFUSED, SINK_VARIABLES, environment
from asya_infra.mesh_file.source import Location

# A function's CPU share grows with its memory; this much memory has one core.
MEGABYTES_PER_CORE = 1769
MIN_MEGABYTES, MAX_MEGABYTES = 128, 10_240

_NO_COUNTERPART = "has no counterpart in a mesh file; remove it"
_RUNTIME = "asya-runtime"
# Keys without a meaning for a function, whose code is the `code` folder.
_IGNORED_KEYS = frozenset({"kind", "name", "image", "imagePullPolicy"})


def upgrade_operator_settings(draft: Draft, section: Location) -> None:
    """Move an actor's legacy operator settings to current keys."""
    _transport(draft, section)
    _workload(draft, section)
    _scaling(draft, section)
    _resources(draft, section)


def _transport(draft: Draft, section: Location) -> None:
    transport = draft.pop((*section, "transport"))
    if transport not in (None, "sqs"):
        draft.add_problem((*section, "transport"), f"a mesh uses SQS, not {transport}; remove it")


def _workload(draft: Draft, section: Location) -> None:
    """Move the variables and resources of the handler's container to the actor."""
    place = (*section, "workload")
    workload = draft.pop(place)
    if workload is None:
        return
    at = place
    for key in ("template", "spec", "containers"):
        workload = _child(draft, workload, key, at)
        at = (*at, key)
        if workload is None:
            return
    for index, container in _runtimes(workload):
        for key, value in container.items():
            inside = (*at, index, key)
            if key in ("env", "resources"):
                _move(draft, (*section, key), value, inside)
            elif key not in _IGNORED_KEYS:
                draft.add_problem(inside, _NO_COUNTERPART)


def _child(draft: Draft, value: Any, key: str, place: Location) -> Any:
    """Return the value of a key; any other key without a meaning for a function is a problem."""
    if not isinstance(value, dict):
        draft.add_problem(place, _NO_COUNTERPART)
        return None
    for other in value.keys() - {key} - _IGNORED_KEYS:
        draft.add_problem((*place, other), _NO_COUNTERPART)
    return value.get(key)


def _runtimes(containers: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the containers with the name of the runtime, or else the first container."""
    candidates = [
        (index, container)
        for index, container in enumerate(containers if isinstance(containers, list) else [])
        if isinstance(container, dict)
    ]
    named = [(index, container) for index, container in candidates if container.get("name") == _RUNTIME]
    yield from named or candidates[:1]


def _move(draft: Draft, place: Location, value: Any, origin: Location) -> None:
    holder = draft.mapping(place[:-1])
    if holder is None:
        return
    if holder.get(str(place[-1])) is not None:
        draft.add_problem(origin, f"the actor has its own {place[-1]}; keep one of them")
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
            draft.add_problem(place, "a function always scales with its queue; limit it with maxReplicas instead")
    except ValueError as error:
        draft.add_problem(place, str(error))


def _resources(draft: Draft, section: Location) -> None:
    """Move the limits, or else the requests, to `memory`. CPU becomes the memory with the same share of a core."""
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
        megabytes = math.ceil(max(needed.values()))
        draft.put((*section, "memory"), min(max(megabytes, MIN_MEGABYTES), MAX_MEGABYTES), place)


LEGACY_NAMES = {"happy-end": names.SINK, "error-end": names.SUMP}
_CURRENT_NAMES = {name: name for name in names.END_ACTORS}
_STOCK_HANDLERS = {f"handlers.end_handlers.{which}_end_handler" for which in ("happy", "error")}
_ACTOR_KEYS = {"handler", "spark", "kind"}
# The legacy variables whose values are fixed for the crew.
_FIXED_VARIABLES = {"ASYA_HANDLER_MODE": "envelope", "ASYA_ENABLE_VALIDATION": False, "ASYA_IS_END_ACTOR": True}


def upgrade_crew(draft: Draft) -> None:
    """Move the settings under legacy names, or among the actors, to `crew`, `sink` and `storage`."""
    for name, actor in LEGACY_NAMES.items():
        _upgrade(draft, (name,), actor)
    for name, actor in (LEGACY_NAMES | _CURRENT_NAMES).items():
        _upgrade(draft, ("actors", name), actor)


def _upgrade(draft: Draft, section: Location, actor: str) -> None:
    values = draft.mapping(section)
    if values is None or not _ACTOR_KEYS.isdisjoint(values):
        return  # an actor with a reserved name, which the checks of names report
    upgrade_operator_settings(draft, section)
    for name, value in environment(draft, section).items():
        _variable(draft, value, (*section, "env", name), actor)
    settings = draft.pop(section)
    settings.pop("env", None)
    batch = settings.pop("batch", None)
    if isinstance(batch, dict):
        settings |= {"batch_size" if key == "size" else key: value for key, value in batch.items()}
    for key, value in settings.items():
        origin = (*section, "batch", "size") if key == "batch_size" else (*section, key)
        draft.put(("crew", actor, key), value, origin)


def _variable(draft: Draft, value: Any, place: Location, actor: str) -> None:
    name = str(place[-1])
    if name in SINK_VARIABLES:
        draft.put(SINK_VARIABLES[name], value, place)
    elif name == "ASYA_S3_ENDPOINT":
        draft.put(("sink", "endpoint"), value, place)
    elif name in ACCESS_KEYS:
        draft.add_problem(place, ACCESS_KEYS_REFUSED)
    elif name in _FIXED_VARIABLES:
        if _flag_or_value(value) != _FIXED_VARIABLES[name]:
            draft.add_problem(place, f"{actor} always has {str(_FIXED_VARIABLES[name]).lower()}; remove it")
    elif name == "ASYA_HANDLER":
        if value not in _STOCK_HANDLERS:
            draft.add_problem(place, f"{actor} has its own handler; add an actor with yours to sink.hooks")
    else:
        draft.add_problem(place, f"{actor} has no such variable; remove it")


def _flag_or_value(value: Any) -> Any:
    try:
        return as_flag(value)
    except ValueError:
        return value
