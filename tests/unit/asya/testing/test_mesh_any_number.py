"""Any number of JSON on the test kit: from the caller, a webhook, an event and an answer to the type of a handler."""

import json
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings

from asya.protocol.names import TRIGGERS
from asya.testing import Mesh
from asya.testing.external import SERVICE_SENDER
from asya.testing.messages import put
from asya.testing.run import Run
from asya.testing.services.gateway import URL
from tests.doubles.json_numbers import NUMBERS, are_equal

MESH = """
namespace: tills
code: handlers
actors:
  look: {handler: tills.look}
  split: {handler: tills.split, can_send_to: [bill]}
  gather: {handler: tills.gather}
  bill: {handler: tills.bill}
  ask:
    kind: pause
    pause:
      callback: true
      fields: [{name: total, type: number}]
tools:
  pay:
    description: Pays
    route: [look, ask, look, bill]
    input_schema: {type: object, properties: {total: {type: number}}}
  pay_all:
    description: Pays some
    route: [look, split, gather]
    input_schema: {type: object}
triggers:
  told:
    route: [bill]
    input: /order
    webhook: {secret: hooks/own, signature: hmac-sha256}
  filled:
    route: [bill]
    payload: {total: "{body}"}
    webhook: {secret: hooks/other, signature: hmac-sha256}
  changed:
    route: [bill]
    input: /detail
    event: {source: [tills]}
"""
HANDLERS = """
from dataclasses import dataclass
from decimal import Decimal
from asya import fan_out

@dataclass
class Order:
    total: Decimal

def look(payload):
    yield {**payload, "seen": True}

def split(payload):
    return fan_out([{"total": payload["total"]}], to=["bill"], into="/bills")

def bill(order: Order):
    return {"total": str(order.total)}

@dataclass
class Gathered:
    total: Decimal
    bills: list[dict]

def gather(gathered: Gathered):
    return {"total": str(gathered.total), "bills": gathered.bills}
"""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Mesh:
    folder = tmp_path_factory.mktemp("tills")
    (folder / "handlers").mkdir()
    (folder / "handlers" / "tills.py").write_text(HANDLERS)
    (folder / "mesh.yaml").write_text(MESH)
    return Mesh(folder / "mesh.yaml")


def called(mesh: Mesh, tool: str, total: str) -> Run:
    """A call with a number as its text."""
    body = f'{{"name": "{tool}", "arguments": {{"total": {total}}}}}'.encode()
    run = Run(mesh, mesh.ask("POST", "/tools/call", dict, body=body)["id"])
    mesh.travel(seconds=1)
    return run


def resumed(mesh: Mesh, run: Run, total: str) -> Run:
    mesh.ask("POST", f"/api/v1/mesh/{run.id}/resume", None, body=f'{{"input": {{"total": {total}}}}}'.encode())
    mesh.travel(seconds=1)
    return run


def answered_by_form(mesh: Mesh, run: Run, total: str) -> Run:
    assert run.question is not None
    link = str(run.question.callback).removeprefix(URL)
    form, headers = urlencode({"total": total}).encode(), {"content-type": "application/x-www-form-urlencoded"}
    assert mesh.cloud.request("POST", link, form, headers, user_arn="", user_id="")["statusCode"] < 400
    mesh.travel(seconds=1)
    return run


def told_by_a_bus(mesh: Mesh, total: str, number: int) -> Run:
    event = (
        f'{{"id": "event-{number}", "source": "tills", "detail-type": "Changed", "time": "2026-01-02T03:04:05Z", '
        f'"account": "1", "detail": {{"total": {total}}}}}'
    )
    known = {each.id for each in mesh.runs()}
    put(mesh.cloud, TRIGGERS, f'{{"trigger": "changed", "event": {event}}}', sender=SERVICE_SENDER)
    mesh.travel(seconds=1)
    (run,) = [each for each in mesh.runs() if each.id not in known]
    return run


@pytest.mark.slow
@pytest.mark.rule("1.numbers")
@given(NUMBERS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_1_a_number_has_every_digit_whichever_way_it_comes(mesh: Mesh, text: str) -> None:
    gathered = called(mesh, "pay_all", text).result
    runs = {
        "call": resumed(mesh, called(mesh, "pay", "1"), text),
        "form": answered_by_form(mesh, called(mesh, "pay", "1"), text),
        "webhook": mesh.webhook("told", f'{{"order": {{"total": {text}}}, "n": {len(mesh.runs())}}}'.encode()),
        "template": mesh.webhook("filled", f"{text}{' ' * len(mesh.runs())}".encode()),
        "event": told_by_a_bus(mesh, text, len(mesh.runs())),
    }

    seen = {way: run.result["total"] for way, run in runs.items()}
    seen |= {"call through untyped code": gathered["total"], "slice of a set": gathered["bills"][0]["total"]}
    assert {way: total for way, total in seen.items() if not are_equal(total, text)} == {}


@pytest.mark.rule("1.numbers.passed")
def test_1_headers_and_results_keep_their_digits_too(mesh: Mesh) -> None:
    body = b'{"payload": {"total": 12345678901234567.89}, "headers": {"rate": 1.10}}'
    run = Run(mesh, mesh.ask("POST", "/api/v1/mesh?actor=look", dict, body=body)["id"])
    mesh.travel(seconds=1)

    (sent,) = [each for each in mesh.sent(run.id) if each.route.curr == ""]
    assert bytes(sent.headers["rate"]) == b"1.10"
    assert bytes(sent.payload) == b'{"total":12345678901234567.89,"seen":true}'
    assert json.loads(bytes(sent.payload))["seen"]
