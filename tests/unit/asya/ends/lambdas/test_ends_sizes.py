"""protocol §5.must-arrive, §11.index: an end of any size reaches the record, and the index of results has its row."""

import json
import random
from typing import Any

import pytest
from msgspec import UNSET, Raw

from asya.ends.lambdas.wiring import build_sump
from asya.protocol.events import EVENT_LIMIT, TaskEvent
from asya.protocol.mesh_table import Sink
from asya.tasks.received_reports import read_events
from tests.doubles.envelopes import mesh, status
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event
from tests.doubles.sink import ended, run_sink

SIZES = (0, 100, 60_000, 120_000, 135_000, 200_000, EVENT_LIMIT - 300, EVENT_LIMIT, 300_000, 600_000, 950_000)
TEXTS = ("x", "\x01", "\u00fc", "\ufffe", "\U0001f600")
ERROR = {"type": "E", "message": "bad", "mro": [], "traceback": ""}
MESSAGE_LIMIT = 1_000_000
INDEXED = Sink(index=True)


def names(size: int, length: int = 62) -> list[str]:
    """Names of actors with about so many bytes."""
    return ["n" * length] * (size // (length + 3))


def text(size: int, unit: str) -> str:
    """A text with about so many bytes of JSON, of characters that SQS takes as they are or escaped."""
    return unit * (size // (len(json.dumps(unit)) - 2))


def generated(seed: int) -> dict[str, Any]:
    """Members of an end: each is small or large."""
    numbers = random.Random(seed)

    def size(share: float = 0.3) -> int:
        return numbers.choice(SIZES) if numbers.random() < share else 0

    unit = numbers.choice(TEXTS)
    error = {
        "type": text(size(), unit),
        "message": text(size(), unit),
        "mro": [text(numbers.randrange(2_000), unit) for _ in range(size() // 2_000)],
        "traceback": text(size(), unit),
    }
    return {
        "route": {"prev": names(size(0.6), numbers.choice((0, 5, 62, 5_000))), "curr": "", "next": names(size())},
        "headers": {
            "tenant": text(size(), unit),
            "x-asya-owner": text(size(), unit),
            "x-asya-tool": text(size(), unit),
        },
        "error": error,
        "reason": text(size(), unit) or "RuntimeError",
        "actor": text(size(), unit) or "infer",
        "created_at": f"2026-11-20T11:59:00.{'0' * (size() or 6)}Z",
        "payload": text(numbers.choice((0, 65_000)), "x"),
    }


def bodies(phase: str) -> list[bytes]:
    """Ends that a queue takes, also as the mesh writes them: in ASCII."""
    found = []
    for seed in range(50):
        given = generated(seed)
        names_of_status = ("reason", "actor", "created_at")
        block = {name: given.pop(name) for name in names_of_status} | {"error": given.pop("error")}
        if phase != "failed":
            block.pop("error")
        body = ended(phase, **given, id=f"env-{seed}", status=status(phase=phase, **block))
        if len(json.dumps(json.loads(body))) <= MESSAGE_LIMIT:
            found.append(body)
    assert len(found) > 20
    return found


def run(world: MeshWorld, door: str, body: bytes, *, sink: Sink = INDEXED) -> list[str]:
    if door == "x-sink":
        return run_sink(world, body, options=sink)
    return batch_failures(build_sump(world.services(door, mesh(sink=sink))).process(sqs_event(body)))


@pytest.mark.rule("5.must-arrive", "11.index")
@pytest.mark.parametrize(("door", "phase"), [("x-sink", "succeeded"), ("x-sink", "failed"), ("x-sump", "failed")])
@pytest.mark.usefixtures("sink_claims")
def test_an_end_of_any_size_is_on_record_and_in_the_index(world: MeshWorld, door: str, phase: str) -> None:
    for body in bodies(phase):
        reports: list[bytes] = []
        world.gateway.watch = lambda _queue, text, to=reports: to.append(text)
        assert run(world, door, body) == []
        given = json.loads(body)
        (read,) = [each for report in reports for each in read_events(report)]
        assert isinstance(read, TaskEvent), (given["id"], read)
        assert (read.id, read.status) == (given["id"], phase)
        if phase == "succeeded":
            assert (read.data.result is UNSET) == (len(json.dumps(given["payload"])) > 64 * 1024)
        rows = [json.loads(bytes(read.row))] if isinstance(read.row, Raw) else []
        for key in world.s3.keys("results/index/recent/"):
            rows += map(json.loads, world.s3.content(key).splitlines())
            del world.s3.objects[key]
        is_of_sump = (door, phase) == ("x-sink", "failed")
        expected = [] if is_of_sump else [(given["id"], given["route"]["prev"])]
        assert [(row["id"], row["route"]) for row in rows] == expected


@pytest.mark.rule("5.must-arrive")
@pytest.mark.usefixtures("sink_claims")
def test_a_result_that_only_its_report_holds_stays_whatever_the_route(world: MeshWorld) -> None:
    """With `large_only` x-sink writes no object for it."""
    for size in SIZES:
        prev = names(min(size, 900_000))
        body = ended(id=f"env-{size}", payload="y" * 65_000, route={"prev": prev, "curr": "", "next": []})
        assert run(world, "x-sink", body, sink=Sink(index=True, large_only=True)) == []
        assert world.gateway.events[-1].data.result == Raw(b'"' + b"y" * 65_000 + b'"')
