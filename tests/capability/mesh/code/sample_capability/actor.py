"""Stamps each envelope, and sends it along its route."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asya.function.aws.receipt import Receipt
from asya.function.hop import Diversion
from asya.function.lambdas.batch import BatchResponse, Record
from asya.sidecar.lambdas.crew_hops import pass_on, process_batch, send_diversion
from asya.sidecar.lambdas.intake import Intake
from asya.sidecar.lambdas.services import Services
from sample_capability.options import Stamp
from sample_capability.store import Stamps


@dataclass(frozen=True)
class StampActor:
    """Processes the messages of one actor."""

    services: Services
    stamps: Stamps
    stamp: Stamp

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        return process_batch(self.services, event, self._handle)

    def _handle(self, intake: Intake, record: Record) -> list[Receipt]:
        hop = intake.start(record)
        if isinstance(hop, Diversion):
            return send_diversion(self.services, hop, record, "not stamped")
        for copy in range(self.stamp.copies):
            self.stamps.add(hop.actor, hop.envelope.id, copy, self.stamp.ink)
        return [pass_on(self.services, hop)]
