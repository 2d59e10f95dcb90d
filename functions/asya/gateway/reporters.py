"""Whose reports count: those of the mesh, each about the actor that sent it (`protocol §5`, reports)."""

from asya.protocol import names
from asya.protocol.events import PartialEvent, Report

NO_ROLE = "the sender is no role of the mesh"


def sender_problem(function: str | None, report: Report, queue: str) -> str | None:
    """Why a report of this sender does not count; None if it does.

    The code of users shares a role with its sidecar, so an actor reports about itself alone. The system functions have no code of
    users and report about any actor, as the end actors do on the queue that IAM opens to the crew alone.

    Args:
        function: the function of the role that sent the message; None for any other sender.
        report: the report.
        queue: the name of the queue in the mesh.
    """
    if function is None:
        return NO_ROLE
    if queue == names.ENDS or function in names.SYSTEM_FUNCTIONS:
        return None
    actor = report.actor if isinstance(report, PartialEvent) else report.data.actor
    return None if actor == function else f"{function} may not report about {actor or 'no actor'}"
