"""Reports why a message stays on its queue, if an operator has to mend it (`protocol §13`, problem)."""

from datetime import datetime

from asya.messaging.aws.outbox import SendRefusedError
from asya.messaging.hop import Hop
from asya.protocol.errors import TaskProblem
from asya.protocol.events import TaskEvent
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
    moment = services.now()
    event = problem_report(reports.processing(hop, now=moment), error, now=moment)
    url = services.callback(hop.envelope)
    if event is not None and url is not None:
        services.progress.report(url, event)
