"""`asya run` on handlers: in the environment of functions, with what the mesh file says."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from asya_cli.errors import CommandError
from asya_cli.main import app
from asya_infra.build.functions import build_handlers
from asya_infra.build.packages import LAMBDA
from asya_infra.mesh_file import load_mesh
from asya_infra.notes import code_notes
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for

MESH = """
namespace: shop
code: handlers
actors:
  check: {handler: orders.check, env: {CURRENCY: EUR}, secrets: {API_KEY: shop/key}}
  plan: {handler: orders.plan, can_send_to: "*"}
  typed: {handler: orders.typed}
  named: {handler: report.named}
  alien: {handler: orders.alien}
  slow: {handler: orders.slow, timeout: 1s}
  gone: {handler: orders.gone}
  modern: {handler: modern.modern}
  removed: {handler: orders.removed}
  colored: {handler: orders.colored}
  flaky:
    handler: orders.flaky
    resiliency:
      policies: {later: {max_attempts: 3, backoff: constant, initial_delay: 5s}}
      rules: [{errors: [ConnectionError], policy: later}]
  approve: {kind: pause}
"""
HANDLERS = """
import os
import time
from asya import data

def check(payload):
    data.write("seen.txt", b"1")
    return {**payload, "currency": os.environ["CURRENCY"], "key": os.environ["API_KEY"], "actor": os.environ["ASYA_ACTOR"]}

def plan(payload):
    yield ("SET", ".route.next[:0]", ["check"])
    yield ("SET", ".headers.tenant", "acme")
    yield ("FLY", {"token": "a"})
    yield {"planned": True}
    yield ("DEL", ".id")

def typed(total: int, note: str = "none"):
    return {"total": total, "note": note}

def alien(payload):
    import pydantic_core

def removed(payload):
    import cgi

def slow(payload):
    time.sleep(30)

def gone(payload):
    os._exit(7)

def colored(payload):
    raise ValueError("\\x9b31m")

def flaky(payload):
    raise ConnectionResetError("the peer is gone")
"""


MODERN = """
import sys

def modern(payload):
    return {"text": f"{payload["n"]}", "python": list(sys.version_info[:2])}
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "orders.py").write_text(HANDLERS)
    (tmp_path / "handlers" / "modern.py").write_text(MODERN)
    # The runner of the command lies beside a module of this name.
    (tmp_path / "handlers" / "report.py").write_text("def named(payload):\n    return {'found': True}\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("API_KEY", "k")
    return tmp_path


def asya_run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["run", *arguments], catch_exceptions=True)


def report(*arguments: str) -> Any:
    result = asya_run(*arguments, "--json")
    return json.loads(result.stdout)


def test_a_handler_has_the_variables_secrets_and_data_of_its_actor(shop: Path) -> None:
    for name in ("check", "orders.check"):
        (frame,) = report(name, "--payload", "total=3", "--data", "lake")["frames"]
        assert frame["payload"] == {"total": 3, "currency": "EUR", "key": "k", "actor": "check"}
    assert (shop / "lake" / "seen.txt").read_bytes() == b"1"


def test_control_characters_are_escaped_in_the_form_of_json(shop: Path) -> None:
    result = asya_run("colored", "--payload", "{}", "--json")
    assert json.loads(result.stdout)["error"]["message"] == "\x9b31m"
    assert "\x9b" not in result.stdout


def test_commands_partials_and_changes_are_shown(shop: Path) -> None:
    result = asya_run("plan", "--next", "typed")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert 'command  ["SET",".route.next[:0]",["check"]]' in lines
    assert 'partial  {"token":"a"}' in lines
    assert 'frame 0  {"planned":true}' in lines  # the text that leaves
    assert "         next check → typed" in lines
    assert '         header tenant = "acme"' in lines
    assert any("✗ PermissionError: .id may not be deleted" in line for line in lines)
    assert f'{shop}/handlers/orders.py", line' in result.stdout


def test_a_typed_handler_is_held_to_its_annotations(shop: Path) -> None:
    assert report("typed", "--payload", "total=3")["frames"][0]["payload"] == {"total": 3, "note": "none"}
    error = report("typed", "--payload", "total=much")["error"]
    assert (error["type"], error["message"]) == (
        "ContractError",
        "payload.total: should be a whole number; got 'much'",
    )


