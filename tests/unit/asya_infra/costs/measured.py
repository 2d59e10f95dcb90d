"""Measures on a mesh in memory what a hop, a task and a sweep use, and records it for the costs: `make generated`.

A hop is what three actors use more than one, halved. A task is what remains of a route of one actor, and what sweeps read of it. In
the same way an actor of a sweep is what it uses more in a mesh with one actor more.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from asya import registry
from asya.capabilities.dead_letters.letters import watched_actors
from asya.client.calls import to
from asya.gateway.lambdas import report_queues
from asya.protocol import names
from asya.tasks.http_calls import CALL_TOOL
from asya.testing.api import USER_ID
from asya.testing.deployment import TEST_USER
from asya.testing.mesh import Mesh
from asya.testing.messages import produce
from asya_infra.costs.counts import FILE, LOADS, Load
from tests.doubles.call_meter import CallMeter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ACCEPT = "If the change is intended: python -m tests.unit.asya_infra.costs.measured"
ACTORS = ("one", "two", "three")
TASKS = 100
"""In full batches. Fewer show as much about messages that come alone."""
_HOPS_MORE = len(ACTORS) - 1
_MINUTES_OF_SWEEPS = 13
_SEEDS = 3
"""How many hops share a write depends on the order of messages, if batches are full."""
_ALL_SWEEPS = "namespace: shop\ncode: handlers\njobs: handlers\ncrew: {{routable: [{}x-fan-in, x-pause]}}\n"
"""The beginning of a mesh that has every sweep, with further actors of the crew."""
_MESH = """namespace: shop
code: handlers
actors:
  one: {handler: same.same}
  two: {handler: same.same}
  three: {handler: same.same}
tools:
  short: {description: One hop, route: [one], timeout: 6h, input_schema: {type: object}}
  long: {description: Three hops, route: [one, two, three], timeout: 6h, input_schema: {type: object}}
"""
_LARGE_ONLY = "sink: {large_only: true}\n"
_START = datetime(2026, 11, 28, 12, 0, 30, tzinfo=UTC)
_NO_WAIT = {"prefer": "wait=0"}
_LIGHT = "  light-{}: {{handler: same.same}}\n"
_HEAVY = "  heavy-{}: {{spark: {{job: same.run}}}}\n"


def measure() -> dict[str, Any]:
    """Measure everything."""
    found: dict[str, Any] = {"loads": {}, "sweeps": sweeps()}
    swept = _share(_difference(_sweeps_of(TASKS), _sweeps_of(0)), TASKS)
    for load in LOADS:
        seeds = range(_SEEDS if load.batch > 1 else 1)
        tasks = _number(load)
        long = _share(sum((_route("long", load, seed) for seed in seeds), Counter()), len(seeds))
        short = _route("short", load)
        silent_long, silent_short = _silent(ACTORS, load), _silent(ACTORS[:1], load)
        hop = _share(_difference(long, short), tasks * _HOPS_MORE)
        hop["custom metrics"] = long["custom metrics"] / len(ACTORS)
        silent = _share(_difference(silent_long, silent_short), tasks * _HOPS_MORE)
        task = _difference(_share(short, tasks), hop)
        bare = _difference(_share(_route("short", load, text=_MESH + _LARGE_ONLY), tasks), hop)
        for each in (task, bare):
            each.update(swept)
            each["custom metrics"] = 0
        silent["custom metrics"] = 0
        kinds = {"hop": hop, "hop without reports": silent, "task": task, "task without an object": bare}
        found["loads"][load.name] = {kind: _plain(used) for kind, used in kinds.items()}
    return found


def sweeps() -> dict[str, Any]:
    """What each call of a sweep uses in a mesh with nothing to do: at all, and for each actor more, or each of the crew."""
    one_each, light, heavy, crew = (_sweeps(*each) for each in ((1, 1), (2, 1), (1, 2), (1, 1, "x-checkpoint, ")))
    found = {}
    for name, used in one_each.items():
        per = {
            kind: _difference(more[name], used) for kind, more in (("light", light), ("heavy", heavy), ("crew", crew))
        }
        base = used
        for kind, queues in (("light", 1), ("heavy", 1), ("crew", _crew_queues())):
            base = _difference(base, Counter({key: count * queues for key, count in per[kind].items()}))
        found[name] = {"base": _plain(base), **{kind: _plain(more) for kind, more in per.items()}}
    return found


def differences(recorded: Mapping[str, Any], found: Mapping[str, Any], place: str = "") -> list[str]:
    """Return a line for each number that differs.

    The bytes of logs depend on the digits of durations, and the hops that share a write on the order of messages.
    """
    lines = []
    for name in sorted({*recorded, *found}):
        before, now = recorded.get(name, 0), found.get(name, 0)
        if isinstance(before, dict) or isinstance(now, dict):
            lines += differences(before or {}, now or {}, f"{place}{name}: ")
        elif abs(now - before) > {"log bytes": 0.1 * before, "write units": 0.05}.get(name, 1e-9):
            lines.append(f"{place}{name}: {before} recorded, {now} measured. {ACCEPT}")
    return lines


def write() -> None:
    """Record what is measured, if it differs from what is recorded."""
    found = measure()
    if differences(json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}, found):
        FILE.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _route(tool: str, load: Load, seed: int = 0, *, text: str = _MESH) -> Counter[str]:
    """Send tasks through the gateway and a tool's route, in batches of this size everywhere."""

    def start(mesh: Mesh) -> None:
        for number in range(_number(load)):
            body = json.dumps({"name": tool, "arguments": {"number": number}}).encode()
            answer = mesh.cloud.request(*to(CALL_TOOL), body, _NO_WAIT, user_arn=TEST_USER, user_id=USER_ID)
            assert answer["statusCode"] == 202

    return _tasks(start, ACTORS if tool == "long" else ACTORS[:1], load, seed, text=text)


