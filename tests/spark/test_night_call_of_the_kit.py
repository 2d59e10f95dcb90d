"""The night call: four things break at once, the command alone, or the console, finds and repairs them, and no failure is open.

`tests/cloud/test_night_call_of_four_breaks.py` shows it on a deployed mesh.
"""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect
from pyspark.sql import SparkSession

from asya.testing.code_views import view_of
from asya_cli.errors import ExitCode
from tests.console.browser import OpenedPage, running_browser, running_console
from tests.console.failures_page import act_on_group, show_group
from tests.doubles.command_line import Outcome, asya
from tests.doubles.kit_cloud import KitCloud, kit_cloud
from tests.doubles.kit_console import KitGateway

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
CAUSES = {
    "bill": r"^2 × KeyError: 'SE' at bill$",
    "ship": r"^1 × PermissionError: AccessDenied: .* at ship$",
    "risk": r"^1 × ValueError: invalid literal for int\(\) with base #: 'three' at risk$",
    "label": r"^\d × Timeout: Deadline # passed before label started.* at label$",
    "x-fan-in": r"^1 × FanInTimeout: # of # slices did not arrive in time: .* at x-fan-in$",
}
"""The groups of failures on the page of the console."""
BROKEN = {"rates": {"NO": 0.25}, "may_ship": False}
REPAIRED = {"rates": {"NO": 0.25, "SE": 0.25}, "may_ship": True}


@dataclass(frozen=True)
class Night:
    """The tasks of a night in which four things broke.

    Attributes:
        orders: Orders of two countries; the second and the last one have no rate.
        labels: The task whose set misses a slice.
        bad: The one rating of many whose data are wrong.
    """

    orders: tuple[str, ...]
    delivery: str
    labels: str
    bad: str

    @property
    def repairable(self) -> set[str]:
        """What succeeds in a replay, once the cause is repaired."""
        return {self.orders[1], self.orders[3], self.delivery, self.labels}


@contextmanager
def broken_shop(folder: Path) -> Iterator[KitCloud]:
    """A shop in which a rate, a permission, the data of one customer and a worker of the labels are broken."""
    for part, name, code in (("handlers", "orders.py", HANDLERS), ("jobs", "risks.py", JOBS)):
        (folder / part).mkdir()
        (folder / part / name).write_text(code)
    write_state(folder, BROKEN)
    (folder / "mesh.yaml").write_text(MESH)
    with kit_cloud(folder / "mesh.yaml") as running:
        running.kit.kill_during("label")  # SQS delivers the batch again after the deadline of its set
        yield running


def write_state(folder: Path, state: object) -> None:
    """Deploy the rates and the permission."""
    (folder / "handlers" / "state.json").write_text(json.dumps(state))
    view_of(folder / "handlers")


def call(cloud: KitCloud, tool: str, **arguments: object) -> str:
    """Start a task of a tool."""
    return cloud.mesh.call_tool(tool, json.dumps(arguments).encode())


def night_of(cloud: KitCloud) -> Night:
    """Let the four breaks happen, and two hours pass."""
    orders = tuple(call(cloud, "order", country=country) for country in ("NO", "SE", "NO", "SE"))
    delivery = call(cloud, "deliver", country="NO")
    labels = call(cloud, "labels", parcels=[{"parcel": "a"}, {"parcel": "b"}])
    rated = [call(cloud, "rate", orders=3 if number != 13 else "three") for number in range(CUSTOMERS)]
    cloud.kit.travel(hours=2)
    [bad] = [task for task in rated if cloud.mesh.task(task).status == "failed"]  # type: ignore[union-attr]
    return Night(orders, delivery, labels, bad)


@pytest.fixture
def cloud(tmp_path: Path, spark: SparkSession) -> Iterator[KitCloud]:
    """The broken shop, for commands."""
    with broken_shop(tmp_path) as running:
        yield running


def typed(cloud: KitCloud, *line: str, text: str = "", code: int = 0) -> Outcome:
    """Type a command."""
    done = asya(*line, "--state", str(cloud.state), text=text)
    assert done.code == code, (line, done)
    return done


