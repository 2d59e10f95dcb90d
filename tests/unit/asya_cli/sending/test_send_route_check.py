"""`asya send` warns of hops that will fail."""

from pathlib import Path

import pytest

from asya.protocol.codec import decode
from asya_cli.sending.send import route_warnings
from tests.doubles.envelopes import message

MESH = """
namespace: shop
crew: {routable: [x-checkpoint, x-pause]}
code: handlers
stages:
  staging: {}
actors:
  a: {handler: work.keep, can_send_to: [b]}
  b: {handler: work.keep}
  c: {handler: work.keep}
"""


@pytest.fixture
def mesh_file(tmp_path: Path) -> Path:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "work.py").write_text("def keep(payload):\n    return payload\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    return tmp_path / "mesh.yaml"


def warnings(mesh_file: Path, *route: str, namespace: str = "shop", **override: str) -> list[str]:
    headers = {"x-asya-route-override": override} if override else {}
    body = message(route={"prev": [], "curr": route[0], "next": list(route[1:])}, headers=headers)
    return list(route_warnings(decode(body), mesh_file, namespace))


FORBIDDEN = "actor 'a' may not send to 'c'; to allow it, write in the mesh file under actors.a: can_send_to: [b, c]"


@pytest.mark.rule("5.12.forbidden")
@pytest.mark.parametrize(
    ("route", "expected"),
    [
        (["a"], []),
        (["a", "b", "c", "a", "b"], []),
        (["a", "x-checkpoint", "b"], []),
        (["a", "x-checkpoint", "c"], [FORBIDDEN]),
        (["a", "x-pause", "x-checkpoint", "c"], [FORBIDDEN]),
        (["a", "b", "x-checkpoint", "c"], []),
        (["a", "c"], [FORBIDDEN]),
        (["b", "a", "c"], [FORBIDDEN]),
        (["c", "nowhere", "a", "c"], ["actor 'nowhere' is not in the mesh 'shop'", FORBIDDEN]),
        (["nowhere"], []),
        (
            ["a", "x-fan-in"],
            ["actor 'x-fan-in' is not in the mesh 'shop'; write in the mesh file under crew: routable: [x-fan-in]"],
        ),
        (["a", "x-sink"], ["actor 'x-sink' is reserved and cannot be in a route"]),
    ],
)
def test_each_hop_that_will_fail_is_named(mesh_file: Path, route: list[str], expected: list[str]) -> None:
    assert warnings(mesh_file, *route) == expected


def test_overrides_are_followed(mesh_file: Path) -> None:
    assert warnings(mesh_file, "a", "b", b="c") == [FORBIDDEN]
    assert warnings(mesh_file, "a", "c", c="b") == []


def test_only_the_file_of_the_mesh_counts(mesh_file: Path) -> None:
    assert warnings(mesh_file, "a", "c", namespace="shop-staging") == [FORBIDDEN]
    assert warnings(mesh_file, "a", "c", namespace="shopping") == []
    assert warnings(mesh_file.with_name("other.yaml"), "a", "c") == []


def test_an_invalid_file_is_no_obstacle(mesh_file: Path) -> None:
    mesh_file.write_text(MESH + "  d: {handler: 5}\n")
    [warning] = warnings(mesh_file, "a", "c")
    assert warning.startswith(f"the route is not checked, because {mesh_file} is invalid: ")
