"""A simulated driver: a process that runs `asya_spark.main`, with lists of rows instead of DataFrames."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, TypeVar
from unittest import mock

from asya.heavy.run_formation import decode_manifest
from asya.protocol.job_runs import Manifest, Member
from asya.runtime.time_limit import TimeLimitReached
from asya.testing.services.clients import Bucket
from asya.testing.services.job_service import JobRun
from asya.testing.services.process import Process, ProcessCrashed, current_process, running
from asya.testing.services.queues import Message
from asya_spark import dataframe_job, main, payload_job, resident
from asya_spark.calls.time_limit import Ending
from asya_spark.manifest import load_envelope
from asya_spark.resident import Linger
from tests.simulation.heavy.job_rows import INDEX, RowsJob
from tests.simulation.heavy.run_files import ROOT, RunFiles
from tests.simulation.invocation import ObservedInvocation

T = TypeVar("T")


@dataclass(frozen=True)
class UserJobs:
    """The user's jobs by actor: payload jobs, and DataFrame jobs as functions of rows."""

    payloads: Mapping[str, Callable[[Any], Any]]
    frames: Mapping[str, RowsJob]

    def load(self, name: str, shape: str) -> Callable[[Any, Any], Any]:
        """The job function of a manifest."""
        actor = name.rpartition(".")[2]
        if shape == "dataframe":
            rows = self.frames[actor]
            return lambda _, envelopes: rows(envelopes)
        handler = self.payloads[actor]
        return lambda _, payload: handler(payload)


@dataclass(frozen=True)
class Driver:
    """A running driver."""

    process: Process

    def kill(self) -> None:
        """Kills the driver at once."""
        if self.process.is_alive:
            self.process.note("DIES of a signal")
            self.process.is_alive = False


@dataclass(frozen=True)
class Session:
    """Replaces the Spark session: gives access to the run's files and the user's jobs."""

    process: Process
    bucket: Bucket
    load: Callable[[str], Callable[[Any, Any], Any]]
    sparkContext: None = None  # noqa: N815


def start_driver(
    run: JobRun, ended: Callable[[bool], None], *, process: Process, bucket: Bucket, jobs: UserJobs
) -> Driver:
    """Starts a driver for a run; calls `ended` at its end with whether it succeeded."""
    manifest = decode_manifest([bucket.objects[run.manifest_uri.removeprefix(ROOT)]])
    session: Any = Session(process, bucket, lambda name: jobs.load(name, manifest.shape))
    sessions = _sessions

    linger = (
        Linger(float(run.argument("--linger")), float(run.argument("--limit"))) if run.argument("--linger") else None
    )

    def body() -> None:
        with running(process):
            sessions[process.name] = session
            try:
                main.run(session, run.manifest_uri, linger=linger)
            except ProcessCrashed:
                ended(False)
                return
            except Exception as error:  # noqa: BLE001 - a driver that raises exits, and the run has failed
                process.note(f"raised {error!r}")
                ended(False)
                return
            finally:
                del sessions[process.name]
        ended(True)

    process.simulation.scheduler.start(body)
    return Driver(process)


_sessions: dict[str, Session] = {}


def _invocation(manifest: Manifest, bucket: Bucket, process: Process) -> ObservedInvocation:
    """The members as messages, for the checks; none for a DataFrame job, whose time limit is the run's."""
    seconds = process.simulation.scheduler.seconds
    messages = [
        Message(f"{manifest.run_id}/{place}", manifest.actor, _body(member, bucket), seconds, seconds, "")
        for place, member in enumerate(manifest.members)
    ]
    return ObservedInvocation(manifest.actor, [] if manifest.shape == "dataframe" else messages, seconds)


def _body(member: Member, bucket: Bucket) -> str:
    if member.envelope_key is not None:
        return bucket.objects[member.envelope_key].decode()
    return bytes(member.envelope or b"").decode()


def _read_manifest(real: Callable[[Any, str], Any], files: RunFiles, uri: str) -> Any:
    """Reads a manifest; the members of a batch become the messages of the driver's invocation."""
    manifest = real(files, uri)
    process = current_process()
    content = decode_manifest([process_bucket(process).objects[uri.removeprefix(ROOT)]])
    process.invocation = _invocation(content, process_bucket(process), process)
    return manifest


def process_bucket(process: Process) -> Bucket:
    """The bucket of a driver."""
    return _sessions[process.name].bucket


def _load(name: str) -> Callable[[Any, Any], Any]:
    """Replaces `asya.runtime.load.load` in a driver."""
    return _sessions[current_process().name].load(name)


