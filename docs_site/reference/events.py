"""The page of all events: reports about tasks, entries of timelines, and the log entries of functions and drivers."""

import ast
import inspect
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from asya.protocol.events import EventData, PartialEvent, TaskEvent
from asya.protocol.run_progress import RunNote, StageNote
from asya.tasks.listing import TimelineEntry
from docs_site.reference.metrics import UnreadableCallError
from docs_site.reference.source import calls, modules, passed_texts, texts
from docs_site.reference.tables import code, default_of, limits_of, table, type_of

INTRODUCTION = """\
# Events and logs

What a mesh tells about itself while it runs: events about tasks, which streams and timelines show, and log entries, which
`asya logs` and CloudWatch show.

## Events about tasks

[Section 13 of the protocol](../../protocol.md#reports) says who makes which event, and when.
"""
LOGS = """\
## Log entries of functions

A log entry is one line of JSON. Each has `level`, `message`, `timestamp`, `service`, `namespace` and `actor`; the table names
the further fields. An entry of level `EXCEPTION` has level `ERROR` in the log, with the stack trace.
"""
LINES = """\
## Lines of drivers

The driver of a job run writes these lines to its log, beside those of Spark.
"""
_LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
_PREFIX = "asya_spark: "
_TYPES = (TaskEvent, EventData, PartialEvent, TimelineEntry, RunNote, StageNote)


@dataclass(frozen=True, order=True)
class LogEntry:
    """A log entry, as a call in the source writes it; expressions in its message are in braces."""

    source: str
    message: str
    level: str
    fields: tuple[str, ...] = ()


@cache
def log_entries() -> tuple[LogEntry, ...]:
    """Return the entries that functions write, sorted by source and message.

    Raises:
        UnreadableCallError: the source does not tell the message of a call.
    """
    found: set[LogEntry] = set()
    for path, tree in modules():
        for call in calls(tree):
            if not _writes_log(call):
                continue
            messages = texts(call.args[0], tree) or passed_texts(call, tree)
            if not messages:
                raise UnreadableCallError(f"{path}:{call.lineno}: name the message in this call")
            level = call.func.attr.upper() if isinstance(call.func, ast.Attribute) else ""
            fields = tuple(each.arg for each in call.keywords if each.arg and each.arg != "exc_info")
            found |= {LogEntry(path, message, level, fields) for message in messages}
    return tuple(sorted(found))


def driver_lines() -> list[LogEntry]:
    """Return the lines that drivers print, sorted by source and text."""
    found = {
        LogEntry(path, text.removeprefix(_PREFIX), "")
        for path, tree in modules()
        for call in calls(tree)
        if isinstance(call.func, ast.Name) and call.func.id == "print" and call.args
        for text in texts(call.args[0], tree)
        if text.startswith(_PREFIX)
    }
    return sorted(found)


def _writes_log(call: ast.Call) -> bool:
    function = call.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr in _LEVELS
        and ast.unparse(function.value).rpartition(".")[2] in ("log", "logger", "_log")
        and bool(call.args)
    )


def page() -> str:
    """Write the page."""
    _, schemas = msgspec.json.schema_components(_TYPES, schema_hook=_any_json, ref_template="#/$defs/{name}")
    lines = [INTRODUCTION]
    for kind in _TYPES:
        lines += _type(kind, schemas[kind.__name__], {each.__name__ for each in _TYPES})
    entries = ((code(e.message), e.level, ", ".join(map(code, e.fields)), code(e.source)) for e in log_entries())
    lines += [LOGS, *table(("message", "level", "further fields", "written in"), entries)]
    lines += [LINES, *table(("line", "written in"), ((code(e.message), code(e.source)) for e in driver_lines()))]
    return "\n".join(lines)


def _any_json(kind: type) -> dict[str, Any]:
    return {"not": {}} if kind is msgspec.UnsetType else {"description": "any JSON"}


def _type(kind: type, schema: dict[str, Any], linked: set[str]) -> list[str]:
    text = inspect.cleandoc(kind.__doc__ or "")
    summary, _, attributes = text.partition("\nAttributes:\n")
    lines = [f"### {kind.__name__}", "", summary.strip(), ""]
    required = schema.get("required", [])
    rows = (
        (
            code(key),
            type_of(value, links=_refers_to(value, linked)),
            default_of(value, required=key in required),
            limits_of(value),
        )
        for key, value in schema["properties"].items()
    )
    lines += table(("field", "type", "default", "limits"), rows)
    return [*lines, *(f"- {line.strip()}" for line in attributes.splitlines() if line.strip()), ""]


def _refers_to(schema: dict[str, Any], names: set[str]) -> bool:
    text = str(schema)
    return any(f"/{name}'" in text for name in names)
