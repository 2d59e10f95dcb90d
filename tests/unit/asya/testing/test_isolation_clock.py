"""The test kit beside libraries that freeze time."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import freezegun
import pytest
import time_machine

from asya.testing import Mesh, TestKitError
from asya.testing.isolation import plain_datetime

MESH = """
namespace: shop
code: handlers
defaults:
  resiliency:
    policies: {later: {max_attempts: 3, backoff: exponential, initial_delay: 1s}}
    rules: [{errors: [ConnectionError], policy: later}]
actors:
  typed: {handler: frozen_handlers.typed, can_send_to: [coroutine]}
  coroutine: {handler: frozen_handlers.coroutine}
  split: {handler: frozen_handlers.split, can_send_to: [coroutine]}
  look: {handler: frozen_handlers.look}
  endless: {handler: frozen_handlers.endless, timeout: 1s}
  approve: {kind: pause, pause: {prompt: Ship it, fields: [{name: ok, type: boolean, prompt: Do you}]}}
  later: {kind: wait, wait: {for: 1h}}
tools:
  nightly: {description: Runs each night, route: [typed]}
triggers:
  night: {cron: "0 11 * * *", tool: nightly}
"""
HANDLERS = """
import asyncio
import datetime as clock
import sys
from dataclasses import dataclass
from datetime import datetime

from asya import fan_out

@dataclass
class Order:
    id: str = "7"
    due: datetime = datetime(2026, 3, 4, 5, 6)

@dataclass
class Dated:
    due: clock.datetime
    now: datetime

def typed(order: Order) -> Dated:
    return Dated(order.due, datetime.now())

async def coroutine(payload):
    await asyncio.sleep(0.001)
    return {**payload, "today": clock.date.today().isoformat()}

def split(payload):
    return fan_out([{"n": n} for n in range(3)], to=["coroutine"], into="/parts")

def look(payload):
    kinds = {"FakeDatetime", "FakeDate"}
    return sorted(
        f"{module}.{name}"
        for module, content in sys.modules.items()
        if module.partition(".")[0] in ("asya", "asya_infra")
        for name, value in vars(content).items()
        if getattr(value, "__name__", "") in kinds or str(getattr(value, "__name__", "")).startswith("fake_")
    )

async def endless(payload):
    await asyncio.sleep(3600)
"""
FROZEN = datetime(2020, 3, 2, 10, 0, 0, tzinfo=UTC)
freeze = partial(freezegun.freeze_time, ignore=["_pytest.timing", "aws_cdk"])
"""Freezes time, but not the clock that pytest measures durations with: a fixture is frozen until its test has ended.

The modules of the CDK are left out, because freezegun reads each attribute of a module, and theirs load all of its services.
"""
CLOCKS: dict[str, Callable[[], Any]] = {
    "freezegun": lambda: freeze(FROZEN),
    "freezegun that ticks": lambda: freeze(FROZEN, tick=True),
    "freezegun with the loop's clock": lambda: freeze(FROZEN, real_asyncio=True),
    "time-machine": lambda: time_machine.travel(FROZEN, tick=False),
    "time-machine that ticks": lambda: time_machine.travel(FROZEN),
}


@pytest.fixture
def mesh_file(tmp_path: Path) -> Path:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "frozen_handlers.py").write_text(HANDLERS)
    path = tmp_path / "mesh.yaml"
    path.write_text(MESH)
    return path


@pytest.fixture(params=CLOCKS)
def clock(request: pytest.FixtureRequest) -> AbstractContextManager[Any]:
    """A library that changes the clock of the test."""
    made: AbstractContextManager[Any] = CLOCKS[request.param]()
    return made


@pytest.fixture
def mesh(mesh_file: Path, clock: AbstractContextManager[Any]) -> Iterator[Mesh]:
    with clock:
        yield Mesh(mesh_file)


def test_a_mesh_starts_at_the_frozen_time_and_handlers_see_it(mesh: Mesh) -> None:
    """The start was a class that no encoder of the mesh takes: each call was an internal error, or pending for ever."""
    assert timedelta() <= mesh.now - FROZEN < timedelta(minutes=1)
    result = mesh.send("typed", {"due": "2026-12-24T18:00:00"}, then=["coroutine"]).result
    assert result["due"] == "2026-12-24T18:00:00"
    assert result["now"].startswith("2020-03-02T10:0")
    assert result["today"] == "2020-03-02"


@pytest.mark.slow
def test_what_takes_virtual_time_ends(mesh: Mesh) -> None:
    mesh.fail("coroutine", ConnectionError, times=2)
    assert [error.attempt for error in mesh.send("coroutine", {}).errors] == [1, 2]
    assert len(mesh.send("split", {}, then=["x-fan-in"]).result["parts"]) == 3
    paused = mesh.send("approve", {})
    assert mesh.answer(paused, ok=True).result == {"ok": True}
    waiting = mesh.send("later", {})
    assert waiting.waiting_until is not None
    mesh.travel(hours=2)
    assert waiting.status == "succeeded"
    assert "succeeded" in {run.status for run in mesh.runs() if "typed" in run.actors}  # the trigger's slots
    slot = datetime.now(UTC).replace(hour=11, minute=0, second=0, microsecond=0) + timedelta(days=9)
    assert mesh.fire("night", at=slot).result


def test_the_time_limit_of_a_coroutine_holds(mesh: Mesh) -> None:
    assert mesh.send("endless", {}).errors[0].type == "Timeout"


def test_the_code_of_the_mesh_has_the_real_classes(mesh: Mesh) -> None:
    assert mesh.send("look", {}).payload == []


def test_a_mesh_from_before_works_while_time_is_frozen_and_after(
    mesh_file: Path, clock: AbstractContextManager[Any]
) -> None:
    mesh = Mesh(mesh_file)
    with clock:
        assert mesh.send("coroutine", {}).result["today"] == "2020-03-02"
    assert mesh.send("coroutine", {}).result["today"] != "2020-03-02"


def test_a_moment_of_a_subclass_is_the_same_moment() -> None:
    with freeze(FROZEN):
        frozen = datetime.now(UTC)
    plain = plain_datetime(frozen)
    assert (plain, type(plain)) == (FROZEN, datetime)


@pytest.mark.parametrize("moment", ["2012-01-14 12:00:01", "2250-01-01"])
def test_a_time_of_which_a_mesh_takes_no_report_is_told(mesh_file: Path, moment: str) -> None:
    with freeze(moment), pytest.raises(TestKitError, match="outside the years 2020 to 2199"):
        Mesh(mesh_file)
    with pytest.raises(TestKitError, match="has no time zone"):
        Mesh(mesh_file, start=datetime(2026, 1, 1))  # noqa: DTZ001 - what a test may forget
