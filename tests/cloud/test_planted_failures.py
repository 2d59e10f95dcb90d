"""Ten things go wrong in a shop of twelve actors; the command alone shows the cause of each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cloud.deployed_cloud import TIMEOUT_SECONDS, until
from tests.cloud.planted_failures import Shop, shop

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.cloud,
    pytest.mark.skipif(not os.environ.get("ASYA_FULL_SIZE"), reason="in full size: make test-full"),
]

CAUSES = {
    "country": ("status {task}", r"(?s)error +KeyError: 'SE'.*shop\.py\", line \d+, in bill"),
    "driver": (
        "job show asya.shop.risk.0000000003",
        r"(?s)ExitCode: 137 \(137 is out of memory as a rule: the driver had 1 GB.*"
        r"`spark.driver.memory` of risk.*{task} was the first and only envelope at work",
    ),
    "circuit": (
        "actors",
        r"stock: circuit open since \S+, after ConnectionError: .*; the next call is allowed at \S+; 3 failures within 3600 s",
    ),
    "unknown actor": ("status {task}", r"error +RouteMismatch: actor 'wherehouse' is not in the mesh"),
    "deadline": (
        "status {task}",
        # The function may start too late for its handler to be called.
        r"error +Timeout: (Runtime did not respond within \S+, which was left of the 5s"
        r"|Deadline \S+ passed before quote started, 5s).* raise the timeout of the tool quote",
    ),
    "pause": ("status {task}", r"waiting for Publish the catalog\?"),
    "permission": (
        "status {task}",
        r"AccessDenied: the queue of ship \(asya-shop-ship\) refuses messages of check: AccessDenied, "
        r"with an explicit deny in a resource-based policy",
    ),
    "canceled": (
        "status {task}",
        r"(?s)canceled \(Canceled\).*canceled +by \w+ at .*start again +asya replay {task} --from 0 ",
    ),
    "slow job": (
        "job show asya.shop.totals.0000000001",
        r"(?s)state +RUNNING.*stage +\d+ totals at shop_jobs.py:\d+: 0 of 1 tasks.*no task has ended for \d+m",
    ),
    "slice": (
        "actors",
        r"label: not read: event source mapping disabled; aws lambda update-event-source-mapping --uuid \S+",
    ),
}
"""By what was planted: the command, and what it prints. `{task}` is the first task that suffers."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("shop")) as found:
        yield found


@pytest.mark.parametrize("name", CAUSES)
def test_the_command_shows_the_cause(running: Shop, name: str) -> None:
    command, expected = (text.replace("{task}", running.planted[name].tasks[0]) for text in CAUSES[name])
    until_shown(running, command, expected)


def until_shown(running: Shop, command: str, expected: str) -> None:
    """Wait until a command prints what a pattern finds."""

    def shown() -> bool | None:
        line = [sys.executable, "-m", "asya_cli.main", *command.split(), "--state", str(running.cloud.state)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
        return re.search(expected, done.stdout + done.stderr) is not None or None

    until(shown, f"{expected!r} from `asya {command}`")


def test_a_task_behind_an_open_circuit_says_so(running: Shop) -> None:
    waiting = running.planted["circuit"].tasks[-1]
    until_shown(
        running,
        f"status {waiting}",
        r"problem +CircuitOpen: the circuit of stock is open since \S+, after ConnectionError",
    )


def test_a_task_whose_slices_nobody_reads_says_so(running: Shop) -> None:
    task = running.planted["slice"].tasks[0]
    until_shown(running, f"status {task}", r"(?s)not read +label: event source mapping disabled.*--enabled")


def test_every_planted_failure_has_its_command(running: Shop) -> None:
    assert running.planted.keys() == CAUSES.keys()
