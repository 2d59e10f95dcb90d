"""Calls one handler or job on this machine, in the environment that it has on AWS, and reports what it gave."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from asya.capabilities.legacy.options import Responses
from asya.heavy.run_formation import encode_manifest, form
from asya.heavy.run_request import DATA_URI_VARIABLE, run_conf
from asya.heavy.run_sizes import UnfitSizeError, measure, size_of, sized
from asya.protocol import states
from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import Commit, Manifest, Member, ResultFrame, ResultHead, manifest_key
from asya.protocol.times import format_time
from asya_infra.build.code_tree import handler_tree, job_tree
from asya_infra.build.folder import build_once
from asya_infra.build.functions import build_layer
from asya_infra.build.library import copy_library, library_inputs
from asya_infra.build.packages import Target, build_folder_packages
from asya_infra.mesh_file.legacy.variables import handler_variables
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for
from asya_infra.product.places import BUILD, JOB_LIBRARY
from asya_local.emr.drivers.class_archive import driver_options
from asya_local.emr.drivers.job_environment import job_python, spark_home
from asya_local.emr.drivers.private_settings import submit_options
from asya_local.emr.local_spark import data_files, files_here, launch_of, local_conf, unheeded_notes
from asya_local.emr.submit_parameters import SubmitParameters, missing_catalog
from asya_local.errors import LocalCloudError
from asya_local.sources import table_bytes
from asya_local.tools import find_tools, function_python, machine_memory_mb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from asya.protocol.mesh_table import Actor, SparkJob
    from asya_infra.mesh_file import LoadedMesh


class CallRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a handler.

    Attributes:
        id: of the envelope.
        handler: `module.function`.
        mode, responses: `handler_mode` and `responses`.
        timeout: seconds.
        next: the actors after this one in the route.
    """

    id: str
    actor: str
    handler: str
    mode: str
    lists_fan_out: bool
    responses: Responses
    timeout: float
    payload: msgspec.Raw
    next: tuple[str, ...] = ()


class JobCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a job.

    Attributes:
        id: of the envelope. A job that appends once appends once for each id.
        data_uri: the base of references.
    """

    id: str
    actor: str
    payload: msgspec.Raw
    data_uri: str


class GivenFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A frame with what the handler changed for it.

    Attributes:
        payload: absent for the origin of a fan-out, which carries the received payload.
        next: the rest of the route as the handler left it; None if it did not change it.
        headers, status: what the handler set; null for what it deleted.
    """

    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    next: tuple[str, ...] | None = None
    headers: dict[str, msgspec.Raw] = {}
    status: dict[str, msgspec.Raw] = {}


class GivenCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command that a generator yielded, such as `("SET", ".route.next", […])`, with its answer or its error."""

    command: tuple[Any, ...]
    answer: Any = None
    error: str | None = None


class CallReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave.

    Attributes:
        commands: those of a light generator, in order.
        partials: the values of its FLY commands.
        error: why it failed; None if it did not.
        timed_out: whether the time limit ended it.
    """

    frames: tuple[GivenFrame, ...] = ()
    commands: tuple[GivenCommand, ...] = ()
    partials: tuple[Any, ...] = ()
    error: ErrorInfo | None = None
    timed_out: bool = False
    milliseconds: float = 0.0

    def with_paths(self, as_written: Callable[[str], str]) -> CallReport:
        """Return the report with other paths in its error: its author has the files, and not their copies."""
        if self.error is None:
            return self
        error = replace(
            self.error,
            message=as_written(self.error.message),
            traceback=as_written(self.error.traceback) if self.error.traceback else self.error.traceback,
        )
        return replace(self, error=error)


_RUNNER = Path(__file__).with_name("handler_runner.py")


