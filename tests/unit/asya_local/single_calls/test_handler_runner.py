"""The process of one call of a handler: the payload reaches it, and its frames leave it, as text."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asya_local.single_calls import handler_runner
from asya_local.single_calls.calls import CallReport, CallRequest

HANDLERS = """
from decimal import Decimal
from typing import TypedDict

class Order(TypedDict):
    total: Decimal

def bill(order: Order):
    yield "SET", ".headers.rate", 2.5
    yield {"total": str(order["total"])}

def look(payload):
    return {**payload, "seen": True}
"""
LONG = "12345678901234567.89"


def report_of(folder: Path, handler: str, payload: str) -> CallReport:
    (folder / "tills.py").write_text(HANDLERS)
    request = CallRequest(
        id="one",
        actor="bill",
        handler=handler,
        mode="payload",
        lists_fan_out=False,
        responses="plain",
        timeout=60.0,
        payload=msgspec.Raw(payload.encode()),
    )
    (folder / "request.json").write_bytes(msgspec.json.encode(request))
    library = str(Path(handler_runner.__file__).parents[3] / "functions")
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), library])}
    command = [sys.executable, "-P", handler_runner.__file__, "request.json", "report.json"]
    subprocess.run(command, env=environment, cwd=folder, check=True)
    return msgspec.json.decode((folder / "report.json").read_bytes(), type=CallReport)


def payloads_of(report: CallReport) -> list[bytes]:
    return [bytes(frame.payload) for frame in report.frames if frame.payload is not msgspec.UNSET]


@pytest.mark.rule("1.numbers")
def test_1_a_number_reaches_the_handler_with_its_digits(tmp_path: Path) -> None:
    report = report_of(tmp_path, "tills.bill", f'{{"total": {LONG}}}')

    assert payloads_of(report) == [f'{{"total":"{LONG}"}}'.encode()]
    assert {name: bytes(value) for name, value in report.frames[0].headers.items()} == {"rate": b"2.5"}
    assert [command.command for command in report.commands] == [("SET", ".headers.rate", 2.5)]


@pytest.mark.rule("1.numbers.passed")
def test_1_a_number_leaves_untyped_code_with_its_digits(tmp_path: Path) -> None:
    report = report_of(tmp_path, "tills.look", f'{{"total": {LONG}, "price": 1.10}}')

    assert payloads_of(report) == [f'{{"total":{LONG},"price":1.10,"seen":true}}'.encode()]
