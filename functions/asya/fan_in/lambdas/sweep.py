"""Every few minutes: sets whose look at the clock was lost are looked at, and the open ones counted (`protocol §9`, `§15`)."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

from asya.fan_in.aws.sets import FanInSets
from asya.messaging.aws.telemetry import Telemetry
from asya.messaging.delivery import Delivery
from asya.protocol.slices import SetDue, encode_message
from asya.sidecar.lambdas.services import Services

# A set so long past its time has not been looked at: nobody will, unless told.
OVERDUE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class FanInSweep:
    """Looks after the open sets of all fan-in actors of the mesh."""

    services: Services
    sets: FanInSets

    def sweep(self) -> None:
        """One sweep. What could not be told is found again by the next."""
        table = self.services.settings.table
        open_now = Counter({name: 0 for name, actor in table.actors.items() if actor.kind == "fan_in"})
        before = self.services.now() - OVERDUE
        receipts = []
        for found in self.sets.open_sets():
            open_now[found.actor] += 1
            if found.due_at < before and found.actor in table.actors:
                look = encode_message(SetDue(set_id=found.set_id))
                receipts.append(self.services.outbox.send(Delivery(found.actor, look, "later")))
        self.services.outbox.flush()
        problem = next((receipt.problem for receipt in receipts if receipt.problem is not None), None)
        if receipts:
            self.services.telemetry.log.warning("sets overdue", count=len(receipts), problem=str(problem or ""))
        for actor, count in open_now.items():
            telemetry = Telemetry(self.services.settings.namespace, actor)
            telemetry.measure("FanInOpen", count, "Count")
            telemetry.flush()
