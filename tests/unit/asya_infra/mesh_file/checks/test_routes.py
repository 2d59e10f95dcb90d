"""Routes of tools and actors: the messages of actors that do not exist or may not be in a route."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import light_actor_problems, mesh_problems

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            "resiliency: {policies: {later: {then_route: [a, b]}}}",
            "4: actors.a.resiliency.policies.later.then_route[1]: there is no actor 'b'",
        ),
        ("can_send_to: [b]", "4: actors.a.can_send_to[0]: there is no actor 'b'"),
        ("can_send_to: [a, '*']", "4: actors.a.can_send_to[1]: '*' means every actor; remove it, or all others"),
    ],
)
def test_routes_of_an_actor(keys: str, problem: str) -> None:
    assert light_actor_problems(keys) == [problem]


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ("{route: [b]}", "4: tools.t.route[0]: there is no actor 'b'"),
        ("{route: [aa]}", "4: tools.t.route[0]: there is no actor 'aa'; did you mean 'a'?"),
        (
            "{route: [a, x-sink]}",
            "4: tools.t.route[1]: 'x-sink' is reserved; "
            "a route may contain these actors of the mesh: x-checkpoint, x-fan-in, x-pause, x-resume",
        ),
        ("{}", "4: tools.t.route: missing, and there is no actor 't' to use as the route"),
    ],
)
def test_routes_of_tools(tool: str, problem: str) -> None:
    assert mesh_problems(f"tools: {{t: {tool}}}") == [problem]


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ("sink: {hooks: [b]}", "4: sink.hooks[0]: there is no actor 'b'"),
    ],
)
def test_hooks_of_the_sink(more: str, problem: str) -> None:
    assert mesh_problems(more) == [problem]
