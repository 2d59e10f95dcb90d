"""A driver: a process that does what `asya_spark.main` does, with its own code for everything but Spark itself."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

from asya.runtime.time_limit import TimeLimitReached
from asya_spark import dataframe_shape, journal, payload_shape, results
from asya_spark.attempt import Attempt
from asya_spark.errors import JobError, describe
from asya_spark.journal import Journal
from asya_spark.manifest import Manifest, load_envelope, read_manifest
from asya_spark.results import Result, ResultWriter
from asya_spark.timed import Ending
from tests.simulation.heavy.job_rows import RowsJob
from tests.simulation.heavy.job_service import JobRun
from tests.simulation.heavy.run_files import RunFiles
from tests.simulation.process import Process, ProcessDied, Work, current_process, running
from tests.simulation.queues import Message
from tests.simulation.storage import Bucket

T = TypeVar("T")


@dataclass(frozen=True)
class UserJobs:
    """What the user's jobs folder holds, by actor: `job(spark, payload)`, or rows for all envelopes of a run."""

    payloads: dict[str, Callable[[Any], Any]]
    frames: dict[str, RowsJob]


@dataclass(frozen=True)
class Driver:
    """One driver at work."""

    process: Process

    def kill(self) -> None:
        """End it where it stands."""
        if self.process.is_alive:
            self.process.note("DIES of a signal")
            self.process.is_alive = False


def start_driver(
    run: JobRun, ended: Callable[[bool], None], *, process: Process, bucket: Bucket, jobs: UserJobs
) -> Driver:
    """Start a driver for a run; `ended` is told when it is over, and whether it ended well."""

    def body() -> None:
        with running(process):
            try:
                _run(run.manifest_uri, RunFiles(process, bucket), process, jobs)
            except ProcessDied:
                ended(False)
                return
            except Exception as error:  # noqa: BLE001 - a driver that raises exits, and the run has failed
                process.note(f"raised {error!r}")
                ended(False)
                return
        ended(True)

    process.nature.scheduler.start(body)
    return Driver(process)


def _run(manifest_uri: str, files: RunFiles, process: Process, jobs: UserJobs) -> None:
    """`asya_spark.main.run`, line by line, but for the session and the heartbeat."""
    manifest = read_manifest(files, manifest_uri)
    process.work = _work(manifest, files, process)
    attempt = f"{process.now():%Y%m%dT%H%M%S}-{process.new_span()[:8]}"
    folder = f"{manifest.folder}attempts/{attempt}/"
    book = Journal(files, folder, manifest.run_id, attempt)
    process.note(f"attempt {attempt} at {manifest.run_id}: {len(manifest.members)} envelopes")
    spark: Any = SimpleNamespace(sparkContext=None)
    error = _evaluated(Attempt(spark, manifest, files, book, ResultWriter(files, folder, book)), jobs)
    book.commit(error)


def _evaluated(attempt: Attempt, jobs: UserJobs) -> JobError | None:
    actor = attempt.manifest.actor
    if attempt.manifest.shape == "dataframe":
        return _frame_of_envelopes(jobs.frames[actor], attempt)
    handler = jobs.payloads[actor]
    payload_shape.run_payloads(lambda _, payload: handler(payload), attempt)
    return None


def _frame_of_envelopes(job: RowsJob, attempt: Attempt) -> JobError | None:
    """`asya_spark.dataframe_shape.run_dataframe` with lists of rows in the place of DataFrames."""
    manifest, writer = attempt.manifest, attempt.writer
    envelopes = [load_envelope(attempt.files, manifest, member) for member in manifest.members]
    ending = run_within(manifest.timeout, lambda: job([one.payload for one in envelopes]), None, attempt.name)
    if ending.timed_out:
        for member in manifest.members:
            result = Result(member.index)
            result.end("timed_out", limit=manifest.timeout)
            writer.add(result)
        writer.flush()
        return None
    if ending.error is not None or ending.value is None:
        return describe(ending.error or ValueError("the job returned nothing"))
    rows: Any = SimpleNamespace(toLocalIterator=lambda: iter(ending.value or ()))
    for result in dataframe_shape._results(rows, manifest):
        writer.add(result)
    writer.flush()
    return None


def _work(manifest: Manifest, files: RunFiles, process: Process) -> Work:
    """The members as the onlooker takes them: as messages. With a DataFrame of them time limits are the run's, not theirs."""
    seconds = process.nature.scheduler.seconds
    if manifest.shape == "dataframe":
        return Work(manifest.actor, [], seconds)
    bodies = [
        files.bucket.objects[member.key].decode() if member.key else _text(member.inline) for member in manifest.members
    ]
    messages = [
        Message(f"{manifest.run_id}/{place}", manifest.actor, body, seconds, seconds, "")
        for place, body in enumerate(bodies)
    ]
    return Work(manifest.actor, messages, seconds)


def _text(envelope: Any) -> str:
    return json.dumps(envelope)


def run_within(seconds: float, work: Callable[[], T], _context: object, _group: str) -> Ending[T]:
    """`asya_spark.timed.run_within` without a thread: user code says where it spends its time."""
    try:
        return Ending(current_process().run_within(seconds, work))
    except TimeLimitReached:
        return Ending(timed_out=True)
    except ProcessDied:
        raise
    except BaseException as error:  # noqa: BLE001 - as in the real one
        return Ending(error=error)


class _Clock:
    """`datetime` as the driver's modules use it."""

    fromisoformat = datetime.fromisoformat

    @staticmethod
    def now(_zone: object = None) -> datetime:
        """The process's time of day."""
        return current_process().now()


@contextmanager
def drivers_on_stage() -> Iterator[None]:
    """Within, `asya_spark`'s modules take time, threads and chance from the process that runs them."""
    patches = (
        mock.patch.object(payload_shape, "run_within", run_within),
        mock.patch.object(payload_shape, "datetime", _Clock),
        mock.patch.object(payload_shape, "print", lambda *_, **__: None, create=True),
        mock.patch.object(journal, "datetime", _Clock),
        mock.patch.object(results, "time", SimpleNamespace(monotonic=lambda: current_process().monotonic())),
    )
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield
