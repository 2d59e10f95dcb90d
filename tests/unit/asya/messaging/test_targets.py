"""protocol §1, §5.12: each send checks its target; §3: route overrides."""

from typing import Any

import pytest

from asya.messaging.targets import UnknownTargetError, check_target, overrides
from asya.protocol.codec import decode
from asya.protocol.mesh_table import Actor
from tests.doubles.envelopes import mesh, message

ROUTABLE = {name: Actor(kind="crew") for name in ("x-pause", "x-resume", "x-checkpoint", "x-fan-in")}


@pytest.mark.rule("1.reserved")
@pytest.mark.parametrize("actor", ["post", "infer", *ROUTABLE])
def test_users_actors_and_four_of_the_crew_may_be_sent_to(actor: str) -> None:
    assert check_target(mesh(ROUTABLE), actor) == actor


@pytest.mark.rule("1.reserved")
@pytest.mark.parametrize(
    ("actor", "problem"),
    [
        ("nowhere", "actor 'nowhere' is not in the mesh 'shop'"),
        ("x-sink", "'x-sink' is reserved"),
        ("x-sump", "'x-sump' is reserved"),
        ("x-dispatch", "reserved"),
        ("happy-end", "reserved"),
        ("x-pause", "'x-pause' is not in the mesh"),
        ("Infer", "not a DNS label"),
        ("post/../infer", "not a DNS label"),
        ("", "empty"),
        ("p" * 64, "64 characters"),
    ],
)
def test_other_names_may_not_be_sent_to(actor: str, problem: str) -> None:
    with pytest.raises(UnknownTargetError) as caught:
        check_target(mesh(), actor)
    assert problem in str(caught.value)


@pytest.mark.rule("3.route-override")
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({"infer": "infer-v2"}, {"infer": "infer-v2"}),
        ({"infer": 5, "post": "p2", "": "evil"}, {"post": "p2"}),
        ("infer", {}),
        ([["infer", "v2"]], {}),
        (None, {}),
    ],
)
def test_overrides_are_read_from_any_header(header: Any, expected: dict[str, str]) -> None:
    assert overrides(decode(message(headers={"x-asya-route-override": header}))) == expected
    assert overrides(decode(message())) == {}
