"""Webhooks on the test kit: from the signed call to the task that it starts."""

from pathlib import Path

import pytest

from asya.protocol.mesh_table import BODY_LIMIT
from asya.testing import Mesh, RefusedError, TestKitError

TRIGGERS = """
triggers:
  pushed:
    route: [echo]
    webhook: {secret: hooks/github, signature: github}
    payload: {what: "{event}", push: "{body}"}
  paid:
    tool: pay
    input: /data/object
    webhook: {secret: hooks/stripe, signature: stripe}
  asked:
    route: [echo]
    webhook: {secret: hooks/slack, signature: slack}
  told:
    route: [echo]
    webhook: {secret: hooks/standard, signature: standard-webhooks}
  noted:
    route: [echo]
    webhook: {secret: hooks/own, signature: hmac-sha256, header: Linear-Signature}
  numbered:
    route: [echo]
    webhook: {secret: hooks/orders, signature: hmac-sha256, id: /order/no}
  headed:
    route: [echo]
    webhook: {secret: hooks/headed, signature: github, id: X-Hub-Signature-256}
  silent:
    route: [echo]
    enabled: false
    webhook: {secret: hooks/silent, signature: github}
"""
MESH = f"""
namespace: hooks
code: handlers
actors:
  echo: {{handler: echo.echo}}
tools:
  pay:
    description: Pays
    route: [echo]
    input_schema: {{type: object, required: [amount], properties: {{amount: {{type: integer}}}}}}
{TRIGGERS}
"""


@pytest.fixture
def mesh(tmp_path: Path) -> Mesh:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "echo.py").write_text("def echo(payload):\n    return payload\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    return Mesh(tmp_path / "mesh.yaml")


@pytest.mark.rule("16.webhooks.payload", "16.payload", "16.start")
def test_16_a_webhook_starts_a_task_with_its_event_and_its_body(mesh: Mesh) -> None:
    run = mesh.webhook("pushed", {"ref": "refs/heads/main", "who": "Zoë"}, event="push")
    assert run.result == {"what": "push", "push": {"ref": "refs/heads/main", "who": "Zoë"}}


@pytest.mark.rule("16.webhooks.payload")
def test_16_the_payload_is_the_part_of_the_body_at_the_input(mesh: Mesh) -> None:
    paid = mesh.webhook("paid", {"type": "charge.succeeded", "data": {"object": {"amount": 5}}})
    assert paid.result == {"amount": 5}


@pytest.mark.rule("16.webhooks.payload")
def test_16_a_body_in_the_form_of_an_envelope_chooses_nothing(mesh: Mesh) -> None:
    plain = mesh.sent(mesh.webhook("noted", {"a": 1}).id)[0]
    route = {"prev": [], "curr": "x-sump", "next": ["x-sink"]}
    body = {"trigger": "paid", "id": "order-1", "route": route, "headers": {"mine": 1, "x-asya-generation": 7}}
    run = mesh.webhook("noted", body)
    first = mesh.sent(run.id)[0]
    assert (run.status, run.result, run.id != "order-1") == ("succeeded", body, True)
    assert (first.route, set(first.headers)) == (plain.route, set(plain.headers))


@pytest.mark.rule("16.webhooks.signature")
@pytest.mark.parametrize("trigger", ["asked", "told", "noted"])
def test_16_each_scheme_starts_tasks(mesh: Mesh, trigger: str) -> None:
    assert mesh.webhook(trigger, b"a=1&b=", content_type="application/x-www-form-urlencoded").result == {
        "a": "1",
        "b": "",
    }


@pytest.mark.rule("16.webhooks.id")
def test_16_a_webhook_is_found_by_the_id_in_a_header(mesh: Mesh) -> None:
    assert mesh.webhook("headed", {"a": 1}).result == {"a": 1}


@pytest.mark.rule("16.webhooks.once")
def test_16_a_repetition_starts_nothing(mesh: Mesh) -> None:
    """Also with a new signed time."""
    first = mesh.webhook("told", {"a": 1})
    mesh.travel(hours=1)
    assert mesh.webhook("told", {"a": 1}) == first
    assert mesh.webhook("told", {"a": 2}) != first
    assert len(mesh.runs()) == 2


@pytest.mark.rule("16.webhooks.once")
@pytest.mark.slow
def test_16_a_repetition_is_known_as_long_as_its_task_is(mesh: Mesh, tmp_path: Path) -> None:
    """What the sender is told is what happens: nothing starts, or a task of its own."""
    calls = tmp_path / "calls"
    (tmp_path / "handlers" / "echo.py").write_text(
        f"def echo(payload):\n    open({str(calls)!r}, 'a').write('x')\n    return payload\n"
    )
    first = mesh.webhook("noted", {"a": 1})
    for days, is_known in ((1, True), (28.99, True), (0.02, False)):
        mesh.travel(days=days)
        assert (first.status == "succeeded") is is_known
        assert mesh.webhook("noted", {"a": 1}).status == "succeeded"
        assert calls.read_text() == ("x" if is_known else "xx")


@pytest.mark.rule("16.webhooks.id")
def test_16_a_retry_of_stripe_with_other_bytes_starts_nothing(mesh: Mesh) -> None:
    event = {"id": "evt_1", "type": "charge.succeeded", "data": {"object": {"amount": 5}}}
    first = mesh.webhook("paid", event | {"pending_webhooks": 1})
    mesh.travel(hours=1)
    assert mesh.webhook("paid", event | {"pending_webhooks": 2}) == first
    assert mesh.webhook("paid", event | {"id": "evt_2"}) != first
    assert len(mesh.runs()) == 2


@pytest.mark.rule("16.webhooks.id")
def test_16_the_mesh_file_names_the_id(mesh: Mesh) -> None:
    first = mesh.webhook("numbered", {"order": {"no": 7}, "sent": 1})
    assert mesh.webhook("numbered", {"order": {"no": 7}, "sent": 2}) == first
    assert mesh.webhook("numbered", {"order": {"no": 8}, "sent": 2}) != first


@pytest.mark.rule("16.webhooks.large")
@pytest.mark.parametrize("size", [256 * 1024 + 1, 1024 * 1024, BODY_LIMIT - 100])
def test_16_a_large_push_reaches_its_handler_whole(mesh: Mesh, size: int) -> None:
    body = {"ref": "refs/heads/main", "commits": "x" * (size - 50)}
    assert mesh.webhook("pushed", body, event="push").result == {"what": "push", "push": body}


@pytest.mark.rule("16.failures", "16.webhooks.payload")
@pytest.mark.parametrize("body", [{}, {"data": {"object": {"sum": 1}}}, {"data": {"object": [1]}}])
def test_16_a_webhook_without_a_payload_for_its_tool_is_a_dead_letter(mesh: Mesh, body: object) -> None:
    run = mesh.webhook("paid", body)
    assert run.status == "unknown"
    assert len(mesh.dead_letters) == 1


@pytest.mark.rule("16.webhooks.unknown", "16.off")
def test_16_a_webhook_that_is_off_is_refused(mesh: Mesh) -> None:
    with pytest.raises(RefusedError, match="no webhook at this URL, or it is off"):
        mesh.webhook("silent", {})
    with pytest.raises(TestKitError, match="no webhook 'pusht'; did you mean 'pushed'"):
        mesh.webhook("pusht", {})
