"""Reports why a message stays on its queue, if an operator has to mend it (`protocol §13`, problem)."""

from datetime import datetime

from asya.messaging.aws.outbox import SendRefusedError
from asya.protocol.errors import TaskProblem
from asya.protocol.events import TaskEvent
from asya.reporting import reports


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
