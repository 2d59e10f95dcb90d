"""Waits in the mesh file: the messages of those that cannot be."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import problems_of

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.rule("11.wait.longest")
@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("kind: wait", "3: actors.hold: a wait actor (kind: wait) needs wait, such as wait: {for: 3d}"),
        (
            "kind: wait, wait: {}",
            "3: actors.hold.wait: needs either for (a duration) or until (a JSON pointer into the payload)",
        ),
        (
            "kind: wait, wait: {for: 1d, until: /x}",
            "3: actors.hold.wait: needs either for (a duration) or until (a JSON pointer into the payload)",
        ),
        ("kind: wait, wait: {until: x}", "3: actors.hold.wait.until: 'x' is not a JSON pointer: it starts with '/'"),
        (
            "kind: wait, wait: {for: 30d}",
            "3: actors.hold.wait.for: is 30d; this mesh holds an envelope for 29d at most: make "
            "storage.retention.tasks and storage.retention.payloads longer, or the wait shorter",
        ),
        ("kind: pause, wait: {for: 1d}", "3: actors.hold.wait: needs kind: wait"),
    ],
)
def test_what_cannot_be_is_refused(keys: str, problem: str) -> None:
    assert problems_of(f"namespace: shop\nactors:\n  hold: {{{keys}}}\n") == [problem]


def test_a_longer_retention_allows_a_longer_wait() -> None:
    kept = "storage: {retention: {tasks: 90d, payloads: 90d}}"
    assert problems_of(f"namespace: shop\nactors:\n  hold: {{kind: wait, wait: {{for: 60d}}}}\n{kept}\n") == []


def test_x_wait_is_the_meshs_own() -> None:
    (problem,) = problems_of("namespace: shop\nactors:\n  x-wait: {kind: wait, wait: {for: 1d}}\n")
    assert "the name 'x-wait' is reserved" in problem
