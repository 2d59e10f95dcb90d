"""Heavy actors under load and under fire, on the deployed mesh with IAM enforced: nothing is lost, nothing ends twice.

In a tenth of the size here; in full, and with other misfortune, by `make test-full` (HEAVY_SEED=7 make test-full).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.cloud.deployed_cloud import until
from tests.cloud.heavy_bursts import CRASH_COUNTS, FULL, OWN_RUN_IDS, SHARED_RUN_IDS, crash_payloads
from tests.cloud.heavy_cloud import TIMEOUT_SECONDS

if TYPE_CHECKING:
    from tests.cloud.heavy_cloud import HeavyCloud

pytestmark = [pytest.mark.cloud, pytest.mark.slow]

SEED = int(os.environ.get("HEAVY_SEED", "1"))
UNDER_FIRE = 300


@pytest.fixture
def bursts(heavy: HeavyCloud) -> HeavyCloud:
    """All that was sent at once has ended; the stand-in started one run a second, five at first."""
    heavy.wait_for_ends(SHARED_RUN_IDS, "together-0")
    heavy.wait_for_ends(OWN_RUN_IDS, "alone-")
    for actor in CRASH_COUNTS:
        heavy.wait_for_ends(list(crash_payloads(actor)), f"{actor}-deadly-")
    return heavy


def test_many_envelopes_take_few_runs_and_end_once_each(bursts: HeavyCloud) -> None:
    assert bursts.end_counts("together-0") == dict.fromkeys(SHARED_RUN_IDS, 1)
    assert len(bursts.runs("square-all")) <= 3
    some = SHARED_RUN_IDS[::50]
    assert bursts.result_payloads(some) == [{"n": n, "square": n * n} for n in range(0, len(SHARED_RUN_IDS), 50)]


def test_a_run_each_waits_for_the_quota_and_no_message_pays_for_it(bursts: HeavyCloud) -> None:
    assert bursts.end_counts("alone-") == dict.fromkeys(OWN_RUN_IDS, 1)
    assert len(bursts.runs("square")) == len(OWN_RUN_IDS)
    assert all(run["state"] == "SUCCESS" for run in bursts.runs("square"))
    assert bursts.result_payloads(OWN_RUN_IDS[::10]) == [
        {"n": n, "square": n * n} for n in range(0, len(OWN_RUN_IDS), 10)
    ]
    # Each message came once, and none was put back: those of the actors, and whatever asked for and told of their runs.
    assert bursts.received_count("square") == len(OWN_RUN_IDS)
    assert bursts.received_count("square-all") == len(SHARED_RUN_IDS)
    # What it counts it tells a moment after it has written.
    until(lambda: bursts.received_count("x-sink") >= len(bursts.end_counts("")) or None, "x-sink to have counted all")
    assert bursts.received_count("x-sink") == len(bursts.end_counts(""))
    assert bursts.retained_count() == 0
    assert bursts.dead_letters() == {}


@pytest.mark.skipif(not FULL, reason="takes minutes (make test-full); the simulation has the same faults in seconds")
def test_whatever_goes_wrong_each_ends_once(heavy: HeavyCloud) -> None:
    ids = [f"fire-{number:04d}" for number in range(UNDER_FIRE)]
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
        ended = heavy.wait_for_ends(ids, "fire-", reconciling=True)
    finally:
        heavy.inject_faults()
    assert ended == dict.fromkeys(ids, 1)
    payloads = heavy.result_payloads(ids[::10])
    assert payloads == [{"n": n, "trail": ["enter", "double", "halve", "leave"]} for n in range(0, UNDER_FIRE, 10)]
    assert heavy.dead_letters() == {}


def test_killed_processes_are_made_up_for(heavy: HeavyCloud) -> None:
    """The sidecar, the dispatcher, the job and the completion, each killed while it works on the same envelopes."""
    ids = [f"killed-{number:04d}" for number in range(40)]
    heavy.shorten_visibility_timeout("double", "x-dispatch", "x-completion")
    before = len(heavy.runs("double"))
    # Long enough for a run to be met at work.
    heavy.send_all({name: {"n": n, "seconds": 0.2} for n, name in enumerate(ids)}, "enter", "double", "leave")
    heavy.kill_while_busy("double")
    heavy.kill_while_busy("x-dispatch")
    (run, *_) = until(lambda: heavy.runs("double")[before:] or None, "a run", TIMEOUT_SECONDS)
    until(lambda: heavy.kill_run(run["id"]) or None, "the run to have a driver", TIMEOUT_SECONDS)
    heavy.kill_while_busy("x-completion")
    ended = heavy.wait_for_ends(ids, "killed-", reconciling=True)
    assert ended == dict.fromkeys(ids, 1)
    assert heavy.dead_letters() == {}
