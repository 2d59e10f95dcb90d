"""protocol §14: numbered ids of children, whoever chooses such ids too."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asya.capabilities.legacy import child_ids
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol import ids
from asya.senders.aws.entry_items import OwnerClaims
from tests.doubles.envelopes import message
from tests.doubles.mesh_world import MeshWorld, batch_failures, mesh_world, sqs_event
from tests.fuzz.envelope_ids import USABLE

SENDERS = ("AIDAALICE", "AIDABOB")
ROUTE = {"prev": [], "curr": "infer", "next": ["infer", "infer"]}


@pytest.mark.slow
@given(USABLE, st.integers(1, 10**6))
def test_a_numbered_id_names_its_parent(parent: str, index: int) -> None:
    child = child_ids.numbered_id(parent, index)
    assert child is not None
    assert child_ids.numbered_of(child) == parent


@pytest.mark.parametrize("other", ["a", "a-", "a-0", "a-01", "a-x", "-1", "a-1-", "a-１", "a--"])
def test_other_ids_are_of_no_parent(other: str) -> None:
    assert child_ids.numbered_of(other) is None


@pytest.mark.parametrize(("length", "fits"), [(254, True), (255, False)])
def test_a_numbered_id_is_no_longer_than_an_id_may_be(length: int, fits: bool) -> None:
    assert (child_ids.numbered_id("é" * (length // 2) + "a" * (length % 2), 1) is not None) == fits


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MeshWorld]:
    with mesh_world(monkeypatch) as made:
        yield made


@dataclass
class Mesh:
    """One actor, which numbers its children and stands three times in each route, and the messages on its queue.

    Attributes:
        bodies: the messages that were ever on the queue, with their senders; any of them may come again.
        meant: what each id stands for: the task of a sender, or the child of a hop.
    """

    world: MeshWorld
    bodies: list[tuple[bytes, str]] = field(default_factory=list)
    meant: dict[str, object] = field(default_factory=dict)

    def receive(self, body: bytes, sender: str) -> None:
        """Receive a message; each envelope that leaves stands for one thing, and so it did before."""
        self.world.sqs.sent.clear()
        event = sqs_event(body)
        event["Records"][0]["attributes"]["SenderId"] = sender
        services = self.world.light(lambda count: [count] * count, fan_out_lists=True, options={"child_ids": "suffix"})
        assert batch_failures(build_sidecar(services).process(event)) == []
        left = [*self.world.messages("infer"), *self.world.messages("x-sink"), *self.world.messages("x-sump")]
        assert left, "the envelope is lost"
        for index, envelope in enumerate(each.envelope for each in left):
            if envelope.id == ids.id_of_message("message-0"):
                continue  # refused, and kept under an id of its own
            means: object = envelope.header("x-asya-owner")
            if envelope.parent_id is not None:
                means = (envelope.parent_id, envelope.generation, envelope.route.position, index)
            if envelope.parent_id is None or index:  # a child that goes on was seen when it left its hop
                assert self.meant.setdefault(envelope.id, means) == means, f"{envelope.id} stands for two envelopes"
        self.bodies += [(each.body.encode(), "AROAINFER") for each in self.world.messages("infer")]


ACTIONS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from(["a", "a-1", "a-1-1", "a-2", "b-7", "b-7-1"]), st.sampled_from(SENDERS)),
    st.tuples(st.just("receive"), st.integers(0, 40), st.none()),
)


@pytest.mark.slow
@pytest.mark.rule("14.child_ids", "14.child_ids.claim", "14.child_ids.senders")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.lists(ACTIONS, min_size=1, max_size=14))
def test_14_no_id_stands_for_two_envelopes_whoever_sends_and_whatever_comes_again(
    world: MeshWorld, actions: list[tuple[str, Any, Any]]
) -> None:
    world.dynamodb.tables["asya-shop-sink"].items.clear()
    mesh = Mesh(world)
    for what, which, sender in actions:
        if what == "send":
            mesh.receive(message(id=which, payload=2, route=ROUTE, status=...), sender)
        elif mesh.bodies:
            mesh.receive(*mesh.bodies[which % len(mesh.bodies)])


def test_14_a_message_whose_claim_nobody_can_decide_stays(world: MeshWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> bool:
        raise EndpointConnectionError(endpoint_url="https://dynamodb")

    monkeypatch.setattr(OwnerClaims, "claim_numbered", fail)
    services = world.light(lambda _: [1, 2], fan_out_lists=True, options={"child_ids": "suffix"})
    assert batch_failures(build_sidecar(services).process(sqs_event(message(id="a")))) == ["message-0"]
    assert [envelope.id for envelope in world.sent("post")] == ["a"]  # its child comes with the repetition


def test_14_a_mesh_that_numbers_no_children_asks_for_no_numbered_ids(
    world: MeshWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OwnerClaims, "claim_numbered", None)
    services = world.light(lambda _: [1, 2], fan_out_lists=True)
    assert batch_failures(build_sidecar(services).process(sqs_event(message(id="order-7", status=...)))) == []
    assert [envelope.id for envelope in world.sent("post")] == ["order-7", ids.child_id("order-7", 0, 1, 1)]
