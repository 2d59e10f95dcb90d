"""The test kit ends bad input as the deployed mesh does: the tests of `tests/cloud` run on it as they are."""

import pytest

from asya.testing import Mesh
from tests.cloud import test_bad_input as on_the_cloud
from tests.cloud.test_bad_input import (  # noqa: F401 - pytest runs them here, with the fixture below
    test_a_message_on_the_queue_of_another_actor,
    test_a_message_that_is_not_a_json_object,
    test_a_message_without_an_id,
    test_a_missing_dataset,
    test_a_payload_that_the_handler_cannot_use,
    test_an_unknown_actor_in_the_route,
    valid_payload,
)
from tests.doubles.kit_cloud import KitCloud
from tests.paths import PROJECT


@pytest.fixture(scope="module")
def cloud() -> KitCloud:
    """The example mesh."""
    return KitCloud(Mesh(PROJECT / "mesh.yaml"))


def test_no_test_of_bad_input_is_forgotten() -> None:
    on_cloud = {name for name in vars(on_the_cloud) if name.startswith("test_")}
    assert on_cloud <= set(globals())
