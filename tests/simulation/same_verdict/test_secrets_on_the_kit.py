"""The tests of `tests/cloud/test_secrets.py` on the test kit, as they are."""

from collections.abc import Iterator

import pytest

from tests.cloud import test_secrets as on_the_cloud
from tests.cloud.conftest import MESHES, SECRETS
from tests.doubles.kit_cloud import KitCloud, kit_cloud
from tests.simulation.same_verdict.comparable import comparable

globals().update(comparable(on_the_cloud))


@pytest.fixture(scope="module")
def gateway() -> Iterator[KitCloud]:
    """The mesh with the secrets, which are variables of the kit."""
    values = {"VAULT_KEY": SECRETS["vault/key"], "VAULT_TOKEN": SECRETS["ssm:/vault/token"]}
    with kit_cloud(MESHES / "gateway" / "mesh.yaml", env=values) as running:
        yield running
