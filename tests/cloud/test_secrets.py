"""Secrets on the deployed mesh, with IAM enforced: they reach their actor, and nothing else."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from tests.cloud.conftest import SECRETS

if TYPE_CHECKING:
    from asya.tasks.view import TaskView
    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud


def send(cloud: DeployedCloud, actor: str, payload: object, envelope_id: str) -> None:
    route = {"prev": [], "curr": actor, "next": []}
    cloud.send_raw(actor, json.dumps({"id": envelope_id, "route": route, "payload": payload}))


@pytest.mark.rule("6.secrets")
def test_6_the_actor_has_its_secrets(gateway: DeployedCloud) -> None:
    send(gateway, "vault", {}, "secrets-1")
    _, envelope = gateway.wait_for_result("secrets-1")
    expected = {
        name: hashlib.sha256(SECRETS[reference].encode()).hexdigest()
        for name, reference in (("VAULT_KEY", "vault/key"), ("VAULT_TOKEN", "ssm:/vault/token"))
    }
    assert envelope["payload"] == {**expected, "at_import": True}


def test_another_actor_may_not_read_them(gateway: DeployedCloud) -> None:
    send(gateway, "spy", {}, "secrets-2")
    _, envelope = gateway.wait_for_result("secrets-2")
    assert envelope["payload"] == ["AccessDeniedException", "AccessDeniedException"]


@pytest.fixture(scope="module")
def failed(gateway: DeployedCloud) -> TaskView:
    """The task of a handler whose error has the values."""
    send(gateway, "vault", {"fails": True}, "secrets-3")
    task, _ = gateway.wait_for_result("secrets-3")
    return task


@pytest.mark.rule("6.secrets.redacted")
def test_6_the_record_and_the_envelope_of_a_failure_have_no_values(gateway: DeployedCloud, failed: TaskView) -> None:
    assert failed.error is not None
    assert failed.error.message == "refused: {'VAULT_KEY': '[secret VAULT_KEY]', 'VAULT_TOKEN': '[secret VAULT_TOKEN]'}"
    written = str(failed) + json.dumps(gateway.envelope(failed))
    assert not any(value in written for value in SECRETS.values())


@pytest.mark.rule("6.secrets.redacted")
def test_6_the_values_are_nowhere_but_in_their_file(gateway: DeployedCloud, failed: TaskView) -> None:
    """Neither in the templates nor in the logs, although the error of the handler has them."""
    written = gateway_texts(gateway)
    assert any("handler failed" in text for text in written)
    assert [text[:200] for text in written if any(value in text for value in SECRETS.values())] == []


def gateway_texts(cloud: DeployedCloud) -> list[str]:
    """The logs of the actor, and every file of the local cloud but the secrets."""
    group = f"/aws/lambda/asya-{cloud.mesh.connection.namespace}-vault"
    lines = [each["message"] for each in cloud.client("logs").filter_log_events(logGroupName=group)["events"]]
    files = [path for path in cloud.state.rglob("*") if path.is_file() and path.name != "secrets.env"]
    return [*lines, *(path.read_bytes().decode("latin-1") for path in files)]
