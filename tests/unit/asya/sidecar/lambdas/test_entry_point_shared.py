"""A function of several actors processes each batch as the actor whose queue it comes from."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from asya.ends.lambdas.wiring import ends
from asya.function.aws.settings import Settings
from asya.function.lambdas.batch import BatchResponse
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.sidecar.lambdas import entry_point
from asya.sidecar.lambdas.entry_point import LambdaContext, SharedEntryPoint, queue_entry_point
from asya.sidecar.lambdas.services import Services

SETTINGS = Settings(
    table=MeshTable(namespace="shop-x", actors={}),
    actor="x-one",
    region="eu-west-1",
    bucket="b",
    data_uri="s3://b/",
    results_uri="s3://b/results/",
    queue_url_prefix="https://sqs.eu-west-1.amazonaws.com/1/",
)
NOBODY = cast("LambdaContext", None)


class Recorder:
    """Builds actors, and notes which are built and what they process."""

    def __init__(self) -> None:
        self.built: list[str] = []
        self.processed: list[tuple[str, Any]] = []

    def build(self, own: Services) -> "Recorded":
        self.built.append(own.settings.actor)
        return Recorded(own.settings.actor, self)


class Recorded:
    def __init__(self, name: str, recorder: Recorder) -> None:
        self.name, self.recorder = name, recorder

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        self.recorder.processed.append((self.name, event["Records"][0]["body"]))
        return {"batchItemFailures": []}


def batch(queue: str, body: str) -> dict[str, Any]:
    return {"Records": [{"eventSourceARN": f"arn:aws:sqs:eu-west-1:1:asya-shop-x-{queue}", "body": body}]}


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def shared(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> SharedEntryPoint:
    monkeypatch.setattr(entry_point, "services", lambda: Services(SETTINGS))
    return SharedEntryPoint({name: queue_entry_point(recorder.build) for name in ("x-one", "x-two")})


def test_each_batch_is_processed_by_the_actor_of_its_queue(recorder: Recorder, shared: SharedEntryPoint) -> None:
    for queue, body in (("x-two", "a"), ("x-one", "b"), ("x-two", "c")):
        assert shared(batch(queue, body), NOBODY) == {"batchItemFailures": []}
    assert recorder.processed == [("x-two", "a"), ("x-one", "b"), ("x-two", "c")]
    assert recorder.built == ["x-two", "x-one"]


def test_a_queue_of_no_actor_of_the_function_fails_its_batch(shared: SharedEntryPoint) -> None:
    with pytest.raises(KeyError):
        shared(batch("x-three", "a"), NOBODY)


def test_the_end_actors_of_the_crew_are_one_function() -> None:
    assert {names.runner_of(name) for name in names.END_ACTORS} == {names.SINK}
    for name in names.END_ACTORS:
        ends.start(Services(replace(SETTINGS, actor=name)))
