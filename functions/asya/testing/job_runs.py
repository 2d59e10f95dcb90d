"""Runs the jobs of heavy actors: EMR Serverless in memory, with real job code on the warm Spark session of this process."""

import functools
import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

from botocore.exceptions import ClientError, ReadTimeoutError

from asya.function.aws import clients
from asya.function.aws.settings import SparkSettings
from asya.protocol import names
from asya.protocol.keys import RESULTS_PREFIX
from asya.runtime.load import load
from asya.testing.isolation import load_own_clock
from asya.testing.permissions import Guarded, Permissions, of_job_runs
from asya.testing.services.clients import Bucket, S3Client
from asya.testing.services.functions import ACCOUNT
from asya.testing.services.job_service import APPLICATION, DriverHandle, JobFaults, JobRun, JobService, RefusedError
from asya.testing.services.process import Process, ProcessCrashed, Simulation, current_process, running
from asya.testing.services.queues import Queues
from asya.testing.user_code import UserProcess

_REFUSALS = ("ThrottlingException", "InternalServerException", "ServiceQuotaExceededException")
POLICY_LIMIT = 2048


@dataclass
class JobClient:
    """The calls of one process to EMR Serverless."""

    process: Process
    service: JobService

    def start_job_run(self, **request: Any) -> dict[str, Any]:
        """Starts a run, or returns the run of this token."""
        _check(request)
        # Without retries of the SDK, so that the caller handles each error.
        return self._call(
            f"StartJobRun {request['name']}",
            lambda: {"jobRunId": self.service.start(request).job_run_id},
            refusals=_REFUSALS,
        )

    def get_job_run(self, *, applicationId: str, jobRunId: str) -> dict[str, Any]:  # noqa: N803
        """The state of a run."""
        return self._call(f"GetJobRun {jobRunId}", lambda: {"jobRun": _described(self.service.get(jobRunId))})

    def cancel_job_run(self, *, applicationId: str, jobRunId: str) -> dict[str, Any]:  # noqa: N803
        """Cancels a run that has not ended."""
        return self._call(f"CancelJobRun {jobRunId}", lambda: {"jobRunId": self.service.cancel(jobRunId).job_run_id})

    def get_paginator(self, action: str) -> "_Pages":
        """The paginator of the runs."""
        if action != "list_job_runs":
            raise NotImplementedError(action)
        return _Pages(self)

    def list_job_runs(self, since: datetime) -> dict[str, Any]:
        """All runs in one page."""
        at = self.process.simulation.scheduler.at
        return self._call(
            "ListJobRuns", lambda: {"jobRuns": [_listed(run, at(run.created_at)) for run in self.service.listed(since)]}
        )

    def _call(
        self, what: str, do: Callable[[], dict[str, Any]], refusals: tuple[str, ...] = ("ThrottlingException",)
    ) -> dict[str, Any]:
        def answer() -> dict[str, Any]:
            try:
                return do()
            except RefusedError as refused:
                raise _error(refused.code) from None

        return self.process.call(
            "emr",
            what,
            answer,
            refusal=lambda: _error(self.process.simulation.random.choice(refusals)),
            lost_response=lambda: ReadTimeoutError(endpoint_url="https://emr-serverless"),
            repeatable=False,
        )


@dataclass
class _Pages:
    client: JobClient

    def paginate(self, *, applicationId: str, createdAtAfter: datetime) -> Iterator[dict[str, Any]]:  # noqa: N803
        """The pages."""
        yield self.client.list_job_runs(createdAtAfter)


def _check(request: dict[str, Any]) -> None:
    if (
        request["applicationId"] != APPLICATION
        or len(request["clientToken"]) > 64
        or request["executionTimeoutMinutes"] < 1
    ):
        raise _error("ValidationException")
    if len(request["executionIamPolicy"]["policy"]) > POLICY_LIMIT:
        raise _error("ValidationException")


def _described(run: JobRun) -> dict[str, Any]:
    described = {"jobRunId": run.job_run_id, "name": run.name, "state": run.state, "stateDetails": run.details}
    if run.began_at is None or run.ended_at is None:
        return described
    return described | {"totalResourceUtilization": _utilization(run, (run.ended_at - run.began_at) / 3600)}


def _utilization(run: JobRun, hours: float) -> dict[str, float]:
    """What the driver and the first executors of a run used."""
    words = shlex.split(run.request["jobDriver"]["sparkSubmit"]["sparkSubmitParameters"])
    conf = dict(word.split("=", 1) for word in words if word.startswith("spark."))
    executors = int(conf["spark.dynamicAllocation.initialExecutors"])
    cores = int(conf["spark.driver.cores"]) + executors * int(conf["spark.executor.cores"])
    megabytes = _megabytes(conf["spark.driver.memory"]) + executors * _megabytes(conf["spark.executor.memory"])
    return {"vCPUHour": cores * hours, "memoryGBHour": megabytes / 1024 * hours, "storageGBHour": 0.0}


def _megabytes(text: str) -> int:
    return int(text[:-1]) * {"m": 1, "g": 1024}[text[-1]]


def _listed(run: JobRun, created_at: datetime) -> dict[str, Any]:
    return {"id": run.job_run_id, "name": run.name, "state": run.state, "createdAt": created_at}


