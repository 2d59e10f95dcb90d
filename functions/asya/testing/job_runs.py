"""Runs the jobs of heavy actors: EMR Serverless in memory, with real job code on the warm Spark session of this process."""

import functools
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

from asya.messaging.aws import clients
from asya.messaging.aws.settings import SparkSettings
from asya.protocol import names
from asya.runtime.load import load
from asya.testing.planned_faults import PlannedFaults
from asya.testing.services.functions import ACCOUNT
from asya.testing.services.job_client import JobClient
from asya.testing.services.job_faults import JobFaults
from asya.testing.services.job_service import APPLICATION, DriverHandle, JobRun, JobService
from asya.testing.services.process import ProcessCrashed, Simulation, current_process, running
from asya.testing.services.queues import Queues
from asya.testing.services.storage import Bucket, S3Client
from asya.testing.user_code import UserProcess

SPARK = SparkSettings(
    application_id=APPLICATION,
    role_prefix=f"arn:aws:iam::{ACCOUNT}:role/",
    entry_point="s3://assets/entry.py",
    py_files=("s3://assets/asya.zip",),
    access_policy_prefix=f"arn:aws:iam::{ACCOUNT}:policy/",
)


@dataclass
class JobRuns:
    """EMR Serverless and the job runs of one mesh.

    Attributes:
        new_process: makes the process of a driver for an actor.
    """

    simulation: Simulation
    namespace: str
    bucket: Bucket
    queues: Queues
    faults: PlannedFaults
    new_process: Callable[[str], UserProcess]
    _folder: "tempfile.TemporaryDirectory[str]" = field(
        default_factory=lambda: tempfile.TemporaryDirectory(prefix="asya-testing-runs-")
    )

    @cached_property
    def service(self) -> JobService:
        """EMR Serverless."""
        return JobService(
            self.simulation,
            JobFaults(),
            send_event=self._send_event,
            start_driver=self._start_driver,
            note=lambda _run: None,
        )

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Connect the code of the mesh to this EMR Serverless."""
        with mock.patch.object(clients, "emr_serverless", lambda: JobClient(current_process(), self.service)):
            yield

    def _send_event(self, text: str) -> None:
        queue = names.queue_name(self.namespace, names.COMPLETION)
        self.queues.send(queue, text, sender=None, by="events.amazonaws.com")

    def _start_driver(self, run: JobRun, ended: Callable[[bool], None]) -> DriverHandle:
        actor = run.name.split(".")[-2]
        process = self.new_process(f"{actor}/{run.job_run_id}")
        driver = _Driver(run, process, self.bucket, Path(self._folder.name), self.faults, actor)
        self.simulation.scheduler.start(lambda: driver.work(ended))
        return driver


@dataclass
class _Driver:
    """The driver of one job run. It works in one step of virtual time, so nothing can kill it."""

    run: JobRun
    process: UserProcess
    bucket: Bucket
    folder: Path
    faults: PlannedFaults
    actor: str

    def kill(self) -> None:
        """See `DriverHandle`."""

    def work(self, ended: Callable[[bool], None]) -> None:
        """Run the job, and write what it wrote to the bucket."""
        from asya_spark import main

        key = urlsplit(self.run.manifest_uri).path.lstrip("/")
        with running(self.process):
            known = self._write_files()
            try:
                from asya.testing.spark_session import share_path, spark_session

                session = spark_session()
                with self.process.as_actor(), mock.patch.object(main, "load", self._load):
                    share_path(session)
                    main.run(session, f"file://{self.folder}/{key}")
                succeeded = True
            except Exception as error:  # noqa: BLE001 - a driver that raises fails its run
                self.process.note(f"raised {error!r}")
                succeeded = False
            try:
                self._read_files(known)
            except ProcessCrashed:
                succeeded = False
        ended(succeeded)

    def _write_files(self) -> set[Path]:
        """Write the objects of the bucket to the folder, which is the bucket for the job library."""
        for key, body in self.bucket.objects.items():
            path = self.folder / key
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(body)
        return {path for path in self.folder.rglob("*") if path.is_file()}

    def _read_files(self, known: set[Path]) -> None:
        client = S3Client(self.process, self.bucket)
        new = {path for path in self.folder.rglob("*") if path.is_file() and not path.name.startswith(".")} - known
        # The commit says that all is there.
        for path in sorted(new, key=lambda each: (each.name == "commit.json", str(each))):
            client.put_object(Bucket="", Key=str(path.relative_to(self.folder)), Body=path.read_bytes())

    def _load(self, name: str) -> Any:
        """Load the job; a call that the test lets fail raises instead."""
        job = load(name)

        @functools.wraps(job)
        def call(*arguments: Any, **named: Any) -> Any:
            failure = self.faults.next_failure(self.actor)
            if failure is not None:
                raise failure
            return job(*arguments, **named)

        return call
