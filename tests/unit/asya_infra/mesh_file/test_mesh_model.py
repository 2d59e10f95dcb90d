"""The types and bounds of the keys of the whole mesh: the messages of other values."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import mesh_problems

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ("{route: [a], timeout: 1s}", "4: tools.t.timeout: should be at least 2s; got '1s'"),
        ("{route: []}", "4: tools.t.route: should not be empty"),
    ],
)
def test_tools(tool: str, problem: str) -> None:
    assert mesh_problems(f"tools: {{t: {tool}}}") == [problem]


@pytest.mark.parametrize(
    ("jwt", "problem"),
    [
        ("{audience: a}", "4: gateway.jwt.issuer: missing"),
        ("{issuer: https://who}", "4: gateway.jwt.audience: missing"),
        ("{issuer: https://who, audience: []}", "4: gateway.jwt.audience: should not be empty"),
    ],
)
def test_tokens(jwt: str, problem: str) -> None:
    assert mesh_problems(f"gateway: {{jwt: {jwt}}}") == [problem]


@pytest.mark.parametrize(
    ("jwt", "problem"),
    [
        (
            "{issuer: https://who, audience: a, calls: [tasks, toolz]}",
            "4: gateway.jwt.calls[1]: should be 'tasks', 'tools', 'mcp', 'a2a' or 'streams'; got 'toolz'; "
            "did you mean 'tools'?",
        ),
        ("{issuer: https://who, audience: a, calls: []}", "4: gateway.jwt.calls: should not be empty"),
    ],
)
def test_calls_that_need_tokens(jwt: str, problem: str) -> None:
    assert [line for line in mesh_problems(f"gateway: {{jwt: {jwt}}}") if "calls" in line] == [problem]
