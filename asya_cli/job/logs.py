"""`asya job logs`: the logs that EMR Serverless writes for the driver and the executors of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from asya_cli import clock
from asya_cli.errors import CommandError
from asya_cli.job.options import RunId
from asya_cli.options import MeshOptions, selects_mesh
from asya_cli.output.text import echo

if TYPE_CHECKING:
    from collections.abc import Callable

    from asya.capabilities.operations.aws.logs import LogFile
    from asya.heavy.aws.run_records import RunRecord
    from asya_cli.job.mesh_runs import MeshRuns

POLL_SECONDS = 5.0
# EMR Serverless uploads the last lines after the end of a run.
LAST_SECONDS = 30.0
DRIVER = "driver"


@selects_mesh
def logs(
    run_id: RunId,
    *,
    executor: Annotated[
        str | None, typer.Option("--executor", metavar="N", help="The logs of this executor instead of the driver's.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines until the run has ended.")] = False,
    selected: MeshOptions,
) -> None:
    """Print the logs of a job run from the mesh's bucket: stdout and stderr of the driver, or of one executor.

    EMR Serverless uploads logs at intervals, not line by line: what a run writes appears after a minute or more, and the
    last lines after its end. For a live view open the Spark UI that `asya job show` links to. The local cloud uploads the
    driver's logs once, at the end of the run, and has no executors.
    """
    from asya_cli.job.mesh_runs import MeshRuns, run_errors

    options = selected.as_typed()
    mesh = MeshRuns(selected.client().connection, options)
    with run_errors(f"cannot read the logs of {run_id}"):
        record = mesh.read(run_id)
        tail = LogTail(mesh, record, executor or DRIVER)
        if follow:
            follow_logs(tail, lambda: mesh.read(run_id), clock.sleep)
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
        for file in self._files():
            before, length = self._printed.get(file.key, ("", 0))
            if file.version == before:
                continue
            text = self.mesh.logs.text(file)
            # Each upload replaces the whole file. A shorter one is another file, such as after a rotation.
            start = length if len(text) >= length else 0
            if not self.has_printed or start == 0:
                echo(f"==> {_named(self.worker)} {file.stream} <==", err=True)
            if text[start:]:
                echo(text[start:].rstrip("\n"))
            self._printed[file.key] = (file.version, len(text))
            self.has_printed = is_new = True
        return is_new

    def _files(self) -> list[LogFile]:
        """Return the worker's files."""
        files = self.mesh.logs.files(self.record)
        self.workers.update(file.worker for file in files)
        return [file for file in files if file.worker == self.worker]


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


def _named(worker: str) -> str:
    return DRIVER if worker == DRIVER else f"executor {worker}"
