"""Tests who shares a driver and which data a tenant's run has (protocol §10.isolation), with IAM enforced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.cloud import callers

if TYPE_CHECKING:
    from asya.tasks.view import TaskView
    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud
    from tests.doubles.issuer import Issuer

pytestmark = [pytest.mark.cloud, pytest.mark.slow]

ACME, BOLT = "raw/acme/lines.txt", "raw/bolt/lines.txt"


@pytest.fixture(scope="module")
def acme(tenants: DeployedCloud, issuer: Issuer) -> ApiCaller:
    """A caller of one tenant."""
    return callers.token_caller(tenants, issuer.token("ann", org="acme"))


@pytest.fixture(scope="module")
def bolt(tenants: DeployedCloud, issuer: Issuer) -> ApiCaller:
    """A caller of another tenant."""
    return callers.token_caller(tenants, issuer.token("bob", org="bolt"))


@pytest.fixture(scope="module", autouse=True)
def lines(tenants: DeployedCloud) -> None:
    """A file of each tenant."""
    for reference in (ACME, BOLT):
        tenants.mesh.upload(reference, reference.encode())


def start(caller: ApiCaller, actor: str, **payload: Any) -> str:
    status, content = caller.call("POST", "/api/v1/mesh", {"payload": payload}, actor=actor)
    assert status == 201, content
    return str(content["id"])


def result(cloud: DeployedCloud, task_id: str) -> Any:
    task, envelope = cloud.wait_for_result(task_id)
    assert task.status == "succeeded", task
    return envelope["payload"]


def failure(cloud: DeployedCloud, task_id: str) -> TaskView:
    task = cloud.wait_for_end(task_id)
    assert task.status == "failed", task
    return task


@pytest.mark.rule("10.isolation")
def test_10_tenants_share_no_driver(tenants: DeployedCloud, acme: ApiCaller, bolt: ApiCaller) -> None:
    """Neither a run nor a driver that lingers. The tasks of one tenant share both."""
    together = [start(caller, "shared") for caller in (acme, bolt, acme, bolt)]
    processes = [result(tenants, task_id)["process"] for task_id in together]
    later = [result(tenants, start(caller, "shared"))["process"] for caller in (acme, bolt)]

    of_acme, of_bolt = {processes[0], processes[2], later[0]}, {processes[1], processes[3], later[1]}
    assert not of_acme & of_bolt
    assert later[0] in (processes[0], processes[2])
    assert later[1] in (processes[1], processes[3])


@pytest.mark.rule("10.isolation")
def test_10_envelopes_share_no_driver(tenants: DeployedCloud, acme: ApiCaller) -> None:
    together = [start(acme, "alone") for _ in range(3)]
    assert len({result(tenants, task_id)["process"] for task_id in together}) == len(together)


@pytest.mark.rule("10.isolation.access")
def test_10_a_run_reads_and_writes_the_folders_of_its_tenant(tenants: DeployedCloud, acme: ApiCaller) -> None:
    found = result(tenants, start(acme, "shared", lines=ACME, rows="clean/acme/rows", keys=[ACME, BOLT]))
    assert found["lines"] == [ACME]
    assert found["answers"] == {ACME: 200, BOLT: 403}


@pytest.mark.rule("10.isolation.access")
@pytest.mark.parametrize("payload", [{"lines": BOLT}, {"rows": "clean/bolt/rows"}], ids=["read", "write"])
def test_10_a_path_of_another_tenant_is_refused(
    tenants: DeployedCloud, acme: ApiCaller, payload: dict[str, str]
) -> None:
    task = failure(tenants, start(acme, "shared", **payload))
    assert task.error is not None
    assert "403" in task.error.message or "AccessDenied" in task.error.message


@pytest.mark.rule("10.isolation.access")
def test_10_an_operator_without_the_claim_has_no_folder(tenants: DeployedCloud) -> None:
    task = failure(tenants, start(callers.operator(tenants), "shared", lines=ACME))
    assert task.error is not None
    assert "names {tenant}, and this run has no tenant" in task.error.message
