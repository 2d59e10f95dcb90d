"""Meshes of the test kit in the place of the deployed ones of `tests/cloud`, under the names of their fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cloud.paths_mesh import NewEnvelope, send, wait_for_final_state
from tests.doubles.kit_callers import kit_user
from tests.doubles.kit_cloud import KitCloud, kit_cloud
from tests.paths import PROJECT
from tests.simulation.same_verdict.left_out import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cloud.callers import ApiCaller
    from tests.cloud.paths_mesh import FinalState

MESHES = PROJECT / "tests" / "cloud" / "meshes"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Drops the cases of tests that are left out by their parameters."""
    cases = {name for reasons in LEFT_OUT.values() if isinstance(reasons, dict) for name in reasons if "[" in name}
    items[:] = [item for item in items if item.path.parent.name != "same_verdict" or item.name not in cases]


@pytest.fixture(scope="module")
def cloud() -> Iterator[KitCloud]:
    """The example mesh."""
    with kit_cloud(PROJECT / "mesh.yaml") as running:
        yield running


@pytest.fixture(scope="module")
def paths() -> Iterator[KitCloud]:
    """The paths mesh."""
    with kit_cloud(MESHES / "paths" / "mesh.yaml") as running:
        yield running


@pytest.fixture(scope="module")
def rejected_state(paths: KitCloud) -> FinalState:
    """See the fixture of `tests/cloud`."""
    for number in range(2):
        envelope_id = send(paths, NewEnvelope(["flaky"], {}, envelope_id=f"down-{number}"))
        assert wait_for_final_state(paths, envelope_id).task.reason == "RuntimeError"
    return wait_for_final_state(paths, send(paths, NewEnvelope(["flaky"], {}, envelope_id="rejected")))


@pytest.fixture(scope="module")
def gateway() -> Iterator[KitCloud]:
    """The mesh with one operator and other callers."""
    with kit_cloud(MESHES / "gateway" / "mesh.yaml") as running:
        yield running


@pytest.fixture(scope="module")
def operator(gateway: KitCloud) -> ApiCaller:
    """The operator of the gateway mesh."""
    return kit_user(gateway.kit, "asya-gateway-operator")


@pytest.fixture(scope="module")
def alice(gateway: KitCloud) -> ApiCaller:
    """A caller of the gateway."""
    return kit_user(gateway.kit, "alice")


@pytest.fixture(scope="module")
def bob(gateway: KitCloud) -> ApiCaller:
    """Another caller of the gateway."""
    return kit_user(gateway.kit, "bob")
