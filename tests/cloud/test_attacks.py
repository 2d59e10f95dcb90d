"""The code of an actor attacks others with the credentials of its role, with IAM enforced: every attempt is denied.

`tests/infra/test_iam_matrix.py` asks all templates. Here the calls are made, with the keys, prefixes and batches that the simulator
of MiniStack knows nothing of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from asya_infra.addresses import Addresses
from asya_infra.mesh_file import load_mesh, to_table
from asya_infra.permissions.needs import Place
from asya_local.account import ACCOUNT_ID, REGION
from tests.cloud import attempts
from tests.cloud.conftest import MESHES
from tests.cloud.gateway_tasks import read_task, start, wait_for_end
from tests.doubles.iam_matrix import Matrix

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cloud.attempts import Attempt
    from tests.cloud.callers import ApiCaller

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
