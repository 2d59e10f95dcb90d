"""The code of an actor attacks others with the credentials of its role, with IAM enforced: every attempt is denied.

Strangers and queue senders write requests that no SDK makes (`raw_requests`): none is answered.

`tests/infra/test_iam_matrix.py` asks all templates. Here the calls are made, with the keys, prefixes and batches that the simulator
of MiniStack knows nothing of.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from botocore.credentials import Credentials

from asya_infra.addresses import Addresses
from asya_infra.mesh_file import load_mesh, to_table
from asya_infra.permissions.needs import Place
from asya_local.account import ACCOUNT_ID, REGION
from tests.cloud import attempts
from tests.cloud.conftest import MESHES
from tests.cloud.gateway_tasks import read_task, start, wait_for_end
from tests.cloud.raw_requests import ITS_OWN, SENDER, STRANGER, Wire
from tests.doubles.iam_matrix import Matrix

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.cloud.attempts import Attempt
    from tests.cloud.callers import ApiCaller
    from tests.cloud.deployed_cloud import DeployedCloud
    from tests.cloud.raw_requests import Raw

pytestmark = pytest.mark.cloud

ACTOR = "intrude"
MOST = 120
"""Of the calls of one service: the matrix has hundreds, and `tests/infra/test_iam_matrix.py` asks for all."""
DENIED = {"AccessDenied", "AccessDeniedException", "AuthorizationError"}


def intruder(file: Path) -> Matrix:
    """The matrix of the gateway mesh."""
    addresses = Addresses(
        namespace="gateway", partition="aws", region=REGION, account=ACCOUNT_ID, url_suffix="amazonaws.com"
    )
    return Matrix(Place(addresses=addresses, table=to_table(load_mesh(file)), application="<id>"))


MATRIX = intruder(MESHES / "gateway" / "mesh.yaml")
UNDECLARED = attempts.undeclared(MATRIX, ACTOR)
GROUPS: dict[str, list[Attempt]] = {
    **{service: calls[:: -(-len(calls) // MOST)] for service, calls in UNDECLARED.items()},
    "beyond": attempts.beyond(MATRIX),
    "statements": attempts.statements(),
}


@pytest.mark.rule("4.claim-check.readers", "4.keys.secret", "5.ends-of-the-crew", "13.states")
@pytest.mark.parametrize("group", GROUPS)
def test_code_of_an_actor_opens_nothing_of_others(alice: ApiCaller, operator: ApiCaller, group: str) -> None:
    theirs = start(alice, "echo", {"n": 1})
    before = wait_for_end(alice, theirs)
    calls = GROUPS[group]
    answers = wait_for_end(operator, start(operator, ACTOR, {"calls": calls}))["result"]["answers"]
    assert len(answers) == len(calls) > 30
    opened = [(call, answer) for call, answer in zip(calls, answers, strict=True) if answer not in DENIED]
    assert opened == []
    assert read_task(alice, theirs) == before


def check_nothing_opens(wire: Wire, requests: Sequence[Raw], host: str = "", prefix: str = "") -> None:
    assert len(requests) > 200
    answers = [(request, wire.status(request, host, prefix)) for request in requests]
    assert [(request, status) for request, status in answers if 0 < status < 400] == []


@pytest.mark.rule("13.signed", "13.doors.paths")
@pytest.mark.parametrize("place", ["host of the API", "path of the API", "root"])
def test_no_unsigned_request_opens_anything(gateway: DeployedCloud, alice: ApiCaller, place: str) -> None:
    theirs = start(alice, "echo", {"n": 1})
    before = wait_for_end(alice, theirs)
    url = urlsplit(gateway.mesh.connection.gateway_url)
    wire = Wire(int(url.port or 0))
    host = {"host of the API": url.netloc, "path of the API": f"127.0.0.1:{url.port}"}.get(place, "")
    prefix = f"/_aws/execute-api/{url.netloc.partition('.')[0]}/$default" if place == "path of the API" else ""
    check_nothing_opens(wire, STRANGER, host, prefix)
    assert read_task(alice, theirs) == before


@pytest.mark.rule("4.entry")
def test_no_raw_request_of_a_queue_sender_opens_more_than_its_queue(gateway: DeployedCloud, alice: ApiCaller) -> None:
    theirs = start(alice, "echo", {"n": 1})
    before = wait_for_end(alice, theirs)
    iam = gateway.client("iam")
    iam.create_user(UserName="raw")
    statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "arn:aws:sqs:*:*:asya-gateway-echo"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_user_policy(UserName="raw", PolicyName="send", PolicyDocument=document)
    key = iam.create_access_key(UserName="raw")["AccessKey"]
    url = urlsplit(gateway.mesh.connection.gateway_url)
    wire = Wire(int(url.port or 0), Credentials(key["AccessKeyId"], key["SecretAccessKey"]))
    assert [wire.status(request) for request in ITS_OWN] == [200, 200]
    check_nothing_opens(wire, SENDER)
    assert read_task(alice, theirs) == before
