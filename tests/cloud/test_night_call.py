"""The night call: thirty tasks, three of them failed, a fan-out among them; cause, repair and new runs by six commands.

`test_night_call_of_four_breaks.py` has four breaks at once.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from asya_cli.errors import ExitCode
from tests.cloud.deployed_cloud import TIMEOUT_SECONDS, until
from tests.cloud.test_dev import Author
from tests.doubles.operated_mesh import HANDLERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.cloud,
    pytest.mark.skipif(not os.environ.get("ASYA_FULL_SIZE"), reason="in full size: make test-full"),
]

MESH = """
namespace: shop
code: handlers
actors:
  check: {handler: orders.check}
  bill: {handler: orders.bill}
  split: {handler: orders.split, can_send_to: [bill]}
  gather: {handler: orders.gather}
tools:
  order: {description: "Checks and bills an order", route: [check, bill]}
  night: {description: "Bills the orders of a night", route: [split, x-fan-in, gather]}
"""
COMMANDS = 6
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass
class Operator:
    """Types commands in the folder of a mesh, and counts them."""

    folder: Path
    typed: list[str] = field(default_factory=list)

    def asya(self, line: str, code: int = 0) -> str:
        """Type a command; return what it prints."""
        self.typed.append(line)
        command = [sys.executable, "-m", "asya_cli.main", *line.split()]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout + done.stderr


@pytest.fixture
def author(tmp_path: Path) -> Iterator[Author]:
    running = Author(tmp_path, {"mesh.yaml": MESH, "handlers/orders.py": HANDLERS})
    yield running
    running.end()


def test_three_failed_tasks_of_thirty_run_again_after_six_commands(author: Author) -> None:
    mesh = author.cloud.mesh
    orders = [{"country": "NO" if number % 15 else "SE", "total": number} for number in range(5, 34)]
    tasks = [mesh.call_tool("order", json.dumps(order).encode()) for order in orders]
    night = {"orders": [{"country": country, "total": 7} for country in ("NO", "SE", "DE")]}
    tasks.append(mesh.call_tool("night", json.dumps(night).encode()))
    ends = [author.cloud.wait_for_end(task).status for task in tasks]
    failed = [task for task, status in zip(tasks, ends, strict=True) if status == "failed"]
    assert (len(tasks), len(failed)) == (30, 3)

    operator, began = Operator(author.folder), time.monotonic()
    # What failed?
    groups = operator.asya("failures --since 1h").splitlines()
    [cause] = [line for line in groups if line.split()[1:2] == ["bill"]]
    assert "KeyError: 'SE'" in cause
    [example] = _ID.findall(cause)
    # Why?
    report = operator.asya(f"status {example}", ExitCode.TASK_FAILED)
    assert re.search(r'handlers/orders\.py", line 9, in bill\n.*RATES\[payload\["country"\]\]', report)
    # The repair; `asya dev` loads it, as a deployment does on AWS.
    since = len(author.lines)
    author.edit("handlers/orders.py", '"DE": 0.19', '"DE": 0.19, "SE": 0.25')
    author.sees("handlers loaded in", since)
    # Which would run again?
    selected = operator.asya("replay --failed --error KeyError --dry-run")
    assert all(task in selected for task in failed)
    # They run again, the failed slice with its set.
    replayed = dict(
        re.findall(rf"({_ID.pattern}) → ({_ID.pattern})", operator.asya("replay --failed --error KeyError"))
    )
    assert replayed.keys() == set(failed)
    assert "succeeded" in operator.asya(f"status {replayed[tasks[-1]]} --follow")
    until(lambda: "no open failures" in operator.asya("failures --since 1h") or None, "the end of the night")
    seconds = time.monotonic() - began

    assert author.result(replayed[tasks[-1]]) == {"bills": 3}
    assert len(set(operator.typed)) <= COMMANDS
    print(f"{len(set(operator.typed))} commands, {seconds:.0f} s")