def call_handler(
    loaded: LoadedMesh, request: CallRequest, actor: Actor, variables: Mapping[str, str], data_uri: str
) -> CallReport:
    """Call a handler once. What it prints appears at once.

    Args:
        loaded: The mesh.
        request: The call.
        actor: The actor of the handler.
        variables: Its environment variables, secrets included.
        data_uri: The base of references.

    Raises:
        PackagesError: A required package cannot be installed.
        LocalCloudError: The process of the handler ended without a report, such as by `os._exit`.
    """
    cloud_python = Path(find_tools(spark=False, cdk=False).cloud_python)
    target = Target(interpreter=interpreter_for(FUNCTION_PYTHON).path)
    layer = build_layer(BUILD, target)
    tree = handler_tree(BUILD, target, loaded.code_folder, table_bytes(loaded, ""), hashed=loaded.mesh.requires_hashes)
    environment = {
        **{name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TZ")},
        **handler_variables(actor),
        **variables,
        "ASYA_ACTOR": request.actor,
        "ASYA_DATA_URI": data_uri,
        "LAMBDA_TASK_ROOT": str(tree.content),
        # The order of Lambda: the user's code with its packages, then the layer.
        "PYTHONPATH": os.pathsep.join([str(tree.content), str(layer / "python")]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with tempfile.TemporaryDirectory(prefix="asya-run-") as folder:
        request_file, report_file = Path(folder, "request.json"), Path(folder, "report.json")
        request_file.write_bytes(msgspec.json.encode(request))
        # With -P the folder of the runner is not on the path: its modules have names that the user's may have too.
        command = [str(function_python(BUILD, cloud_python)), "-P", str(_RUNNER)]
        command += [str(request_file), str(report_file)]
        ended = subprocess.run(command, env=environment, cwd=tree.content, check=False)
        if not report_file.exists():
            raise LocalCloudError(
                f"The process of {request.handler} ended with code {ended.returncode} and gave nothing. On AWS its message "
                "would come again, and then be a dead letter."
            )
        return msgspec.json.decode(report_file.read_bytes(), type=CallReport).with_paths(tree.as_written)


_AT = datetime(2026, 1, 1, tzinfo=UTC)


def run_job(
    loaded: LoadedMesh, call: JobCall, actor: Actor, *, variables: Mapping[str, str], tell: Callable[[str], None]
) -> CallReport:
    """Run a job for one envelope. What it and Spark print appears at once.

    Spark starts with the configuration that a run of the mesh gets.

    Args:
        loaded: The mesh.
        call: The call.
        actor: The actor.
        variables: Its environment variables, secrets included.
        tell: Takes a note on what this machine cannot honour.

    Raises:
        PackagesError: A required package cannot be installed.
        LocalCloudError: Java is missing, the job needs a catalog of AWS, or the driver ended without results.
    """
    assert actor.spark is not None
    try:
        member = _member(call, measure(call.payload, call.actor, actor.spark))
    except UnfitSizeError as unfit:
        return CallReport(error=unfit.error)
    if size := size_of(member, actor.spark):
        tell(f"{call.actor}: the run has the size {size}")
    job = sized(actor.spark, size)
    parameters = SubmitParameters(run_conf(job, {DATA_URI_VARIABLE: call.data_uri}, None))
    if (problem := missing_catalog(parameters.conf)) is not None:
        raise LocalCloudError(problem)
    files = _Files.of(actor.spark, parameters, data_files(loaded, call.data_uri))
    for note in (
        *unheeded_notes({call.actor: msgspec.structs.replace(actor, spark=job)}, machine_memory_mb()),
        *files.notes(call.actor),
    ):
        tell(note)
    java = find_tools(cdk=False).java_home
    target, hashed = Target(interpreter=job_python(BUILD)), loaded.mesh.requires_hashes
    packages = build_folder_packages(BUILD, loaded.jobs_folder, target, hashed=hashed)
    tree = job_tree(BUILD, loaded.jobs_folder)
    with tempfile.TemporaryDirectory(prefix="asya-run-") as folder:
        manifest = Path(folder) / manifest_key(call.actor, 1)
        manifest.parent.mkdir(parents=True)
        manifest.write_bytes(encode_manifest(_manifest(loaded, member, call.actor, actor)))
        path = [*files.python, str(tree.content), *([str(packages)] if packages else []), str(_library())]
        environment = {
            **{key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "TZ")},
            **variables,
            "JAVA_HOME": java,
            "SPARK_HOME": str(spark_home()),
            "PYSPARK_PYTHON": str(job_python(BUILD)),
            "PYTHONPATH": os.pathsep.join(path),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_SUBMIT_ARGS": f"{_submit_options(parameters, files, java, Path(folder))} pyspark-shell",
        }
        command = [str(job_python(BUILD)), "-m", "asya_spark"]
        command += ["--manifest", f"file://{manifest}", "--data-uri", call.data_uri]
        ended = subprocess.run(command, env=environment, cwd=folder, check=False)
        return _report(manifest.parent, actor.spark.job, ended.returncode).with_paths(tree.as_written)


@dataclasses.dataclass(frozen=True)
class _Files:
    """The files of a call: paths on this machine, and the addresses of those that it lacks."""

    jars: list[str]
    beside: list[str]
    python: list[str]
    lacking: list[str]

    @classmethod
    def of(cls, job: SparkJob, parameters: SubmitParameters, find: Callable[[str], str | None]) -> _Files:
        jars, no_jars = files_here(parameters.files("spark.jars"), find)
        beside, not_beside = files_here(parameters.files("spark.files"), find)
        python, no_python = files_here(job.py_files, find)
        return cls(jars, beside, python, [*no_jars, *not_beside, *no_python, *job.archives])

    def notes(self, actor: str) -> Iterator[str]:
        """Yield a note if the call lacks files."""
        if self.lacking:
            yield (
                f"{actor}: `asya run` reads no S3, so the job runs without {', '.join(self.lacking)}; put files of the mesh's "
                "data below the data folder, or use `asya local up`"
            )


def _submit_options(parameters: SubmitParameters, files: _Files, java: str, folder: Path) -> str:
    """Return the options of spark-submit: what a driver of the local cloud starts with, and what its context gets."""
    launch = launch_of(parameters.conf, machine_memory_mb(), tuple(files.jars))
    conf = local_conf(parameters.conf)
    if files.beside:
        conf["spark.files"] = ",".join(files.beside)
    launch = dataclasses.replace(launch, conf=(*launch.conf, *conf.items()))
    return submit_options(launch, "local[2]", driver_options(BUILD, java, spark_home()), folder)


def _library() -> Path:
    def build(folder: Path) -> None:
        copy_library(folder)
        (folder / "asya_spark").symlink_to(JOB_LIBRARY)

    return build_once(BUILD, "run-library", [*library_inputs(), str(JOB_LIBRARY)], build)


def _member(call: JobCall, measured: float | None) -> Member:
    envelope = {
        "id": call.id,
        "route": {"prev": [], "curr": call.actor, "next": []},
        "status": {"phase": states.PROCESSING, "attempt": 1},
        "payload": msgspec.Raw(call.payload),
    }
    return Member(
        id=call.id,
        position=0,
        attempt=1,
        admitted_at=format_time(_AT),
        measure=measured,
        envelope=msgspec.Raw(msgspec.json.encode(envelope)),
    )


def _manifest(loaded: LoadedMesh, member: Member, name: str, actor: Actor) -> Manifest:
    manifest = form([member], namespace=loaded.namespace, actor=name, spec=actor, number=1, now=_AT)
    return msgspec.structs.replace(manifest, linger=0.0)


def _report(folder: Path, job: str, code: int) -> CallReport:
    commits = list(folder.glob("attempts/*/commit.json"))
    if not commits:
        raise LocalCloudError(f"The driver of {job} ended with code {code} and gave nothing; its output is above.")
    commit = msgspec.json.decode(commits[0].read_bytes(), type=Commit)
    lines = [line for part in commit.parts for line in (commits[0].parent / part.file).read_bytes().splitlines()]
    if not lines:
        return CallReport(error=commit.error or ErrorInfo(type="SparkJobFailed", message="the job gave no result"))
    head = msgspec.json.decode(lines[0], type=ResultHead)
    frames = tuple(
        GivenFrame(
            payload=frame.payload,
            next=frame.next,
            headers=dict(frame.headers),
            status=dict(frame.status),
        )
        for frame in (msgspec.json.decode(line, type=ResultFrame) for line in lines[1:])
    )
    error = head.error
    if head.end == states.TIMED_OUT and error is None:
        error = ErrorInfo(type="Timeout", message=f"the job took longer than {head.limit:g}s")
    return CallReport(frames=frames, error=error, timed_out=head.end == states.TIMED_OUT, milliseconds=head.duration_ms)
