"""The heavy side of the simulated cloud: EMR Serverless, its events and its jobs."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any
from unittest import mock

from asya.function.aws import clients
from asya.function.aws.settings import SparkSettings
from asya.heavy.lambdas import result_routing
from asya.protocol import names
from asya.testing.job_runs import JobClient
from asya.testing.permissions import Guarded, Permissions, of_job_runs
from asya.testing.services.clients import Bucket
from asya.testing.services.job_service import APPLICATION, JobFaults, JobRun, JobService
from asya.testing.services.process import Process, Simulation, current_process
from asya.testing.services.queues import Queues
from tests.simulation.checks.ledger import Ledger
from tests.simulation.heavy.driver import Driver, UserJobs, activate_drivers, start_driver
from tests.simulation.heavy.job_rows import rows_job
from tests.simulation.inputs.programs import CallRecorder, Program

SPARK = SparkSettings(
    application_id=APPLICATION,
    role_prefix="arn:aws:iam::123456789012:role/",
    entry_point="s3://assets/entry.py",
    py_files=("s3://assets/asya.zip",),
    access_policy_prefix="arn:aws:iam::123456789012:policy/",
)
# Small, so that few deliveries interrupt the routing of a run.
CHUNK = 3
_OF_MEMORY = "ExitCode: 137."


@dataclass
class HeavySide:
    """EMR Serverless and the jobs of a simulated mesh."""

    simulation: Simulation
    faults: JobFaults
    bucket: Bucket
    new_process: Callable[[str], Process]
    ledger: Ledger
    queues: Queues
    _jobs: UserJobs = field(default_factory=lambda: UserJobs({}, {}))

    @cached_property
    def service(self) -> JobService:
        """EMR Serverless."""
        return JobService(
            self.simulation,
            self.faults,
            send_event=self._send_event,
            start_driver=self._start_driver,
            note=self.ledger.runs.run_made,
        )

    @contextmanager
    def activate(
        self,
        handlers: Mapping[str, Callable[[Any], Any]],
        programs: Mapping[str, Program],
        recorder: CallRecorder,
        permissions: Permissions,
    ) -> Iterator[None]:
        """Connects the mesh's code to this EMR Serverless, and the drivers to their jobs."""

        def client() -> Guarded:
            process = current_process()
            return permissions.guard(process, JobClient(process, self.service), of_job_runs)

        self._jobs = UserJobs(dict(handlers), {name: rows_job(program, recorder) for name, program in programs.items()})
        with (
            activate_drivers(),
            mock.patch.object(result_routing, "CHUNK", CHUNK),
            mock.patch.object(clients, "emr_serverless", client),
        ):
            yield

    def _start_driver(self, run: JobRun, ended: Callable[[bool], None]) -> Driver:
        process = self.new_process(f"{run.job_run_id}/{len(run.drivers) + 1}")
        # A driver that dies by itself, such as of a poison, dies of memory in half of the runs.
        run.failure = Random(run.name).choice((run.failure, _OF_MEMORY))
        return start_driver(run, ended, process=process, bucket=self.bucket, jobs=self._jobs)

    def _send_event(self, text: str) -> None:
        name = names.queue_name(self.ledger.mesh.namespace, names.COMPLETION)
        self.queues.send(name, text, sender=None, by="events.amazonaws.com")
