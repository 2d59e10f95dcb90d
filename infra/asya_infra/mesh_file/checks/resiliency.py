"""Checks that rules select existing policies, and that only light actors have circuit breakers (`protocol §8`)."""

from collections.abc import Iterator

from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.problems import did_you_mean


def check_resiliency(context: Context) -> Iterator[Finding]:
    """Check that each rule names a policy, and that only light actors have a circuit breaker."""
    for name, actor in context.mesh.actors.items():
        policies = actor.resiliency.policies
        if actor.resiliency.circuit_breaker is not None and (actor.handler is None or actor.kind is not None):
            place = ("actors", name, "resiliency", "circuit_breaker")
            yield place, "only a light actor may have a circuit breaker; remove it, or set it to null"
        for index, rule in enumerate(actor.resiliency.rules):
            if rule.policy not in policies:
                known = f"this actor has {', '.join(sorted(policies))}" if policies else "this actor has none"
                yield (
                    ("actors", name, "resiliency", "rules", index, "policy"),
                    f"there is no policy {rule.policy!r}; {known}{did_you_mean(rule.policy, policies)}",
                )
