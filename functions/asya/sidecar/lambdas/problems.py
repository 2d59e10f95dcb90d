"""Reports why a message stays on its queue, if an operator has to mend it (`protocol §13`, problem)."""

from datetime import datetime

from msgspec.structs import replace

from asya.function.aws.outbox import SendRefusedError
from asya.protocol import status
from asya.protocol.envelope import Envelope
from asya.protocol.errors import TaskProblem
from asya.protocol.events import TaskEvent
from asya.protocol.times import format_time
from asya.sidecar.lambdas.services import Services
from asya.tasks.reporting import reports


def problem_report(last: TaskEvent, error: Exception, *, now: datetime) -> TaskEvent | None:
    """The report of the problem; None for an error that passes by itself.

    Of AWS's own text it has the kind of the policy alone: the text names roles and accounts, and callers read this one.

    Args:
        last: the last progress report of the hop.
    """
    if not isinstance(error, SendRefusedError):
        return None
    message = f"the queue of {error.actor} ({error.queue}) refuses messages of {last.data.actor}: {error.code}"
    if error.reason:
        message += f", {error.reason}"
    return reports.with_problem(last, TaskProblem(error.code, message), now=now)


def report_problem(
    services: Services, envelope: Envelope, error: Exception, *, sent_at: datetime, last: TaskEvent | None = None
) -> None:
    """Report what keeps an envelope on the queue of this function, unless it passes by itself or reporting is off.

    Args:
        sent_at: the time of the envelope's message.
        last: the last progress report; None if this function made none.
    """
    url = services.report_url(envelope)
    if url is None or not isinstance(error, SendRefusedError):
        return
    moment, actor = services.now(), services.settings.actor
    last = last or reports.at_work(_stamped(envelope, actor, sent_at), actor, now=moment)
    event = problem_report(last, error, now=moment)
    if event is not None:
        services.progress.report(url, event)


def _stamped(envelope: Envelope, actor: str, sent_at: datetime) -> Envelope:
    """The envelope with a status: one that came without may be kept before its hop starts."""
    if envelope.status is not None:
        return envelope
    return replace(envelope, status=status.created(actor, format_time(sent_at)))
