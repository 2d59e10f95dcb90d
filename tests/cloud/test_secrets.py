"""Secrets on the deployed mesh, with IAM enforced: they reach their actor, and nothing else."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from tests.cloud.conftest import SECRETS

if TYPE_CHECKING:
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


@pytest.mark.rule("6.secrets.redacted")
def test_6_the_values_are_nowhere_but_in_their_file(gateway: DeployedCloud) -> None:
    """Not in the record, the stored envelope, the templates, nor the logs, although the error of the handler has them."""
    send(gateway, "vault", {"fails": True}, "secrets-3")
    task, envelope = gateway.wait_for_result("secrets-3")
    assert task.error is not None
    assert task.error.message == "refused: {'VAULT_KEY': '[secret VAULT_KEY]', 'VAULT_TOKEN': '[secret VAULT_TOKEN]'}"
    written = [json.dumps(envelope), *gateway_texts(gateway)]
    assert any("handler failed" in text for text in written)
    assert [text[:200] for text in written if any(value in text for value in SECRETS.values())] == []


def gateway_texts(cloud: DeployedCloud) -> list[str]:
    """The logs of the actor, and every file of the local cloud but the secrets."""
    group = f"/aws/lambda/asya-{cloud.mesh.connection.namespace}-vault"
    lines = [each["message"] for each in cloud.client("logs").filter_log_events(logGroupName=group)["events"]]
    files = [path for path in cloud.state.rglob("*") if path.is_file() and path.name != "secrets.env"]
    return [*lines, *(path.read_bytes().decode("latin-1") for path in files)]