def _error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "simulated"}}, "simulated")


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
        find_file: returns the path of a file on S3; None without one.
    """

    simulation: Simulation
    namespace: str
    bucket: Bucket
    queues: Queues
    new_process: Callable[[str], UserProcess]
    find_file: Callable[[str], str | None]
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
    def activate(self, permissions: Permissions) -> Iterator[None]:
        """Connect the code of the mesh to this EMR Serverless."""

        def client() -> Guarded:
            process = current_process()
            return permissions.guard(process, JobClient(process, self.service), of_job_runs)

        with mock.patch.object(clients, "emr_serverless", client):
            yield

    def _send_event(self, text: str) -> None:
        queue = names.queue_name(self.namespace, names.COMPLETION)
        self.queues.send(queue, text, sender=None, by="events.amazonaws.com")

    def _start_driver(self, run: JobRun, ended: Callable[[bool], None]) -> DriverHandle:
        actor = run.name.split(".")[-2]
        process = self.new_process(f"{actor}/{run.job_run_id}")
        process.variables = {**process.variables, "ASYA_RESULTS_URI": f"file://{self._folder.name}/{RESULTS_PREFIX}"}
        driver = _Driver(run, process, self.bucket, Path(self._folder.name), self.find_file)
        self.simulation.scheduler.start(lambda: driver.work(ended))
        return driver


@dataclass(frozen=True)
class _Changes:
    """The files that a job has written, with their content, and those that it has removed."""

    written: Mapping[Path, bytes]
    removed: frozenset[Path]


@dataclass
class _Driver:
    """The driver of one job run. It works in one step of virtual time, so only its own job can kill it.

    Attributes:
        before: the files before its work, each with its size and the time of its last change.
        left: the state of the files at its death; None while it lives.
    """

    run: JobRun
    process: UserProcess
    bucket: Bucket
    folder: Path
    find_file: Callable[[str], str | None]
    before: Mapping[Path, tuple[int, int]] = field(default_factory=dict)
    left: "_Changes | None" = None

    def kill(self) -> None:
        """See `DriverHandle`."""

    def work(self, ended: Callable[[bool], None]) -> None:
        """Run the job, and write what it wrote to the bucket."""
        from asya_spark import clock, main

        load_own_clock()

        key = urlsplit(self.run.manifest_uri).path.lstrip("/")
        with running(self.process):
            self._write_files()
            self.before = self._files()
            try:
                from asya.testing.spark_session import run_settings, share_path, spark_session

                session = spark_session()
                with (
                    self.process.as_actor(),
                    self.process.ending_alone(),
                    mock.patch.object(main, "load", self._load),
                    # Heartbeats and deadlines are of the mesh's time, as the reports of its functions.
                    mock.patch.object(clock, "now", self.process.now),
                    run_settings(session, self.run.submit_parameters, self.find_file),
                ):
                    share_path(session)
                    main.run(session, f"file://{self.folder}/{key}")
                succeeded = True
            except ProcessCrashed:
                succeeded = False
            except Exception as error:  # noqa: BLE001 - a driver that raises fails its run
                self.process.note(f"raised {error!r}")
                self.run.failure = f"ExitCode: 1. Last few exceptions: {type(error).__name__}: {error}"
                succeeded = False
            if self.left is not None:  # the job library takes the death of its process for an error of the job
                self.run.failure, succeeded = f"ExitCode: {self.process.exit_code}.", False
            self._read_files(self._changes() if self.left is None else self.left)
        ended(succeeded)

    def _write_files(self) -> None:
        """Make the folder the bucket for the job library."""
        objects = self.bucket.objects
        for path in self._files():
            if self._key(path) not in objects:
                path.unlink()
        for key, body in objects.items():
            path = self.folder / key
            if not path.exists() or path.read_bytes() != body:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(body)

    def _files(self) -> dict[Path, tuple[int, int]]:
        paths = [path for path in self.folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}

    def _changes(self) -> "_Changes":
        after = self._files()
        written = {path: path.read_bytes() for path in after if after[path] != self.before.get(path)}
        return _Changes(written, frozenset(self.before.keys() - after.keys()))

    def _read_files(self, changes: "_Changes") -> None:
        """Make the bucket what the job has left."""
        client = S3Client(Process(f"{self.process.name}/files", self.process.simulation), self.bucket)
        # The commit says that all is there.
        for path in sorted(changes.written, key=lambda each: (each.name == "commit.json", str(each))):
            client.put_object(Bucket="", Key=self._key(path), Body=changes.written[path])
        for path in sorted(changes.removed):
            client.delete_object(Bucket="", Key=self._key(path))

    def _key(self, path: Path) -> str:
        return str(path.relative_to(self.folder))

    def _load(self, name: str) -> Any:
        """Load the job; a call that the test lets fail raises instead."""
        job = load(name)

        @functools.wraps(job)
        def call(*arguments: Any, **named: Any) -> Any:
            if self.left is not None:
                raise ProcessCrashed(self.process.name)
            try:
                self.process.raise_planned_fault()
                return job(*arguments, **named)
            except ProcessCrashed:
                self.left = self._changes()
                raise

        return call
