"""A whole mesh stores envelopes on their way, large ones and in an outage (`protocol §11.checkpoint`, `§4.outage`)."""

from datetime import timedelta
from pathlib import Path

import pytest

from asya.testing import Mesh
from asya.testing.services.faults import Fault

MESH = """
namespace: shop
crew: {routable: [x-checkpoint]}
code: handlers
actors:
  order: {handler: shop.order}
  pack: {handler: shop.pack}
"""
HANDLERS = """
def order(payload):
    return {**payload, "lines": "x" * payload["size"]}

def pack(payload):
    return {"packed": len(payload["lines"])}
"""
COPIES = "results/checkpoint/"


@pytest.fixture
def shop(tmp_path: Path) -> Mesh:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "shop.py").write_text(HANDLERS)
    (tmp_path / "mesh.yaml").write_text(MESH)
    return Mesh(tmp_path / "mesh.yaml")


def copies(shop: Mesh) -> list[str]:
    return [key for key in shop.objects if key.startswith(COPIES)]


@pytest.mark.parametrize("size", [10, 2_000_000], ids=["in the message", "in an object"])
def test_a_payload_of_any_size_passes_a_checkpoint(shop: Mesh, size: int) -> None:
    run = shop.send("order", {"size": size}, then=["x-checkpoint", "pack"])

    assert run.result == {"packed": size}
    assert len(copies(shop)) == 1


def test_a_checkpoint_keeps_a_message_while_s3_refuses_its_copy(shop: Mesh) -> None:
    back = shop.now + timedelta(minutes=20)
    shop.cloud.faults.plans.append(
        lambda service, what: (
            Fault.REFUSED if (service, COPIES in what, shop.now < back) == ("s3", True, True) else Fault.NONE
        )
    )

    run = shop.send("order", {"size": 10}, then=["x-checkpoint", "pack"])

    assert run.result == {"packed": 10}
    assert shop.now > back
    assert (len(copies(shop)), shop.dead_letters) == (1, ())
