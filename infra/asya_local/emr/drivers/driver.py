"""A Spark driver process: starts its JVM, waits for a job, runs it, says how it ended.

Started by `asya_local.emr.drivers.pool` as a script of its own; imports nothing of ours, so that a job sees what it would
see on EMR Serverless: the standard library, pyspark and the installed packages, and the files it brings.

    driver.py <file descriptor to read assignments from> <file descriptor to write to> [--reuse]

The driver writes `ready`, then for each assignment (one line of JSON) one line of JSON: the exit code, and the last
line of the error if there was one. Without --reuse it takes one assignment and exits as the job did.
"""

import contextlib
import json
import os
import runpy
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from typing import Any

# Paths that an editable install of some project added: the job must not find that project's modules by accident.
_INSTALLED = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sys.base_prefix, sys.prefix)
sys.path[:] = [path for path in sys.path if path.startswith(_INSTALLED)]
sys.meta_path[:] = [finder for finder in sys.meta_path if not type(finder).__module__.startswith("__editable__")]

from pyspark import SparkContext  # noqa: E402
from pyspark.java_gateway import launch_gateway  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402


@contextlib.contextmanager
def _job_environment(job: dict[str, Any], gateway: Any) -> Iterator[None]:
    """The job's arguments, environment, paths and Spark configuration; taken away again afterwards."""
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
        gateway.jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # mounts of this job's folder
        for name in set(sys.modules) - modules:
            if not name.startswith(("pyspark", "py4j", "numpy", "pandas", "pyarrow")):
                del sys.modules[name]
        sys.path[:], sys.argv = path, arguments
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)


def _run(job: dict[str, Any], gateway: Any) -> dict[str, Any]:
    outcome: dict[str, Any] = {"exit_code": 0, "error": ""}
    try:
        with _job_environment(job, gateway):
            runpy.run_path(job["entry_point"], run_name="__main__")
    except SystemExit as ended:
        code = ended.code
        if isinstance(code, str):
            print(code, file=sys.stderr)
        outcome["exit_code"] = code if isinstance(code, int) else int(code is not None)
        outcome["error"] = code if isinstance(code, str) else ""
    except BaseException as error:  # noqa: BLE001 - whatever a job raises is how the job ended
        traceback.print_exc()
        outcome = {"exit_code": 1, "error": "".join(traceback.format_exception_only(error)).strip()}
    sys.stdout.flush()
    sys.stderr.flush()
    return outcome


@contextlib.contextmanager
def _redirected_output(job: dict[str, Any], *, redirect: bool) -> Iterator[None]:
    """In a driver that is used again, each job's output goes to that job's files."""
    if not redirect:
        yield
        return
    kept = os.dup(1), os.dup(2)
    for number, name in ((1, "stdout"), (2, "stderr")):
        log = os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(log, number)
        os.close(log)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def main(read_from: int, write_to: int, *, reuse: bool) -> int:
    """Serve assignments; returns the last job's exit code."""
    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)
    outcome: dict[str, Any] = {"exit_code": 0}
    with os.fdopen(read_from) as assignments, os.fdopen(write_to, "w", buffering=1) as answers:
        answers.write("ready\n")
        for line in assignments:
            job = json.loads(line)
            with _redirected_output(job, redirect=reuse):
                outcome = _run(job, gateway)
            answers.write(json.dumps(outcome) + "\n")
            if not reuse:
                break
    return int(outcome["exit_code"])


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), reuse="--reuse" in sys.argv))
