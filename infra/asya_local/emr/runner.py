"""Executes one job run: credentials, code, data, driver, outcome and logs.

Archives are unpacked once for each content, for all runs.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import re
import shutil
import tarfile
import tempfile
import threading
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError, ClientError

from asya_local.emr.access.policies import expand_buckets, folders, readable_prefixes
from asya_local.emr.clients import client
from asya_local.emr.drivers.pool import Driver, DriverJob, DriverPool, JobOutcome, SyncAnswer, SyncRequest
from asya_local.emr.drivers.private_settings import private_settings
from asya_local.emr.local_spark import Launch, launch_of, local_conf
from asya_local.emr.storage.listing import MirrorError, refused_paths
from asya_local.emr.storage.mirror import Mirror
from asya_local.emr.submit_parameters import SubmitParameters
from asya_local.tools import machine_memory_mb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from asya_local.emr.access.identity import IamClient
    from asya_local.emr.access.policies import ReadablePrefix
    from asya_local.emr.runs import JobRun
    from asya_local.emr.settings import EmrSettings


def unpack_once(archive: Path, folder: Path) -> Path:
    """Return the folder with the content of an archive; unpack it if no run did yet.

    A rename publishes the content, so concurrent runs do not interfere, and a killed one leaves no part of it.

    Args:
        archive: A zip, or a tar with any compression.
        folder: The folder for all unpacked archives.
    """
    with archive.open("rb") as file:
        target = folder / hashlib.file_digest(file, "sha256").hexdigest()[:24]
    if target.is_dir():
        return target
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".draft-") as draft:
        content = Path(draft, "content")
        content.mkdir()
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zip_file:
                zip_file.extractall(content)
        else:
            with tarfile.open(archive) as tar_file:
                # Python 3.11.4 has the filter. Before, an archive may write beside its folder, as the code of its job may.
                tar_file.extraction_filter = getattr(tarfile, "data_filter", None)
                tar_file.extractall(content)
        try:
            content.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise a concurrent run was faster
                raise
    return target


_logger = logging.getLogger(__name__)
_TAIL_BYTES = 16_384
_EXCEPTION = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Error|Exception|Interrupt)\b.*$", re.MULTILINE)


def failure_details(exit_code: int, error: str, stderr: Path) -> str:
    """Return the state details of a failed job in the format of EMR Serverless: the exit code and the last exceptions."""
    exceptions = " ".join(error.splitlines()[:1]) or " ".join(_last_exceptions(stderr))
    suffix = f" Last few exceptions: {exceptions}" if exceptions else ""
    return f"Job failed, please check complete logs in configured logging destination. ExitCode: {exit_code}.{suffix}"


def _last_exceptions(stderr: Path) -> list[str]:
    try:
        with stderr.open("rb") as file:
            file.seek(max(0, stderr.stat().st_size - _TAIL_BYTES))
            return _EXCEPTION.findall(file.read().decode(errors="replace"))[-2:]
    except FileNotFoundError:
        return []


def upload_logs(run: JobRun, folder: Path, s3: Any) -> None:
    """Copy the driver's output to the log URI of the run with the job's credentials; best effort."""
    overrides = run.request.get("configurationOverrides", {})
    uri = overrides.get("monitoringConfiguration", {}).get("s3MonitoringConfiguration", {}).get("logUri")
    if not uri:
        return
    location = urlsplit(uri)
    prefix = location.path.strip("/")
    for name in ("stdout", "stderr"):
        if not (folder / name).exists():
            continue
        key = f"{prefix}/applications/{run.application_id}/jobs/{run.run_id}/SPARK_DRIVER/{name}.gz".lstrip("/")
        try:
            s3.put_object(Bucket=location.netloc, Key=key, Body=gzip.compress((folder / name).read_bytes()))
        except (ClientError, BotoCoreError) as error:
            _logger.warning("%s: log %s not copied to %s: %s", run.run_id, name, uri, error)


_DISK = "disk"
"""The scheme of the folder behind `s3://`."""
_FILES = "org.apache.hadoop.fs.RawLocalFileSystem"
_PUSH_EVERY = 1.0
"""Seconds between two uploads of control files such as heartbeats and journals."""


class RunFailedError(Exception):
    """The run failed; the message becomes its state details."""


@dataclass(frozen=True)
class Session:
    """The credentials of one run: as environment variables, and as an S3 client."""

    environment: dict[str, str]
    s3: Any


@dataclass(frozen=True)
class ExecutorFaults:
    """The faults of a run's executors.

    Attributes:
        delay: Seconds without an executor.
        loss: Seconds after which all are lost once, or None.
    """

    delay: float = 0.0
    loss: float | None = None


class Runner:
    """Executes one run, in its own thread."""

    def __init__(
        self, settings: EmrSettings, iam: IamClient, drivers: DriverPool, run: JobRun, executors: ExecutorFaults
    ) -> None:
        self._settings = settings
        self._executors = executors
        self._iam = iam
        self._drivers = drivers
        self._run = run
        self._folder = settings.folder / run.run_id
        self._driver: Driver | None = None
        self._at_work: Driver | None = None
        """The driver while it runs the job."""
        self._stop_requested = threading.Event()
        self._push_error = ""

    def execute(self, on_running: Callable[[], None]) -> JobOutcome:
        """Run the job to its end.

        Args:
            on_running: Called when the driver is ready for the job.

        Raises:
            RunFailedError: The job cannot start, or S3 refuses its output.
        """
        for name in ("code", "work", "s3", "tmp"):
            (self._folder / name).mkdir(parents=True)
        session: Session | None = None
        try:
            session = self._session()
            driver_job, launch = self._driver_job(session)
            documents = self._policy_documents()
            mirror = self._mirror(session, documents)
            driver_job.conf.update(mounts(mirror))
            driver_job.unseen.update(mirror.unseen)
            driver_job.refused_paths.extend(refused_paths(session.s3, self._expand(folders(documents))))
            readable = readable_prefixes(documents)
            driver_job.readable_paths.extend(f"s3://{place.bucket}/{place.pattern}" for place in readable)
            return self._run_driver(driver_job, launch, mirror, on_running)
        finally:
            if session is not None:
                upload_logs(self._run, self._folder, session.s3)
            for name in ("code", "work", "s3", "tmp", "staging"):
                shutil.rmtree(self._folder / name, ignore_errors=True)

    def stop(self) -> None:
        """Kill the driver; `execute` then returns the outcome of a killed driver."""
        self._stop_requested.set()
        if self._driver is not None:
            self._driver.kill()

    def cpu_seconds(self) -> float | None:
        """Return the CPU time that the driver has used; None unless it runs the job. Thread-safe."""
        driver = self._at_work
        return driver.cpu_seconds() if driver is not None else None

    def _session(self) -> Session:
        policy: Mapping[str, Any] = self._run.request.get("executionIamPolicy", {})
        extra: dict[str, Any] = {"Policy": policy["policy"]} if policy.get("policy") else {}
        if policy.get("policyArns"):
            extra["PolicyArns"] = [{"arn": arn} for arn in policy["policyArns"]]
        role = self._run.request["executionRoleArn"]
        try:
            sts = client("sts", self._settings)
            keys = sts.assume_role(RoleArn=role, RoleSessionName=self._run.run_id, **extra)["Credentials"]
        except (ClientError, BotoCoreError) as error:
            raise RunFailedError(f"The stand-in cannot assume the job's role {role}: {error}") from error
        environment = {
            "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
            "AWS_SESSION_TOKEN": keys["SessionToken"],
            "AWS_REGION": self._settings.region,
            "AWS_DEFAULT_REGION": self._settings.region,
            "AWS_ENDPOINT_URL": self._settings.aws_endpoint,
        }
        return Session(environment, client("s3", self._settings, keys))

    def _driver_job(self, session: Session) -> tuple[DriverJob, Launch]:
        """Return the job of this run, and what its JVM starts with."""
        job = self._run.request["jobDriver"]["sparkSubmit"]
        parameters = SubmitParameters(self._run.conf)
        python_path = [self._download(uri, session) for uri in parameters.files("spark.submit.pyFiles")]
        work = self._folder / "work"
        for uri in parameters.files("spark.files"):
            shutil.copy(self._download(uri, session), work)
        for uri in parameters.files("spark.archives"):
            source, _, name = uri.partition("#")
            archive = Path(self._download(source, session))
            unpacked = unpack_once(archive, Path(self._settings.temporary, "archives"))
            (work / (name or Path(urlsplit(source).path).name)).symlink_to(unpacked)
        jars = tuple(self._download(uri, session) for uri in parameters.files("spark.jars"))
        environment = parameters.driver_environment()
        # A running interpreter does not read PYTHONPATH again, and local executors have another working folder.
        python_path += _absolute_entries(work, environment.get("PYTHONPATH", ""))
        executor_path = _absolute_entries(work, parameters.conf.get("spark.executorEnv.PYTHONPATH", ""))
        conf = {
            "spark.app.name": self._run.name,
            **local_conf(parameters.conf),
            "spark.master": f"local[{self._settings.workers.cores}]",
            **private_settings(self._folder / "tmp"),
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(dict.fromkeys([*python_path, *executor_path])),
        }
        job_of_driver = DriverJob(
            entry_point=self._download(job["entryPoint"], session),
            arguments=list(job.get("entryPointArguments", [])),
            python_path=python_path,
            conf=conf,
            environment={**session.environment, **environment},
            folder=str(work),
            mirror=str(self._folder / "s3"),
            stdout=str(self._folder / "stdout"),
            stderr=str(self._folder / "stderr"),
            executor_delay=self._executors.delay,
            executor_loss=self._executors.loss,
        )
        return job_of_driver, launch_of(parameters.conf, machine_memory_mb(), jars)

    def _download(self, uri: str, session: Session) -> str:
        """Download one of the job's files with the job's credentials; return its path."""
        parts = urlsplit(uri)
        if parts.scheme not in {"s3", "s3a"}:
            raise RunFailedError(f"The job's file {uri} is not on S3; upload it and name it as s3://bucket/key")
        name = re.sub(r"[^\w.-]", "_", Path(parts.path).name)
        folder = self._folder / "code" / f"{len(list((self._folder / 'code').iterdir())):03d}"
        folder.mkdir()
        try:
            with (folder / name).open("wb") as file:
                body = session.s3.get_object(Bucket=parts.netloc, Key=parts.path.lstrip("/"))["Body"]
                shutil.copyfileobj(body, file)
        except (ClientError, BotoCoreError) as error:
            raise RunFailedError(f"The job's file {uri} cannot be read with the job's role: {error}") from error
        return str(folder / name)

    def _policy_documents(self) -> list[str]:
        """Return the policies that say what the run may do: those of its session, else the job role's."""
        policy: Mapping[str, Any] = self._run.request.get("executionIamPolicy", {})
        documents = [policy["policy"]] if policy.get("policy") else []
        documents += [self._iam.managed_policy(arn) for arn in policy.get("policyArns", [])]
        if not documents:
            role = self._run.request["executionRoleArn"].rsplit("/", 1)[-1]
            documents = list(self._iam.role_policies(role))
        return documents

    def _expand(self, prefixes: list[ReadablePrefix]) -> list[ReadablePrefix]:
        return expand_buckets(prefixes, self._iam.buckets(), self._settings.code_buckets)

    def _mirror(self, session: Session, documents: list[str]) -> Mirror:
        mirror = Mirror(
            self._folder / "s3",
            self._folder / "staging",
            session.s3,
            self._settings.control,
            lambda: self._driver.open_for_writing() if self._driver else set(),
        )
        prefixes = self._expand(readable_prefixes(documents))
        count = mirror.fetch(prefixes)
        _logger.info("%s: %d objects mirrored from %d prefixes", self._run.run_id, count, len(prefixes))
        return mirror

    def _run_driver(
        self, driver_job: DriverJob, launch: Launch, mirror: Mirror, on_running: Callable[[], None]
    ) -> JobOutcome:
        driver = self._driver = self._drivers.acquire(launch)
        if not self._settings.workers.reuse:
            for name in ("stdout", "stderr"):
                os.link(driver.folder / name, self._folder / name)
        ended = threading.Event()
        pusher = threading.Thread(target=self._push_control_files, args=(ended, mirror, driver), daemon=True)
        try:
            if self._stop_requested.is_set() or not driver.wait_until_ready():
                raise RunFailedError(f"The driver did not start; see {driver.folder / 'stderr'}")
            on_running()
            pusher.start()
            self._at_work = driver
            outcome = driver.run(driver_job, lambda request: self._synchronize(request, mirror, driver))
        finally:
            self._at_work = None
            ended.set()
            if pusher.is_alive():
                pusher.join()
            self._drivers.release(driver)
        try:
            mirror.push(everything=True)
        except MirrorError as error:
            raise RunFailedError(self._push_error or str(error)) from error
        if self._push_error:
            raise RunFailedError(self._push_error)
        return outcome

    def _synchronize(self, request: SyncRequest, mirror: Mirror, driver: Driver) -> SyncAnswer:
        """Bring S3 or the mirror up to date for a job that uses S3 beside Spark."""
        try:
            if request.is_push:
                mirror.push_complete()
            else:
                mirror.pull(request.names)
        except MirrorError as error:
            if request.is_push:
                self._fail_push(error, driver)
            return SyncAnswer(str(error), mirror.unseen)
        return SyncAnswer(unseen=mirror.unseen)

    def _fail_push(self, error: MirrorError, driver: Driver) -> None:
        self._push_error = self._push_error or str(error)
        driver.kill()

    def _push_control_files(self, ended: threading.Event, mirror: Mirror, driver: Driver) -> None:
        while not ended.wait(_PUSH_EVERY):
            try:
                mirror.push(everything=False)
            except MirrorError as error:
                self._fail_push(error, driver)
                return


def _absolute_entries(folder: Path, python_path: str) -> list[str]:
    """Split a PYTHONPATH, and resolve relative entries against the job's working folder."""
    # Without links a reused driver finds the modules of an archive at one path in all runs.
    return [str((folder / entry).resolve()) for entry in python_path.split(os.pathsep) if entry]


def mounts(mirror: Mirror) -> dict[str, str]:
    """Return the Spark configuration that mounts the mirror at `s3://` and `s3a://`.

    The files have no checksums beside them, which Hadoop writes for `file://`: any key but theirs could be a key of S3.
    """
    conf = {f"spark.hadoop.fs.{_DISK}.impl": _FILES}
    for scheme in ("s3", "s3a"):
        conf[f"spark.hadoop.fs.{scheme}.impl"] = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
        target = f"spark.hadoop.fs.viewfs.overload.scheme.target.{scheme}.impl"
        conf[target] = _FILES
    for bucket in mirror.buckets:
        folder = (mirror.root / bucket).as_uri().replace("file:", f"{_DISK}:", 1)
        conf[f"spark.hadoop.fs.viewfs.mounttable.{bucket}.linkFallback"] = folder
    return conf
