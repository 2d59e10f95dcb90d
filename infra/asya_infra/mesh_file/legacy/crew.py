"""Upgrades the legacy names and settings of x-sink and x-sump: `happy-end` and `error-end` (`protocol §14`)."""

from typing import Any

from asya.protocol import names
from asya_infra.mesh_file.legacy.draft import Draft
from asya_infra.mesh_file.legacy.operator import upgrade_operator_settings
from asya_infra.mesh_file.legacy.values import as_flag
from asya_infra.mesh_file.legacy.variables import ACCESS_KEYS, ACCESS_KEYS_REFUSED, SINK_VARIABLES, environment
from asya_infra.mesh_file.source import Location

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
