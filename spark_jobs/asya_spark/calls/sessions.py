"""Gives each call of user code a Spark session of its own (`protocol §10.session`).

Before any envelope is at work, waits for the first executor of the run (`protocol §10.warm-up`).
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar, copy_context
from typing import Any

import pyspark.sql.session as session_module
from pyspark import RDD, SparkContext
from pyspark.sql import SparkSession, SQLContext

from asya_spark.calls.process_state import ProcessState
from asya_spark.calls.work import work_of

_STREAM_STOP_MILLISECONDS = 10_000

_active: ContextVar[SparkSession] = ContextVar("asya_spark_session")
# The session that the JVM's side of a thread has.
_of_thread = threading.local()


class ContextStoppedError(RuntimeError):
    """The SparkContext of the run was stopped, which ends the process."""


class Sessions:
    """The sessions of a run's calls. They share the context, its executors and its cache.

    Args:
        observe: reads the state of the process that each call finds; None if calls may change it.
    """

    def __init__(self, root: SparkSession, observe: Callable[[SparkSession], ProcessState] | None = None) -> None:
        self.root = root
        self._open = 0
        self._observe = observe
        self._process: ProcessState | None = None

    def open(self) -> SparkSession:
        """A new session, without views, settings and functions of any other one."""
        if self._process is None and self._observe is not None:
            # Not before: what the module of the job sets at its import holds for all calls.
            self._process = self._observe(self.root)
        session = self.root.newSession()
        self._open += 1
        return session

    def work_of(self, group: str) -> dict[str, Any] | None:
        """What Spark has measured of the calls of a job group; None if it does not tell."""
        return work_of(self.root, group) if is_running(self.root) else None

    def close(self, session: SparkSession) -> None:
        """Stops the streams of a session; after the last one, drops and restores what all share: caches, views, the process.

        Raises:
            ContextStoppedError: if the context is stopped, so that no call can follow.
        """
        self._open -= 1
        context: Any = self.root.sparkContext._jsc
        if not is_running(self.root):
            raise ContextStoppedError(
                "the SparkContext was stopped: by Spark, as after too many lost executors, or by the job's own code through "
                "the JVM; the driver's log says more"
            )
        _stop_streams(session)
        if not self._open:
            session.catalog.clearCache()
            for rdd in context.getPersistentRDDs().values():
                rdd.unpersist(False)
            shared: Any = session._jsparkSession.sharedState()
            shared.globalTempViewManager().clear()
            if self._process is not None:
                self._process.restore()


def is_running(session: SparkSession) -> bool:
    """Whether the context of a session can run jobs."""
    context: Any = session.sparkContext._jsc
    return context is not None and not context.sc().isStopped()


def _stop_streams(session: SparkSession) -> None:
    """Stops the streams of a session; one that does not stop in time goes on, because no other envelope may wait for it."""
    session.conf.set("spark.sql.streaming.stopTimeout", _STREAM_STOP_MILLISECONDS)
    for query in session.streams.active:
        try:
            query.stop()
        except Exception as error:  # noqa: BLE001 - a source of the user's may raise anything
            print(f"asya_spark: stream {query.id} not stopped: {type(error).__name__}: {error}", flush=True)


@contextmanager
def active_session(session: SparkSession) -> Iterator[None]:
    """Makes a session the one that user code gets within the block."""
    token = _active.set(session)
    try:
        _activate(session)
        yield
    finally:
        _active.reset(token)


@contextmanager
def own_sessions() -> Iterator[None]:
    """Within the block, user code that asks for the session gets that of its envelope, and cannot stop it."""
    with ExitStack() as stack:
        for owner, name, make in _SUBSTITUTES:
            original = owner.__dict__[name]
            setattr(owner, name, make(original))
            stack.callback(setattr, owner, name, original)
        yield


class _CallersSession(SparkSession):
    """The session of a module: each use of it is one of the calling envelope's session."""

    def __init__(self, root: SparkSession) -> None:
        object.__setattr__(self, "_root", root)

    def __getattribute__(self, name: str) -> Any:
        if name == "__class__":
            return _CallersSession
        return getattr(_current() or object.__getattribute__(self, "_root"), name)


