"""Upgrades legacy environment variables of an actor to settings (`protocol §14`)."""

from collections.abc import Callable
from typing import Any

from asya.protocol.mesh_table import Actor
from asya_infra.mesh_file.forms import parse_duration
from asya_infra.mesh_file.legacy.draft import Draft, as_duration, as_flag
from asya_infra.mesh_file.source import Location

S3_ENDPOINT = "AWS_ENDPOINT_URL_S3"  # a variable of the AWS SDKs
ACCESS_KEYS_REFUSED = "is refused: functions have roles instead of access keys"
# The variables of the sink, with their current locations.
SINK_VARIABLES: dict[str, Location] = {
    "ASYA_S3_BUCKET": ("storage", "results_bucket"),
    "ASYA_S3_RESULTS_PREFIX": ("sink", "prefixes", "succeeded"),
    "ASYA_S3_ERRORS_PREFIX": ("sink", "prefixes", "failed"),
}
ACCESS_KEYS = ("ASYA_S3_ACCESS_KEY", "ASYA_S3_SECRET_KEY")
# The variables that stay in the environment of a user's end actor, whose handler writes to S3 itself.
END_ACTOR_VARIABLES = (*SINK_VARIABLES, "ASYA_S3_ENDPOINT")


def handler_variables(actor: Actor) -> dict[str, str]:
    """Return the legacy variables that handlers of whole envelopes read at import."""
    if actor.handler_mode == "payload":
        return {}
    return {
        "ASYA_HANDLER": actor.handler or "",
        "ASYA_HANDLER_MODE": "envelope",
        "ASYA_ENABLE_VALIDATION": str(actor.validate).lower(),
        "ASYA_IS_END_ACTOR": str(actor.kind == "end").lower(),
    }


def environment(draft: Draft, section: Location) -> dict[str, Any]:
    """Return the variables of a section. A list of names and values, the form of Kubernetes, becomes a mapping."""
    holder = draft.mapping(section)
    variables = None if holder is None else holder.get("env")
    if isinstance(variables, list) and holder is not None:
        holder["env"] = _as_mapping(draft, (*section, "env"), variables)
    return draft.mapping((*section, "env")) or {}


def upgrade_variables(draft: Draft, section: Location) -> None:
    """Move the legacy variables of an actor, or of `defaults`, to current settings."""
    variables = environment(draft, section)
    for name in [name for name in variables if name in _SETTINGS]:
        place = (*section, "env", name)
        try:
            _SETTINGS[name](draft, section, variables.pop(name), place)
        except ValueError as error:
            draft.add_problem(place, str(error))
    is_end = (draft.mapping(section) or {}).get("kind") == "end"
    for name in [name for name in variables if name in (*END_ACTOR_VARIABLES, *ACCESS_KEYS)]:
        place = (*section, "env", name)
        if name in ACCESS_KEYS:
            del variables[name]
            draft.add_problem(place, f"{ACCESS_KEYS_REFUSED}; grant access under the key access")
        elif name == "ASYA_S3_ENDPOINT":
            draft.put((*section, "env", S3_ENDPOINT), variables[name], place)
        elif not is_end:
            draft.put(SINK_VARIABLES[name], variables[name], place)
        if not is_end:
            variables.pop(name, None)


def _as_mapping(draft: Draft, place: Location, entries: list[Any]) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict) or set(entry) != {"name", "value"} or not isinstance(entry["name"], str):
            draft.add_problem(
                (*place, index), "should have a name and a value; grant a secret under the key access instead"
            )
        elif entry["name"] in variables:
            draft.add_problem((*place, index), f"{entry['name']} is set twice; keep one of them")
        else:
            variables[entry["name"]] = entry["value"]
            draft.record_origin((*place, entry["name"]), (*place, index, "value"))
    return variables


def _handler(draft: Draft, section: Location, value: Any, place: Location) -> None:
    draft.put((*section, "handler"), value, place)


def _mode(draft: Draft, section: Location, value: Any, place: Location) -> None:
    # The legacy variable has one envelope mode. The key `handler_mode` may select one of the current two.
    mode = (draft.mapping(section) or {}).get("handler_mode")
    if not (value == "envelope" and mode == "envelope-v1"):
        draft.put((*section, "handler_mode"), value, place)


def _is_end(draft: Draft, section: Location, value: Any, place: Location) -> None:
    if as_flag(value):
        draft.put((*section, "kind"), "end", place)
    elif (draft.mapping(section) or {}).get("kind") == "end":
        draft.add_problem(place, "is false, but kind is end; keep one of them")


def _validation(draft: Draft, section: Location, value: Any, place: Location) -> None:
    draft.put((*section, "validate"), as_flag(value), place)


def _timeout(draft: Draft, section: Location, value: Any, place: Location) -> None:
    draft.put((*section, "timeout"), as_duration(value), place, normal=_seconds)


def _seconds(duration: Any) -> Any:
    try:
        return parse_duration(duration)
    except ValueError:
        return duration


_SETTINGS: dict[str, Callable[[Draft, Location, Any, Location], None]] = {
    "ASYA_HANDLER": _handler,
    "ASYA_HANDLER_MODE": _mode,
    "ASYA_IS_END_ACTOR": _is_end,
    "ASYA_ENABLE_VALIDATION": _validation,
    "ASYA_RUNTIME_TIMEOUT": _timeout,
}
