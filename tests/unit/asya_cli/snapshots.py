"""Compares what each command prints at 80 columns with recorded text: its help, its typical output, and an error.

To accept an intended change: `python -m tests.unit.asya_cli.snapshots`.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import defaultdict
from contextlib import chdir
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
import typer.main

from asya.capabilities.operations.mesh_numbers import ActorNumbers, MeshNumbers, RunNumbers
from asya.client.operations import Operations
from asya.protocol.times import parse_time
from asya.tasks.listing import TaskFilter
from asya_cli.clock import using
from asya_cli.job import mesh_runs
from asya_cli.main import app
from tests.doubles.command_clock import SetClock
from tests.doubles.command_line import Outcome, asya
from tests.doubles.dispatching import start_run
from tests.doubles.heavy import BUCKET, done_result, failed_result, heavy_world
from tests.doubles.operated_mesh import START, operated_mesh
from tests.doubles.senders import know_secrets, list_roles
from tests.unit.asya_cli.job.conftest import Operator, end_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.doubles.kit_cloud import KitCloud

RECORDED = Path(__file__).parent / "recorded"
ACCEPT = "If the change is intended: python -m tests.unit.asya_cli.snapshots"
ORDERS = '{"orders": [{"country": "NO", "total": 1}, {"country": "SE", "total": 1}]}'
RUN = "asya.flights.clean.0000000001"
_RUN_AGE = timedelta(minutes=12, seconds=5)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(\.\d+)?")

_MARK = re.compile(r"(smoke-\w+-)[0-9a-f]{12}")
_LETTER = '{"id": "NAME", "route": {"prev": [], "curr": "bill", "next": []}, "payload": {"country": "NO", "total": 1}}'

_NUMBERS = MeshNumbers(
    namespace="shop",
    at="2026-11-20T09:00:00Z",
    actors=[
        ActorNumbers(
            name="check", kind="handler", waiting=0, in_flight=1, dead_letters=0, per_minute=12, failing_per_minute=0.4
        ),
        ActorNumbers(
            name="fetch", kind="handler", waiting=37, in_flight=0, dead_letters=2, oldest_seconds=1210, circuit="open"
        ),
        ActorNumbers(
            name="clean",
            kind="spark",
            waiting=0,
            in_flight=0,
            dead_letters=0,
            runs=RunNumbers(pending=3, running=2, lingering=1, is_drained=False),
        ),
    ],
    edges=[],
    tools=[],
)

Pages = dict[str, str]
"""By the name of their file."""


def commands(command: Any = None, path: str = "asya") -> Iterator[tuple[str, Any]]:
    """Yield each command and group with what is typed for it."""
    command = typer.main.get_command(app) if command is None else command
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, f"{path} {name}")


def help_pages() -> Pages:
    """The help of each command and group."""
    return {f"help/{path}.txt": asya(*path.split()[1:], "--help").stdout for path, _ in commands()}


def output_pages() -> Pages:
    """What the commands print about a mesh in memory, and about its job runs."""
    pages: dict[str, list[str]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        with operated_mesh(Path(folder)) as cloud:
            for line, text in _lines(cloud):
                _note(pages, folder, line, asya(*line, text=text))
        with pytest.MonkeyPatch.context() as patch, heavy_world(patch) as world:
            list_roles(patch)
            know_secrets(patch)
            patch.setattr(mesh_runs.MeshRuns, "bucket", BUCKET)
            patch.setattr("asya.client.connection.read_local", lambda _: Operator(world))
            start_run(world, "order-1", "order-2")
            world.write_results(1, [done_result(0, 1), failed_result(1)])
            end_run(world, 1)
            formed_at = parse_time(json.loads(asya("job", "list", "--json").stdout)["formed_at"])
            with using(SetClock(lambda: formed_at + _RUN_AGE)):
                for line in _JOB_LINES:
                    _note(pages, folder, line, asya(*line))
    return {f"output/{name}.txt": "\n".join(blocks) for name, blocks in sorted(pages.items())}


def differences(name: str, recorded: str | None, current: str | None) -> str:
    """Return what is different; empty if nothing is."""
    if recorded == current:
        return ""
    return f"{name}:\n--- recorded\n{recorded}\n--- current\n{current}\n{ACCEPT}"


def read() -> Pages:
    """Read the recorded pages."""
    return {str(path.relative_to(RECORDED)): path.read_text() for path in RECORDED.rglob("*") if path.is_file()}


def write(pages: Pages) -> None:
    """Record pages in the place of the others."""
    for name in read().keys() - pages.keys():
        (RECORDED / name).unlink()
    for name, text in pages.items():
        (RECORDED / name).parent.mkdir(parents=True, exist_ok=True)
        (RECORDED / name).write_text(text)


def _lines(cloud: KitCloud) -> Iterator[tuple[list[str], str]]:
    """Yield command lines with their standard input."""

    def typed(line: str, *more: str, text: str = "{}") -> tuple[list[str], str]:
        return [*line.split(), *more], text

    def newest(status: str) -> str:
        tasks = cloud.mesh.tasks(status=status, parent=None, limit=10)  # type: ignore[arg-type]
        return next(task.id for task in tasks if task.parent_id is None)  # what became of a slice follows from its set

    yield typed("call order country=NO total=12.5 --wait")
    done = newest("succeeded")
    yield typed("call order country=SE total=12.5 --wait")
    failed = newest("failed")
    yield typed("call order total=1")
    yield typed("call ship country=NO total=12.5 --wait")
    paused = newest("paused")
    yield typed("call night --wait", ORDERS)
    night = next(task.id for task in cloud.mesh.iter_tasks(TaskFilter(status="failed", actor="x-fan-in")))
    yield typed("send - --actor check --next bill --id order-1 --wait", text='{"country": "DE", "total": 2}')
    yield typed("send - --actor bil")
    yield typed("send - --actor fetch --id fetch-1")
    for line in ("list", "list --status failed --json", "list --tool ship", "list --actor bil", "list --since 7x"):
        yield typed(line)
    for line in ("failures", "failures --json", "failures --tool night", "failures --actor gather"):
        yield typed(line)
    with mock.patch.object(Operations, "numbers", lambda _: _NUMBERS):  # the kit answers no calls for operators
        for line in ("actors", "actors --json"):
            yield typed(line)
    for name in ("order-1", failed, paused, night, "nope"):
        yield typed(f"status {name}")
    yield typed("status order-1 --timeline")
    yield typed(f"status {failed} --follow")
    yield typed("status order-1 --json")
    for name in ("order-1 --payload", f"{failed} -o failed.json", "fetch-1", "nope"):
        yield typed(f"result {name}")
    yield typed(f"resume {paused} --input", '{"approved": "yes"}')
    yield typed(f"resume {paused} --input", '{"approved": true}')
    yield typed(f"resume {done}")
    for options in ("--failed --dry-run", f"{night} --failed-only", f"{done}", "--failed --error KeyError", ""):
        yield typed(f"replay {options}")
    yield typed(f"replay {failed} --force --json")
    yield typed(f"status {failed}")
    yield typed("failures --all")
    for line in (f"dismiss {failed}", f"dismiss {done} --reason test", "dismiss --failed --dry-run --reason test"):
        yield typed(line)
    for options in ("--failed --reason not-served", f"{failed} --undo", f"{newest('failed')} --undo --json"):
        yield typed(f"dismiss {options}")
    for line in ("failures", "list --status failed", "replay --failed", f"status {newest('failed')}"):
        yield typed(line)
    for options in ("--running --dry-run", "fetch-1", "fetch-1 --json", "nope"):
        yield typed(f"cancel {options}")
    sqs = cloud.client("sqs")
    url = sqs.get_queue_url(QueueName="asya-shop-bill-dlq")["QueueUrl"]
    for name in ("letter-1", "letter-2"):
        sqs.send_message(QueueUrl=url, MessageBody=_LETTER.replace("NAME", name))
    with mock.patch("asya_cli.smoke.steps.Smoke._has_actor", lambda *_: False):  # no job run
        for line in _OTHER_LINES:
            yield typed(line)


_OTHER_LINES = (
    "dlq list", "dlq list --json", "dlq show letter-1", "dlq show nope", "dlq redrive --dry-run", "dlq redrive --json",
    "dlq redrive bil", "dlq reports replay", "dlq reports replay --json",
    "data put mesh.yaml raw/mesh.yaml", "data put none.csv raw/a.csv", "data ls", "data ls --json", "data ls none/",
    "data get none.csv", "data get raw/mesh.yaml copy.yaml",
    "logs check", "logs check --json", "logs order-1", "report", "report --tool order", "report --json",
    "smoke", "smoke --json", "smoke --arguments x.json", "doctor --synthesized none", "contracts --against none",
    "validate --no-limits", "validate --no-limits --json", "validate --mesh none.yaml", "run chek",
    "trigger fire yearly --at 2026-01-01T02:00", "trigger fire yearly --at 2026-01-02T02:00", "trigger list", "trigger list --json",
    "trigger show yearly", "trigger show nope", "trigger pause yearly", "trigger resume yearly",
    "backfill start yearly --from 2020-01-01 --to 2025-12-31 --dry-run", "backfill start nope --from 2026-01-01 --to 2026-01-02",
    "backfill list", "backfill show nope", "backfill resume nope", "backfill cancel nope", "local time 1x",
    "graph", "graph --format svg", "graph --format png", "graph -o no/such/folder.svg",
    "local status --state none", "local status --state none --json", "local env --state none", "local down --state none",
    "local up --mesh none.yaml", "dev --mesh none.yaml", "demo --keeep", "ui --port 70000",
    "deploy --mesh none.yaml", "diff --mesh none.yaml", "cost --mesh none.yaml", "destroy --mesh none.yaml",
    "cdk --mesh none.yaml list",
    "init desk", "init desk", "init desk --template heavy", "new actor refund --mesh desk/mesh.yaml",
    "new actor refund --mesh desk/mesh.yaml", "new spark-actor sum-up --mesh desk/mesh.yaml",
    "new tool pay --route refund --mesh desk/mesh.yaml", "new actor refund --mesh none.yaml",
    "new spark-actor Sum --mesh desk/mesh.yaml", "new tool pay --route refnd --mesh desk/mesh.yaml", "schema --mesh",
)  # fmt: skip
_JOB_LINES = [
    line.split()
    for line in (
        "job list", "job list --json", "job list cleen", f"job show {RUN}", f"job show {RUN} --json", "job show nope",
        f"job logs {RUN}", f"job cancel {RUN}", "job drain clean --reason compaction", "job list", "job undrain cleen",
    )
]  # fmt: skip


def _note(pages: dict[str, list[str]], folder: str, line: list[str], outcome: Outcome) -> None:
    """Add what a command has printed to the page of the command."""
    known = {path for path, command in commands() if not hasattr(command, "commands")}
    name = next(
        path
        for path in (f"asya {line[0]}", f"asya {' '.join(line[:2])}", f"asya {' '.join(line[:3])}")
        if path in known
    )
    shell = " ".join(part if re.fullmatch(r"[\w@%+=:,./-]+", part) else f"'{part}'" for part in line)
    errors = "".join(f"! {each}\n" for each in outcome.stderr.splitlines())
    code = f"[exit {int(outcome.code)}]\n" if outcome.code else ""
    text = f"$ asya {shell}\n{outcome.stdout}{errors}{code}"
    pages[name].append(_steady(text.replace(os.path.realpath(folder), "FOLDER").replace(folder, "FOLDER")))


def _steady(text: str) -> str:
    """Return a text without what differs between two runs, in the same width: times of this machine."""
    return _MOMENT.sub(_fixed, _MARK.sub(r"\g<1>0123456789ab", text))


def _fixed(moment: re.Match[str]) -> str:
    """Return a time of the mesh in memory as it is, and any other one as the start of its time."""
    day, separator, fraction = START.date().isoformat(), moment[1], moment[2]
    return moment[0] if moment[0].startswith(day) else f"{day}{separator}09:00:00" + (".000000" if fraction else "")


if __name__ == "__main__":
    write(help_pages() | output_pages())
