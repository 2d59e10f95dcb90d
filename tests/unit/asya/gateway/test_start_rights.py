"""protocol §13, start: what only operators may start."""

from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.gateway.access import Caller
from asya.gateway.start_rights import check_replay, check_start
from asya.protocol.api_errors import ApiError
from asya.protocol.codec import decode
from asya.protocol.mesh_table import Actor
from asya.protocol.mesh_table import Gateway as GatewayTable
from asya.tasks.starts.submission import read_submission
from tests.doubles.envelopes import message, status
from tests.doubles.gateway_functions import ADMIN, ALICE, MESH, Gateway, route_event

OPERATOR, USER = Caller("AROAADMIN", is_operator=True), Caller("AIDAALICE", is_operator=False)
OVERRIDE, OFF = b'{"headers": {"x-asya-route-override": {}}}', b'{"headers": {"x-asya-mesh-status": "off"}}'


def refusal(body: bytes, starts: tuple[str, ...] | None = None, caller: Caller = USER) -> tuple[str | None, str] | None:
    mesh = changed(MESH, gateway=GatewayTable(starts=starts))
    submission = read_submission(body, "publish-report", mesh)
    try:
        check_start(submission, caller, mesh)
    except ApiError as error:
        return error.field, error.message
    return None


@pytest.mark.rule("13.start.operators")
@pytest.mark.parametrize(
    ("body", "header"), [(OVERRIDE, "x-asya-route-override"), (OFF, "x-asya-mesh-status")], ids=["override", "stealth"]
)
def test_headers_that_only_operators_may_set(body: bytes, header: str) -> None:
    assert refusal(body) == (f"headers.{header}", f"only operators of the mesh may set {header}")
    assert refusal(body, caller=OPERATOR) is None


@pytest.mark.rule("13.start.operators")
def test_other_headers_are_everybodys() -> None:
    assert refusal(b'{"headers": {"priority": "high", "x-asya-mesh-status": "on"}}') is None


@pytest.mark.rule("13.start.starts")
@pytest.mark.parametrize(
    ("starts", "message"),
    [
        (None, None),
        (("inspect-dataset", "publish-report"), None),
        (
            ("inspect-dataset",),
            "only operators of the mesh may start a task at 'publish-report'; start at inspect-dataset",
        ),
        ((), "only operators of the mesh may start a task at 'publish-report'; call a tool"),
    ],
)
def test_callers_start_tasks_where_the_mesh_file_allows(starts: tuple[str, ...] | None, message: str | None) -> None:
    assert refusal(b"", starts) == (("actor", message) if message else None)
    assert refusal(b"", starts, OPERATOR) is None


@pytest.mark.rule("13.start.starts", "13.start.operators")
def test_the_gateway_starts_nothing_that_the_caller_may_not_start(gateway: Gateway) -> None:
    def start(iam: dict[str, str], **headers: Any) -> int:
        body = {"payload": 1, "headers": headers}
        return gateway.api(route_event("POST /api/v1/mesh", iam, body, actor="inspect-dataset"))[0]

    gateway.mesh = changed(
        MESH, operators=("arn:aws:iam::123456789012:role/Admin",), gateway=GatewayTable(starts=("publish-report",))
    )
    assert (start(ALICE), start(ADMIN)) == (403, 201)
    gateway.mesh = changed(gateway.mesh, gateway=GatewayTable())
    override = {"x-asya-route-override": {"inspect-dataset": "publish-report"}}
    assert (start(ALICE), start(ALICE, **override), start(ADMIN, **override)) == (201, 403, 201)
    assert (len(gateway.messages()), len(gateway.messages("publish-report"))) == (2, 1)


CREW = Actor(kind="crew")
OVERRIDDEN = {"x-asya-route-override": {"publish-report": "inspect-dataset"}}


@pytest.mark.rule("12.replay.place")
@pytest.mark.parametrize(
    ("curr", "place", "more", "why"),
    [
        ("publish-report", "publish-report", {}, None),
        ("publish-report", "publish-report", {"reason": "RouteMismatch"}, None),
        ("publish-report", "inspect-dataset", {}, "it was at 'inspect-dataset'"),
        ("publish-report", "publish-report", {"headers": OVERRIDDEN}, "route names 'inspect-dataset'"),
        ("publish-report", "inspect-dataset", {"headers": OVERRIDDEN}, None),
        ("x-checkpoint", "x-checkpoint", {"reason": "RuntimeError"}, None),
        ("x-checkpoint", "x-checkpoint", {"reason": "RouteMismatch"}, "has refused to lead it on"),
    ],
)
def test_a_caller_replays_an_envelope_where_it_was(
    curr: str, place: str, more: dict[str, Any], why: str | None
) -> None:
    route, failed = (
        {"prev": [], "curr": curr, "next": []},
        status(actor=place, phase="failed", reason=more.get("reason")),
    )
    stored = decode(message(route=route, status=failed, headers=more.get("headers", {})))
    mesh = changed(MESH, gateway=GatewayTable(starts=("x",)), actors={**MESH.actors, "x-checkpoint": CREW})
    check_replay(stored, None, OPERATOR, mesh, force=True)
    check_replay(stored, None, USER, changed(mesh, gateway=GatewayTable()), force=False)
    for caller, force, remedy in (
        (USER, False, "an operator"),
        (USER, True, "an operator"),
        (OPERATOR, False, "force"),
    ):
        if why is None:
            check_replay(stored, None, caller, mesh, force=force)
        else:
            with pytest.raises(ApiError, match=f"{why}.*; .*{remedy}"):
                check_replay(stored, None, caller, mesh, force=force)


@pytest.mark.rule("12.replay.place")
@pytest.mark.parametrize("caller", [USER, OPERATOR])
@pytest.mark.parametrize(("place", "is_there"), [("publish-report", True), ("inspect-dataset", False), (None, False)])
def test_an_envelope_without_a_status_was_where_its_record_says(
    caller: Caller, place: str | None, is_there: bool
) -> None:
    stored = changed(decode(message(route={"prev": [], "curr": "publish-report", "next": []})), status=None)
    mesh = changed(MESH, gateway=GatewayTable(starts=("inspect-dataset",)))
    if is_there:
        check_replay(stored, place, caller, mesh, force=False)
    else:
        with pytest.raises(ApiError, match=r"a replay would start at 'publish-report'"):
            check_replay(stored, place, caller, mesh, force=False)
