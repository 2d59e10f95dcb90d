"""Registers new tasks and asks for task states before the handlers of a batch run (`protocol §5.4`)."""

from collections.abc import Sequence

from asya.messaging.aws.receipt import Receipt
from asya.messaging.hop import Hop
from asya.reporting import reports
from asya.sidecar.lambdas.services import Services
from asya.tasks.task_state import StateQuery, TaskState


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


def task_states(services: Services, hops: Sequence[Hop]) -> dict[str, TaskState]:
    """The states of the hops' tasks and roots by envelope id; states that do not arrive in time are left out.

    Tasks of another gateway have no record here.
    """
    # A task that is registered just now cannot be canceled or paused; a redelivery registers it once more.
    asked = (hop for hop in hops if not (hop.needs_registration and hop.arrival.receive_count == 1))
    queries = [
        StateQuery(id=hop.envelope.id, root_id=hop.envelope.root_id)
        for hop in asked
        if services.records_task(hop.envelope)
    ]
    return services.state_queries.ask(queries, services.now())
