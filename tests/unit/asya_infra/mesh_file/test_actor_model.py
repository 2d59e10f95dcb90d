"""The types and bounds of the keys of an actor: the messages of other values."""

import pytest

from asya.registry import PRODUCT
from tests.unit.asya_infra.mesh_file.loading import light_actor_problems, one_of

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("timeout: 0s", "4: actors.a.timeout: should be more than 0s; got '0s'"),
        ("memory: 64", "4: actors.a.memory: should be at least 128; got 64"),
        ("concurrency: 1", "4: actors.a.concurrency: should be at least 2; got 1"),
        ("concurrency: 1001", "4: actors.a.concurrency: should be at most 1000; got 1001"),
        ("pollers: {min: 1}", "4: actors.a.pollers.min: should be at least 2; got 1"),
        ("concurrency: many", "4: actors.a.concurrency: should be a whole number; got 'many'"),
        (
            "frames: bufered",
            "4: actors.a.frames: should be 'streamed' or 'buffered'; got 'bufered'; did you mean 'buffered'?",
        ),
        ("deduplicate: perhaps", "4: actors.a.deduplicate: should be true or false; got 'perhaps'"),
        (
            "env: {A: b}",
            "4: actors.a.env: 'A' is not a valid variable name: use a letter, then one or more letters, digits or _",
        ),
        (
            "env: {AWS_REGION: b}",
            "4: actors.a.env: 'AWS_REGION' is reserved: the mesh sets the variables of AWS, Lambda, Powertools and Asya",
        ),
        (
            "kind: pauze",
            f"4: actors.a.kind: should be {one_of(PRODUCT.kinds)}; got 'pauze'; did you mean 'pause'?",
        ),
    ],
)
def test_values(keys: str, problem: str) -> None:
    assert light_actor_problems(keys) == [problem]
