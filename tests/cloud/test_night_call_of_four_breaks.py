"""The night call on a deployed mesh: a bug, bad data in one of 20 heavy envelopes, a denied permission, a missing object.

`tests/spark/test_night_call_of_the_kit.py` shows the same in memory, in `make test`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from asya.client.connection import read_local
from asya.client.mesh_client import MeshClient
from asya_cli.errors import ExitCode
from asya_local.cloud import UpOptions, down, up
from asya_local.emr.settings import WorkerSettings
from tests.cloud.denials import denied
from tests.cloud.deployed_cloud import DeployedCloud
from tests.console.browser import OpenedPage, running_browser
from tests.console.failures_page import act_on_group, show_group
from tests.console.process import running_ui
from tests.doubles.command_line import asya

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.cloud,
    pytest.mark.skipif(not os.environ.get("ASYA_FULL_SIZE"), reason="in full size: make test-full"),
]

MESH = """
namespace: shop
code: handlers
jobs: jobs
actors:
  bill: {handler: orders.bill}
  ship: {handler: orders.ship, access: [{bucket: data, read: "shop/*"}]}
  split: {handler: orders.split, can_send_to: [label]}
  label: {handler: orders.label, access: [{bucket: data, read: "parcels/*"}]}
  risk: {spark: {job: risks.score}, batch: {window: 5s}}
tools:
  order: {description: Bills an order, route: [bill]}
  deliver: {description: Ships an order, route: [ship]}
  labels: {description: Labels the parcels of a night, route: [split, x-fan-in]}
  rate: {description: Rates a customer, route: [risk]}
"""
HANDLERS = """
from asya import data, fan_out

RATES = {"NO": 0.25}

def bill(payload):
    return {**payload, "tax": RATES[payload["country"]]}

def ship(payload):
    with data.open("shop/carriers.json") as carriers:
        return {**payload, "carriers": len(carriers.read())}

def split(payload):
    return fan_out(payload["parcels"], to=["label"], into="/labels")

def label(payload):
    with data.open(payload["parcel"]) as parcel:
        return {"label": parcel.read().decode()}
"""
JOBS = """
def score(spark, payload):
    return {**payload, "points": spark.range(int(payload["orders"])).count()}
"""
CUSTOMERS = 20
ASYA = Path(sys.executable).parent / "asya"
CAUSES = {
    "bill": r"^\d+ × KeyError: '..' at bill$",
    "ship": r"^\d+ × PermissionError: .*carriers\.json.* at ship$",
    "label": r"^\d+ × FileNotFoundError: .*parcels.* at label$",
    "risk": r"^\d+ × ValueError: invalid literal for int\(\) with base #: 'three' at risk$",
}
"""The groups of failures on the page of the console, but for that of the set, which names its slice."""


@dataclass
class Shop:
    """A deployed shop, and what repairs it."""

    cloud: DeployedCloud
    mesh_file: Path

    def deploy(self) -> None:
        """Deploy the mesh file with its code, as `asya local up` does."""
        up(self.mesh_file, self.cloud.state, OPTIONS)

    def call(self, tool: str, **arguments: object) -> str:
        """Start a task of a tool."""
        return self.cloud.mesh.call_tool(tool, json.dumps(arguments).encode())

    def typed(self, *line: str, code: int = 0) -> str:
        """Type a command; return what it prints."""
        done = asya(*line, "--state", str(self.cloud.state))
        assert done.code == code, (line, done)
        return done.stdout + done.stderr


@dataclass(frozen=True)
class Night:
    """The tasks of a night in which four things broke.

    Attributes:
        bug: orders of a country without a rate.
        delivery: what a role may not read.
        labels: the set whose parcel is missing.
        bad: the one rating of many whose data are wrong.
        country: the country without a rate.
        parcel: the missing parcel.
    """

    bug: str
    delivery: str
    labels: str
    bad: str
    country: str
    parcel: str
    permission: ExitStack

    @property
    def repairable(self) -> set[str]:
        return {self.bug, self.delivery, self.labels}


OPTIONS = UpOptions(workers=WorkerSettings(at_once=1, cores=1, reuse=True))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The shop on a local cloud, with IAM enforced."""
    folder, state = tmp_path_factory.mktemp("night-call"), tmp_path_factory.mktemp("night-call-cloud")
    for part, name, code in (("handlers", "orders.py", HANDLERS), ("jobs", "risks.py", JOBS)):
        (folder / part).mkdir()
        (folder / part / name).write_text(code)
    (folder / "mesh.yaml").write_text(MESH)
    try:
        up(folder / "mesh.yaml", state, OPTIONS)
        running = Shop(DeployedCloud(MeshClient(read_local(state)), state), folder / "mesh.yaml")
        running.cloud.mesh.upload("shop/carriers.json", b"[]")
        yield running
    finally:
        down(state)


