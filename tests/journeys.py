"""Prints the modules of the library that a journey passes: `python -m tests.journeys message`, `completion` or `request`.

The profiler that notices them needs a process of its own. In one that has run other tests, CPython 3.11 was seen to loop for ever
at the entry of a function.
"""

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from asya.function.aws.telemetry import Telemetry
from asya.gateway.http.entry_point import HttpServices
from asya.gateway.http.router import answer
from asya.gateway.lambdas.api import build_api
from asya.heavy.lambdas.complete import Completion
from asya.light.lambdas.sidecar import build_sidecar
from asya.senders.aws.role_list import RoleItems
from asya.senders.roles import ListChange
from tests.doubles.envelopes import message
from tests.doubles.gateway_functions import emulated_gateway, recorded_event, settings_with
from tests.doubles.heavy import TimedContext, done_result, heavy_world
from tests.doubles.mesh_world import batch_failures, mesh_world, sqs_event
from tests.doubles.senders import know_secrets
from tests.doubles.tasks import at


@contextmanager
def traced() -> Iterator[set[str]]:
    """The modules of the library that run meanwhile, in any thread, by their paths below `functions/asya`."""
    modules: set[str] = set()

    def trace(frame: FrameType, event: str, _argument: Any) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        if event == "call" and name.startswith("asya.") and not name.startswith("asya.testing."):
            modules.add(name.removeprefix("asya.").replace(".", "/"))

    before: Callable[..., Any] | None = sys.getprofile()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield modules
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]


def message_journey() -> set[str]:
    """The modules that an SQS message passes from its arrival to the next queue."""
    with pytest.MonkeyPatch.context() as patch, mesh_world(patch) as world:
        know_secrets(patch)
        sidecar = build_sidecar(world.light(lambda payload: payload))
        event = sqs_event(message())
        sender = event["Records"][0]["attributes"]["SenderId"].partition(":")[0]
        RoleItems(world.dynamodb, "asya-shop-sink").write(ListChange({sender: "x-gateway-api"}, frozenset()), at(0))
        with traced() as modules:
            response = sidecar.process(event)
    assert batch_failures(response) == []
    return modules


def completion_journey() -> set[str]:
    """The modules that the end of a job run passes, from the event of EMR Serverless to the next queue."""
    with pytest.MonkeyPatch.context() as patch, heavy_world(patch) as world:
        know_secrets(patch)
        world.send("a", {"n": 1})
        world.enqueue()
        world.dispatch()
        world.write_results(1, [done_result(0, {"n": 2})])
        world.set_state("run1", "SUCCESS")
        event = world.receive("x-completion")
        completion = Completion(world.services_of("x-completion"), TimedContext())
        with traced() as modules:
            response = completion.process(event)
    assert batch_failures(response) == []
    return modules


def request_journey() -> set[str]:
    """The modules that a POST passes from API Gateway to the task record."""
    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryDirectory() as folder,
        emulated_gateway(Path(folder)) as gateway,
    ):
        know_secrets(patch)
        telemetry = Telemetry("flights", "test")
        routes = build_api(HttpServices(settings_with(gateway.environ, gateway.mesh), given_telemetry=telemetry))
        event = recorded_event("start-task")
        with traced() as modules:
            response = answer(event, routes, at(0), telemetry.log)
    assert response["statusCode"] == 201
    return modules


if __name__ == "__main__":
    journeys = {"message": message_journey, "completion": completion_journey, "request": request_journey}
    print("modules:", *sorted(journeys[sys.argv[1]]()))
