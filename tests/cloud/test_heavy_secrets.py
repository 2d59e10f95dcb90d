"""Secrets of a heavy actor on the deployed mesh, with IAM enforced: its driver has them, and nothing else has."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from tests.cloud.conftest import HEAVY_SECRETS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cloud.heavy_cloud import HeavyCloud

pytestmark = [pytest.mark.cloud, pytest.mark.slow]

(VALUE,) = HEAVY_SECRETS.values()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def text_of(path: Path) -> str:
    """The content of a file; empty if an ending run has removed it meanwhile."""
    try:
        return path.read_bytes().decode("latin-1")
    except FileNotFoundError:
        return ""


@pytest.mark.rule("10.secrets", "10.secrets.redacted")
def test_10_the_driver_has_its_secret_and_the_value_is_nowhere_else(heavy: HeavyCloud) -> None:
    """Neither with an executor nor in an envelope, a file of the local cloud, a log, or a job run as EMR tells it."""
    heavy.send_all({"secret-1": {}, "secret-2": {"fails": True}}, "vault")
    _, envelope = heavy.cloud.wait_for_result("secret-1")
    task, failed = heavy.cloud.wait_for_result("secret-2")

    assert envelope["payload"] == {"driver": digest(VALUE), "executor": digest("unset"), "at_import": True}
    assert task.error is not None
    assert task.error.message == "refused: [secret VAULT_KEY]"
    files = [path for path in heavy.cloud.state.rglob("*") if path.is_file() and path.name != "secrets.env"]
    runs = heavy.runs("vault")
    assert runs
    texts = {
        **{str(path): text_of(path) for path in files},
        "envelopes": json.dumps([envelope, failed]),
        "job runs": json.dumps(runs, default=str),
    }
    assert any("asya_spark" in text for text in texts.values())
    assert [name for name, text in texts.items() if VALUE in text] == []
