"""The test kit numbers children as the mesh does, and refuses what its roles may not (`protocol §14.child_ids`)."""

from pathlib import Path

import pytest

from asya.testing import Mesh

MESH = """
namespace: shop
code: handlers
defaults: {fan_out_lists: true, child_ids: suffix}
actors:
  split: {handler: work.split}
  again: {handler: work.split}
"""
HANDLERS = """
def split(payload):
    return [payload, payload]
"""


@pytest.mark.rule("14.child_ids")
@pytest.mark.slow
def test_children_of_children_are_numbered(tmp_path: Path) -> None:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "work.py").write_text(HANDLERS)
    (tmp_path / "mesh.yaml").write_text(MESH)
    mesh = Mesh(tmp_path / "mesh.yaml")
    run = mesh.send("split", {}, then=["again"])
    assert run.children[0].id == "run-1-1"
    assert [grandchild.id for grandchild in run.children[0].children] == ["run-1-1-1"]