def test_only_the_packages_of_the_folder_and_of_lambda_can_be_imported(shop: Path) -> None:
    assert report("alien")["error"]["type"] == "ModuleNotFoundError"


def test_handlers_run_on_the_python_of_functions(shop: Path) -> None:
    python = interpreter_for(FUNCTION_PYTHON)
    if python.problem:
        pytest.skip(python.unchecked("functions"))
    assert not list(code_notes(load_mesh(shop / "mesh.yaml")))
    assert report("modern", "--payload", '{"n": 1}')["frames"][0]["payload"] == {"text": "1", "python": [3, 13]}
    assert report("removed")["error"]["message"] == "No module named 'cgi'"


def test_a_module_may_have_any_name(shop: Path) -> None:
    assert report("named")["frames"][0]["payload"] == {"found": True}


def test_a_time_limit_and_a_retry_are_told_as_a_mesh_would_decide(shop: Path) -> None:
    slow = asya_run("slow")
    assert "Timeout: Runtime did not respond within 1s" in slow.stdout
    assert "a mesh would not try again" in slow.stdout
    assert "a mesh would try again after 5 s, 3 attempts in all" in asya_run("flaky").stdout


def test_what_cannot_be_run_is_named(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "ended with code 7 and gave nothing" in str(asya_run("gone").exception)
    unknown = asya_run("chek").exception
    assert isinstance(unknown, CommandError)
    assert (unknown.problem, "check, plan" in unknown.advice) == (
        "the mesh has no actor, handler or job 'chek'; did you mean 'check'?",
        True,
    )
    assert "has no code of yours" in str(asya_run("approve").exception)
    monkeypatch.delenv("API_KEY")
    missing = asya_run("check").exception
    assert isinstance(missing, CommandError)
    assert "API_KEY=… asya run check" in missing.advice


FILES = """
import os
from pathlib import Path

import jmespath
from common import rates

HERE = Path(__file__).resolve().parent

def files(payload):
    found = sorted(str(path.relative_to(HERE)) for path in HERE.rglob("*") if not path.is_dir())
    return {"files": found, "texts": [Path("my table.csv").read_text(), rates.read()], "root": os.environ["LAMBDA_TASK_ROOT"]}

def broken(payload):
    return rates.broken()
"""
RATES = """
from pathlib import Path

def read():
    return (Path(__file__).parent / "rates.json").read_text()

def broken():
    raise ValueError("no rate")
"""


@pytest.mark.rule("6.code.one-tree")
def test_a_handler_sees_the_files_that_its_function_gets(shop: Path) -> None:
    """Linked folders, hidden files, data, packages; the tree of the package for AWS is the measure."""
    shared, handlers = shop / "shared" / "common", shop / "handlers"
    shared.mkdir(parents=True)
    (shared / "rates.py").write_text(RATES)
    (shared / "rates.json").write_text("[1.1]")
    (handlers / "common").symlink_to("../shared/common")
    (handlers / "my table.csv").write_text("1;2")
    (handlers / ".env").write_text("KEY=secret")
    (handlers / "orders.py").write_text(FILES)
    (handlers / "requirements.txt").write_text("jmespath\n")
    (shop / "mesh.yaml").write_text(
        "namespace: shop\ncode: handlers\nactors:\n  files: {handler: orders.files}\n  broken: {handler: orders.broken}\n"
    )
    code = handlers.resolve()
    deployed = build_handlers(shop / "build", LAMBDA, code, b"{}")
    expected = sorted(str(path.relative_to(deployed)) for path in deployed.rglob("*") if not path.is_dir())
    assert {"common/rates.json", "jmespath/__init__.py", "mesh.json", "my table.csv"} <= {*expected}
    [frame] = report("files")["frames"]
    assert frame["payload"]["files"] == expected
    assert frame["payload"]["texts"] == ["1;2", "[1.1]"]

    error = report("broken")["error"]
    assert f'File "{code}/common/rates.py", line 8, in broken' in error["traceback"]
