"""protocol §1, §5.12: each send checks its target and its sender; §3: route overrides."""

from typing import Any

import pytest

from asya.function.targets import TargetError, awaits_deployment, check_target, check_way, overrides
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
    with pytest.raises(TargetError) as caught:
        check_target(mesh(), actor)
    assert problem in str(caught.value)


@pytest.mark.rule("5.12.forbidden")
@pytest.mark.parametrize(
    ("can_send_to", "allowed"),
    [
        (None, {"infer", "post", "audit", "x-checkpoint"}),
        (("post",), {"infer", "post", "x-checkpoint"}),
        ((), {"infer", "x-checkpoint"}),
    ],
)
def test_an_actor_may_send_to_itself_the_crew_and_its_targets(
    can_send_to: tuple[str, ...] | None, allowed: set[str]
) -> None:
    table = mesh(ROUTABLE | {"infer": Actor(kind="handler", can_send_to=can_send_to), "audit": Actor(kind="handler")})
    envelope = decode(message())
    for target in ("infer", "post", "audit", "x-checkpoint"):
        if target in allowed:
            check_way(table, envelope, ("infer",), (target,))
        else:
            with pytest.raises(TargetError, match=f"actor 'infer' may not send to '{target}'"):
                check_way(table, envelope, ("infer",), (target,))


@pytest.mark.rule("5.12.forbidden")
def test_the_error_names_the_key_with_all_targets() -> None:
    table = mesh({"infer": Actor(kind="handler", can_send_to=("post", "audit")), "audit": Actor(kind="handler")})
    with pytest.raises(TargetError) as caught:
        check_way(table, decode(message()), ("infer",), ("prep",))
    assert str(caught.value) == (
        "actor 'infer' may not send to 'prep'; "
        "to allow it, write in the mesh file under actors.infer: can_send_to: [audit, post, prep]"
    )


@pytest.mark.rule("5.12.deployment")
@pytest.mark.parametrize(
    ("sender", "can_send_to", "waits"),
    [("000000000002", (), True), ("000000000002", ("post",), False), ("000000000001", (), False), (None, (), False)],
)
def test_a_forbidden_actor_may_be_allowed_by_a_newer_version(
    sender: str | None, can_send_to: tuple[str, ...], waits: bool
) -> None:
    table = mesh({"infer": Actor(kind="handler", can_send_to=can_send_to)}, version="000000000001")
    envelope = decode(message(headers={"x-asya-mesh-version": sender} if sender else {}))
    assert awaits_deployment(envelope, table, "infer") is waits


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
