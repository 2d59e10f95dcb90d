"""Before the handlers of a batch run: register what is new, and learn what was canceled or paused (`protocol §5.4`)."""

from collections import defaultdict
from collections.abc import Sequence

from asya.messaging.aws.receipt import Receipt
from asya.messaging.hop import Hop
from asya.protocol.events import StateQuery, TaskState
from asya.reporting import reports
from asya.reporting.aws.gateway_client import GatewayError
from asya.sidecar.lambdas.services import Services


def register(services: Services, hops: Sequence[Hop]) -> set[str]:
    """Make the tasks of envelopes that came without a status known; one call per endpoint.

    Returns:
        The message ids whose task could not be registered: they may not go on, and are to be kept.
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
    """The states of these envelopes' tasks and roots by envelope id; what cannot be learned within a second is left out."""
    by_url: dict[str, list[StateQuery]] = defaultdict(list)
    for hop in hops:
        url = services.callback(hop.envelope)
        # A task that is only now made known cannot have been canceled.
        if url is not None and not hop.needs_registration:
            by_url[url].append(StateQuery(id=hop.envelope.id, root_id=hop.envelope.root_id))
    states: dict[str, TaskState] = {}
    for url, queries in by_url.items():
        try:
            states |= {state.id: state for state in services.gateway.states(url, queries)}
        except GatewayError as error:
            services.telemetry.log.warning("pre-flight without an answer; going on", problem=str(error))
    return states
