"""x-checkpoint: keeps the envelope as it stands, and passes it on (`protocol §11`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asya.crew.aws.results import Results
from asya.messaging.aws.receipt import Receipt
from asya.messaging.delivery import Diversion
from asya.messaging.lambdas.batch import Answer, Record
from asya.protocol.frame import Frame
from asya.protocol.keys import checkpoint_key
from asya.sidecar.lambdas.crew_hops import diverted, passed_on, process_batch, report_hop
from asya.sidecar.lambdas.intake import Intake
from asya.sidecar.lambdas.services import Services


@dataclass(frozen=True, slots=True)
class CheckpointActor:
    """An actor like any other, but that writing to S3 is all it does. Its one frame is what it received."""

    services: Services
    results: Results

    def process(self, event: Mapping[str, Any]) -> Answer:
        """Work through one batch."""
        return process_batch(self.services, event, self._handle)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        """Raises ClientError or BotoCoreError if the checkpoint cannot be written: nothing passes without one."""
        telemetry = self.services.telemetry
        started = intake.start(record)
        if isinstance(started, Diversion):
            return diverted(self.services, started, record, "no checkpoint made")
        began = self.services.environment.monotonic()
        namespace = self.services.settings.namespace
        self.results.write_envelope(checkpoint_key(started.envelope), started.envelope, namespace)
        delivery = passed_on(self.services, started, Frame(None))
        duration_ms = (self.services.environment.monotonic() - began) * 1000
        report_hop(self.services, started, duration_ms=duration_ms)
        telemetry.count("Processed", by=("outcome", "failed" if delivery.kind == "sump" else "succeeded"))
        return [self.services.outbox.send(delivery)]
