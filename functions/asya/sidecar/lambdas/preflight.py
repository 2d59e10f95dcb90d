"""Registers new tasks and asks for task states before the handlers of a batch run (`protocol §5.4`)."""

from collections import defaultdict
from collections.abc import Sequence

from asya.messaging.aws.receipt import Receipt
from asya.messaging.hop import Hop
from asya.protocol.events import StateQuery, TaskState
from asya.reporting import reports
from asya.reporting.aws.gateway_client import GatewayError
from asya.sidecar.lambdas.services import Services


def register(services: Services, hops: Sequence[Hop]) -> set[str]:
    """Register the tasks of envelopes that came without a status, with one call per endpoint.

    Returns:
        The ids of the messages whose task could not be registered; these messages stay on the queue.
    """
    receipts: list[tuple[Hop, Receipt]] = []
    for hop in hops:
        url = services.callback(hop.envelope)
        if hop.needs_registration and url is not None:
            receipts.append((hop, services.required_reports.report(url, reports.registered(hop, now=services.now()))))
    services.required_reports.flush()
    failed = [(hop, receipt.error) for hop, receipt in receipts if receipt.error is not None]
    for hop, error in failed:
        services.telemetry.log.warning("task not registered", envelope_id=hop.envelope.id, problem=str(error))
    return {hop.arrival.message_id for hop, _ in failed}


def task_states(services: Services, hops: Sequence[Hop]) -> dict[str, TaskState]:
    """The states of the hops' tasks and roots by envelope id; states that do not arrive within a second are left out."""
    by_url: dict[str, list[StateQuery]] = defaultdict(list)
    for hop in hops:
        url = services.callback(hop.envelope)
        # A task that is registered just now cannot be canceled or paused; a redelivery registers it once more.
        is_new = hop.needs_registration and hop.arrival.receive_count == 1
        if url is not None and not is_new:
            by_url[url].append(StateQuery(id=hop.envelope.id, root_id=hop.envelope.root_id))
    states: dict[str, TaskState] = {}
    for url, queries in by_url.items():
        try:
            states |= {state.id: state for state in services.gateway.states(url, queries)}
        except GatewayError as error:
            services.telemetry.log.warning("pre-flight failed; the hops proceed", problem=str(error))
    return states
