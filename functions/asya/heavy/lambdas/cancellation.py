"""Cancels job runs whose tasks are all canceled (`protocol §10`, `§13`)."""

from collections.abc import Sequence
from dataclasses import dataclass

from asya.function.aws import clients
from asya.function.nack import ServiceError
from asya.heavy.aws.completion_messages import CancelRequests
from asya.heavy.aws.emr_serverless import BusyError
from asya.heavy.aws.run_files import ManifestError
from asya.heavy.aws.run_records import RunRecord
from asya.heavy.lambdas.resident_runs import Placement
from asya.heavy.lambdas.services import SparkServices
from asya.protocol import states
from asya.protocol.job_runs import Manifest, Member

_STATES_BATCH = 200
_RETRY_SECONDS = 5


class UnknownStatesError(ServiceError):
    """The tasks table did not answer for all tasks of a run."""


@dataclass(frozen=True, slots=True)
class RunCancellation:
    """Searches the open runs for runs to cancel."""

    services: SparkServices

    def cancel_runs_of(self, task_id: str) -> None:
        """Cancels each open run with this task, or a child of this root, if all its members are canceled.

        Raises:
            UnknownStatesError: if the states of the members are unknown.
            botocore.exceptions.ClientError: if a run could not be canceled.
        """
        services = self.services
        for actor in services.heavy_actors():
            for number in services.records.open_numbers(actor):
                record = services.records.get(actor, number)
                # A run that is not started yet is checked when it starts.
                if record is None or not record.job_run_id or record.resolution is not None:
                    continue
                try:
                    manifest = services.manifests.read(actor, number, record.manifest_digest)
                except ManifestError:
                    services.base.telemetry.log.exception("manifest unusable; job run not canceled")
                    continue
                if manifest is not None and any(task_id in (member.id, member.root_id) for member in manifest.members):
                    self.cancel_if_idle(record, manifest, task_id)

    def cancel_if_idle(self, record: RunRecord, manifest: Manifest, task_id: str) -> None:
        """Cancels a run if all its members are canceled; its results are dropped.

        Raises:
            UnknownStatesError: if the states of the members are unknown.
            botocore.exceptions.ClientError: if the run could not be canceled.
        """
        services = self.services
        if not self.are_canceled(manifest.members):
            return
        if not Placement(services).close_next(record, states.CANCELED):
            return  # its driver has finished them, and is at work for others
        services.base.telemetry.log.info("job run canceled: all its tasks are canceled", run_id=manifest.run_id)
        try:
            services.job_runs.cancel(record.job_run_id or "")
        except BusyError:
            url = services.settings.queue_url(services.settings.actor)
            CancelRequests(clients.sqs(), queue_url=url).send(task_id, delay=_RETRY_SECONDS)

    def are_canceled(self, members: Sequence[Member]) -> bool:
        """Whether all members of a run are canceled; states are read up to the first group that is not.

        Raises:
            UnknownStatesError: if the states of the members are unknown.
        """
        groups = (members[start : start + _STATES_BATCH] for start in range(0, len(members), _STATES_BATCH))
        return all(map(self._all_canceled, groups))

    def _all_canceled(self, members: Sequence[Member]) -> bool:
        if any(member.report_url != self.services.settings.gateway_url for member in members):
            return False  # a stealth envelope has no task to cancel, that of another gateway none in this mesh
        known = self.services.states(members)
        if any(state is not None and not state.is_canceled for state in map(known.get, (m.id for m in members))):
            return False
        if len(known) < len({member.id for member in members}):
            raise UnknownStatesError("the tasks table did not return the states of all tasks of the run")
        return True
