"""protocol §13.lost: the sweep finds tasks that nothing moves any more, and costs little."""

from typing import Any

import pytest
from msgspec.structs import replace as changed

from asya.function.aws import clients
from asya.gateway.aws.ends_queue import EndsQueue
from asya.gateway.lambdas import task_sweeps
from asya.gateway.lambdas.wiring import build_deadline_sweep, build_lost_sweep
from asya.sidecar.lambdas.services import Services
from tests.doubles.gateway_functions import MESH, Gateway, report, settings_with
from tests.doubles.tasks import at
from tests.unit.asya.gateway.lambdas.test_task_sweeps_deadline_sweep import Clock
from tests.unit.asya.gateway.routes.test_cancel import shown

DAY = 86_400.0


@pytest.fixture(autouse=True)
def fresh(gateway: Gateway) -> None:
    """A mesh without tasks."""
    gateway.mesh = changed(MESH, operators=("arn:aws:iam::123456789012:role/Admin",))
    client = clients.dynamodb()
    for item in client.scan(TableName="asya-flights-tasks")["Items"]:
        client.delete_item(TableName="asya-flights-tasks", Key={"pk": item["pk"], "sk": item["sk"]})


def sweep(gateway: Gateway, days: float) -> None:
    """The sweep of deadlines enters the open tasks into the list that this one reads."""
    clock = Clock(at(days * DAY))
    build_deadline_sweep(Services(settings_with(gateway.environ, gateway.mesh), clock)).sweep()
    sweep_alone(gateway, days)


def sweep_alone(gateway: Gateway, days: float) -> None:
    build_lost_sweep(Services(settings_with(gateway.environ, gateway.mesh), Clock(at(days * DAY)))).sweep()


def lost(gateway: Gateway, task_id: str, days: float = 6) -> bool:
    problem = shown(gateway, task_id, days * DAY).get("problem")
    return problem is not None and problem["type"] == "EnvelopeLost"


@pytest.mark.rule("13.lost.sweep", "13.lost")
def test_a_task_without_a_report_for_five_days_says_so(gateway: Gateway) -> None:
    report(gateway, "quiet", "processing", 0)
    report(gateway, "ended", "processing", 1)
    report(gateway, "ended", "failed", 2)
    report(gateway, "alive", "processing", 3)
    report(gateway, "alive", "completed", 3 * DAY)
    sweep(gateway, 4.9)
    assert not lost(gateway, "quiet")
    for _ in range(3):
        sweep(gateway, 5.1)
    assert lost(gateway, "quiet")
    assert not lost(gateway, "alive")
    assert shown(gateway, "ended")["status"] == "failed"


@pytest.mark.rule("13.lost.late")
def test_an_envelope_that_turns_up_goes_on(gateway: Gateway) -> None:
    report(gateway, "late", "processing", 0)
    sweep(gateway, 6)
    assert lost(gateway, "late")
    report(gateway, "late", "completed", 6.5 * DAY, position=1)
    assert not lost(gateway, "late", 7)
    assert shown(gateway, "late", 7 * DAY)["status"] == "running"
    sweep(gateway, 7)
    assert not lost(gateway, "late", 7)


@pytest.mark.rule("13.lost.sweep")
def test_a_round_finds_each_task_whatever_number_there_is(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_sweeps, "MAX_TASKS", 3)
    monkeypatch.setattr(task_sweeps, "MAX_HOURS", 2)
    tasks = [f"t{number}" for number in range(8)]
    for number, task_id in enumerate(tasks):
        report(gateway, task_id, "processing", 3600 * (number // 2) + number)
    found = []
    for _ in range(12):
        sweep(gateway, 6)
        found.append(sum(lost(gateway, task_id) for task_id in tasks))
    assert found[0] == 3
    assert found[-1] == 8


@pytest.mark.rule("13.lost.sweep")
def test_while_reports_wait_nothing_is_said(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    report(gateway, "quiet", "processing", 0)
    with monkeypatch.context() as patch:
        patch.setattr(EndsQueue, "delay", lambda _: "behind")
        sweep(gateway, 6)
    assert not lost(gateway, "quiet")
    sweep(gateway, 6)
    assert lost(gateway, "quiet")


@pytest.mark.rule("13.lost.sweep")
def test_young_tasks_cost_two_calls(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        report(gateway, f"t{number}", "processing", number)
    calls: list[str] = []
    client: Any = clients.dynamodb()

    def count(action: str) -> None:
        real = getattr(client, action)
        monkeypatch.setattr(client, action, lambda **request: (calls.append(action), real(**request))[1])

    for action in ("query", "get_item", "put_item", "batch_get_item", "update_item"):
        count(action)
    sweep_alone(gateway, 3)
    assert calls == ["get_item", "query"]
