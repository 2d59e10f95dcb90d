"""A caller tries calls about tasks of others, and starts, lists and notifications that it may not have (`protocol §13`)."""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

from asya.api_call import ApiCall
from asya.gateway.call_table import CALLS
from tests.doubles.attacked_from_outside import ALICE, EVE, UNKNOWN, Answer, Bank, message, new_bank


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return new_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture(scope="module")
def before(bank: Bank) -> dict[str, Any]:
    return bank.of_alice()


BODIES: tuple[Any, ...] = (
    None,
    {},
    {"input": {"approved": True}},
    {"reason": "mine"},
    {"undo": True},
    {"hop": 0},
    {"force": True},
)


def about(call: ApiCall, task_id: str) -> str:
    """The path of a call about a task."""
    path = call.path.replace("{id}", quote(task_id, safe=""))
    return re.sub(r"\{\w+\}", "0", path)


OF_A_TASK = {call.route: call for call in CALLS if "{id}" in call.path and "backfills" not in call.path}


@pytest.mark.rule("13.owner", "13.operators")
@pytest.mark.parametrize("route", OF_A_TASK)
def test_a_call_about_a_task_of_others_is_answered_as_about_none(
    bank: Bank, before: dict[str, Any], route: str
) -> None:
    call = OF_A_TASK[route]
    for task_id in bank.ids:
        for body in BODIES if call.method != "GET" else (None,):
            unknown = f"{UNKNOWN}-{task_id}"
            status, answer = bank.call(call.method, about(call, task_id), body)
            expected = bank.call(call.method, about(call, unknown), body)
            assert (status, answer.replace(task_id, unknown)) == (expected[0], expected[1])
            assert status >= 400
    assert bank.changed(before) == {}


FOR_OPERATORS = {call.route: call for call in CALLS if call.rights == "operators"}


@pytest.mark.rule("13.operators")
@pytest.mark.parametrize("route", FOR_OPERATORS)
def test_a_call_of_operators_is_refused(bank: Bank, route: str) -> None:
    call = FOR_OPERATORS[route]
    report = {"id": bank.paused, "status": "failed", "at": "2026-01-01T00:00:00Z", "data": {"owner": ALICE}}
    for body in (None, report, [report]):
        status, answer = bank.call(call.method, about(call, bank.paused), body)
        assert status in (403, 404)  # a mesh without triggers has no calls of them
        assert bank.paused not in answer


def a_start_elsewhere(bank: Bank) -> Iterator[Answer]:
    for actor in ("payout", "approve", "x-checkpoint", "x-sink", "x-reports", "../work", "work%2f..%2fpayout", ""):
        yield bank.call("POST", f"/api/v1/mesh?actor={actor}", {"payload": 1})


def a_start_with_more(bank: Bank) -> Iterator[Answer]:
    for more in (
        {"route": ["payout"]},
        {"next": ["payout"]},
        {"id": bank.paused},
        {"parent_id": bank.paused},
        {"status": {}},
        {"owner": ALICE},
    ):
        yield bank.call("POST", "/api/v1/mesh?actor=work", {"payload": 1} | more)
    for name, value in (("x-asya-route-override", {"work": "payout"}), ("x-asya-mesh-status", "off")):
        yield bank.call("POST", "/api/v1/mesh?actor=work", {"payload": 1, "headers": {name: value}})
    for timeout in (0, -1, 1e300, 31_622_401, "9"):
        yield bank.call("POST", "/api/v1/mesh?actor=work", {"payload": 1, "timeout": timeout})


def a_list_of_others(bank: Bank) -> Iterator[Answer]:
    for path in ("/api/v1/mesh", "/api/v1/operations/failures"):
        for query in (
            f"owner={ALICE}",
            "owner=",
            "limit=0&since=x",
            "error=",
            f"cursor={'A' * 3_000}",
            "cursor=%00",
            "since=9999-12-31T23:59:59-23:59",
        ):
            yield bank.call("GET", f"{path}?{query}")


def a_forged_token(bank: Bank) -> Iterator[Answer]:
    for token in ("", "x", "9999999999." + "A" * 43, "9999999999." + "_" * 43, "1.2", "%00", "A" * 9_000):
        yield bank.call("GET", f"/api/v1/mesh/{bank.paused}/stream?token={token}", by="")
        for method in ("GET", "POST"):
            yield bank.call(method, f"/callbacks?token={token}", {"input": {"approved": True}}, by="")


REFUSED: dict[str, Callable[[Bank], Iterator[Answer]]] = {
    "a start elsewhere": a_start_elsewhere,
    "a start with more than its payload": a_start_with_more,
    "a list of others": a_list_of_others,
    "a forged token": a_forged_token,
}


@pytest.mark.rule("13.start.starts", "13.start.operators", "13.list.filters", "13.stream-token")
@pytest.mark.parametrize("name", REFUSED)
def test_a_call_is_refused(bank: Bank, before: dict[str, Any], name: str) -> None:
    """None of the refusals is an error of the gateway (5xx), and none names a task of Alice."""
    answers = list(REFUSED[name](bank))
    assert {status for status, _ in answers} <= {400, 403, 404, 413}
    assert not [answer for _, answer in answers if "alice-" in answer or '"amount"' in answer]
    assert bank.changed(before) == {}


@pytest.mark.rule("13.list", "13.list.cursor")
def test_a_cursor_that_names_a_task_of_others_shows_none(bank: Bank) -> None:
    """The checksum of a cursor has no key, so a caller can forge one."""
    bank.put(message("eve-1"))
    bank.put(message("eve-2"))
    bank.mesh.cloud.run_until_idle()
    page = json.loads(bank.call("GET", "/api/v1/mesh?limit=1")[1])
    cursor = page["next_cursor"]
    digest = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))[6:])[0]
    for key in (("9999", bank.paused), (f"2026#{ALICE}", "alice-set"), ("", ""), ("\x00", "\uffff"), ("~" * 900, "")):
        content = json.dumps([digest, *key], ensure_ascii=False, separators=(",", ":")).encode()
        forged = base64.urlsafe_b64encode(hashlib.sha256(content).digest()[:6] + content).decode().rstrip("=")
        status, answer = bank.call("GET", f"/api/v1/mesh?limit=1&cursor={forged}")
        assert status in (200, 400)
        assert {task["owner"] for task in json.loads(answer).get("items", ())} <= {EVE}
