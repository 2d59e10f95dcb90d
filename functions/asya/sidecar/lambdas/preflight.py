"""Registers new tasks and asks for task states before the handlers of a batch run (`protocol §5.4`)."""

from collections.abc import Iterable, Sequence

from asya.function.aws.receipt import Receipt
from asya.function.hop import Hop
from asya.sidecar.lambdas.services import Services
from asya.tasks.reporting import reports
from asya.tasks.task_state import StateQuery, TaskState

FRESH_SECONDS = 5.0
"""A state that was read longer ago is read again before a hop starts."""


def register(services: Services, hops: Sequence[Hop]) -> dict[str, Receipt]:
    """Report the tasks of envelopes that came without a status.

    The reports leave with the progress of the batch. A message is kept if its registration is not accepted.

    Returns:
        the receipts by message id.
    """
    receipts: dict[str, Receipt] = {}
    for hop in hops:
        url = services.callback(hop.envelope)
        if hop.needs_registration and url is not None:
            event = reports.registered(hop, now=services.now())
            receipts[hop.arrival.message_id] = services.required_reports.report(url, event)
    return receipts


def task_states(services: Services, hops: Iterable[Hop]) -> dict[str, TaskState]:
    """The states of the hops' tasks and roots by envelope id; states that do not arrive in time are left out.

    Tasks of another gateway have no record here.
    """
    queries = [
        StateQuery(id=hop.envelope.id, root_id=hop.envelope.root_id)
        for hop in hops
        if services.records_task(hop.envelope)
    ]
    return services.state_queries.ask(queries, services.now())


class BatchStates:
    """The states of a batch's tasks: read with one call, and once more for what is left whenever they are too old.

    Args:
        hops: the batch; empty if its actor asks for no states.
    """

    def __init__(self, services: Services, hops: Iterable[Hop]) -> None:
        self._services = services
        self._left = {hop.arrival.message_id: hop for hop in hops}
        self._states: dict[str, TaskState] = {}
        # A task that is registered just now cannot be canceled or paused yet; a redelivery registers it once more.
        self._read(
            hop for hop in self._left.values() if not (hop.needs_registration and hop.arrival.receive_count == 1)
        )

    def at_start(self, hop: Hop) -> TaskState | None:
        """The state of a hop's task as it starts; None if it is unknown."""
        is_old = self._services.environment.monotonic() - self._read_at > FRESH_SECONDS
        if is_old and hop.arrival.message_id in self._left:
            self._read(self._left.values())
        self._left.pop(hop.arrival.message_id, None)
        return self.last_read(hop)

    def last_read(self, hop: Hop) -> TaskState | None:
        """The state that was read last; None if it is unknown."""
        return self._states.get(hop.envelope.id)

    def _read(self, hops: Iterable[Hop]) -> None:
        """Read states; one that the table does not give now stays as it was read before."""
        self._read_at = self._services.environment.monotonic()
        self._states |= task_states(self._services, hops)
