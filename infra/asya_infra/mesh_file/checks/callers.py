"""Checks the issuer of tokens, their audiences, the operators, and where callers may start tasks (`protocol §13`)."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from asya.gateway.access import operator_claim
from asya.protocol import names
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.problems import did_you_mean

# Tests run an issuer without TLS on the local cloud. API Gateway requires TLS.
_LOOPBACK = ("127.0.0.1", "localhost")


def check_callers(context: Context) -> Iterator[Finding]:
    """Check the issuer and audiences of tokens, the operators, and the actors where callers may start tasks."""
    jwt = context.mesh.gateway.jwt
    if jwt is not None:
        if (problem := _issuer_problem(jwt.issuer)) is not None:
            yield ("gateway", "jwt", "issuer"), problem
        for number, audience in enumerate(jwt.audience):
            if not audience.strip():
                yield ("gateway", "jwt", "audience", number), "should not be empty"
    for number, operator in enumerate(context.mesh.operators):
        if operator_claim(operator) is not None:
            if jwt is None:
                yield (
                    ("operators", number),
                    f"{operator!r} is a claim of a token, but the mesh accepts no tokens; set gateway.jwt",
                )
        elif not operator.startswith(("arn:", "*")):
            yield (
                ("operators", number),
                f"should be an IAM ARN or a claim of a token such as name=value; got {operator!r}",
            )
    yield from _starts(context)


def _starts(context: Context) -> Iterator[Finding]:
    starts, actors = context.mesh.gateway.starts, context.mesh.actors
    if starts is None:
        return
    if not context.mesh.operators:
        yield (
            ("gateway", "starts"),
            "limits callers who are no operators, but without operators every signed caller is one",
        )
    startable = [name for name in actors if not names.is_reserved(name)]
    for number, actor in enumerate(starts):
        if actor not in startable:
            yield (
                ("gateway", "starts", number),
                f"there is no actor {actor!r} to start a task at{did_you_mean(actor, startable)}",
            )


def _issuer_problem(issuer: str) -> str | None:
    try:
        parts = urlsplit(issuer)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.query or parts.fragment or "#" in issuer or any(each.isspace() for each in issuer):
        return f"should be a URL such as https://login.example.com/; got {issuer!r}"
    if parts.scheme != "https" and not (parts.scheme == "http" and host in _LOOPBACK):
        return f"should start with https:// (http:// only for the local cloud, at {_LOOPBACK[0]}); got {issuer!r}"
    return None
