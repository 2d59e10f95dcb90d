"""x-checkpoint: stores envelopes on their way (`protocol §11`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asya.ends.aws.results import Results
from asya.function.aws.receipt import Receipt
from asya.function.hop import Diversion
from asya.function.lambdas.batch import BatchResponse, Record
from asya.protocol.envelope import Frame
from asya.protocol.keys import checkpoint_key
from asya.sidecar.lambdas.crew_hops import next_delivery, process_batch, report_hop, send_diversion
from asya.sidecar.lambdas.intake import Intake
from asya.sidecar.lambdas.services import Services


@dataclass(frozen=True, slots=True)
class CheckpointActor:
    """Processes the messages of x-checkpoint; its only frame is the envelope as received."""

    services: Services
    results: Results

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        return process_batch(self.services, event, self._handle)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        """Store one envelope, then route it on.

        Raises:
            ClientError, BotoCoreError: the copy cannot be written, so the message stays on the queue.
        """
        telemetry = self.services.telemetry
        started = intake.start(record)
        if isinstance(started, Diversion):
            return send_diversion(self.services, started, record, "no checkpoint made")
        began = self.services.environment.monotonic()
        namespace = self.services.settings.namespace
        self.results.write_envelope(checkpoint_key(started.envelope), started.envelope, namespace)
        delivery = next_delivery(self.services, started, Frame(None))
        duration_ms = (self.services.environment.monotonic() - began) * 1000
        report_hop(self.services, started, duration_ms=duration_ms)
        telemetry.count("Processed", by=("outcome", delivery.outcome))
        return [self.services.outbox.send(delivery)]