def _activate(session: SparkSession) -> None:
    """Makes a session that of this thread in the JVM too, which parses and plans with the settings of the active one."""
    if getattr(_of_thread, "session", None) is not session:
        jvm_class: Any = SparkSession._get_j_spark_session_class(session._jvm)
        jvm_class.setActiveSession(session._jsparkSession)
        _of_thread.session = session


def _current() -> SparkSession | None:
    session = _active.get(None)
    if session is not None:
        _activate(session)
    return session


def _get_or_create(original: Any) -> Any:
    def get_or_create(builder: Any) -> SparkSession:
        session = _current()
        if session is None:
            return _CallersSession(original(builder))
        # As the original does for an existing session: settings of the context stay.
        jvm_module: Any = SparkSession._get_j_spark_session_module(session._jvm)
        jvm_module.applyModifiableSettings(session._jsparkSession, builder._options)
        return session

    return get_or_create


def _get_active(original: Any) -> Any:
    def get_active(cls: Any) -> SparkSession | None:
        session = _current()
        if session is None and (shared := original.__get__(None, cls)()) is not None:
            return _CallersSession(shared)
        return session

    return classmethod(get_active)


def _get_sql_context(original: Any) -> Any:
    def get_or_create(cls: Any, context: SparkContext) -> SQLContext:
        session = _current()
        return original.__get__(None, cls)(context) if session is None else SQLContext(context, session)

    return classmethod(get_or_create)


def _stop(_original: Any) -> Any:
    def stop(self: SparkSession | SparkContext) -> None:
        print(
            f"asya_spark: {type(self).__name__}.stop() does nothing in a job, because the run stops Spark", flush=True
        )

    return stop


def _to_dataframe(_original: Any) -> Any:
    def to_dataframe(rdd: Any, schema: Any = None, sample_ratio: Any = None) -> Any:
        return SparkSession.active().createDataFrame(rdd, schema, sample_ratio)

    return to_dataframe


def _start(original: Any) -> Any:
    def start(thread: Any) -> None:
        if _active.get(None) is not None:
            environment, run = copy_context(), thread.run
            thread.run = lambda: environment.run(run)
        original(thread)

    return start


def _submit(original: Any) -> Any:
    def submit(executor: ThreadPoolExecutor, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        if _active.get(None) is None:
            return original(executor, function, *arguments, **named)
        return original(executor, copy_context().run, function, *arguments, **named)

    return submit


def _keep(_original: Any) -> Any:
    """PySpark would let each new session replace `RDD.toDF` of all sessions."""
    return lambda _session: None


_SUBSTITUTES: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = (
    (SparkSession.Builder, "getOrCreate", _get_or_create),
    (SparkSession, "getActiveSession", _get_active),
    (SparkSession, "active", _get_active),
    (SparkSession, "stop", _stop),
    (SparkContext, "stop", _stop),
    (SQLContext, "getOrCreate", _get_sql_context),
    (RDD, "toDF", _to_dataframe),
    (session_module, "_monkey_patch_RDD", _keep),
    (threading.Thread, "start", _start),
    (ThreadPoolExecutor, "submit", _submit),
)


def warm_up(spark: SparkSession) -> None:
    """Runs one trivial task, which no time limit covers and no envelope is charged with.

    Raises:
        py4j.protocol.Py4JError: if Spark gives up; the run fails before any envelope was at work.
    """
    context, jvm = spark.sparkContext, spark._jvm
    one: Any = jvm.java.util.Collections.singletonList(1)  # type: ignore[union-attr]
    context.setJobDescription("wait for the first executor")
    try:
        context._jsc.parallelize(one, 1).count()
    finally:
        context.setJobDescription(None)  # type: ignore[arg-type]
