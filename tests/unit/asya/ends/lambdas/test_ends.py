"""protocol §11: the ends of a mesh whose results lie in an S3 of its own."""

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from asya.ends.lambdas.wiring import build_sink, build_sump
from asya.function.aws import clients
from asya.function.hop import Delivery
from asya.protocol.codec import decode
from asya.protocol.mesh_table import Sink
from asya.testing.services.direct import MemoryS3
from tests.doubles.envelopes import mesh, message, status
from tests.doubles.mesh_world import MeshWorld, batch_failures, empty_table, emulated_table, sqs_event

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ADDRESS = "https://s3.storage.example"


@pytest.fixture(scope="module")
def client() -> "Iterator[DynamoDBClient]":
    with emulated_table("sink") as made:
        yield made


@pytest.mark.rule("11.sink.endpoint")
@pytest.mark.parametrize(
    ("actor", "build", "phase", "key"),
    [
        ("x-sink", build_sink, "succeeded", "results/succeeded/env-1.json"),
        ("x-sump", build_sump, "failed", "results/sump/env-1.json"),
    ],
)
def test_ends_lie_in_that_s3_and_payloads_do_not(
    world: MeshWorld, client: "DynamoDBClient", actor: str, build: Callable[..., Any], phase: str, key: str
) -> None:
    own = MemoryS3()
    empty_table(client, "sink")
    world.monkeypatch.setattr(clients, "dynamodb", lambda: client)
    world.monkeypatch.setattr(
        clients, "results_s3", lambda endpoint: {ADDRESS: own}.get(endpoint, world.s3), raising=False
    )
    services = world.services(actor, mesh(sink=Sink(endpoint=ADDRESS)))
    payload = "x" * 2_000_000
    ended = message(route={"prev": ["infer"], "curr": "", "next": []}, status=status(phase=phase), payload=payload)
    sent = services.claim_check.offload(Delivery(actor, ended, "sink"))
    assert "x-asya-payload-ref" in decode(sent.body).headers
    assert batch_failures(build(services).process(sqs_event(sent.body))) == []
    assert json.loads(own.content(key))["payload"] == payload
    assert world.s3.keys("results/") == []
