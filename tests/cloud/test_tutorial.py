"""Follows the tutorial from the first block to the last one, and compares what its commands print."""

from __future__ import annotations

import os
from itertools import takewhile
from typing import TYPE_CHECKING

import pytest

from asya_infra.mesh_file import MeshFileError, load_mesh
from tests.cloud.tutorial import INSTALLATION, Reader, missing, steps
from tests.installed import install

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.cloud

CODES = [
    ("""asya call price-orders '{"orders": [{"country": "NO", "price": "much"}]}'""", 1),
    ('asya status "$task" --follow', 4),
    ("asya send samples/february.json --actor read-xml --next check-orders --next add-vat --id february --wait", 3),
    ("asya status february", 3),
    ("""asya call price-orders '{"orders": [{"country": "XX", "price": 1}]}' --wait""", 3),
]

FULL = bool(os.environ.get("ASYA_FULL_SIZE"))
FULL_SIZE = pytest.mark.skipif(not FULL, reason="the installed package makes its environments (make test-full)")
DEPLOYMENT = "asya local up "
"""The command that begins the chapters about a deployed mesh. `test_readme.py` and `test_cli.py` run commands like these."""


@pytest.fixture(params=["this repository", pytest.param("the wheel", marks=FULL_SIZE)])
def reader(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reader]:
    """A reader with the command of this repository, or with the package as the page installs it."""
    is_wheel = request.param == "the wheel"
    product = install(INSTALLATION, tmp_path_factory.mktemp("installed")) if is_wheel else None
    reader = Reader(tmp_path, list(CODES), product)
    yield reader
    reader.close()


def test_every_command_does_what_the_page_says(reader: Reader) -> None:
    for step in takewhile(lambda step: FULL or not step.text.startswith(DEPLOYMENT), steps()):
        reader.follow(step)
    assert reader.codes == ([] if FULL else CODES[-1:])


def test_the_page_shows_the_actual_error_of_a_mistyped_key(tmp_path: Path) -> None:
    (tmp_path / "mesh.yaml").write_text(
        "namespace: shop\n\n\n\nactors:\n  check-orders:\n    handlr: orders.check_orders\n"
    )
    [line] = [step.text.strip() for step in steps() if step.kind == "mistake"]
    with pytest.raises(MeshFileError) as caught:
        load_mesh(tmp_path / "mesh.yaml")
    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("expected", "line"),
    [(("a", "c"), None), (("c", "a"), "a"), (("a …",), "a …"), (("b … 3",), None), (("b",), "b")],
)
def test_missing_lines_are_found(expected: tuple[str, ...], line: str | None) -> None:
    assert missing(["a", "b  x  3", "c"], expected) == line
