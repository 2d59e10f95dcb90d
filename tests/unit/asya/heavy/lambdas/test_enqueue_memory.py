"""protocol §10: a heavy actor's sidecar holds one payload at a time."""

import pytest

from asya.function.aws import clients
from asya.heavy.lambdas.enqueue import Enqueuer
from tests.doubles.heavy import HeavyWorld, heavy_world
from tests.doubles.large_payloads import LargePayloads, payload_key, peak_of
from tests.doubles.mesh_world import batch_failures, sqs_event

SIZE = 2 * 1024 * 1024
ROUTE = {"prev": [], "curr": "clean", "next": ["publish"]}


@pytest.mark.rule("5.payloads", "10.admit.batch")
def test_payloads_are_stored_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with heavy_world(monkeypatch) as world:
        payloads = LargePayloads(size=SIZE, actor="clean")
        monkeypatch.setattr(clients, "s3", lambda: payloads)
        actor = Enqueuer(world.services_of("clean"))
        batches = ((0, 1), (1, 1), (2, 10))
        warm_up, one, ten = (sqs_event(*payloads.messages(count, first=first, route=ROUTE)) for first, count in batches)
        actor.process(warm_up)
        alone = peak_of(lambda: actor.process(one))
        payloads.calls.clear()
        together = peak_of(lambda: actor.process(ten))
        assert alone > SIZE
        assert together < alone + SIZE
        assert [action for action, _ in payloads.calls] == ["get", "put"] * 10
        assert len(world.items("PENDING#clean")) == 12


@pytest.mark.rule("4.claim-check.trouble")
def test_a_payload_that_cannot_be_stored_keeps_its_own_message(monkeypatch: pytest.MonkeyPatch) -> None:
    with heavy_world(monkeypatch) as world:
        payloads = LargePayloads(size=SIZE, actor="clean", fails=lambda action, key: key == payload_key(1, "clean"))
        monkeypatch.setattr(clients, "s3", lambda: payloads)
        event = sqs_event(*payloads.messages(3, route=ROUTE))
        assert batch_failures(Enqueuer(world.services_of("clean")).process(event)) == ["message-1"]
        assert _pending(world) == ["env-0", "env-2"]


def _pending(world: HeavyWorld) -> list[str]:
    return sorted(member.id for member in world.services.pending.members("clean"))
