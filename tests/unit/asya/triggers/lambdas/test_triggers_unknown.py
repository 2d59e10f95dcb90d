"""Messages of triggers that the function does not know, because a deployment has not reached it yet."""

import json
from pathlib import Path

import pytest

from asya.protocol import names
from asya.testing import Mesh
from asya.testing.services.roles import role_id

MESH = """
namespace: hooks
code: handlers
actors:
  echo: {handler: echo.echo}
triggers:
  hook:
    route: [echo]
    webhook: {secret: hooks/github, signature: github}
"""
DELIVERY = {"key": "webhook a", "body": "{}", "received_at": "2026-11-25T12:00:00.000000Z"}


@pytest.fixture
def mesh(tmp_path: Path) -> Mesh:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "echo.py").write_text("def echo(payload):\n    return payload\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    return Mesh(tmp_path / "mesh.yaml")


def send(mesh: Mesh, trigger: str, sender: str) -> None:
    body = json.dumps({"trigger": trigger, "webhook": DELIVERY})
    mesh._cloud.queues.send(names.queue_name("hooks", names.TRIGGERS), body, sender=None, by=sender)


@pytest.mark.rule("16.failures.unknown", "16.failures")
def test_16_a_message_of_an_unknown_trigger_waits_for_a_deployment(mesh: Mesh) -> None:
    send(mesh, "new", role_id(names.WEBHOOKS))
    mesh.travel(minutes=7)
    assert mesh.dead_letters == ()
    mesh.travel(minutes=2)
    assert len(mesh.dead_letters) == 1


@pytest.mark.rule("16.webhooks.message", "16.messages")
def test_16_a_stranger_cannot_send_a_webhook_to_the_queue(mesh: Mesh) -> None:
    """The signature was checked by the function that sends it, so only roles of the mesh may."""
    send(mesh, "hook", "AIDASTRANGER")
    mesh.travel(minutes=1)
    assert mesh.runs() == ()
    assert len(mesh.dead_letters) == 1
    send(mesh, "hook", role_id(names.WEBHOOKS))
    mesh.travel(minutes=1)
    [run] = mesh.runs()
    assert run.result == {}
