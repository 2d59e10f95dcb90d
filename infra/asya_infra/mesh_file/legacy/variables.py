"""Settings that once were environment variables of an actor (`protocol §14`)."""

from collections.abc import Callable
from typing import Any

from asya.protocol.mesh_table import Actor
from asya_infra.mesh_file.legacy.draft import Draft
from asya_infra.mesh_file.legacy.values import as_duration, as_flag
from asya_infra.mesh_file.source import Location
from asya_infra.mesh_file.units import parse_duration

S3_ENDPOINT = "AWS_ENDPOINT_URL_S3"  # of the AWS SDKs
ACCESS_KEYS_REFUSED = "is not taken: functions have roles instead of keys"
# Of the whole mesh: where x-sink writes.
SINK_VARIABLES: dict[str, Location] = {
    "ASYA_S3_BUCKET": ("storage", "results_bucket"),
    "ASYA_S3_RESULTS_PREFIX": ("sink", "prefixes", "succeeded"),
    "ASYA_S3_ERRORS_PREFIX": ("sink", "prefixes", "failed"),
}
KEYS = ("ASYA_S3_ACCESS_KEY", "ASYA_S3_SECRET_KEY")
# A user's own end actor keeps these: its handler writes for itself.
END_ACTOR_VARIABLES = (*SINK_VARIABLES, "ASYA_S3_ENDPOINT")


def handler_variables(actor: Actor) -> dict[str, str]:
    """What handlers of whole envelopes look for in their environment when they are imported."""
    if actor.handler_mode == "payload":
        return {}
    return {
        "ASYA_HANDLER": actor.handler or "",
        "ASYA_HANDLER_MODE": "envelope",
        "ASYA_ENABLE_VALIDATION": str(actor.validate).lower(),
        "ASYA_IS_END_ACTOR": str(actor.kind == "end").lower(),
    }


def environment(draft: Draft, section: Location) -> dict[str, Any]:
    """The variables of a section; a list of names and values, as Kubernetes has them, becomes a mapping."""
    holder = draft.mapping(section)
    found = None if holder is None else holder.get("env")
    if isinstance(found, list) and holder is not None:
        holder["env"] = _as_mapping(draft, (*section, "env"), found)
    return draft.mapping((*section, "env")) or {}


def upgrade_variables(draft: Draft, section: Location) -> None:
    """Put the older variables of an actor, or of `defaults`, where their settings stand today."""
    variables = environment(draft, section)
    for name in [name for name in variables if name in _SETTINGS]:
        place = (*section, "env", name)
        try:
            _SETTINGS[name](draft, section, variables.pop(name), place)
        except ValueError as error:
            draft.add_problem(place, str(error))
    is_end = (draft.mapping(section) or {}).get("kind") == "end"
    for name in [name for name in variables if name in (*END_ACTOR_VARIABLES, *KEYS)]:
        place = (*section, "env", name)
        if name in KEYS:
            del variables[name]
            draft.add_problem(place, f"{ACCESS_KEYS_REFUSED}; name what it may reach under access")
        elif name == "ASYA_S3_ENDPOINT":
            draft.put((*section, "env", S3_ENDPOINT), variables[name], place)
        elif not is_end:
            draft.put(SINK_VARIABLES[name], variables[name], place)
        if not is_end:
            variables.pop(name, None)


def _as_mapping(draft: Draft, place: Location, entries: list[Any]) -> dict[str, Any]:
    variables: dict[str, Any] = {}
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict) or set(entry) != {"name", "value"}:
            draft.add_problem((*place, index), "should have a name and a value; a secret is named under access instead")
        elif entry["name"] in variables:
            draft.add_problem((*place, index), f"{entry['name']} stands here twice")
        else:
            variables[entry["name"]] = entry["value"]
            draft.record_origin((*place, entry["name"]), (*place, index))
    return variables


def _handler(draft: Draft, section: Location, value: Any, place: Location) -> None:
    draft.put((*section, "handler"), value, place)


def _mode(draft: Draft, section: Location, value: Any, place: Location) -> None:
    # The older variable knows one envelope mode; which of today's two is meant, `handler_mode` may say.
    said = (draft.mapping(section) or {}).get("handler_mode")
    if not (value == "envelope" and said == "envelope-v1"):
        draft.put((*section, "handler_mode"), value, place)


def _is_end(draft: Draft, section: Location, value: Any, place: Location) -> None:
    if as_flag(value):
        draft.put((*section, "kind"), "end", place)
    elif (draft.mapping(section) or {}).get("kind") == "end":
        draft.add_problem(place, "says false, and kind says end; keep one")


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