def _number(load: Load) -> int:
    return TASKS if load.batch > 1 else TASKS // 2


def _sweeps_of(tasks: int) -> Counter[str]:
    """What sweeps use in the minutes after the start of tasks that succeed at once."""
    with _mesh(_MESH) as mesh:
        for number in range(tasks):
            mesh.call("short", {"number": number})
        meter = CallMeter()
        with meter.reading(mesh.cloud):
            for _ in range(_MINUTES_OF_SWEEPS):
                mesh.cloud.advance(60)
                for name in registry.sweeps_of(mesh.cloud.table):
                    _wake(mesh, name)
        meter.used["log bytes"] = 0
        return meter.used


def _wake(mesh: Mesh, sweep: str) -> None:
    with mesh.cloud.activate():
        scheduler = mesh.cloud.simulation.scheduler
        mesh.cloud.system.wake(sweep)
        scheduler.run(lambda: scheduler.at_work == 0)


def _silent(route: tuple[str, ...], load: Load) -> Counter[str]:
    """Send envelopes without reports."""

    def start(mesh: Mesh) -> None:
        for number in range(_number(load)):
            produce(mesh.cloud, route[0], route[1:], {"number": number}, {"x-asya-mesh-status": "off"})

    return _tasks(start, route, load)


def _tasks(start: Any, route: Iterable[str], load: Load, seed: int = 0, *, text: str = _MESH) -> Counter[str]:
    """Let each function work on one batch at a time, all of them at the same time, and each on full batches."""
    with _mesh(text, seed) as mesh:
        cloud, meter = mesh.cloud, CallMeter()
        randint = mock.patch.object(cloud.simulation.random, "randint", lambda _least, most: most)
        # The marks of ends cost by time: one each ten seconds and process.
        marks = mock.patch.object(report_queues, "MARK_INTERVAL", timedelta(days=1))
        with randint, marks, meter.reading(cloud):
            own = [names.queue_name("shop", queue) for queue in (*route, names.SINK)]
            reports = [names.queue_name("shop", queue) for queue in (names.REPORTS, names.ENDS)]
            for queue in (*own, *reports):
                function = cloud.sources.functions[queue]
                function.concurrency = 0
                function.batch_size = load.report_batch if queue in reports else load.batch
            start(mesh)
            while any(map(cloud.queues.visible, own)):
                # The last one first: what an actor sends on is there for the next turn.
                for queue in reversed(own):
                    _take(mesh, queue)
                for queue in reports:
                    while len(cloud.queues.visible(queue)) >= load.report_batch:
                        _take(mesh, queue)
            for queue in reports:
                while cloud.queues.visible(queue):
                    _take(mesh, queue)
        left = {name: len(queue.messages) for name, queue in cloud.queues.queues.items() if queue.messages}
        assert not left, left
        meter.used["custom metrics"] = sum(actor in ACTORS for _, actor, _ in meter.metrics)
        return meter.used


def _take(mesh: Mesh, queue: str) -> None:
    """Let the function of a queue process one batch."""
    if mesh.cloud.queues.visible(queue):
        function = mesh.cloud.sources.functions[queue]
        function.concurrency = 1
        with mesh.cloud.activate():
            mesh.cloud.sources.poll(queue)
        function.concurrency = 0
        while function.running:
            mesh.cloud.advance(0.1)


def _crew_queues() -> int:
    """Return how many queues with envelopes the mesh with one actor of each kind has besides theirs."""
    with _mesh(_ALL_SWEEPS.format("") + "actors:\n" + _LIGHT.format(0) + _HEAVY.format(0)) as mesh:
        return len(watched_actors(mesh.cloud.table)) - 2


def _sweeps(light: int, heavy: int, crew: str = "") -> dict[str, Counter[str]]:
    actors = [*(_LIGHT.format(number) for number in range(light)), *(_HEAVY.format(number) for number in range(heavy))]
    found = {}
    with _mesh(_ALL_SWEEPS.format(crew) + "actors:\n" + "".join(actors)) as mesh:
        for name in registry.sweeps_of(mesh.cloud.table):
            # The first sweep of a mesh looks back further than all others. The next one comes a minute later.
            for meter in (CallMeter(), CallMeter()):
                mesh.cloud.advance(60)
                with meter.reading(mesh.cloud):
                    _wake(mesh, name)
            found[name] = meter.used
            found[name]["custom metrics"] = len(meter.metrics)
    return found


@contextmanager
def _mesh(text: str, seed: int = 0) -> Iterator[Mesh]:
    with tempfile.TemporaryDirectory(prefix="asya-costs-") as folder:
        handlers = Path(folder, "handlers")
        handlers.mkdir()
        (handlers / "same.py").write_text(
            "def same(payload):\n    return payload\n\n\ndef run(spark, payload):\n    return payload\n"
        )
        mesh_file = Path(folder, "mesh.yaml")
        mesh_file.write_text(text)
        yield Mesh(mesh_file, start=_START, seed=seed)


def _difference(first: Counter[str], second: Counter[str]) -> Counter[str]:
    return Counter({name: first[name] - second[name] for name in {*first, *second}})


def _share(used: Counter[str], count: float) -> Counter[str]:
    return Counter({name: number / count for name, number in used.items()})  # type: ignore[misc]


def _plain(used: Counter[str]) -> dict[str, float]:
    """The numbers that are not zero; those of the actors together."""
    found: Counter[str] = Counter()
    for name, number in used.items():
        kind, _, function = name.partition(": ")
        found[f"{kind}: actor" if function in ACTORS else name] += number
    return {name: round(number, 4) for name, number in sorted(found.items()) if round(number, 4)}


if __name__ == "__main__":
    write()
