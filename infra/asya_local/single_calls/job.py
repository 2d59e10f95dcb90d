"""Runs one job in the environment of job runs."""

from __future__ import annotations

import os
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from asya.heavy.manifest_lines import encode_manifest
from asya.heavy.run_formation import form
from asya.protocol.errors import ErrorInfo
from asya.protocol.job_runs import Commit, Manifest, Member, ResultFrame, ResultHead, manifest_key
from asya.protocol.times import format_time
from asya_infra.build.code_tree import job_tree
from asya_infra.build.folder import build_once
from asya_infra.build.folder_packages import build_folder_packages
from asya_infra.build.library import copy_library, library_inputs
from asya_infra.build.packages import Target
from asya_infra.product.places import BUILD, JOB_LIBRARY
from asya_local.emr.drivers.class_archive import driver_options
from asya_local.emr.drivers.job_environment import job_python, spark_home
from asya_local.errors import LocalCloudError
from asya_local.single_calls.report import CallReport, GivenFrame
from asya_local.tools import find_tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asya.protocol.mesh_table import Actor
    from asya_infra.mesh_file import LoadedMesh

_SPARK = (
    "--master local[2]",
    "--conf spark.ui.enabled=false",
    "--conf spark.ui.showConsoleProgress=false",
    "--conf spark.driver.bindAddress=127.0.0.1",
)
_AT = datetime(2026, 1, 1, tzinfo=UTC)


def run_job(
    loaded: LoadedMesh, name: str, actor: Actor, payload: bytes, *, variables: Mapping[str, str], data_uri: str
) -> CallReport:
    """Run a job for one envelope. What it and Spark print appears at once.

    Args:
        loaded: The mesh.
        name: The name of the actor.
        actor: The actor.
        payload: The payload as JSON.
        variables: Its environment variables, secrets included.
        data_uri: The base of references.

    Raises:
        PackagesError: A required package cannot be installed.
        LocalCloudError: Java is missing, or the driver ended without results.
    """
    assert actor.spark is not None
    java = find_tools(cdk=False).java_home
    target, hashed = Target(interpreter=job_python(BUILD)), loaded.mesh.requires_hashes
    packages = build_folder_packages(BUILD, loaded.jobs_folder, target, hashed=hashed)
    tree = job_tree(BUILD, loaded.jobs_folder)
    with tempfile.TemporaryDirectory(prefix="asya-run-") as folder:
        manifest = Path(folder) / manifest_key(name, 1)
        manifest.parent.mkdir(parents=True)
        manifest.write_bytes(encode_manifest(_manifest(loaded, name, actor, payload)))
        path = [str(tree.content), *([str(packages)] if packages else []), str(_library())]
        environment = {
            **{key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "TZ")},
            **variables,
            "JAVA_HOME": java,
            "SPARK_HOME": str(spark_home()),
            "PYSPARK_PYTHON": str(job_python(BUILD)),
            "PYTHONPATH": os.pathsep.join(path),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_SUBMIT_ARGS": " ".join(
                [
                    *_SPARK,
                    f"--driver-java-options '{driver_options(BUILD, java, spark_home())}'",
                    f"--conf spark.sql.warehouse.dir={folder}/warehouse pyspark-shell",
                ]
            ),
        }
        command = [str(job_python(BUILD)), "-m", "asya_spark"]
        command += ["--manifest", f"file://{manifest}", "--data-uri", data_uri]
        ended = subprocess.run(command, env=environment, cwd=folder, check=False)
        return _report(manifest.parent, actor.spark.job, ended.returncode).with_paths(tree.as_written)


def _library() -> Path:
    def build(folder: Path) -> None:
        copy_library(folder)
        (folder / "asya_spark").symlink_to(JOB_LIBRARY)

    return build_once(BUILD, "run-library", [*library_inputs(), str(JOB_LIBRARY)], build)


def _manifest(loaded: LoadedMesh, name: str, actor: Actor, payload: bytes) -> Manifest:
    envelope = {
        "id": "run",
        "route": {"prev": [], "curr": name, "next": []},
        "status": {"phase": "processing", "attempt": 1},
        "payload": msgspec.Raw(payload),
    }
    member = Member(
        id="run",
        position=0,
        attempt=1,
        admitted_at=format_time(_AT),
        envelope=msgspec.Raw(msgspec.json.encode(envelope)),
    )
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
    if head.end == "timed_out" and error is None:
        error = ErrorInfo(type="Timeout", message=f"the job took longer than {head.limit:g}s")
    return CallReport(frames=frames, error=error, timed_out=head.end == "timed_out", milliseconds=head.duration_ms)
