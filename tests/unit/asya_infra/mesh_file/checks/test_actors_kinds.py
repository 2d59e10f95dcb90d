"""The kind of an actor and the keys of its kind: the messages of those that do not fit."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import light_actor_problems, problems_of

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("spark: {job: heavy.crunch}", "4: actors.a.spark: has handler and spark; keep one of them"),
        ("validate: false", "4: actors.a.validate: only a user's own end actor (kind: end) may turn off validation"),
        ("pause: {}", "4: actors.a.pause: needs kind: pause"),
        (
            "handler_mode: envelope, responses: errors",
            "4: actors.a.responses: needs a handler with handler_mode: payload",
        ),
    ],
)
def test_keys_that_do_not_fit_the_kind(keys: str, problem: str) -> None:
    assert light_actor_problems(keys) == [problem]


def test_a_quorum_needs_partial_sets() -> None:
    problem = problems_of("namespace: shop\nactors:\n  x-fan-in: {kind: fan_in, fan_in: {quorum: 2}}\n")
    assert problem == ["3: actors.x-fan-in.fan_in: has a quorum, which needs on_failure: partial"]


@pytest.mark.rule("14.end-actor")
@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            "",
            {
                "an end actor (kind: end) needs handler_mode: envelope, or envelope-v1",
                "an end actor (kind: end) needs validate: false",
            },
        ),
        ("handler_mode: envelope-v1, validate: false", set()),
        ("handler_mode: envelope, validate: false", set()),
        ("handler_mode: envelope, validate: true", {"an end actor (kind: end) needs validate: false"}),
    ],
)
def test_a_users_own_end_actor(keys: str, problem: set[str]) -> None:
    assert {line.split(": ", 2)[2] for line in light_actor_problems(f"kind: end, {keys}")} == problem
