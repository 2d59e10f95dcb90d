"""An operator who drains heavy actors for a while, with the code of `asya job drain`."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from botocore.exceptions import BotoCoreError, ClientError

from asya.function.aws import clients
from asya.heavy.aws.drains import Drains
from asya.protocol import names
from asya.testing.services.process import ProcessCrashed, running
from tests.simulation.cloud import Cloud

# Longer than any invocation of the dispatcher: one that read the table before may still form a run.
SETTLED = 300.0
RETRY = 10.0


@dataclass
class Draining:
    """Drains one heavy actor, and ends the drain."""

    cloud: Cloud
    random: Random

    def schedule(self) -> None:
        """Draw the actor and the times."""
        spark = [name for name, actor in self.cloud.mesh.table.actors.items() if actor.kind == "spark"]
        if spark:
            actor, scheduler = self.random.choice(spark), self.cloud.simulation.scheduler
            scheduler.start(lambda: self._drain(actor), delay=self.random.uniform(0.0, 60.0))

    def _drain(self, actor: str) -> None:
        scheduler, drained = self.cloud.simulation.scheduler, self.cloud.ledger.runs.drained
        self.cloud.ledger.runs.was_drained = True
        self._until_done(lambda drains: drains.start(actor, now=scheduler.now))
        scheduler.wait(SETTLED)
        drained.add(actor)
        scheduler.wait(self.random.uniform(0.0, 900.0))
        drained.discard(actor)
        self._until_done(lambda drains: drains.end(actor))
        if self.random.random() < 0.5:  # else the call of the reconciler is lost
            self.cloud.system.wake_all()

    def _until_done(self, change: Callable[[Drains], object]) -> None:
        table = names.table_name(self.cloud.mesh.table.namespace, "pending")
        while not self.cloud.simulation.scheduler.is_over:
            with running(self.cloud.new_process(f"operator/drain-{self.random.random():.6f}")):
                try:
                    change(Drains(clients.dynamodb(), table=table))
                except (ClientError, BotoCoreError, ProcessCrashed) as error:
                    self.cloud.simulation.log.note(self.cloud.simulation.scheduler.seconds, "operator", repr(error))
                else:
                    return
            self.cloud.simulation.scheduler.wait(RETRY)
