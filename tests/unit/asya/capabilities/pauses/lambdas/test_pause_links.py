"""protocol §11: the links of pauses, with redeliveries and a table that does not answer."""

import hmac
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from asya.capabilities.pauses.aws.notices import link_bus
from asya.capabilities.pauses.callback_tokens import Callback, key_label, read
from asya.capabilities.pauses.lambdas.wiring import build_pause
from asya.protocol.mesh_table import Actor
from asya.protocol.pause import Pause
from asya.senders.aws.key_items import KeyItems
from tests.doubles.envelopes import NOW, mesh
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event
from tests.doubles.pausing import FIELDS, FakeEvents, here, stored
from tests.doubles.senders import TOKEN_SECRET


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Let the secret of tokens be out of reach, until the call that this returns."""

    def silent(_: KeyItems) -> bytes:
        raise ReadTimeoutError(endpoint_url="https://dynamodb")

    with monkeypatch.context() as patch:
        patch.setattr(KeyItems, "token_secret", silent)
        yield patch.undo


def run_pause(world: MeshWorld, times: int = 1, *, body: bytes | None = None, **keys: Any) -> list[str]:
    """Run a pause actor with links in a new process; returns the ids of the messages that stay."""
    question = Pause(prompt="Send it?", fields=FIELDS, callback=True, **keys)
    services = world.services("approve", mesh({"approve": Actor(kind="pause", pause=question)}))
    return batch_failures(build_pause(services).process(sqs_event(body or here(), receive_counts={0: times})))


def links(world: MeshWorld) -> set[str | None]:
    """The links of all reports of a pause."""
    return {event.data.callback for event in world.gateway.events if event.status == "paused"}


@pytest.mark.rule("11.callback.link")
def test_report_and_notification_have_the_link(world: MeshWorld, bus: FakeEvents) -> None:
    assert run_pause(world) == []
    (link,) = links(world)
    assert link is not None
    assert bus.details[0]["callback"] == link
    gateway, _, token = link.partition("/callbacks?token=")
    until = stored(world)["headers"]["x-asya-pause"]["callback_until"]
    key = hmac.digest(TOKEN_SECRET, key_label("shop"), "sha256")
    assert (gateway, read(key, token, NOW)) == (
        world.gateway.url,
        Callback("env-1", 0, 1, until),
    )
    assert "token=" not in str(stored(world))


@pytest.mark.rule("11.pause.notify.links")
def test_11_the_default_bus_has_no_link(world: MeshWorld, bus: FakeEvents) -> None:
    """Whoever makes a rule there would get it."""
    assert run_pause(world) == []
    (link,) = links(world)
    assert link is not None
    assert set(bus.by_bus) == {"default", link_bus(world.services("approve").settings.namespace)}
    (public,), (own,) = bus.by_bus.values()
    assert link not in str(public)
    assert "token=" not in str(public)
    assert own == {**public, "callback": link}


@pytest.mark.rule("11.callback.link", "11.pause.redelivered")
def test_a_redelivery_has_the_same_link(world: MeshWorld, bus: FakeEvents) -> None:
    bus.refuses = True
    assert run_pause(world) == ["message-0"]
    bus.refuses = False
    assert run_pause(world, times=2) == []
    assert len(links(world)) == 1
    assert {detail["callback"] for detail in bus.details} == links(world)


def test_without_the_secret_the_message_stays(world: MeshWorld, bus: FakeEvents, silence: Callable[[], None]) -> None:
    assert run_pause(world) == ["message-0"]
    assert links(world) == set()
    silence()
    assert run_pause(world, times=2) == []
    assert len(links(world)) == 1


@pytest.mark.rule("11.callback.payload")
def test_a_callback_key_puts_it_into_the_kept_payload(world: MeshWorld, bus: FakeEvents) -> None:
    assert run_pause(world, callback_key="/links/go") == []
    assert {stored(world)["payload"]["links"]["go"]} == links(world)


@pytest.mark.rule("11.callback.payload", "11.pause.redelivered")
def test_a_pause_that_has_begun_outlives_a_deployment_with_another_callback_key(
    world: MeshWorld, bus: FakeEvents
) -> None:
    """Its payload has no place for the link there, but the pause has begun with the earlier settings."""
    bus.refuses = True
    assert run_pause(world) == ["message-0"]
    bus.refuses = False
    assert run_pause(world, times=2, callback_key="/text/link") == []
    assert bus.details[0]["callback"] in links(world)
    assert len(links(world)) == 1


def test_a_pause_that_asks_for_no_link_has_none(world: MeshWorld, bus: FakeEvents) -> None:
    services = world.services("approve", mesh({"approve": Actor(kind="pause", pause=Pause())}))
    assert batch_failures(build_pause(services).process(sqs_event(here()))) == []
    assert links(world) == {None}
    assert "callback" not in bus.details[0]
