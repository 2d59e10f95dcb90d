"""protocol §3, §5.12: each message says which version of the mesh sent it."""

from typing import Any

import pytest
from msgspec.structs import replace

from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol.mesh_table import Actor, MeshTable, with_version
from asya.sidecar.lambdas.services import Services
from tests.doubles.envelopes import mesh, message
from tests.doubles.light_actor import echo, never
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

OWN = "0123456789ab"
OTHER = {"x-asya-mesh-version": "ba9876543210"}
TO_NEW = {"prev": ["prep"], "curr": "infer", "next": ["brand-new"]}


def process(world: MeshWorld, handler: Any, body: bytes, receives: int = 1, version: str = OWN) -> list[str]:
    known = world.light(handler)
    settings = replace_table(known, replace(known.settings.table, version=version))
    return batch_failures(build_sidecar(settings).process(sqs_event(body, receive_counts={0: receives})))


def replace_table(known: Services, table: MeshTable) -> Services:
    from dataclasses import replace as replace_settings

    return Services(replace_settings(known.settings, table=table))


@pytest.mark.rule("3.mesh-version")
def test_3_a_frame_carries_the_version_of_its_sender(world: MeshWorld) -> None:
    assert process(world, echo, message(headers=OTHER)) == []
    (onward,) = world.sent("post")
    assert onward.header("x-asya-mesh-version") == OWN


def test_3_without_a_version_a_message_names_none(world: MeshWorld) -> None:
    assert process(world, echo, message(), version="") == []
    (onward,) = world.sent("post")
    assert "x-asya-mesh-version" not in onward.headers


@pytest.mark.rule("5.12.deployment")
def test_5_12_an_actor_that_only_the_sender_may_know_keeps_the_message(world: MeshWorld) -> None:
    assert process(world, never, message(headers=OTHER, route=TO_NEW)) == ["message-0"]
    assert world.targets == []
    assert world.sqs.visibility == {"receipt-0": 30}


@pytest.mark.rule("5.12.deployment", "5.12.versions")
def test_5_12_the_last_receive_fails_it_and_names_the_versions(world: MeshWorld) -> None:
    assert process(world, echo, message(headers=OTHER, route=TO_NEW), receives=5) == []
    (failed,) = world.sent("x-sump")
    assert failed.status is not None
    assert failed.status.reason == "RouteMismatch"
    assert failed.status.error is not None
    assert failed.status.error.message == (
        "actor 'brand-new' is not in the mesh 'shop'; "
        "this function has version 0123456789ab of the mesh, and the sender ba9876543210"
    )


@pytest.mark.rule("5.12.deployment")
@pytest.mark.parametrize("headers", [{"x-asya-mesh-version": OWN}, {}, {"x-asya-mesh-version": 7}])
def test_5_12_an_unknown_actor_of_the_same_version_fails_at_once(world: MeshWorld, headers: dict[str, Any]) -> None:
    assert process(world, echo, message(headers=headers, route=TO_NEW)) == []
    assert world.targets == ["x-sump"]


@pytest.mark.rule("5.12.deployment")
@pytest.mark.parametrize("target", ["x-sink", "post"])
def test_5_12_a_reserved_or_known_actor_waits_for_nothing(world: MeshWorld, target: str) -> None:
    route = {"prev": ["prep"], "curr": "infer", "next": [target, "post"]}
    assert process(world, echo, message(headers=OTHER, route=route)) == []


@pytest.mark.rule("3.mesh-version")
def test_3_a_version_is_a_digest_of_the_table() -> None:
    table = with_version(mesh())
    assert len(table.version) == 12
    assert with_version(table) == table
    assert with_version(mesh()) == table
    assert with_version(mesh({"more": Actor(kind="handler", handler="handlers.more")})).version != table.version
