"""protocol §11: the links of pauses, with redeliveries and a KMS that does not answer."""

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from asya.capabilities.pauses.aws.notices import link_bus
from asya.capabilities.pauses.callback_tokens import Callback, key_label, read
from asya.capabilities.pauses.lambdas.wiring import build_pause
from asya.function.aws import clients
from asya.protocol.mesh_table import Actor
from asya.protocol.pause import Pause
from asya.sidecar.lambdas.services import Services
from tests.doubles.envelopes import NOW, mesh
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event
from tests.doubles.pausing import FIELDS, FakeEvents, here, stored


class FakeKms:
    """KMS with one key, which may be out of reach."""

    is_silent = False

    def generate_mac(self, *, Message: bytes, **_: Any) -> dict[str, bytes]:  # noqa: N803
        assert Message == key_label("shop")
        if self.is_silent:
            raise ReadTimeoutError(endpoint_url="https://kms")
        return {"Mac": b"k" * 32}


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> FakeKms:
    found = FakeKms()
    monkeypatch.setattr(clients, "kms", lambda: found)
    return found


def run_pause(world: MeshWorld, times: int = 1, *, body: bytes | None = None, **keys: Any) -> list[str]:
    """Run a pause actor with links in a new process; returns the ids of the messages that stay."""
    question = Pause(prompt="Send it?", fields=FIELDS, callback=True, **keys)
    services = world.services("approve", mesh({"approve": Actor(kind="pause", pause=question)}))
    signing = Services(replace(services.settings, token_key="key"))
    return batch_failures(build_pause(signing).process(sqs_event(body or here(), receive_counts={0: times})))


def links(world: MeshWorld) -> set[str | None]:
    """The links of all reports of a pause."""
    return {event.data.callback for event in world.gateway.events if event.status == "paused"}


@pytest.mark.rule("11.callback.link")
def test_report_and_notification_have_the_link(world: MeshWorld, bus: FakeEvents, kms: FakeKms) -> None:
    assert run_pause(world) == []
    (link,) = links(world)
    assert link is not None
    assert bus.details[0]["callback"] == link
    gateway, _, token = link.partition("/callbacks?token=")
    until = stored(world)["headers"]["x-asya-pause"]["callback_until"]
    assert (gateway, read(b"k" * 32, token, NOW)) == (world.gateway.url, Callback("env-1", 0, 1, until))
    assert "token=" not in str(stored(world))


@pytest.mark.rule("11.pause.notify.links")
def test_11_the_default_bus_has_no_link(world: MeshWorld, bus: FakeEvents, kms: FakeKms) -> None:
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
def test_a_redelivery_has_the_same_link(world: MeshWorld, bus: FakeEvents, kms: FakeKms) -> None:
    bus.refuses = True
    assert run_pause(world) == ["message-0"]
    bus.refuses = False
    assert run_pause(world, times=2) == []
    assert len(links(world)) == 1
    assert {detail["callback"] for detail in bus.details} == links(world)


def test_without_kms_the_message_stays(world: MeshWorld, bus: FakeEvents, kms: FakeKms) -> None:
    kms.is_silent = True
    assert run_pause(world) == ["message-0"]
    assert links(world) == set()
    kms.is_silent = False
    assert run_pause(world, times=2) == []
    assert len(links(world)) == 1


@pytest.mark.rule("11.callback.payload")
def test_a_callback_key_puts_it_into_the_kept_payload(world: MeshWorld, bus: FakeEvents, kms: FakeKms) -> None:
    assert run_pause(world, callback_key="/links/go") == []
    assert {stored(world)["payload"]["links"]["go"]} == links(world)


@pytest.mark.rule("11.callback.payload", "11.pause.redelivered")
def test_a_pause_that_has_begun_outlives_a_deployment_with_another_callback_key(
    world: MeshWorld, bus: FakeEvents, kms: FakeKms
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
    signing = Services(replace(services.settings, token_key="key"))
    assert batch_failures(build_pause(signing).process(sqs_event(here()))) == []
    assert links(world) == {None}
    assert "callback" not in bus.details[0]
