"""The numbers of a heavy actor's job runs."""

from dataclasses import dataclass

from asya.operations.mesh_numbers import RunNumbers
from asya.spark.aws.drains import Drains
from asya.spark.aws.hosts import Hosts
from asya.spark.aws.pending import Pending
from asya.spark.aws.run_records import RunRecords


@dataclass(frozen=True, slots=True)
class RunCounter:
    """Counts the job runs and the pending envelopes of heavy actors.

    Raises:
        ClientError, BotoCoreError: if DynamoDB fails or denies access.
    """

    records: RunRecords
    pending: Pending
    hosts: Hosts
    drains: Drains

    def count(self, actor: str) -> RunNumbers:
        """Count those of one actor."""
        return RunNumbers(
            pending=self.pending.count(actor),
            running=sum(1 for _ in self.records.open_numbers(actor)),
            lingering=sum(not run.is_closed for run in self.hosts.all(actor)),
            is_drained=self.drains.get(actor) is not None,
        )
