"""Tests heavy actors under load and faults on the deployed mesh, with IAM enforced: each envelope ends once.

`make test-full` runs twenty times the size; `HEAVY_SEED=7 make test-full` selects other faults.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.cloud.deployed_cloud import until
from tests.cloud.heavy_bursts import CRASH_COUNTS, FULL, OWN_RUN_IDS, SHARED_RUN_IDS, crash_payloads

if TYPE_CHECKING:
    from tests.cloud.heavy_cloud import HeavyCloud

pytestmark = [pytest.mark.cloud, pytest.mark.slow]

SEED = int(os.environ.get("HEAVY_SEED", "1"))
FAULTY_COUNT = 300


@pytest.fixture
def bursts(heavy: HeavyCloud) -> HeavyCloud:
    """The heavy mesh after the ends of all bursts; the stand-in starts one run a second, after a burst of five."""
    heavy.wait_for_ends(SHARED_RUN_IDS, "together-0")
    heavy.wait_for_ends(OWN_RUN_IDS, "alone-")
    for actor in CRASH_COUNTS:
        heavy.wait_for_ends(list(crash_payloads(actor)), f"{actor}-crash-")
    return heavy


def test_many_envelopes_share_few_runs_and_end_once_each(bursts: HeavyCloud) -> None:
    assert bursts.end_counts("together-0") == dict.fromkeys(SHARED_RUN_IDS, 1)
    assert len(bursts.runs("square-all")) <= 3
    assert bursts.result_payloads(SHARED_RUN_IDS[::20]) == [
        {"n": n, "square": n * n} for n in range(0, len(SHARED_RUN_IDS), 20)
    ]


def test_runs_wait_for_the_quota_without_a_redelivery(bursts: HeavyCloud) -> None:
    assert bursts.end_counts("alone-") == dict.fromkeys(OWN_RUN_IDS, 1)
    assert len(bursts.runs("square")) == len(OWN_RUN_IDS)
    assert all(run["state"] == "SUCCESS" for run in bursts.runs("square"))
    assert bursts.result_payloads(OWN_RUN_IDS[::10]) == [
        {"n": n, "square": n * n} for n in range(0, len(OWN_RUN_IDS), 10)
    ]
    # No queue delivered a message twice: not those of the actors, nor those of the requests and reports of runs.
    assert bursts.received_count("square") == len(OWN_RUN_IDS)
    assert bursts.received_count("square-all") == len(SHARED_RUN_IDS)
    # MiniStack writes its line after x-sink's objects.
    until(lambda: bursts.received_count("x-sink") >= len(bursts.end_counts("")) or None, "x-sink to have counted all")
    assert bursts.received_count("x-sink") == len(bursts.end_counts(""))
    assert bursts.retained() == []
    assert bursts.dead_letters() == {}


@pytest.mark.skipif(not FULL, reason="takes minutes (make test-full); the simulation has the same faults in seconds")
def test_each_envelope_ends_once_despite_faults(heavy: HeavyCloud) -> None:
    ids = [f"fault-{number:04d}" for number in range(FAULTY_COUNT)]
    heavy.inject_faults(
        seed=SEED,
        starts_per_second=4,
        start_burst=4,
        max_concurrent_runs=2,
        throttle=0.1,
        lose_events=0.3,
        repeat_events=0.3,
        delay_events=0.3,
        delay_seconds=2,
        lose_responses=0.2,
        repeat_calls=0.2,
        delay_responses=0.2,
        response_seconds=0.5,
        kill_runs=0.3,
        kill_within_seconds=2,
    )
    try:
        heavy.send(ids, "enter", "double", "halve", "leave")
        counts = heavy.wait_for_ends(ids, "fault-", reconciling=True)
    finally:
        heavy.inject_faults()
    assert counts == dict.fromkeys(ids, 1)
    payloads = heavy.result_payloads(ids[::10])
    assert payloads == [{"n": n, "trail": ["enter", "double", "halve", "leave"]} for n in range(0, FAULTY_COUNT, 10)]
    assert heavy.dead_letters() == {}


@pytest.mark.skipif(not FULL, reason="takes a minute (make test-full); the simulation and chaos kill processes too")
def test_each_envelope_ends_once_despite_killed_processes(heavy: HeavyCloud) -> None:
    """The sidecar, the dispatcher, the job and the completion are killed while they process the same envelopes."""
    ids = [f"killed-{number:04d}" for number in range(40)]
    heavy.shorten_visibility_timeout("double", "x-dispatch", "x-completion")
    began = datetime.now(UTC)
    # The payloads slow the run down, so that the test can kill it at work.
    heavy.send_all({name: {"n": n, "seconds": 0.5} for n, name in enumerate(ids)}, "enter", "double", "leave")
    heavy.kill_while_busy("double")
    heavy.kill_while_busy("x-dispatch")
    # The first run may have few of the envelopes, and end before it is found.
    until(
        lambda: any(heavy.kill_run(run["id"]) for run in heavy.runs("double", after=began)) or None,
        "a run with a driver",
    )
    heavy.kill_while_busy("x-completion")
    counts = heavy.wait_for_ends(ids, "killed-", reconciling=True)
    assert counts == dict.fromkeys(ids, 1)
    assert heavy.dead_letters() == {}
