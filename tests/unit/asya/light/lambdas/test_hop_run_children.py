"""protocol §1.max_children: hops that give too many children."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from asya import fan_out
from asya.light.lambdas.sidecar import build_sidecar
from asya.protocol import ids
from asya.protocol.mesh_table import Actor, Policy, Resiliency
from tests.doubles.envelopes import message
from tests.doubles.mesh_world import MeshWorld, batch_failures, sqs_event

RETRY = Resiliency(policies={"default": Policy(max_attempts=3)})
EXPLAINED = (
    "actor 'infer' gave more than 2 children in one hop; this mesh allows 2; to allow more, write in the mesh file"
)


def run(world: MeshWorld, handler: Callable[[Any], Any], **options: Any) -> None:
    """Process one message in a mesh that allows two children."""
    settings = world.light(handler, resiliency=RETRY, **options).settings
    services = world.services("infer", msgspec.structs.replace(settings.table, max_children=2))
    assert batch_failures(build_sidecar(services).process(sqs_event(message()))) == []


def count_to(number: int) -> Callable[[Any], Iterator[int]]:
    def count(_: Any) -> Iterator[int]:
        yield from range(number)

    return count


@pytest.mark.rule("1.max_children")
def test_1_max_children_as_many_as_the_mesh_allows_leave(world: MeshWorld) -> None:
    run(world, count_to(3))
    assert world.targets == ["post", "post", "post"]


@pytest.mark.rule("1.max_children")
def test_1_max_children_a_streamed_hop_stops_and_fails_as_a_child(world: MeshWorld) -> None:
    given: list[int] = []

    def endless(_: Any) -> Iterator[int]:
        while True:
            given.append(len(given))
            yield len(given)

    run(world, endless)
    assert len(given) == 4
    assert world.targets == ["post", "post", "post", "x-sump"]
    (failed,) = world.sent("x-sump")
    assert (failed.id, failed.parent_id) == (ids.child_id("env-1", 0, 1, "error"), "env-1")
    assert failed.status is not None
    assert (failed.status.phase, failed.status.reason) == ("failed", "MaxChildren")
    assert failed.status.error is not None
    assert EXPLAINED in failed.status.error.message


@pytest.mark.rule("1.max_children")
@pytest.mark.parametrize(
    ("handler", "options"),
    [
        (count_to(4), {"frames": "buffered"}),
        (lambda _: fan_out([1, 2, 3], to=["post"], at="gather"), {"others": {"gather": Actor(kind="fan_in")}}),
    ],
)
def test_1_max_children_frames_that_leave_together_do_not_leave(
    world: MeshWorld, handler: Callable[[Any], Any], options: dict[str, Any]
) -> None:
    run(world, handler, **options)
    assert world.targets == ["x-sump"]
    (failed,) = world.sent("x-sump")
    assert failed.id == "env-1"
    assert failed.status is not None
    assert (failed.status.phase, failed.status.reason, failed.status.attempt) == ("failed", "MaxChildren", 1)
    assert failed.status.error is not None
    assert EXPLAINED in failed.status.error.message
    assert not [key for key in world.s3.objects if "buffered/" in str(key)]
