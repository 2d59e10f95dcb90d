"""Tests the repair of a failed set (`protocol §12`, set) on the deployed mesh, with IAM enforced."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from asya.protocol import ids
from asya_cli.main import app
from tests.cloud.slice_sets import fan_out

if TYPE_CHECKING:
    from click.testing import Result

    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

REPAIRED = "repaired"
COUNTED = "counted"
RESULTS = [{"scored": n * 10, "text": ""} for n in (1, 2, 3)]


@pytest.fixture(scope="module")
def failed_set(paths: DeployedCloud) -> str:
    """The origin of a set whose second slice failed after the others were counted; the cause is repaired since."""
    origin = fan_out(paths, {"items": [{"n": 1}, {"n": 2, "after": COUNTED, "until": REPAIRED}, {"n": 3}]})
    # A set counts a slice before the slice's task ends.
    for index in (1, 3):
        assert paths.wait_for_end(child(origin, index)).status == "succeeded"
    paths.mesh.upload(f"flags/{COUNTED}", b"now")
    task = paths.wait_for_end(origin)
    assert (task.status, task.reason) == ("failed", "SliceFailed")
    paths.mesh.upload(f"flags/{REPAIRED}", b"now")
    return origin


def child(origin: str, index: int) -> str:
    return ids.child_id(origin, 0, 0, index)


def replay(cloud: DeployedCloud, *arguments: str) -> Result:
    result = CliRunner().invoke(app, ["replay", *arguments, "--state", str(cloud.state)])
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def test_a_failed_slice_is_found_by_its_error_and_runs_again_with_its_set(
    paths: DeployedCloud, failed_set: str
) -> None:
    error = f"{REPAIRED} is not fixed"
    shown = CliRunner().invoke(app, ["failures", "--error", error, "--json", "--state", str(paths.state)])
    groups = {group["actor"]: group for group in map(json.loads, shown.stdout.splitlines())}
    assert groups["score"]["error"] == f"ValueError: {error}"
    assert (groups["score"]["count"], groups["score"]["example"]) == (1, child(failed_set, 2))
    assert groups["x-fan-in"]["error"] == f"ValueError: slice # (#) at score: {error}"
    refused = CliRunner().invoke(app, ["replay", child(failed_set, 2), "--state", str(paths.state)])
    assert f"`asya replay {failed_set} --failed-only --state {paths.state}`" in str(refused.exception)

    done = replay(paths, "--failed", "--actor", "score", "--error", error)
    origin, _, new_id = done.stdout.strip().partition(" → ")
    assert origin == failed_set
    task = paths.wait_for_end(new_id)
    assert (task.status, paths.envelope(task)["payload"]["results"]) == ("succeeded", RESULTS)
    # The failures of the set and of its slice are settled.
    shown = CliRunner().invoke(app, ["failures", "--error", error, "--state", str(paths.state)])
    assert shown.stdout == ""
    assert "no open failures" in shown.stderr


@pytest.mark.rule("12.failed-only")
def test_only_the_lost_slice_of_a_failed_set_runs_again(paths: DeployedCloud, failed_set: str) -> None:
    first = replay(paths, failed_set, "--failed-only")
    assert "at least 2 of 3 results are copied; at most these slices run again: 2\n" in first.stderr
    new_id = first.stdout.strip()

    task = paths.wait_for_end(new_id)
    assert (task.status, task.error) == ("succeeded", None)
    assert paths.envelope(task)["payload"]["results"] == RESULTS
    again = {index for index in (1, 2, 3) if paths.task(child(new_id, index)) is not None}
    assert again == {2}
    assert paths.wait_for_end(failed_set).status == "failed"
    assert replay(paths, failed_set, "--failed-only").stdout.strip() == new_id


@pytest.mark.rule("12.set")
def test_all_slices_of_a_failed_set_run_again(paths: DeployedCloud, failed_set: str) -> None:
    new_id = replay(paths, failed_set, "--force").stdout.strip()
    task = paths.wait_for_end(new_id)
    assert (task.status, task.error) == ("succeeded", None)
    assert paths.envelope(task)["payload"]["results"] == RESULTS
    assert all(paths.wait_for_end(child(new_id, index)).status == "succeeded" for index in (1, 2, 3))
