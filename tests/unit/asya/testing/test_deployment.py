"""The test kit: the services of the functions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asya import registry
from asya.needs import Calls
from asya.testing import Mesh

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


@pytest.mark.parametrize(
    ("kind", "call"), [("pause", "events:PutEvents"), ("pause", "kms:GenerateMac"), ("x-dispatch", "iam:PassRole")]
)
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
    refused = mesh._cloud.permissions.refused
    assert refused
    assert all(f" {call} " in each for each in refused)
