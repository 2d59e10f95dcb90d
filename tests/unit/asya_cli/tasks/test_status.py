"""`asya status`: the report of a task."""

import json
import re
from io import StringIO
from typing import Self, cast

import pytest
from msgspec.structs import replace
from rich.console import Console

from asya.capabilities.fan_in.set_view import MissingSlice, SetView
from asya.capabilities.operations.mesh_numbers import ActorNumbers, MeshNumbers, Unread
from asya.capabilities.operations.payloads import CopyKind, KeptHop
from asya.client.mesh_client import StoredObject
from asya.client.operations import Operations
from asya.protocol.codec import decode
from asya.protocol.envelope import Route
from asya.protocol.errors import ErrorInfo, TaskProblem
from asya.protocol.pause import ShownValue, TaskPause
from asya.protocol.task import Cancellation, EarlierGeneration
from asya.tasks.view import RetryView, TaskView
from asya_cli.tasks.report import show_set, show_task_report
from asya_cli.tasks.status import envelope_of, restart_command, where_it_waits

FAILED = TaskView(
    id="one",
    status="failed",
    progress_percent=48,
    actor="b",
    route=Route(("a",), "b", ("c",)),
    error=ErrorInfo(type="ValueError", message="no such column"),
    reason="RuntimeError",
    created_at="2026-01-01T00:00:00.000000Z",
    updated_at="2026-01-01T00:00:01.000000Z",
    generation=0,
    result_uri="s3://bucket/results/failed/one.json",
)
STORED = {
    "id": "one",
    "route": {"prev": ["a"], "curr": "b", "next": ["c"]},
    "status": {
        "phase": "failed",
        "reason": "RuntimeError",
        "attempt": 3,
        "max_attempts": 3,
        "error": {"type": "ValueError", "message": "no such column", "traceback": "Traceback…\nline 7"},
    },
    "payload": {},
}


def report(task: TaskView | None, stored: dict[str, object] | None) -> str:
    output = StringIO()
    body = json.dumps(stored).encode() if stored else b""
    item = StoredObject("s3://bucket/results/failed/one.json", body) if stored else None
    show_task_report(Console(file=output, width=120), task, item, decode(body) if stored else None)
    return output.getvalue()


def test_a_failure_shows_error_actor_and_attempts() -> None:
    text = report(FAILED, STORED)
    assert "one  failed (RuntimeError)" in text
    assert "a ✓ → b ● → c" in text
    assert "3 of 3" in text
    assert "ValueError: no such column" in text
    assert "line 7" in text
    assert "s3://bucket/results/failed/one.json" in text


def test_a_redriven_task_shows_its_earlier_generations() -> None:
    earlier = EarlierGeneration(
        generation=0, status="failed", ended_at="2026-01-01T00:00:00Z", actor="b", reason="DeliveryExhausted"
    )
    text = report(replace(FAILED, generation=1, earlier=(earlier,)), None)
    assert "generation 0: failed (DeliveryExhausted) at b, 2026-01-01T00:00:00Z" in text


def test_a_running_task_shows_its_progress() -> None:
    running = TaskView(
        id="two",
        status="running",
        progress_percent=45,
        actor="b",
        route=Route(("a",), "b", ()),
        attempt=2,
        created_at="2026-01-01T00:00:00.000000Z",
        updated_at="2026-01-01T00:00:01.000000Z",
        generation=0,
    )
    text = report(running, None)
    assert "two  running  45 %" in text
    assert "a ✓ → b ●" in text
    assert "stored as" not in text


@pytest.mark.rule("13.retry")
@pytest.mark.parametrize(
    ("next_at", "end"),
    [("2026-01-01T00:01:00.000000Z", "is due at 2026-01-01T00:01:00.000000Z"), (None, "is at work")],
)
def test_a_retried_task_shows_its_last_error_its_attempts_and_the_next_one(next_at: str | None, end: str) -> None:
    retry = RetryView(
        attempt=3,
        max_attempts=5,
        error=ErrorInfo(type="KeyError", message="'price'"),
        failed_at="2026-01-01T00:00:01.000000Z",
        next_at=next_at,
    )
    attempt = 3 if next_at else 4
    running = replace(FAILED, status="running", error=None, reason=None, attempt=attempt, retry=retry)
    lines = [line.split(maxsplit=1) for line in report(running, None).splitlines()]
    assert ["attempt", f"{attempt} of 5"] in lines
    assert ["retry", f"attempt 3 of 5 failed: KeyError: 'price'; the next {end}"] in lines


def test_without_a_record_the_stored_envelope_is_shown() -> None:
    text = report(None, STORED)
    assert "one  failed (RuntimeError)" in text
    assert "reporting was off" in text


def test_an_object_that_is_not_an_envelope_is_not_decoded() -> None:
    assert envelope_of(StoredObject("s3://bucket/results/sump/one.json", b"not json")) is None
    assert envelope_of(None) is None


def test_a_running_task_shows_its_problem() -> None:
    problem = TaskProblem("AccessDenied", "the queue of c refuses messages of b")
    task = replace(FAILED, status="running", error=None, reason=None, problem=problem)
    assert "AccessDenied: the queue of c refuses messages of b" in report(task, None)


def test_an_error_is_printed_once() -> None:
    error = {
        "type": "ValueError",
        "message": "no such column",
        "traceback": "Traceback…\nline 7\nValueError: no such column\n",
    }
    text = report(FAILED, STORED | {"status": STORED["status"] | {"error": error}})
    assert text.count("no such column") == 1
    assert text.rstrip().endswith("line 7")


