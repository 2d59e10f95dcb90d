"""One end per envelope and generation, whoever sees it end (`protocol §11`): x-sink, x-sump, a fan-in actor, the DLQ function.

An envelope that a hop sent on may be delivered to that hop again, and come to another end there than further on. Whoever comes
first decides; the others learn it before they tell anybody.
"""

from asya.crew.aws.end_claims import Claim, ClaimResult, EndClaims
from asya.crew.aws.result_index import ResultIndex
from asya.crew.result_index import result_row
from asya.messaging.aws import clients
from asya.messaging.aws.receipt import Receipt
from asya.protocol.envelope import Envelope
from asya.protocol.keys import result_key
from asya.sidecar.lambdas.services import Services


def claim_end(services: Services, envelope: Envelope) -> ClaimResult:
    """Claim the end that an envelope's status tells, before anything is made of it.

    Raises:
        ClientError, BotoCoreError: if the claim can be neither taken nor read now.
    """
    settings = services.settings
    claims = EndClaims(clients.dynamodb(), settings.table_name("sink"), settings.table.retention.tasks)
    phase = (envelope.status.phase if envelope.status else None) or "succeeded"
    claim = Claim(envelope.id, envelope.generation, phase, result_key(envelope, settings.table.sink))
    result = claims.take(claim, epoch_seconds=services.now().timestamp())
    if result.outcome == "refused":
        services.telemetry.log.warning("already ended", envelope_id=envelope.id, phase=phase, holder=str(result.claim))
    return result


def index_row(services: Services, index: ResultIndex, envelope: Envelope, uri: str) -> list[Receipt]:
    """Have the index of results tell of an envelope that ended, and is written to `uri`; nothing if the mesh keeps none."""
    settings = services.settings
    if not settings.table.sink.index:
        return []
    row = result_row(
        envelope, namespace=settings.namespace, result_uri=uri, recorded_by=settings.actor, now=services.now()
    )
    return [index.add(row)]
