"""The page of journeys: a message and a request pass the modules that it names, and no others."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from asya.gateway.http.router import answer
from asya.gateway.lambdas.api_groups import build_api
from asya.messaging.aws.telemetry import Telemetry
from asya.sidecar.lambdas.wiring import build_sidecar
from tests.doubles.envelopes import message
from tests.doubles.gateway_functions import emulated_gateway, recorded_event, settings_with
from tests.doubles.mesh_world import batch_failures, mesh_world, sqs_event
from tests.doubles.tasks import at
from tests.paths import PROJECT

PAGE = PROJECT / "docs" / "explanation" / "journeys.md"
MODULE = re.compile(r"`([a-z0-9_/]+)\.py`")
PASSED = {"message": 20, "request": 10}
"""How many modules a message and a request pass at most, beside those that help at one place."""


def documented(heading: str) -> tuple[list[str], list[str]]:
    """The modules of a journey: those it passes, in order, and those that help at one place."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}", 1)[1].split("\n## ", 1)[0]
    passed, helping = section.split("More modules help", 1)
    return MODULE.findall(passed), MODULE.findall(helping)


traced_alone = pytest.mark.skipif("ASYA_JOURNEYS" not in os.environ, reason="traced in a process of its own")


@contextmanager
def traced() -> Iterator[set[str]]:
    """The modules of the library that run meanwhile, in any thread, by their paths below `functions/asya`."""
    modules: set[str] = set()

    def trace(frame: FrameType, event: str, _argument: Any) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        if event == "call" and name.startswith("asya."):
            modules.add(name.removeprefix("asya.").replace(".", "/"))

    before: Callable[..., Any] | None = sys.getprofile()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield modules
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]


@traced_alone
def test_a_message_passes_the_modules_that_are_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    passed, helping = documented("An SQS message")
    with mesh_world(monkeypatch) as world:
        sidecar = build_sidecar(world.light(lambda payload: payload))
        event = sqs_event(message())
        with traced() as modules:
            response = sidecar.process(event)
    assert batch_failures(response) == []
    assert modules == {*passed, *helping}
    assert len(passed) <= PASSED["message"]


@traced_alone
def test_a_request_passes_the_modules_that_are_documented(tmp_path: Path) -> None:
    passed, helping = documented("A POST")
    with emulated_gateway(tmp_path) as gateway:
        telemetry = Telemetry("flights", "test")
        routes = build_api(settings_with(gateway.environ, gateway.mesh), telemetry).routes(at(0))
        event = recorded_event("start-task")
        with traced() as modules:
            response = answer(event, routes, telemetry.log)
    assert response["statusCode"] == 201
    assert modules == {*passed, *helping}
    assert len(passed) <= PASSED["request"]


def test_the_journeys_are_as_documented() -> None:
    """A profiler in a process that ran other tests may stop Python 3.11 for ever, so the traces have their own one."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", __file__]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    if "ASYA_JOURNEYS" in environment:
        return
    result = subprocess.run(
        command, env={**environment, "ASYA_JOURNEYS": "1"}, cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert "3 passed" in result.stdout, result.stdout + result.stderr
