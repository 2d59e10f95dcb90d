"""The test kit: the services of the functions."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from asya import registry
from asya.needs import Calls
from asya.testing import Mesh, Run
from asya.testing.deployment import TEST_USER

MESH = """
namespace: shop
jobs: jobs
actors:
  ask:
    kind: pause
    pause: {prompt: Ship it, callback: true, fields: [{name: approved, type: boolean, prompt: Yes or no}]}
  train: {spark: {job: work.train}}
"""


def test_the_values_of_secrets_are_not_in_errors(shop: Path) -> None:
    mesh = Mesh(shop, env={"API_KEY": "a-long-secret"})
    mesh.fail("price", ValueError("refused: a-long-secret"))
    assert mesh.send("price", {"total": 1}).errors[0].message == "refused: [secret API_KEY]"


@pytest.mark.parametrize(("kind", "call"), [("pause", "events:PutEvents"), ("x-dispatch", "iam:PassRole")])
@pytest.mark.slow
def test_a_call_without_its_need_is_refused(
    kind: str, call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events, keys and job runs are no exception: what the role of a function may not do fails here too."""
    product = registry.PRODUCT
    functions: dict[str, Any] = product.functions if kind in product.functions else product.actor_functions
    left = tuple(need for need in functions[kind].needs if not (isinstance(need, Calls) and call in need.calls))
    assert left != functions[kind].needs
    monkeypatch.setitem(functions, kind, replace(functions[kind], needs=left))
    (tmp_path / "mesh.yaml").write_text(MESH)
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "work.py").write_text("def train(spark, payload):\n    return payload\n")
    mesh = Mesh(tmp_path / "mesh.yaml")
    mesh.send("ask" if kind == "pause" else "train", {})
    refused = mesh.cloud.permissions.refused
    assert refused
    assert all(f" {call} " in each for each in refused)


def test_the_cloud_below_a_mesh_is_public(shop: Path) -> None:
    """Tests of the mesh itself send messages, plan faults of any function, and say how long the mesh works."""
    mesh = Mesh(shop)
    mesh.cloud.faults.deaths["x-sink"] += 1
    envelope = {"id": "direct", "route": {"prev": [], "curr": "price", "next": []}, "payload": {"total": 1}}
    mesh.cloud.queues.send("asya-shop-price", json.dumps(envelope), sender=None, by="AIDATEST")
    assert not mesh.cloud.is_at_rest
    mesh.cloud.run_until_idle()
    assert mesh.cloud.is_at_rest
    assert Run(mesh, "direct").status == "succeeded"
    assert any("CRASHES after its batch" in line and "x-sink/1" in line for line in mesh.log)
    before = mesh.now
    mesh.cloud.advance(90)
    assert mesh.now - before == timedelta(seconds=90)


def test_anybody_calls_the_gateway_of_the_cloud(shop: Path) -> None:
    mesh = Mesh(shop)
    answer = mesh.cloud.request("GET", "/api/v1/mesh", b"", {}, user_arn="", user_id="")
    assert answer["statusCode"] == 403
    answer = mesh.cloud.request("GET", "/api/v1/mesh", b"", {}, user_arn=TEST_USER, user_id="AIDATEST")
    assert answer["statusCode"] == 200