@pytest.mark.rule("12.replay.again", "13.failures", "13.dismiss")
def test_after_four_breaks_at_once_no_failure_is_left_open(cloud: KitCloud, tmp_path: Path) -> None:
    night = night_of(cloud)

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
    assert groups["risk", "ValueError"]["example"] == night.bad
    assert "invalid literal for int()" in typed(cloud, "status", night.bad, code=ExitCode.TASK_FAILED).stdout

    # The repairs: a deployment, a permission, and the right data for one customer.
    write_state(tmp_path, REPAIRED)
    corrected = json.dumps({"name": "rate", "arguments": {"orders": 3}})
    typed(cloud, "call", "rate", "orders=3", "--wait")
    typed(cloud, "dismiss", night.bad, "--reason", f"called again as {corrected}")
    replayed = dict(line.split(" → ") for line in typed(cloud, "replay", "--failed").stdout.splitlines())
    assert replayed.keys() == night.repairable
    cloud.kit.travel(minutes=10)

    # Nothing is left, and a second command starts nothing.
    done = typed(cloud, "failures")
    assert (done.stdout, "no open failures" in done.stderr) == ("", True)
    assert "no task is selected" in typed(cloud, "replay", "--failed").stderr
    assert typed(cloud, "list", "--status", "failed", "--json").stdout == ""
    shown = typed(cloud, "status", night.labels, code=ExitCode.TASK_FAILED).stdout
    assert f"as {replayed[night.labels]}: succeeded" in shown
    assert "called again as" in typed(cloud, "status", night.bad, code=ExitCode.TASK_FAILED).stdout


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Iterator[KitGateway]:
    """The broken shop, for the console; it works in a thread of its own, beside the browser."""
    with ThreadPoolExecutor(1) as thread:
        running = broken_shop(tmp_path)
        yield KitGateway(thread.submit(running.__enter__).result(), thread)
        thread.submit(running.__exit__, None, None, None).result()


@pytest.mark.rule("12.replay.again", "13.failures", "13.dismiss")
def test_after_four_breaks_at_once_the_console_shows_no_open_failure(shop: KitGateway, tmp_path: Path) -> None:
    night = shop.ask(lambda: night_of(shop.cloud))
    with running_browser() as browser, running_console(shop) as address:
        opened = OpenedPage.of(browser, address, clock=shop.ask(lambda: shop.cloud.kit.now))
        page = opened.open("#/tasks?status=failed")

        # What failed, and why?
        groups = page.locator("section.groups").get_by_role("link")
        expect(groups).to_have_count(len(CAUSES))
        for cause in CAUSES.values():
            expect(groups.filter(has_text=re.compile(cause))).to_have_count(1)
        show_group(page, CAUSES["risk"], "risk")
        page.get_by_role("link", name=night.bad, exact=True).click()
        expect(page.get_by_role("heading", name="Error at risk")).to_be_visible()
        expect(page.locator("pre")).to_contain_text('return {**payload, "points": spark.range(int(payload["orders"]))')

        # The repairs: a deployment, a permission, and the right data for one customer.
        write_state(tmp_path, REPAIRED)
        again = shop.ask(lambda: call(shop.cloud, "rate", orders=3))
        act_on_group(page, CAUSES["risk"], "risk", "Dismiss", reason=f"called again as {again}")
        for actor in ("bill", "ship", "label"):  # a slice runs again with its set
            act_on_group(page, CAUSES[actor], actor, "Replay")
        shop.ask(lambda: shop.cloud.kit.travel(minutes=10))

        # Nothing is left.
        opened.context.clock.set_fixed_time(shop.ask(lambda: shop.cloud.kit.now))
        page.evaluate("location.hash = '#/tasks?status=failed'")
        page.reload()
        expect(page.locator("section.groups")).to_contain_text("No open failures.")
        expect(page.get_by_role("status").filter(has_text=re.compile(r"^0 tasks$"))).to_be_visible()
        page.get_by_role("link", name=re.compile("settled failures")).click()
        rows = page.locator("tr.task")
        for task_id in night.repairable:
            row = rows.filter(has=page.get_by_role("link", name=task_id, exact=True))
            expect(row).to_contain_text("replayed: succeeded")
        dismissed = rows.filter(has=page.get_by_role("link", name=night.bad, exact=True))
        expect(dismissed).to_contain_text(f"dismissed: called again as {again}")
        assert opened.problems() == []
    assert shop.ask(lambda: shop.cloud.mesh.task(again)).status == "succeeded"  # type: ignore[union-attr]
