"""The issuer of tokens, its audiences, the operators, and the starts: the messages of wrong values."""

import pytest

from tests.unit.asya_infra.mesh_file.loading import mesh_problems, problems_of

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("jwt", "problem"),
    [
        ("{issuer: https://who, audience: ['']}", "4: gateway.jwt.audience[0]: should not be empty"),
        (
            "{issuer: who, audience: a}",
            "4: gateway.jwt.issuer: should be a URL such as https://login.example.com/; got 'who'",
        ),
        (
            "{issuer: 'https://who#a', audience: a}",
            "4: gateway.jwt.issuer: should be a URL such as https://login.example.com/; got 'https://who#a'",
        ),
        (
            "{issuer: 'http://who', audience: a}",
            "4: gateway.jwt.issuer: should start with https:// (http:// only for the local cloud, at 127.0.0.1); "
            "got 'http://who'",
        ),
    ],
)
def test_the_issuer_of_tokens(jwt: str, problem: str) -> None:
    assert mesh_problems(f"gateway: {{jwt: {jwt}}}") == [problem]


def test_operators_are_arns_or_claims_of_tokens() -> None:
    text = "namespace: shop\nactors:\n  a: {handler: shop.one}\n"
    jwt = "gateway: {jwt: {issuer: 'http://127.0.0.1:8080', audience: a}}\n"
    arns = "operators: ['arn:aws:iam::*:user/a=b', '*:role/Admin'"
    assert problems_of(f"{text}{jwt}{arns}, groups=admins, 'https://who/roles=a*']\n") == []
    assert problems_of(f"{text}{arns}, groups=admins, alice]\n") == [
        "4: operators[2]: 'groups=admins' is a claim of a token, but the mesh accepts no tokens; set gateway.jwt",
        "4: operators[3]: should be an IAM ARN or a claim of a token such as name=value; got 'alice'",
    ]


def test_callers_start_tasks_at_actors_of_the_mesh_and_operators_anywhere() -> None:
    text = "namespace: shop\nactors:\n  ask: {handler: shop.one}\n  x-pause: {kind: pause}\n"
    starts = "gateway: {starts: [ask, aks, x-pause]}\n"
    assert problems_of(f"{text}operators: ['*']\ngateway: {{starts: [ask]}}\n") == []
    assert problems_of(f"{text}operators: ['*']\ngateway: {{starts: []}}\n") == []
    assert problems_of(f"{text}{starts}") == [
        "5: gateway.starts: limits callers who are no operators, but without operators every signed caller is one",
        "5: gateway.starts[1]: there is no actor 'aks' to start a task at; did you mean 'ask'?",
        "5: gateway.starts[2]: there is no actor 'x-pause' to start a task at",
    ]