class Rows:
    """The rows of a job, with the DataFrame methods that `asya_spark.dataframe_job` calls."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def persist(self, _level: object) -> "Rows":
        """Does nothing, because the rows are in memory."""
        return self

    def unpersist(self) -> None:
        """See `persist`."""

    def count(self) -> int:
        """The number of rows."""
        return len(self._rows)

    def toLocalIterator(self) -> Iterator[dict[str, Any]]:  # noqa: N802
        """The rows in the order of the manifest."""
        return iter(self._rows)


def _frame(_spark: Any, rows: list[Any], members: Any, _column: Any) -> list[tuple[int, Any]]:
    """Index and payload of the members; the original returns a DataFrame."""
    return [(member.index, json.loads(payload)) for member, (_, payload, _) in zip(members, rows, strict=True)]


def _read_envelopes(files: Any, manifest: Any, members: Any, *, exact: bool = False) -> Iterator[Any]:
    """The envelopes of members without reading ahead, because threads would make schedules depend on chance."""
    return (load_envelope(files, manifest, member, exact=exact) for member in members)


def _ordered(_spark: Any, results: list[dict[str, Any]], _members: Any, _column: Any) -> Rows:
    return Rows(sorted(results, key=lambda row: row[INDEX]))


def run_within(seconds: float, work: Callable[[], T], _session: object, _group: str) -> Ending[T]:
    """`asya_spark.calls.time_limit.run_within` without a thread: user code declares the time it takes."""
    try:
        return Ending(current_process().run_within(seconds, work))
    except TimeLimitReached:
        return Ending(timed_out=True)
    except ProcessCrashed:
        raise
    except BaseException as error:  # noqa: BLE001 - as in the original
        return Ending(error=error)


class Calls:
    """`asya_spark.calls.time_limit.Calls` without threads: of the calls at work, any may end next.

    Each call takes its time from its own start, so calls at work at the same time do not wait for each other.
    """

    def __init__(self) -> None:
        self._at_work: dict[int, Callable[[], Ending[Any]]] = {}

    def start(self, index: int, seconds: float, work: Callable[[], Any], session: object, group: str) -> None:
        """See the original."""
        process = current_process()
        started = process.monotonic()

        def run() -> Ending[Any]:
            with process.back_at(started):
                return run_within(seconds, work, session, group)

        self._at_work[index] = run

    def wait(self) -> tuple[int, Ending[Any]]:
        """Runs one of the calls at work to its end."""
        indexes = list(self._at_work)
        index = indexes[int(current_process().random() * len(indexes))] if len(indexes) > 1 else indexes[0]
        return index, self._at_work.pop(index)()


class Sessions:
    """`asya_spark.calls.sessions.Sessions` without Spark."""

    def __init__(self, root: Session, _observe: object) -> None:
        self.root = root

    def open(self) -> Session:
        """The session of the driver."""
        return self.root

    def work_of(self, _group: str) -> None:
        """Without Spark there are no stages."""

    def close(self, _session: Session) -> None:
        """Does nothing, because user code leaves nothing behind."""


class _Clock:
    """`datetime` as the driver's modules use it."""

    fromisoformat = datetime.fromisoformat

    @staticmethod
    def now(_zone: object = None) -> datetime:
        """The current time of the process."""
        return current_process().now()


_TIME = SimpleNamespace(
    monotonic=lambda: current_process().monotonic(), sleep=lambda seconds: current_process().sleep(seconds)
)


@contextmanager
def activate_drivers() -> Iterator[None]:
    """Replaces clock, randomness, files and jobs of `asya_spark` by those of the current process."""
    with ExitStack() as stack:

        def put(module: ModuleType, name: str, other: Any) -> None:
            stack.enter_context(mock.patch.object(module, name, other, create=name == "print"))

        for name, module in list(sys.modules.items()):
            if name.startswith("asya_spark."):
                put(module, "print", lambda *_, **__: None)
                if hasattr(module, "datetime"):
                    put(module, "datetime", _Clock)
                if hasattr(module, "time"):
                    put(module, "time", _TIME)
        put(payload_job, "Calls", Calls)
        put(dataframe_job, "run_within", run_within)
        for shape in (payload_job, dataframe_job):
            put(shape, "active_session", lambda _session: nullcontext())
            put(shape, "envelopes", _read_envelopes)
        put(main, "Sessions", Sessions)
        put(main, "own_sessions", nullcontext)
        put(main, "warm_up", lambda _session: None)
        put(dataframe_job, "_frame", _frame)
        put(dataframe_job, "_ordered", _ordered)
        put(main, "HadoopFiles", lambda session: RunFiles(session.process, session.bucket))
        put(main, "resident_files", lambda session, *_: RunFiles(session.process, session.bucket))
        put(resident, "POLL_SECONDS", 1.0)  # fewer steps
        put(main, "is_at_work", lambda _attempt: False)
        put(main, "is_running", lambda _session: True)
        put(main, "read_manifest", partial(_read_manifest, main.read_manifest))
        put(main, "Heartbeat", lambda *_: nullcontext())
        put(main, "load", _load)
        put(main, "uuid4", lambda: SimpleNamespace(hex=current_process().new_span()))
        yield