def night_of(shop: Shop, country: str) -> Night:
    """Let the four breaks happen."""
    cloud, permission = shop.cloud, ExitStack()
    permission.enter_context(denied(cloud, "ship", "s3:GetObject", resource="*/data/shop/*"))
    cloud.mesh.upload(f"parcels/{country}-a.txt", b"a")
    parcels = [{"parcel": f"parcels/{country}-{name}.txt"} for name in "ab"]
    rated = [shop.call("rate", orders=3 if number != 13 else "three") for number in range(CUSTOMERS)]
    good = [shop.call("order", country="NO")]
    night = Night(
        bug=shop.call("order", country=country),
        delivery=shop.call("deliver", country="NO"),
        labels=shop.call("labels", parcels=parcels),
        bad=rated[13],
        country=country,
        parcel=parcels[1]["parcel"],
        permission=permission,
    )
    failed = {task for task in (*rated, *good, *night.repairable) if cloud.wait_for_end(task).status == "failed"}
    assert failed == {night.bad, *night.repairable}
    return night


def repair(shop: Shop, night: Night) -> str:
    """Deploy a corrected handler, allow the role to read, bring the parcel, and rate the one customer again; return that task."""
    code = shop.mesh_file.parent / "handlers" / "orders.py"
    code.write_text(code.read_text().replace("RATES = {", f'RATES = {{"{night.country}": 0.2, '))
    shop.deploy()
    night.permission.close()
    shop.cloud.mesh.upload(night.parcel, b"b")
    return shop.call("rate", orders=3)


@pytest.mark.rule("12.replay.again", "13.failures", "13.dismiss")
def test_the_command_alone_finds_and_repairs_four_breaks(shop: Shop) -> None:
    night = night_of(shop, "SE")
    groups = {
        (group["actor"], group["error"].partition(":")[0]): group
        for group in map(json.loads, shop.typed("failures", "--json").splitlines())
        if group
    }
    assert {
        ("bill", "KeyError"),
        ("ship", "PermissionError"),
        ("label", "FileNotFoundError"),
        ("risk", "ValueError"),
    } <= (groups.keys())
    assert groups["risk", "ValueError"]["count"] == 1
    assert "carriers.json" in shop.typed("status", night.delivery, code=ExitCode.TASK_FAILED)
    assert night.parcel in shop.typed(
        "status", groups["label", "FileNotFoundError"]["example"], code=ExitCode.TASK_FAILED
    )
    assert "risks.py" in shop.typed("status", night.bad, code=ExitCode.TASK_FAILED)

    again = repair(shop, night)
    shop.typed("dismiss", night.bad, "--reason", f"called again as {again}")
    replayed = dict(re.findall(r"^(\S+) → (\S+)$", shop.typed("replay", "--failed"), re.MULTILINE))
    assert replayed.keys() == night.repairable
    for task in (again, *replayed.values()):
        assert shop.cloud.wait_for_end(task).status == "succeeded", shop.cloud.task(task)
    assert "no open failures" in shop.typed("failures")
    assert "no task is selected" in shop.typed("replay", "--failed")


@pytest.mark.rule("12.replay.again", "13.failures", "13.dismiss")
def test_the_console_finds_and_repairs_four_breaks(shop: Shop) -> None:
    night = night_of(shop, "DK")
    with running_ui(ASYA, shop.cloud.state, os.environ) as address, running_browser() as browser:
        opened = OpenedPage.of(browser, address, clock=None)
        page = opened.open("#/tasks?status=failed")
        groups = page.locator("section.groups").get_by_role("link")
        for cause in CAUSES.values():
            expect(groups.filter(has_text=re.compile(cause))).to_have_count(1)
        show_group(page, CAUSES["risk"], "risk")
        page.get_by_role("link", name=night.bad, exact=True).click()
        expect(page.get_by_role("heading", name="Error at risk")).to_be_visible()

        again = repair(shop, night)
        act_on_group(page, CAUSES["risk"], "risk", "Dismiss", reason=f"called again as {again}")
        for actor in ("bill", "ship", "label"):  # a slice runs again with its set
            act_on_group(page, CAUSES[actor], actor, "Replay")
        for task in night.repairable:
            resolution = shop.cloud.mesh.task(task).resolution  # type: ignore[union-attr]
            assert resolution is not None
            assert resolution.task is not None
            assert shop.cloud.wait_for_end(resolution.task).status == "succeeded"
        page.evaluate("location.hash = '#/tasks?status=failed'")
        page.reload()
        expect(page.locator("section.groups")).to_contain_text("No open failures.")
        assert opened.problems() == []
    assert "no open failures" in shop.typed("failures")
