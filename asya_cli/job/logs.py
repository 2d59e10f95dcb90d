"""`asya job logs`: the logs that EMR Serverless writes for the driver and the executors of a run."""

from __future__ import annotations

import gzip
import re
import time
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli.errors import CommandError
from asya_cli.job.options import RunId
from asya_cli.options import DEFAULT_STATE, Namespace, Profile, Region, State, client
from asya_cli.output.text import echo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from asya.spark.aws.run_items import RunRecord
    from asya_cli.job.mesh_runs import MeshRuns

POLL_SECONDS = 5.0
# EMR Serverless uploads the last lines after the end of a run.
LAST_SECONDS = 30.0
DRIVER = "driver"

_FILE = re.compile(
    r"/jobs/(?P<job>[^/]+)/(?P<role>SPARK_DRIVER|SPARK_EXECUTOR/(?P<executor>[^/]+))/(?P<stream>std(?:out|err))[^/]*\.gz$"
)


def logs(
    run_id: RunId,
    *,
    executor: Annotated[
        str | None, typer.Option("--executor", metavar="N", help="The logs of this executor instead of the driver's.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines until the run has ended.")] = False,
    state: State = DEFAULT_STATE,
    namespace: Namespace = None,
    region: Region = None,
    profile: Profile = None,
) -> None:
    """Print the logs of a job run from the mesh's bucket: stdout and stderr of the driver, or of one executor.

    EMR Serverless uploads logs at intervals, not line by line: what a run writes appears after a minute or more, and the
    last lines after its end. For a live view open the Spark UI that `asya job show` links to. The local cloud uploads the
    driver's logs once, at the end of the run, and has no executors.
    """
    from asya_cli.job.mesh_runs import MeshRuns, aws_errors

    mesh = MeshRuns(client(state, namespace, region, profile).connection)
    with aws_errors(f"cannot read the logs of {run_id}"):
        record = mesh.read(run_id)
        tail = LogTail(mesh, record, executor or DRIVER)
        if follow:
            follow_logs(tail, lambda: mesh.read(run_id), time.sleep)
        else:
            tail.print_new()
        others = sorted(tail.workers - {tail.worker})
        if not tail.has_printed:
            raise CommandError(
                f"there are no logs of the {_named(tail.worker)} of {run_id} yet",
                f"There are logs of: {', '.join(map(_named, others))}."
                if others
                else "EMR Serverless uploads them at intervals, and only after the start of the run.",
            )
        if others:
            echo(f"there are also logs of: {', '.join(map(_named, others))}", err=True)


@dataclass
class LogTail:
    """Prints the logs of one worker, and later what was uploaded since.

    Attributes:
        worker: `driver`, or the number of an executor.
        workers: All workers whose logs were seen.
    """

    mesh: MeshRuns
    record: RunRecord
    worker: str
    workers: set[str] = field(default_factory=set)
    has_printed: bool = False
    # The version and the number of printed characters of each object.
    _printed: dict[str, tuple[str, int]] = field(default_factory=dict)

    def print_new(self) -> bool:
        """Print what is new; return whether anything is.

        Raises:
            botocore.exceptions.ClientError: S3 denies access.
        """
        is_new = False
        for key, version, stream in self._objects():
            before, length = self._printed.get(key, ("", 0))
            if version == before:
                continue
            text = unpacked(self.mesh.s3.get_object(Bucket=self.mesh.bucket, Key=key)["Body"].read())
            # Each upload replaces the whole file. A shorter one is another file, such as after a rotation.
            start = length if len(text) >= length else 0
            if not self.has_printed or start == 0:
                echo(f"==> {_named(self.worker)} {stream} <==", err=True)
            if text[start:]:
                echo(text[start:].rstrip("\n"))
            self._printed[key] = (version, len(text))
            self.has_printed = is_new = True
        return is_new

    def _objects(self) -> Iterator[tuple[str, str, str]]:
        """Yield key, version and stream of the worker's files."""
        from asya.protocol.job_runs import logs_prefix
        from asya.spark.aws.run_items import job_run_number

        prefix = logs_prefix(self.record.actor, job_run_number(self.record))
        pages = self.mesh.s3.get_paginator("list_objects_v2").paginate(Bucket=self.mesh.bucket, Prefix=prefix)
        for entry in (entry for page in pages for entry in page.get("Contents", [])):
            found = _FILE.search(entry["Key"])
            if found is None:
                continue
            worker = found["executor"] or DRIVER
            self.workers.add(worker)
            if worker == self.worker:
                yield entry["Key"], entry["ETag"], found["stream"]


def follow_logs(tail: LogTail, read: Callable[[], RunRecord], sleep: Callable[[float], None]) -> None:
    """Print new lines until the run has ended and its last lines are uploaded; of an ended run, what there is.

    Args:
        read: Reads the record again.
    """
    quiet, is_first = 0.0, True
    while quiet < LAST_SECONDS:
        record = read()
        has_ended = record.usage is not None or record.state == "closed"
        is_new = tail.print_new()
        if has_ended and is_first and is_new:
            return
        is_first = False
        quiet = quiet + POLL_SECONDS if has_ended and not is_new else 0.0
        sleep(POLL_SECONDS)


def unpacked(body: bytes) -> str:
    """Return the text of a gzip file, as far as it is complete."""
    try:
        return gzip.decompress(body).decode(errors="replace")
    except (EOFError, OSError, zlib.error):
        unpacker = zlib.decompressobj(wbits=31)
        try:
            return unpacker.decompress(body).decode(errors="replace")
        except zlib.error:
            return body.decode(errors="replace")  # a file that is not compressed


def _named(worker: str) -> str:
    return DRIVER if worker == DRIVER else f"executor {worker}"
