"""What a process of an actor leaves for the next envelope, of another owner (`docs/security.md`, code of actors, what remains)."""

import json
from pathlib import Path
from typing import Any

from asya.testing import Mesh
from asya.testing.services.functions import ACCOUNT

MESH = """
namespace: bank
code: handlers
actors:
  keep: {handler: bank.keep}
"""
HANDLERS = """
import os

SEEN = []

def keep(payload):
    found = {"variable": list(SEEN), "environment": os.environ.get("SEEN")}
    SEEN.append(payload["secret"])
    os.environ["SEEN"] = payload["secret"]
    envelope = []
    for name in ("id", "headers", "route", "status"):
        envelope.append((yield ("GET", f".{name}")))
    yield {"found": found, "envelope": envelope}
"""


def result(mesh: Mesh, user: str, secret: str) -> dict[str, Any]:
    """Start a task as a caller, and return its result as its owner sees it."""

    def call(method: str, path: str, body: Any = None) -> Any:
        content = b"" if body is None else json.dumps(body).encode()
        arn = f"arn:aws:iam::{ACCOUNT}:user/{user}"
        answer = mesh.cloud.request(method, path, content, {}, user_arn=arn, user_id=f"AIDA{user}")
        mesh.cloud.finish()
        return json.loads(answer["body"])

    task = call("POST", "/api/v1/mesh?actor=keep", {"payload": {"secret": secret}})["id"]
    mesh.cloud.run_until_idle()
    found: dict[str, Any] = call("GET", f"/api/v1/mesh/{task}")["result"]
    return found


def test_a_process_has_what_code_has_left_and_nothing_else_of_another_owner(tmp_path: Path) -> None:
    """The mesh itself leaves nothing: what a handler reads of its envelope is that of its own task."""
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "bank.py").write_text(HANDLERS)
    (tmp_path / "mesh.yaml").write_text(MESH)
    mesh = Mesh(tmp_path / "mesh.yaml")
    first, second = result(mesh, "ALICE", "hers"), result(mesh, "BOB", "his")
    assert first["found"]["variable"] == []
    assert second["found"]["variable"] == ["hers"], "conceded"
    assert "hers" not in json.dumps(second["envelope"])
    assert "ALICE" not in json.dumps(second["envelope"])
    assert first["envelope"][0] not in json.dumps(second["envelope"])
