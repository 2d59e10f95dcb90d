"""Reports why a message stays on its queue, if an operator has to mend it (`protocol §13`, problem)."""

from datetime import datetime

from msgspec.structs import replace

from asya.messaging.aws.outbox import SendRefusedError
from asya.messaging.hop import Hop
from asya.protocol import status
from asya.protocol.errors import TaskProblem
from asya.protocol.events import TaskEvent
from asya.protocol.times import format_time
from asya.reporting import reports
from asya.sidecar.lambdas.services import Services


def problem_report(last: TaskEvent, error: Exception, *, now: datetime) -> TaskEvent | None:
    """The report of the problem; None for an error that passes by itself.

    AWS's own text stays in the log: it names roles and accounts, and callers read this one.

    Args:
        last: the last progress report of the hop.
    """
    if not isinstance(error, SendRefusedError):
        return None
    message = f"the queue of {error.actor} ({error.queue}) refuses messages of {last.data.actor}: {error.code}"
    return reports.with_problem(last, TaskProblem(error.code, message), now=now)


def report_problem(services: Services, hop: Hop, error: Exception) -> None:
    """Report what keeps a hop from its end, unless it passes by itself or reporting is off."""
    url = services.callback(hop.envelope)
    if url is None or not isinstance(error, SendRefusedError):
        return
    moment = services.now()
    event = problem_report(reports.processing(_stamped(hop), now=moment), error, now=moment)
    if event is not None:
        services.progress.report(url, event)


def _stamped(hop: Hop) -> Hop:
    """The hop with a status: an envelope that came without one may be kept before its hop starts."""
    if hop.envelope.status is not None:
        return hop
    new = status.created(hop.actor, format_time(hop.arrival.sent_at))
    return replace(hop, envelope=replace(hop.envelope, status=new))
