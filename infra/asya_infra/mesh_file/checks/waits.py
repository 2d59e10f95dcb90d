"""Checks how long wait actors hold envelopes (`protocol §11`)."""

from collections.abc import Iterator

from asya.capabilities.pauses.limits import longest_wait
from asya.protocol.json_pointer import check_pointer
from asya.protocol.mesh_table import Retention
from asya.protocol.wait import Wait
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.source import Location
from asya_infra.mesh_file.units import format_duration


def check_waits(context: Context) -> Iterator[Finding]:
    """Check each wait actor: one time, a valid pointer, and no wait that outlives the record of its task."""
    kept = context.mesh.storage.retention
    longest = longest_wait(Retention(tasks=kept.tasks, payloads=kept.payloads)).total_seconds()
    for name, actor in context.mesh.actors.items():
        place: Location = ("actors", name)
        if actor.wait is not None:
            yield from _findings(actor.wait, (*place, "wait"), longest)
        elif actor.kind == "wait":
            yield place, "a wait actor (kind: wait) needs wait, such as wait: {for: 3d}"


def _findings(wait: Wait, place: Location, longest: float) -> Iterator[Finding]:
    if (wait.seconds is None) == (wait.until is None):
        yield place, "needs either for (a duration) or until (a JSON pointer into the payload)"
    if wait.until is not None:
        try:
            check_pointer(wait.until)
        except ValueError as error:
            yield (*place, "until"), str(error)
    if wait.seconds is not None and wait.seconds > longest:
        wanted, limit = format_duration(wait.seconds), format_duration(longest)
        yield (
            (*place, "for"),
            f"is {wanted}; this mesh holds an envelope for {limit} at most: make storage.retention.tasks and "
            "storage.retention.payloads longer, or the wait shorter",
        )
