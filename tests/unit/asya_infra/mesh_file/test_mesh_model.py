"""The types and bounds of the keys of the whole mesh: the messages of other values."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import mesh_problems

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        ("{route: [a], timeout: 1s}", "4: tools.t.timeout: should be at least 2s; got '1s'"),
        ("{route: [a], timeout: 367d}", "4: tools.t.timeout: should be at most 366d; got '367d'"),
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


@pytest.mark.parametrize(
    ("gateway", "problem"),
    [
        (
            "{allowed_hosts: [a.example]}",
            "4: gateway.allowed_hosts: is now two keys: foreign_gateways, for gateways of other meshes that reports go to, "
            "and notification_hosts, for private hosts that push notifications go to; write each host under the key that "
            "you need",
        ),
        (
            "{foreign_gateways: ['https://a.example']}",
            "4: gateway.foreign_gateways[0]: should be a host such as callbacks.example.com, without https:// and path; "
            "got 'https://a.example'",
        ),
        (
            "{notification_hosts: [a.example/x]}",
            "4: gateway.notification_hosts[0]: should be a host such as callbacks.example.com, without https:// and path; "
            "got 'a.example/x'",
        ),
        ("{long_polls: 0}", "4: gateway.long_polls: should be at least 1; got 0"),
        ("{long_polls_per_caller: 1001}", "4: gateway.long_polls_per_caller: should be at most 1000; got 1001"),
    ],
)
def test_hosts_and_waits(gateway: str, problem: str) -> None:
    assert mesh_problems(f"gateway: {gateway}") == [problem]


def test_hosts_may_have_a_port() -> None:
    hosts = "[a.example, 'a.example:8443', localhost, '127.0.0.1:80', '[::1]:80']"
    assert mesh_problems(f"gateway: {{foreign_gateways: {hosts}, notification_hosts: {hosts}}}") == []


def test_children() -> None:
    assert mesh_problems("max_children: 0") == ["4: max_children: should be at least 1; got 0"]
