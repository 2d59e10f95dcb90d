"""Any number of JSON in the mesh file on the test kit: from a trigger's payload and a pause's default to the result in S3."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asya.protocol.mesh_table import decode_table, encode_table
from asya.testing import Mesh, RefusedError
from asya.testing.api import USER_ID
from asya.testing.deployment import TEST_USER
from asya.testing.run import Run
from asya.testing.services.gateway import URL
from tests.doubles.json_numbers import NUMBERS, are_equal

MESH = """
namespace: tills
code: handlers
actors:
  keep: {{handler: tills.keep}}
  ask:
    kind: pause
    pause:
      prompt: How much?
      callback: true
      fields:
        - {{name: total, type: number, default: {0}}}
        - {{name: rows, type: array, default: [{1}, {{deep: {2}}}]}}
        - {{name: choice, type: number, options: [{3}, {4}], default: {3}}}
tools: {{ask: {{description: Asks}}}}
triggers:
  nightly: {{route: [keep, ask, keep], cron: "0 2 * * *", payload: {{first: {5}, list: [1, {{inner: {6}}}]}}}}
"""
HANDLERS = "def keep(payload):\n    return payload\n"


def mesh_of(folder: Path, numbers: list[str]) -> Mesh:
    (folder / "handlers").mkdir()
    (folder / "handlers" / "tills.py").write_text(HANDLERS)
    (folder / "mesh.yaml").write_text(MESH.format(*numbers))
    return Mesh(folder / "mesh.yaml")


def read(text: bytes) -> Any:
    """JSON in which each number is its text."""
    return json.loads(text, parse_float=str, parse_int=str)


def asked(mesh: Mesh, run: Run) -> Any:
    """The fields of the pause, as the gateway shows them."""
    raw = mesh.ask("GET", f"/api/v1/mesh/{run.id}", dict[str, msgspec.Raw])["pause"]
    return read(bytes(raw))["fields"]


@pytest.mark.slow
@pytest.mark.rule("1.numbers")
@given(st.lists(NUMBERS, min_size=7, max_size=7))
@settings(max_examples=8, deadline=None)
def test_1_a_number_of_the_mesh_file_has_every_digit_in_the_result(numbers: list[str]) -> None:
    with TemporaryDirectory() as folder:
        mesh = mesh_of(Path(folder), numbers)
        run = mesh.fire("nightly")
        total, rows, choice = asked(mesh, run)
        mesh.answer(run)
        (content,) = [each for key, each in mesh.objects.items() if run.id in key and "succeeded/" in key]
    result = read(content)
    payload = result.get("payload", result)
    seen = [
        *(payload["total"], payload["rows"][0], payload["rows"][1]["deep"], payload["choice"]),
        *(choice["options"][1], payload["first"], payload["list"][1]["inner"]),
    ]
    assert [pair for pair in zip(seen, numbers, strict=True) if not are_equal(*pair)] == []
    assert are_equal(total["default"], numbers[0])
    assert are_equal(rows["default"][1]["deep"], numbers[2])
    assert are_equal(choice["options"][0], numbers[3])


LONG = "12345678901234567.89"
HEADERS = {"content-type": "application/json", "accept": "application/json", "mcp-protocol-version": "2025-11-25"}


@pytest.fixture
def paused(tmp_path: Path) -> Run:
    return mesh_of(tmp_path, [LONG, "1.10", LONG, LONG, "0.50", "1", "1"]).call("ask")


def shown(run: Run, method: str, path: str, body: object = None) -> str:
    content = b"" if body is None else json.dumps(body).encode()
    answer = run.mesh.cloud.request(method, path, content, HEADERS, user_arn=TEST_USER, user_id=USER_ID)
    assert answer["statusCode"] < 300, answer
    text: str = answer["body"]
    return text


def calling(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.rule("1.numbers")
def test_1_each_interface_shows_the_digits_of_a_pause(paused: Run) -> None:
    assert paused.question is not None
    token = json.loads(shown(paused, "POST", f"/api/v1/mesh/{paused.id}/stream-token"))["token"]
    wait = calling("tools/call", name="wait_for_task", arguments={"id": paused.id})
    seen = {
        "form": shown(paused, "GET", str(paused.question.callback).removeprefix(URL)),
        "record": shown(paused, "GET", f"/api/v1/mesh/{paused.id}"),
        "stream": shown(paused, "GET", f"/api/v1/mesh/{paused.id}/stream?token={token}"),
        "mcp": shown(paused, "POST", "/mcp", wait),
        "a2a": shown(paused, "POST", "/a2a", calling("GetTask", id=paused.id)),
    }
    assert [name for name, text in seen.items() if LONG not in text or "0.50" not in text] == []


@pytest.mark.rule("1.numbers")
def test_1_an_answer_is_compared_with_the_digits_of_the_options(paused: Run) -> None:
    expected = "should be one of 12345678901234567.89, 0.50; not 12345678901234567.88"
    with pytest.raises(RefusedError, match=expected):
        paused.mesh.ask(
            "POST", f"/api/v1/mesh/{paused.id}/resume", None, body=b'{"input": {"choice": 12345678901234567.88}}'
        )


@pytest.mark.rule("1.numbers")
@given(st.lists(NUMBERS, min_size=7, max_size=7))
@settings(max_examples=8, deadline=None)
def test_1_the_table_has_the_numbers_of_the_mesh_file(numbers: list[str]) -> None:
    with TemporaryDirectory() as folder:
        content = encode_table(mesh_of(Path(folder), numbers).cloud.table)
    assert encode_table(decode_table(content)) == content
    payload = read(content)["triggers"]["nightly"]["payload"]
    assert are_equal(payload["first"], numbers[5])
    assert are_equal(payload["list"][1]["inner"], numbers[6])
