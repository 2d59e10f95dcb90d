"""The completion's memory and time for an envelope with many children (`protocol §10`)."""

import tracemalloc
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import msgspec
import pytest

from asya.function.aws import clients
from asya.heavy.aws.run_files import RunResults
from tests.doubles.heavy import HeavyWorld, TimedContext, done_result, heavy_world


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeavyWorld]:
    with heavy_world(monkeypatch) as heavy:
        yield heavy


class Routed:
    """A run of one envelope with many results, streamed as S3 streams them, and queues that keep nothing."""

    def __init__(self, world: HeavyWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self.sent = 0
        self.children = 0
        monkeypatch.setattr(RunResults, "lines", lambda *_: self._lines())
        monkeypatch.setattr(clients.sqs(), "send_message_batch", self._accept)

    def _lines(self) -> Iterator[bytes]:
        yield msgspec.json.encode({"index": 0, "end": "done", "frames": self.children, "duration_ms": 5.0})
        for number in range(self.children):
            yield b'{"payload":{"number":%d,"text":"%s"}}' % (number, b"x" * 200)

    def _accept(self, *, Entries: list[dict[str, Any]], **_: object) -> dict[str, Any]:  # noqa: N803
        self.sent += len(Entries)
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries], "Failed": []}

    def run(self, name: str, children: int) -> tuple[int, float]:
        """Route that many children of a new run; the most memory that was in use for it, in bytes, and how many seconds it took."""
        self.children, before = children, self.sent
        self.world.send(name)
        self.world.enqueue()
        self.world.dispatch()
        run = list(self.world.emr.runs)[-1]
        self.world.write_results(len(self.world.emr.runs), [done_result(0, 0)])
        self.world.set_state(run, "SUCCESS")
        tracemalloc.start()
        began = perf_counter()
        self.world.complete(TimedContext())
        took, most = perf_counter() - began, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert self.sent - before == children
        return most, took


@pytest.mark.rule("10.large")
@pytest.mark.slow
def test_10_the_memory_does_not_depend_on_the_number_of_children(
    world: HeavyWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    routed = Routed(world, monkeypatch)
    routed.run("first", 1_000)  # what is made once in a process
    few, _ = routed.run("few", 1_000)
    many, took = routed.run("many", 5_000)
    print(
        f"1,000 children: {few / 1e6:.1f} MB; 5,000: {many / 1e6:.1f} MB, {took:.0f} s with memory traced (`pytest -rP`)"
    )
    # Each child is an envelope of 600 bytes. The emulated table keeps something of each write.
    assert many - few < 100 * 4_000
