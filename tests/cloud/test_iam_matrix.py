"""The roles of the example on the local cloud allow what manifests declare, and refuse all else.

The local cloud answers with the evaluator that it enforces IAM with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from asya.protocol import names
from asya_infra.addresses import Addresses
from asya_infra.mesh_file import load_mesh, to_table
from asya_infra.permissions.needs import Place
from asya_local.account import ACCOUNT_ID, REGION
from tests.doubles.iam_matrix import Call, Matrix, OnItem, OnObject, OnQueue
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

BUCKET = f"arn:aws:s3:::asya-flights-{ACCOUNT_ID}-{REGION}"
GET, PUT = "s3:GetObject", "s3:PutObject"
_ONE_OF = 24  # `tests/infra/test_iam_matrix.py` asks for all


def matrix(namespace: str = "flights") -> Matrix:
    """The matrix of the example, or of a stage."""
    addresses = Addresses(
        namespace=namespace, partition="aws", region=REGION, account=ACCOUNT_ID, url_suffix="amazonaws.com"
    )
    table = to_table(load_mesh(PROJECT / "mesh.yaml"))
    return Matrix(Place(addresses=addresses, table=table, application="<id>"))


def calls_of(asked: Matrix) -> list[Call]:
    """The calls that need no context.

    The simulator of MiniStack knows none: no keys of items, no prefixes of lists. tests/infra/test_iam_matrix.py asks for batches.
    """
    return [
        call
        for call in asked.calls
        if isinstance(call, OnQueue | OnObject)
        or (isinstance(call, OnItem) and not call.request(asked.place).context and not call.call.startswith("Batch"))
    ]


MATRIX, STAGE = matrix(), matrix("flights-test")

GIVEN = {
    "inspect-dataset": [(GET, f"{BUCKET}/data/raw/flights.csv.gz")],
    "publish-report": [(PUT, f"{BUCKET}/data/reports/a.html")],
    "x-job-clean-flights": [
        (GET, f"{BUCKET}/runs/clean-flights/0000000001/manifest.json"),
        (GET, f"{BUCKET}/data/raw/flights.csv.gz"),
        (PUT, f"{BUCKET}/data/clean/part-0.parquet"),
        (PUT, f"{BUCKET}/runs/clean-flights/0000000001/attempts/a/part-0"),
        (PUT, f"{BUCKET}/runs/clean-flights/0000000001/logs/stderr.gz"),
    ],
}
"""What the mesh file grants to code of users, and what job runs may do."""
REFUSED = {
    "inspect-dataset": [(PUT, f"{BUCKET}/data/raw/flights.csv.gz")],
    "publish-report": [(GET, f"{BUCKET}/data/raw/flights.csv.gz")],
    "x-job-clean-flights": [
        (PUT, f"{BUCKET}/runs/clean-flights/0000000001/manifest.json"),
        (GET, f"{BUCKET}/runs/delay-statistics/0000000001/manifest.json"),
        (PUT, f"{BUCKET}/data/raw/flights.csv.gz"),
    ],
}


def allowed(cloud: DeployedCloud, function: str, calls: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return those of the calls that the role of a function may make."""
    role = f"arn:aws:iam::{ACCOUNT_ID}:role/{names.role_name('flights', function, REGION)}"
    found = set()
    for action, resource in calls:
        # Of several resources MiniStack judges the first one.
        answer = cloud.client("iam").simulate_principal_policy(
            PolicySourceArn=role, ActionNames=[action], ResourceArns=[resource]
        )
        if answer["EvaluationResults"][0]["EvalDecision"] == "allowed":
            found.add((action, resource))
    return found


def requests(asked: Matrix, calls: Iterable[Call]) -> set[tuple[str, str]]:
    """The actions and resources of calls."""
    made = (call.request(asked.place) for call in calls)
    return {(request.action, request.resource) for request in made if request is not None}


@pytest.mark.parametrize("function", MATRIX.roles)
def test_a_role_allows_what_its_manifest_declares(cloud: DeployedCloud, function: str) -> None:
    """A function is asked for one of some calls that it does not declare, and its neighbor for the next one."""
    calls, number = calls_of(MATRIX), [*MATRIX.roles].index(function)
    declared = {call for call in calls if MATRIX.allows(function, call)}
    others = [call for call in calls if call not in declared][number % _ONE_OF :: _ONE_OF]
    wanted = requests(MATRIX, declared)
    assert allowed(cloud, function, wanted | requests(MATRIX, others)) == wanted


@pytest.mark.parametrize("function", MATRIX.roles)
def test_a_function_may_do_nothing_in_another_stage(cloud: DeployedCloud, function: str) -> None:
    declared = (call for call in calls_of(STAGE) if STAGE.allows(function, call))
    assert allowed(cloud, function, requests(STAGE, declared)) == set()


@pytest.mark.parametrize("function", GIVEN)
def test_what_the_mesh_file_grants(cloud: DeployedCloud, function: str) -> None:
    assert allowed(cloud, function, GIVEN[function]) == set(GIVEN[function])
    assert allowed(cloud, function, REFUSED[function]) == set()


def test_the_matrix_has_every_function_of_the_example(cloud: DeployedCloud) -> None:
    pages = cloud.client("iam").get_paginator("list_roles").paginate()
    roles = {
        role["RoleName"] for page in pages for role in page["Roles"] if role["RoleName"].startswith("asya-flights-")
    }
    jobs = {"x-job-clean-flights", "x-job-delay-statistics", "x-job-x-index"}
    assert roles == {names.role_name("flights", function, REGION) for function in {*MATRIX.roles, *jobs}}
