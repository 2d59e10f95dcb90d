"""MiniStack's state comes back in another process, without the values of secrets."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.paths import PROJECT
from tests.unit.asya_local.ministack.test_server import CLOUD_PYTHON

SNAPSHOT = PROJECT / "infra" / "asya_local" / "ministack" / "snapshot.py"
BEGIN = """
import json, runpy, sys
from pathlib import Path
import ministack.app as front
from ministack.core import persistence
from ministack.services import s3, secretsmanager, sqs, ssm
snapshot = runpy.run_path(sys.argv[1])
folder = Path(sys.argv[2])
"""
SAVE = """
for kind in ("String", "SecureString"):
    ssm._parameters[f"/{kind}"] = {"Name": f"/{kind}", "Type": kind, "Value": f"hidden {kind}"}
    ssm._parameter_history[f"/{kind}"] = [{"Type": kind, "Value": f"hidden {kind}"}]
secretsmanager._secrets["password"] = {"Name": "password", "Versions": {"1": {"SecretString": "hidden secret"}}}
s3._buckets["bucket"] = {"created": "now", "objects": {"key": {"body": bytes([0, 255])}}}
snapshot["save"](folder, front, persistence, s3)
"""
RESTORE = """
try:
    snapshot["restore"](folder, front, persistence, s3)
except ValueError as error:
    print(json.dumps({"error": str(error)}))
    sys.exit()
print(json.dumps({
    "parameters": list(ssm._parameters), "history": list(ssm._parameter_history), "secrets": list(secretsmanager._secrets),
    "body": list(s3._buckets["bucket"]["objects"]["key"]["body"]), "created": s3._buckets["bucket"]["created"],
}))
"""


def run(program: str, folder: Path) -> Any:
    command = [str(CLOUD_PYTHON), "-I", "-c", BEGIN + program, str(SNAPSHOT), str(folder)]
    environment = {"STATE_DIR": str(folder), "HOME": str(folder)}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout or "null")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("snapshot")
    run(SAVE, folder)
    return folder


def test_another_process_has_the_state(saved: Path) -> None:
    assert run(RESTORE, saved) == {
        "parameters": ["/String"],
        "history": ["/String"],
        "secrets": [],
        "body": [0, 255],
        "created": "now",
    }


def test_no_value_of_a_secret_is_in_the_file_and_only_its_owner_reads_it(saved: Path) -> None:
    content = (saved / "state.json").read_text()
    assert "hidden String" in content
    assert "hidden SecureString" not in content
    assert "hidden secret" not in content
    assert (saved / "state.json").stat().st_mode & 0o077 == 0


def test_the_state_of_another_version_is_refused(saved: Path, tmp_path: Path) -> None:
    content = json.loads((saved / "state.json").read_text())
    content["version"]["ssm"] += 1
    (tmp_path / "state.json").write_text(json.dumps(content))
    assert "another version of MiniStack" in run(RESTORE, tmp_path)["error"]
