"""`up` refuses what synthesis would refuse, before it touches the cloud."""

from pathlib import Path

import pytest

from asya_local.cloud import up
from asya_local.errors import LocalCloudError

MESH = """
namespace: shop
code: handlers
actors:
  check: {handler: shop.check}
  bill: {handler: shop.bill}
tools:
  order: {description: an order, route: [check, bill]}
"""
CODE = """
def check(id: str) -> list[int]: ...
def bill(id: str, total: int) -> dict: ...
"""


def test_types_that_conflict_along_a_route_are_refused(tmp_path: Path) -> None:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "shop.py").write_text(CODE)
    (tmp_path / "mesh.yaml").write_text(MESH)

    with pytest.raises(LocalCloudError, match=r"mesh\.yaml:8: .*'bill' needs"):
        up(tmp_path / "mesh.yaml", tmp_path / "state")
    assert not (tmp_path / "state").exists()
