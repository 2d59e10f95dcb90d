"""Sizes of runs on the deployed mesh: by the payload, and the next one after a death of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cloud.test_heavy_crashes import RUN_TIMEOUT_SECONDS, job

if TYPE_CHECKING:
    from tests.cloud.heavy_cloud import HeavyCloud

pytestmark = [pytest.mark.cloud, pytest.mark.slow]

PAYLOADS = {
    "sized-plain": {"rows": 10, "dies": ""},
    "sized-exit": {"rows": 1, "dies": "exit"},
    "sized-heap": {"rows": 1, "dies": "heap"},
    "sized-large": {"rows": 11, "dies": ""},
}
SMALL_MB, LARGE_MB = 2048, 2524


@pytest.mark.rule("10.size", "10.size.alone", "10.size.larger", "10.size.larger.call")
def test_10_what_dies_of_memory_succeeds_in_the_next_size(heavy: HeavyCloud) -> None:
    heavy.send_all(PAYLOADS, "sized")
    ended = {name: heavy.cloud.wait_for_end(name, RUN_TIMEOUT_SECONDS) for name in PAYLOADS}

    assert {name: task.status for name, task in ended.items()} == dict.fromkeys(PAYLOADS, "succeeded")
    given = dict(zip(PAYLOADS, heavy.result_payloads(PAYLOADS), strict=True))
    sizes = {name: payload["size"] for name, payload in given.items()}
    assert sizes == {"sized-plain": "small", "sized-exit": "large", "sized-heap": "large", "sized-large": "large"}
    assert given["sized-plain"]["heap"] <= SMALL_MB < given["sized-large"]["heap"] <= LARGE_MB, "driver and executor"
    last = {name: [hop.run for hop in heavy.cloud.mesh.timeline(name) if hop.run is not None][-1] for name in PAYLOADS}
    assert {name: run.size for name, run in last.items()} == sizes
    shown = [job(heavy, "show", run["name"]) for run in heavy.runs("sized")]
    (died,) = [each for each in shown if "ExitCode: 137" in each]
    assert "size       small" in died
    assert "the run died of memory in size small, so 1 envelope at work to run again in size large" in died
