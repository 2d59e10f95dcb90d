"""A Spark driver process: starts its JVM, runs jobs and reports their outcomes.

`asya_local.emr.drivers.pool` starts it as a script, in an environment with the standard library and pyspark
(`job_environment.py`). The script imports nothing else, so that a job finds only what comes with its run besides.

    driver.py <file descriptor to read jobs from> <file descriptor to write outcomes to> [--reuse]

The driver writes `ready`. It reads each job as one line of JSON, and answers with one line of JSON: the exit code, and the error
of a failed job. Before, it may write requests to synchronize S3 (`s3_sync.py`), each of which gets one line as its answer: the
error, and the objects that Spark does not see then.
Without `--reuse` it runs one job and exits with the job's exit code.
"""

import contextlib
import json
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from pyspark import RDD, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrameReader, DataFrameWriter, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader, DataStreamWriter


def _beside(name: str) -> dict[str, Any]:
    """Load a module beside this script, which a job must not find."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    return runpy.run_path(path, run_name=name)


_refusing = _beside("refused_paths")["refusing"]
_faulty_executors = _beside("executors")["faulty_executors"]
_synchronizing = _beside("s3_sync")["synchronizing"]
_WITH_PATHS = (
    *(DataFrameReader, DataFrameWriter, DataStreamReader, DataStreamWriter),
    *(SparkContext, RDD, SparkSession),
)


@contextlib.contextmanager
def _job_environment(job: dict[str, Any], gateway: Any) -> Iterator[None]:
    """Set the job's arguments, environment, paths and Spark configuration; restore them afterwards."""
    system = gateway.jvm.java.lang.System
    environment, modules, path, folder, arguments = (
        dict(os.environ),
        set(sys.modules),
        list(sys.path),
        os.getcwd(),
        sys.argv,
    )
    os.environ.update(job["environment"])
    os.chdir(job["folder"])
    sys.argv = [job["entry_point"], *job["arguments"]]
    sys.path[:0] = [os.path.dirname(job["entry_point"]), *job["python_path"]]
    for key, value in job["conf"].items():
        system.setProperty(key, value)
    try:
        yield
    finally:
        context = SparkContext._active_spark_context
        if context is not None:
            context.stop()
        SparkSession._instantiatedSession = None
        for key in job["conf"]:
            system.clearProperty(key)
        gateway.jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # they cache the mounts of this job
        _forget(set(sys.modules) - modules)
        sys.path[:], sys.argv = path, arguments
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)


def _forget(modules: set[str]) -> None:
    """Remove the modules of a job, whose state is its own, but for packages with compiled parts: some load only once."""
    compiled = {
        name.partition(".")[0]
        for name in modules
        if (getattr(sys.modules[name], "__file__", None) or "").endswith(".so")
    }
    for name in modules:
        if name.partition(".")[0] not in {"pyspark", "py4j", *compiled}:
            del sys.modules[name]


def _run(job: dict[str, Any], gateway: Any, ask: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    outcome: dict[str, Any] = {"exit_code": 0, "error": ""}
    unseen: dict[str, str] = dict(job["unseen"])

    def synchronize(request: dict[str, Any]) -> str:
        answer = ask(request)
        unseen.update(answer["unseen"])
        for name in unseen.keys() - answer["unseen"].keys():
            del unseen[name]
        return str(answer["error"])

    try:
        with (
            _job_environment(job, gateway),
            _synchronizing(job["mirror"], gateway, synchronize),
            _refusing(job["refused_paths"], *_WITH_PATHS, readable=job["readable_paths"], unseen=unseen),
            _faulty_executors(SparkContext, job["executor_delay"], job["executor_loss"]),
        ):
            runpy.run_path(job["entry_point"], run_name="__main__")
    except SystemExit as system_exit:
        code = system_exit.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
        outcome["exit_code"] = code if isinstance(code, int) else int(code is not None)
        outcome["error"] = code if isinstance(code, str) else ""
    except BaseException as error:  # noqa: BLE001 - each exception is the outcome of a job
        traceback.print_exc()
        outcome = {"exit_code": 1, "error": "".join(traceback.format_exception_only(error)).strip()}
    sys.stdout.flush()
    sys.stderr.flush()
    return outcome


@contextlib.contextmanager
def _redirected_output(job: dict[str, Any], *, redirect: bool) -> Iterator[None]:
    """Redirect the output to the job's own files in a reused driver."""
    if not redirect:
        yield
        return
    originals = os.dup(1), os.dup(2)
    for number, name in ((1, "stdout"), (2, "stderr")):
        log = os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(log, number)
        os.close(log)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, original in zip((1, 2), originals, strict=True):
            os.dup2(original, number)
            os.close(original)


def main(read_from: int, write_to: int, *, reuse: bool) -> int:
    """Run jobs; return the exit code of the last one."""
    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)
    outcome: dict[str, Any] = {"exit_code": 0}
    with os.fdopen(read_from) as jobs, os.fdopen(write_to, "w", buffering=1) as outcomes:

        def ask(request: dict[str, Any]) -> dict[str, Any]:
            outcomes.write(json.dumps(request) + "\n")
            return dict(json.loads(jobs.readline()))

        outcomes.write("ready\n")
        while line := jobs.readline():
            job = json.loads(line)
            with _redirected_output(job, redirect=reuse):
                outcome = _run(job, gateway, ask)
            outcomes.write(json.dumps(outcome) + "\n")
            if not reuse:
                break
    return int(outcome["exit_code"])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), reuse="--reuse" in sys.argv))
