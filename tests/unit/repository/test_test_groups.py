"""The groups of the tests that share a local cloud: a test in another group would deploy its mesh again."""

import re
from pathlib import Path

import pytest

from tests.conftest import group_of
from tests.paths import PROJECT

CLOUD = PROJECT / "tests" / "cloud"
GROUPS = {"paths": "the paths mesh", "gateway": "the gateway mesh", "heavy": "the heavy mesh"}
USES = re.compile(r"^def test_[^:]*?\b(paths|gateway|heavy): (?:DeployedCloud|HeavyCloud)", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("file", sorted(CLOUD.glob("test_*.py")), ids=lambda path: path.stem)
def test_the_tests_of_a_mesh_run_where_it_is_deployed(file: Path) -> None:
    for mesh in {match[1] for match in USES.finditer(file.read_text())}:
        assert group_of(f"tests/cloud/{file.name}::test") == GROUPS[mesh]
