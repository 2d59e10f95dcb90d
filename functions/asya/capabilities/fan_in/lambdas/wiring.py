"""Lambda entry points of fan-in actors and of the sweep over open sets (`protocol §9`, `§15`)."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

from asya.capabilities.fan_in.aws.sets import FanInSets, SetRepeats
from asya.capabilities.fan_in.aws.slice_store import SliceStore
from asya.capabilities.fan_in.lambdas.fan_in import FanInActor
from asya.capabilities.fan_in.lambdas.set_coordinator import SetCoordinator, SetRepeater
from asya.ends.lambdas.ends import end_objects, end_results
from asya.function.aws import clients
from asya.function.hop import Delivery
from asya.protocol.mesh_table import FanIn
from asya.protocol.slices import SetDue, encode_message
from asya.sidecar.lambdas.entry_point import queue_entry_point, schedule_entry_point
from asya.sidecar.lambdas.services import Services

# The timeout check of a set that is overdue for this long was lost.
OVERDUE = timedelta(minutes=2)
# A set that is due this soon gets a check, which then repeats itself at the set's timeout. The next sweep comes before.
DUE_SOON = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class FanInSweep:
    """Sends a timeout check to each set of the mesh that is due soon or overdue. A set ignores it if its own is pending."""

    services: Services
    sets: FanInSets

    def sweep(self) -> None:
        """Run once. The next sweep sends a check that could not be sent."""
        table = self.services.settings.table
        open_counts = Counter[str]()
        moment = self.services.now()
        receipts = []
        overdue = 0
        for open_set in self.sets.open_sets():
            open_counts[open_set.actor] += 1
            left = open_set.due_at - moment
            if (left < -OVERDUE or timedelta(0) < left < DUE_SOON) and open_set.actor in table.actors:
                overdue += left < -OVERDUE
                check = encode_message(SetDue(set_id=open_set.set_id))
                receipts.append(self.services.outbox.send(Delivery(open_set.actor, check, "later")))
        self.services.outbox.flush()
        problem = next((receipt.problem for receipt in receipts if receipt.problem is not None), None)
        if overdue or problem is not None:
            self.services.telemetry.log.warning("sets overdue", count=overdue, problem=str(problem or ""))
        for actor, count in open_counts.items():
            self.services.telemetry.measure("FanInOpen", count, "Count", actor=actor)
        if problem is None:
            self.services.finish_sweep()
        self.services.telemetry.flush()


def build_fan_in(services: Services) -> FanInActor:
    """Build this function's fan-in actor."""
    rule = services.settings.table.actors[services.settings.actor].fan_in or FanIn()
    coordinator = SetCoordinator(services, _sets(services), _slices(services), rule)
    records = SetRepeats(clients.dynamodb(), table=services.settings.table_name("fan-in"))
    objects = end_objects(services, end_results(services))
    return FanInActor(services, coordinator, objects, SetRepeater(coordinator, records))


def build_sweep(services: Services) -> FanInSweep:
    """Build the sweep over this mesh's open sets."""
    return FanInSweep(services, _sets(services))


def _sets(services: Services) -> FanInSets:
    return FanInSets(clients.dynamodb(), table=services.settings.table_name("fan-in"))


def _slices(services: Services) -> SliceStore:
    return SliceStore(
        clients.dynamodb(),
        clients.s3(),
        table=services.settings.table_name("fan-in"),
        bucket=services.settings.bucket,
        threaded=services.environment.is_threaded,
    )


fan_in = queue_entry_point(build_fan_in)
sweep = schedule_entry_point(build_sweep)
