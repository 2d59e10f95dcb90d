"""The numbers of a heavy actor's job runs."""

from dataclasses import dataclass

from asya.capabilities.operations.mesh_numbers import RunNumbers
from asya.heavy.aws.drains import Drains
from asya.heavy.aws.hosts import Hosts
from asya.heavy.aws.pending import Pending
from asya.heavy.aws.run_records import RunRecords


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