def test_a_running_set_shows_which_slices_are_missing() -> None:
    slices = [MissingSlice(slice_index=index, id=f"slice-{index}", is_lost=index == 2) for index in range(2, 27)]
    due_at = "2026-01-01T00:05:00.000000Z"
    waits_for = SetView(set_id="set", position=1, slice_count=30, arrived=5, missing=slices, due_at=due_at)
    output = StringIO()
    show_set(Console(file=output, width=120), waits_for)
    lines = output.getvalue().splitlines()
    assert lines[0].split() == ["slices", "waits", "for", "25", "of", "30,", "until", due_at]
    assert lines[1].split() == ["2", "slice-2", "ended", "without", "a", "result"]
    assert lines[2].split() == ["3", "slice-3"]
    assert lines[-1].split() == ["…", "and", "5", "more"]


def test_a_canceled_task_says_who_canceled_it_and_is_where_its_record_says() -> None:
    canceled = replace(
        FAILED,
        status="canceled",
        reason="Canceled",
        error=None,
        canceled=Cancellation(at="2026-01-01T00:00:01Z", by="AIDAOSCAR"),
    )
    passed_on = STORED | {
        "route": {"prev": ["a", "b"], "curr": "x-resume", "next": ["c"]},
        "status": {"phase": "canceled"},
    }
    text = report(canceled, passed_on)
    assert re.search(r"canceled +by AIDAOSCAR at 2026-01-01T00:00:01Z", text)
    assert "a ✓ → b ● → c" in text
    child = replace(canceled, canceled=Cancellation(at="2026-01-01T00:00:01Z", root="order-1"))
    assert "with its root order-1 at 2026-01-01T00:00:01Z" in report(child, None)


@pytest.mark.rule("11.pause.shown-to", "11.pause.shown-value")
def test_a_paused_task_shows_values_of_the_payload() -> None:
    shown = (
        ShownValue(pointer="/total", text="3544790567247868102", type="number"),
        ShownValue(pointer="/report", text='{\n  "price": 12345678901234567.89,\n…', type="object", cut=True),
        ShownValue(pointer="/note"),
        ShownValue(pointer="", text="\x1b[2J", type="string"),
    )
    pause = TaskPause(prompt="Publish it?", fields=(), since="2026-01-01T00:00:01.000000Z", shown=shown)
    text = report(replace(FAILED, status="paused", error=None, reason=None, pause=pause), None)
    assert "  waiting for Publish it?\n  /total      3544790567247868102\n" in text
    assert (
        '  /report     \n              {\n                "price": 12345678901234567.89,\n              …  (shortened)\n'
        in text
    )
    assert "  /note       missing\n" in text
    assert "  payload     \\x1b[2J\n" in text


def test_the_deadline_of_a_paused_task_stands_still() -> None:
    pause = TaskPause(prompt="Ship it?", fields=(), since="2026-01-01T00:00:01Z")
    paused = replace(FAILED, status="paused", error=None, reason=None, pause=pause, deadline_at="2026-01-01T00:05:00Z")
    assert re.search(
        r"deadline +stands still while the task is paused; it was 2026-01-01T00:05:00Z", report(paused, None)
    )


class KeptHops:
    """A mesh that keeps some payloads of the task `one`."""

    def __init__(self, *hops: KeptHop) -> None:
        self.hops = list(hops)

    def kept_hops(self, envelope_id: str) -> list[KeptHop]:
        return self.hops if envelope_id == "one" else []


def kept(hop: int, copy: CopyKind | None) -> KeptHop:
    return KeptHop(hop=hop, actor="a", generation=0, before=copy is not None, after=True, size=1, copy=copy)


@pytest.mark.parametrize(
    ("hops", "command"),
    [
        ((kept(0, None), kept(1, "input")), "asya replay one --from 1 --state x"),
        ((kept(2, "checkpoint"),), "asya replay one --from-checkpoint 2 --state x"),
        ((kept(0, "dead_letter"),), None),
    ],
)
def test_a_canceled_task_is_started_again_where_its_input_is_kept(
    hops: tuple[KeptHop, ...], command: str | None
) -> None:
    canceled = replace(FAILED, status="canceled", canceled=Cancellation(at="", by="AIDAOSCAR"))
    assert restart_command(cast("Operations", KeptHops(*hops)), canceled, " --state x") == command


class UnreadQueues:
    """A mesh with two queues that nobody reads; one has messages."""

    @property
    def mesh(self) -> Self:
        return self

    def tasks(self, **_: object) -> list[TaskView]:
        return []

    def numbers(self, actors: list[str] | None = None) -> MeshNumbers:
        unread = Unread(reason="event source mapping disabled", repair="aws lambda …")
        found = [
            ActorNumbers(name=name, kind="handler", waiting=waiting, in_flight=0, dead_letters=0, not_read=unread)
            for name, waiting in (("label", 4), ("quote", 0))
            if actors is None or name in actors
        ]
        return MeshNumbers(namespace="shop", at="", actors=found, edges=[], tools=[])


@pytest.mark.parametrize(("lacks_slices", "names"), [(False, []), (True, ["label"])])
def test_a_slice_that_no_function_has_received_may_wait_on_any_queue(lacks_slices: bool, names: list[str]) -> None:
    split = replace(FAILED, status="running", error=None, actor="split", route=Route((), "split", ("x-fan-in",)))
    found = where_it_waits(cast("Operations", UnreadQueues()), split, lacks_slices=lacks_slices)
    assert [actor.name for actor in found] == names
