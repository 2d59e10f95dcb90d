"""The night call: four things break at once, the command alone finds and repairs them, and then no failure is open.

`tests/cloud/test_night_call.py` shows it on a deployed mesh.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from asya_cli.errors import ExitCode
from tests.doubles.command_line import Outcome, asya
from tests.doubles.kit_cloud import KitCloud, kit_cloud

pytestmark = pytest.mark.spark

MESH = """
namespace: shop
code: handlers
jobs: jobs
actors:
  bill: {handler: orders.bill}
  ship: {handler: orders.ship}
  split: {handler: orders.split, can_send_to: [label]}
  label: {handler: orders.label}
  risk: {spark: {job: risks.score}, batch: {window: 0s}}
tools:
  order: {description: Bills an order, route: [bill]}
  deliver: {description: Ships an order, route: [ship]}
  labels: {description: Labels the parcels of a night, route: [split, x-fan-in]}
  rate: {description: Rates a customer, route: [risk]}
"""
HANDLERS = """
import json
from pathlib import Path

from asya import fan_out

STATE = Path(__file__).with_name("state.json")

def bill(payload):
    return {**payload, "tax": json.loads(STATE.read_text())["rates"][payload["country"]]}

def ship(payload):
    if not json.loads(STATE.read_text())["may_ship"]:
        raise PermissionError("AccessDenied: shop-ship may not perform s3:GetObject on carriers.json")
    return payload

def split(payload):
    return fan_out(payload["parcels"], to=["label"], into="/labels")

def label(payload):
    return {"label": payload["parcel"]}
"""
JOBS = """
def score(spark, payload):
    return {**payload, "points": spark.range(int(payload["orders"])).count()}
"""
CUSTOMERS = 20
BROKEN = {"rates": {"NO": 0.25}, "may_ship": False}
REPAIRED = {"rates": {"NO": 0.25, "SE": 0.25}, "may_ship": True}


@pytest.fixture
def cloud(tmp_path: Path, spark: SparkSession) -> Iterator[KitCloud]:
    """A shop in which a rate, a permission, the data of one customer and a worker of the labels are broken."""
    for folder, name, code in (("handlers", "orders.py", HANDLERS), ("jobs", "risks.py", JOBS)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(code)
    (tmp_path / "handlers" / "state.json").write_text(json.dumps(BROKEN))
    (tmp_path / "mesh.yaml").write_text(MESH)
    with kit_cloud(tmp_path / "mesh.yaml") as running:
        running.kit.kill_during("label")  # SQS delivers the batch again after the deadline of its set
        yield running


def typed(cloud: KitCloud, *line: str, text: str = "", code: int = 0) -> Outcome:
    """Type a command."""
    done = asya(*line, "--state", str(cloud.state), text=text)
    assert done.code == code, (line, done)
    return done


def call(cloud: KitCloud, tool: str, **arguments: object) -> str:
    """Start a task of a tool."""
    return cloud.mesh.call_tool(tool, json.dumps(arguments).encode())


@pytest.mark.rule("12.replay.again", "13.failures", "13.dismiss")
def test_after_four_breaks_at_once_no_failure_is_left_open(cloud: KitCloud, tmp_path: Path) -> None:
    orders = [call(cloud, "order", country=country) for country in ("NO", "SE", "NO", "SE")]
    delivery = call(cloud, "deliver", country="NO")
    night = call(cloud, "labels", parcels=[{"parcel": "a"}, {"parcel": "b"}])
    rated = [call(cloud, "rate", orders=3 if number != 13 else "three") for number in range(CUSTOMERS)]
    cloud.kit.travel(hours=2)

    # What failed, and why?
    groups = {
        (group["actor"], group["error"].partition(":")[0]): group
        for group in map(json.loads, typed(cloud, "failures", "--json").stdout.splitlines())
    }
    counts = {cause: group["count"] for cause, group in groups.items()}
    assert counts[("bill", "KeyError")] == 2
    assert counts[("ship", "PermissionError")] == 1
    assert counts[("risk", "ValueError")] == 1
    assert counts[("label", "Timeout")] >= 1
    assert counts[("x-fan-in", "FanInTimeout")] == 1
    [bad] = [task for task in rated if cloud.mesh.task(task).status == "failed"]  # type: ignore[union-attr]
    assert groups["risk", "ValueError"]["example"] == bad
    assert "invalid literal for int()" in typed(cloud, "status", bad, code=ExitCode.TASK_FAILED).stdout

    # The repairs: a deployment, a permission, and the right data for one customer.
    (tmp_path / "handlers" / "state.json").write_text(json.dumps(REPAIRED))
    corrected = json.dumps({"name": "rate", "arguments": {"orders": 3}})
    typed(cloud, "call", "rate", "orders=3", "--wait")
    typed(cloud, "dismiss", bad, "--reason", f"called again as {corrected}")
    replayed = dict(line.split(" → ") for line in typed(cloud, "replay", "--failed").stdout.splitlines())
    assert replayed.keys() == {orders[1], orders[3], delivery, night}
    cloud.kit.travel(minutes=10)

    # Nothing is left, and a second command starts nothing.
    done = typed(cloud, "failures")
    assert (done.stdout, "no open failures" in done.stderr) == ("", True)
    assert "no task is selected" in typed(cloud, "replay", "--failed").stderr
    assert typed(cloud, "list", "--status", "failed", "--json").stdout == ""
    shown = typed(cloud, "status", night, code=ExitCode.TASK_FAILED).stdout
    assert f"as {replayed[night]}: succeeded" in shown
    assert "called again as" in typed(cloud, "status", bad, code=ExitCode.TASK_FAILED).stdout
