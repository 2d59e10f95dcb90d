"""Rules without a policy, and circuit breakers of actors that may have none."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import heavy_actor_problems, light_actor_problems, problems_of

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.rule("8.unknown-policy")
@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            "resiliency: {rules: [{errors: [ValueError], policy: later}]}",
            "4: actors.a.resiliency.rules[0].policy: there is no policy 'later'; this actor has none",
        ),
        (
            "resiliency: {policies: {later: {}}, rules: [{errors: ValueError, policy: latr}]}",
            "4: actors.a.resiliency.rules[0].policy: there is no policy 'latr'; this actor has later; did you mean 'later'?",
        ),
    ],
)
def test_rules_that_name_an_unknown_policy(keys: str, problem: str) -> None:
    assert light_actor_problems(keys) == [problem]


def test_only_a_light_actor_has_a_circuit_breaker() -> None:
    breaker = "circuit_breaker: {failures: 5, window: 1m, open_for: 30s}"
    assert light_actor_problems(f"resiliency: {{{breaker}}}") == []
    problem = "only a light actor may have a circuit breaker; remove it, or set it to null"
    assert heavy_actor_problems(f"resiliency: {{{breaker}}}") == [f"4: actors.a.resiliency.circuit_breaker: {problem}"]
    both = f"""
        namespace: shop
        defaults: {{resiliency: {{{breaker}}}}}
        actors:
          a: {{handler: shop.one}}
          b: {{spark: {{job: heavy.crunch}}, resiliency: {{circuit_breaker: null}}}}
    """
    assert problems_of(both) == []
    assert problems_of(both.replace(", resiliency: {circuit_breaker: null}", "")) == [
        f"2: defaults.resiliency.circuit_breaker: {problem}"
    ]
    assert light_actor_problems("resiliency: {circuit_breaker: {failures: 1001, window: 1m, open_for: 30s}}") == [
        "4: actors.a.resiliency.circuit_breaker.failures: should be at most 1000; got 1001"
    ]
