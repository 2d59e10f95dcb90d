"""The roles of the example on the local cloud: what a function needs is allowed, what belongs to others is denied.

The local cloud answers with the evaluator that it enforces IAM with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from asya.protocol import names
from asya_local.account.keys import ACCOUNT_ID, REGION
from tests.doubles.iam_matrix import (
    FORBIDDEN,
    GET,
    LIST,
    NEEDED,
    PASS,
    PUT,
    READ_ITEM,
    RECEIVE,
    SEND,
    START,
    WRITE_ITEM,
    role_arn,
    sqs,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

Calls = list[tuple[str, str]]

BUCKET = f"arn:aws:s3:::asya-flights-{ACCOUNT_ID}-{REGION}"
OTHERS: Calls = [
    (SEND, sqs("asya-flights-x-completion")),
    (SEND, sqs("asya-flights-x-sink-dlq")),
    (SEND, sqs("asya-flights-x-reports-dlq")),
    (WRITE_ITEM, table("asya-flights-tasks")),
    (READ_ITEM, table("asya-flights-tasks")),
    # Without the names of attributes.
    ("dynamodb:BatchGetItem", table("asya-flights-tasks")),
    (PUT, f"{BUCKET}/results/succeeded/a.json"),
    (START, "arn:aws:emr-serverless:eu-west-1:111122223333:/applications/00a"),
    (PASS, role_arn("asya-flights-x-job-clean-flights")),
]

ACTORS: dict[str, tuple[Calls, Calls]] = {
    "inspect-dataset": (
        [
            (RECEIVE, sqs("asya-flights-inspect-dataset")),
            (SEND, sqs("asya-flights-clean-flights")),
            (SEND, sqs("asya-flights-x-sink")),
            (SEND, sqs("asya-flights-x-reports")),
            (GET, f"{BUCKET}/data/raw/flights.csv.gz"),
            (PUT, f"{BUCKET}/payloads/clean-flights/ab/abc.json"),
            (GET, f"{BUCKET}/payloads/inspect-dataset/ab/abc.json"),
            (GET, f"{BUCKET}/inbox/inspect-dataset/ab/abc.json"),
        ],
        [
            *OTHERS,
            (RECEIVE, sqs("asya-flights-clean-flights")),
            (PUT, f"{BUCKET}/data/raw/flights.csv.gz"),
            (SEND, sqs("asya-flights-x-ends")),
            (GET, f"{BUCKET}/payloads/publish-report/ab/abc.json"),
            (GET, f"{BUCKET}/inbox/publish-report/ab/abc.json"),
            (GET, f"{BUCKET}/buffered/publish-report/a/0/1.json"),
            (GET, f"{BUCKET}/hops/a/0/1.json"),
            (LIST, BUCKET),
        ],
    ),
    "clean-flights": (
        [(SEND, sqs("asya-flights-x-dispatch")), (WRITE_ITEM, table("asya-flights-pending"))],
        [*OTHERS, (GET, f"{BUCKET}/data/raw/flights.csv.gz"), (SEND, sqs("asya-flights-x-ends"))],
    ),
    "publish-report": (
        [(RECEIVE, sqs("asya-flights-publish-report")), (PUT, f"{BUCKET}/data/reports/a.html")],
        [
            *OTHERS,
            (GET, f"{BUCKET}/data/raw/flights.csv.gz"),
            (READ_ITEM, table("asya-flights-sink")),
            (SEND, sqs("asya-flights-x-ends")),
        ],
    ),
    "approve-report": (
        [(SEND, sqs("asya-flights-x-sink")), (PUT, f"{BUCKET}/paused/x")],
        [*OTHERS, (SEND, sqs("asya-flights-publish-report"))],
    ),
    "x-job-clean-flights": (
        [
            (GET, f"{BUCKET}/runs/clean-flights/0000000001/manifest.json"),
            (GET, f"{BUCKET}/data/raw/flights.csv.gz"),
            (PUT, f"{BUCKET}/data/clean/part-0.parquet"),
            (PUT, f"{BUCKET}/runs/clean-flights/0000000001/attempts/a/part-0"),
            (PUT, f"{BUCKET}/runs/clean-flights/0000000001/logs/stderr.gz"),
        ],
        [
            *OTHERS,
            (PUT, f"{BUCKET}/runs/clean-flights/0000000001/manifest.json"),
            (GET, f"{BUCKET}/runs/delay-statistics/0000000001/manifest.json"),
            (PUT, f"{BUCKET}/data/raw/flights.csv.gz"),
        ],
    ),
}

# The functions of each mesh have the rows of the matrix; `x-job-crunch` has a row above.
CREW = {name: (NEEDED[name], FORBIDDEN[name]) for name in NEEDED if name.startswith("x-") and name != "x-job-crunch"}
FUNCTIONS = ACTORS | CREW

# The actors of the example that stand for those of the matrix.
_STAND_INS = {"intake": "inspect-dataset", "crunch": "clean-flights", "score": "split-by-airport", "gather": "x-fan-in"}


BY_KEY = {
    ("x-reports", READ_ITEM, table("asya-shop-sink")),
    ("x-roles", WRITE_ITEM, table("asya-shop-sink")),
}
"""What a function may do with some items only: x-reports reads the list of roles, x-roles writes it."""


def in_the_example(resource: str) -> str:
    """Return a resource of the matrix as that of the example on a local cloud."""
    for actor, stand_in in _STAND_INS.items():
        for form in (
            "asya-shop-{}",
            *(f"{prefix}/{{}}/" for prefix in ("runs", "pending", "payloads", "inbox", "buffered")),
        ):
            resource = resource.replace(form.format(actor), form.format(stand_in))
    resource = resource.replace("111122223333", ACCOUNT_ID).replace("eu-west-1", REGION)
    return resource.replace("asya-shop", "asya-flights")


def allowed(cloud: DeployedCloud, function: str, calls: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return those of the calls that the role of a function may make."""
    role = f"arn:aws:iam::{ACCOUNT_ID}:role/{names.role_name('flights', function, REGION)}"
    answers = []
    for action, resource in calls:
        answer = cloud.client("iam").simulate_principal_policy(
            PolicySourceArn=role, ActionNames=[action], ResourceArns=[in_the_example(resource)]
        )
        if answer["EvaluationResults"][0]["EvalDecision"] == "allowed":
            answers.append((action, resource))
    return answers


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_may_do_what_it_needs(cloud: DeployedCloud, function: str) -> None:
    needed, _ = FUNCTIONS[function]
    # The simulator of MiniStack knows no context: the service of a PassRole, the key of an item.
    calls = [call for call in needed if call[0] != PASS and (function, *call) not in BY_KEY]
    assert allowed(cloud, function, calls) == calls


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_may_not_touch_its_neighbors_or_another_stage(cloud: DeployedCloud, function: str) -> None:
    needed, forbidden = FUNCTIONS[function]
    in_stage = [
        (action, in_the_example(resource).replace("asya-flights", "asya-flights-test")) for action, resource in needed
    ]
    assert allowed(cloud, function, [*forbidden, *in_stage]) == []


def test_the_matrix_has_every_function_of_the_example(cloud: DeployedCloud) -> None:
    pages = cloud.client("iam").get_paginator("list_roles").paginate()
    roles = {
        role["RoleName"] for page in pages for role in page["Roles"] if role["RoleName"].startswith("asya-flights-")
    }
    alike = {"split-by-airport", "delay-statistics", "x-job-delay-statistics"}
    alike |= {"x-fan-in", "x-pause", "x-index", "x-job-x-index"}
    assert roles == {names.role_name("flights", function, REGION) for function in FUNCTIONS.keys() | alike}
